"""Compare the physics engines on the built-in scenarios: the two tables of docs/validation.md.

python tools/compare_engines.py [--robot ur10e] [SCENARIO ...]

It takes about ten minutes for all scenarios. A row is printed as soon as it is measured.
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
# The step of the second table, s: an eighth of the usual one.
SHORT_STEP = 0.000125


class PreciseMujoco(MujocoBackend):
    """MuJoCo with the short step."""

    physics_step = SHORT_STEP


class PrecisePyBullet(PyBulletBackend):
    """PyBullet with the short step."""

    physics_step = SHORT_STEP


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


def main() -> None:
    """Measure every scenario, and print both tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("scenarios", nargs="*", default=sorted(scenario_files()))
    parser.add_argument("--robot", default="ur10e")
    arguments = parser.parse_args()
    plans = make_plans(arguments.scenarios, arguments.robot)

    print_head(
        ("scenario", "samples", "TCP, mm", "torque, N m", "TCP with 2 kg, mm", "torque, N m")
    )
    for prepared in plans:
        print_row([prepared.scenario.name, prepared.plan.samples, *compare_engines(prepared)])

    print()
    print_head(
        (
            "scenario",
            "engines, mm",
            "engines with 2 kg, mm",
            "step, mm",
            "step with 2 kg, mm",
            "the 2 kg, mm",
        )
    )
    for prepared in plans:
        print_row([prepared.scenario.name, *compare_steps(prepared)])


def make_plans(scenarios: Iterable[str], robot: str) -> list[Prepared]:
    """Plan scenarios for an arm, without those that are refused."""
    plans = []
    for name in scenarios:
        try:
            plans.append(prepare(name, robot=robot))
        except PlanRefused:
            print(f"Not simulated, because its plan is refused: {name}\n")
    return plans


def compare_engines(prepared: Prepared) -> list[float]:
    """Compare the engines at the usual step, without and with a payload.

    Returns:
        The largest distance between the TCPs, mm, and the largest difference of torques, N m,
        without the payload; and both with it.
    """
    figures = []
    for payload in (0.0, PAYLOAD):
        bullet = simulate(PyBulletBackend, prepared, payload)
        mujoco = simulate(MujocoBackend, prepared, payload)
        figures += [mujoco.distance(bullet), mujoco.effort_difference(bullet)]
    return figures


def compare_steps(prepared: Prepared) -> list[float]:
    """Compare the engines at the short step, and the short step with the usual one.

    Returns:
        The largest distances between the TCPs, mm: between the engines at the short step without
        and with a payload, between the two steps without and with it, and between the motions
        without and with it.
    """
    between_engines = []
    between_steps = []
    precise_motions = []
    for payload in (0.0, PAYLOAD):
        bullet = simulate(PrecisePyBullet, prepared, payload)
        mujoco = simulate(PreciseMujoco, prepared, payload)
        usual = simulate(MujocoBackend, prepared, payload)
        between_engines.append(mujoco.distance(bullet))
        between_steps.append(mujoco.distance(usual))
        precise_motions.append(mujoco)

    unloaded, loaded = precise_motions
    return [*between_engines, *between_steps, loaded.distance(unloaded)]


def simulate(kind: type[SimulationBackend], prepared: Prepared, payload: float) -> Motion:
    """Track a plan in simulation.

    Args:
        kind: The backend.
        prepared: The plan and its arm.
        payload: Mass of which the controller does not know, kg.
    """
    plan = prepared.plan
    with kind(prepared.robot, Options(unmodelled_payload=payload)) as arm:
        # Without an approach: how long the arm takes to settle would depend on the step.
        arm.place(plan.sent[0])
        states = list(arm.stream(plan.sent))
    joints = np.array([state.q for state in states])
    effort = np.array([state.effort for state in states])
    return Motion(tool_path(prepared.robot, joints)[:, :3], effort)


def print_head(columns: Iterable[str]) -> None:
    """Print the head of a Markdown table."""
    names = list(columns)
    print("| " + " | ".join(names) + " |")
    print("|---" * len(names) + "|")


def print_row(cells: Iterable[str | float]) -> None:
    """Print a row of a Markdown table, numbers with two digits."""
    texts = [f"{cell:.1e}" if isinstance(cell, float) else f"`{cell}`" for cell in cells]
    print("| " + " | ".join(texts).replace("`", "") + " |", flush=True)


if __name__ == "__main__":
    main()
