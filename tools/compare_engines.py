"""Compare the physics engines on the built-in scenarios: the two tables of docs/validation.md.

python tools/compare_engines.py [--robot ur10e] [SCENARIO ...]

All scenarios take about ten minutes.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simbridge.backends.mujoco import MujocoBackend
from simbridge.backends.pybullet import PyBulletBackend
from simbridge.backends.simulation import SimulationBackend
from simbridge.errors import PlanRefused
from simbridge.planning.options import Options
from simbridge.resources import scenario_files
from simbridge.robot.kinematics import tool_path
from simbridge.running.run_setup import Prepared, prepare

# Mass at the TCP of which the controller does not know, kg.
PAYLOAD = 2.0
# How long the arm holds the first setpoint before a motion, so that it is at rest, s.
HOLD_S = 1.0


class PreciseMujoco(MujocoBackend):
    """MuJoCo with an eighth of the usual step."""

    physics_step = 0.000125


@dataclass(frozen=True)
class Motion:
    """The motion of a simulated arm through a plan.

    Attributes:
        tool: Positions of the TCP (T, 3), m.
        effort: Torques of the joints (T, n), N m.
    """

    tool: NDArray[np.float64]
    effort: NDArray[np.float64]

    def distance(self, other: Motion) -> float:
        """Return the largest distance between the TCPs of two motions, mm."""
        return 1e3 * float(np.linalg.norm(self.tool - other.tool, axis=1).max())

    def effort_difference(self, other: Motion) -> float:
        """Return the largest difference between the torques of two motions, N m."""
        return float(np.abs(self.effort - other.effort).max())


@dataclass(frozen=True)
class Motions:
    """The motions of one plan with one payload.

    Attributes:
        bullet: In PyBullet.
        mujoco: In MuJoCo.
        precise: In MuJoCo with the short step.
    """

    bullet: Motion
    mujoco: Motion
    precise: Motion


def main() -> None:
    """Simulate every scenario, and print both tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("scenarios", nargs="*", default=sorted(scenario_files()))
    parser.add_argument("--robot", default="ur10e")
    arguments = parser.parse_args()

    engine_rows = []
    step_rows = []
    for prepared in make_plans(arguments.scenarios, arguments.robot):
        name = prepared.scenario.name
        free = simulate_all(prepared, 0.0)
        loaded = simulate_all(prepared, PAYLOAD)

        engine_figures = []
        for motions in (free, loaded):
            engine_figures.append(motions.mujoco.distance(motions.bullet))
            engine_figures.append(motions.mujoco.effort_difference(motions.bullet))
        engine_rows.append([f"`{name}`", *map(scientific, engine_figures)])

        step_figures = (
            free.precise.distance(free.mujoco),
            loaded.precise.distance(loaded.mujoco),
            loaded.precise.distance(free.precise),
        )
        step_rows.append([f"`{name}`", *map(scientific, step_figures)])

    print_table(
        ("scenario", "TCP, mm", "torques, N m", "with 2 kg: TCP, mm", "torques, N m"), engine_rows
    )
    print_table(
        ("scenario", "without a payload, mm", "with 2 kg, mm", "moved by the 2 kg, mm"), step_rows
    )


def make_plans(scenarios: Iterable[str], robot: str) -> list[Prepared]:
    """Plan scenarios for an arm, without those that are refused."""
    plans = []
    for name in scenarios:
        try:
            plans.append(prepare(name, robot=robot))
        except PlanRefused:
            print(f"Not simulated, because its plan is refused: {name}\n")
    return plans


def simulate_all(prepared: Prepared, payload: float) -> Motions:
    """Track a plan with a payload, kg, in both engines, and with the short step."""
    return Motions(
        bullet=simulate(PyBulletBackend, prepared, payload),
        mujoco=simulate(MujocoBackend, prepared, payload),
        precise=simulate(PreciseMujoco, prepared, payload),
    )


def simulate(kind: type[SimulationBackend], prepared: Prepared, payload: float) -> Motion:
    """Track a plan in simulation.

    Args:
        kind: The backend.
        prepared: The plan and its arm.
        payload: Mass of which the controller does not know, kg.
    """
    commands = prepared.plan.sent
    held = round(HOLD_S / prepared.plan.period)
    commands = np.concatenate([np.repeat(commands[:1], held, axis=0), commands])

    with kind(prepared.robot, Options(unmodelled_payload=payload)) as arm:
        arm.place(commands[0])
        states = list(arm.stream(commands))[held:]

    joints = np.array([state.q for state in states])
    effort = np.array([state.effort for state in states])
    return Motion(tool_path(prepared.robot, joints)[:, :3], effort)


def scientific(figure: float) -> str:
    """Return a figure with two digits; 0 where there is no difference at all."""
    return f"{figure:.1e}" if figure else "0"


def print_table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    """Print a Markdown table."""
    names = list(columns)
    print("| " + " | ".join(names) + " |")
    print("|---" * len(names) + "|")
    for cells in rows:
        print("| " + " | ".join(cells) + " |")
    print()


if __name__ == "__main__":
    main()
