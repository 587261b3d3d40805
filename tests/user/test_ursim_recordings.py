"""The emulator repeats what was recorded from URSim.

The recordings have no licence, so they are not in the repository.

A UR5e at 125 Hz, every fourth cycle of its controller: a movej, and three rotations about the
standing TCP, by speedl commands that someone gave by hand. Speeds and times of the commands are
read from the ramps of the recorded speed.
"""

from __future__ import annotations

import gzip
import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from simbridge.emulator.emulated_controller import EmulatedController
from simbridge.emulator.program import ScriptProgram
from simbridge.emulator.state import profile
from simbridge.robot import load_robot
from simbridge.ur.tables import SafetyMode

pytestmark = pytest.mark.quick

# Period of the controller, s.
DT = 0.002
# Controller cycles per row of a recording.
ROW = 4


class Recording:
    """A recording: `column(name)` (rows,), `joints(name)` (rows, 6)."""

    def __init__(self, name: str) -> None:
        if "SIMBRIDGE_RECORDINGS" not in os.environ:
            pytest.skip("SIMBRIDGE_RECORDINGS names no folder with recordings of URSim")
        with gzip.open(
            Path(os.environ["SIMBRIDGE_RECORDINGS"]) / "ursim_ur5e" / f"{name}.csv.gz", "rt"
        ) as file:
            names = file.readline().split()
            self._columns = dict(zip(names, np.loadtxt(file).T, strict=True))

    def column(self, name: str) -> np.ndarray:
        return self._columns[name]

    def joints(self, name: str) -> np.ndarray:
        return np.column_stack([self._columns[f"{name}_{i}"] for i in range(6)])

    @property
    def rotation(self) -> np.ndarray:
        """The tool's angular velocity (rows, 3), rad/s."""
        return self.joints("actual_TCP_speed")[:, 3:]


class Bench:
    """A UR5e at these joints; its ticks are called directly."""

    def __init__(self, q: np.ndarray) -> None:
        self.controller = EmulatedController(
            load_robot("ur5e"), profile("5.12"), ScriptProgram, boot_time=0.0, q=q
        )
        self.state = self.controller.state
        self.controller.brake_release()
        while self.state.robot_mode != 7:
            self.controller.tick()

    def load(self, *lines: str) -> None:
        self.controller.load_script("def test():\n" + "\n".join(lines) + "\nend\n")
        self.controller.program.compilation.join()

    def rows(self, count: int, late: int = 0) -> np.ndarray:
        """Return targets (count, 6) at the end of every fourth cycle.

        The first is that after `4 - late` cycles.
        """
        rows = []
        for i in range(count):
            for _ in range(ROW - late if i == 0 else ROW):
                self.controller.tick()
            rows.append(self.state.target_q)
        return np.array(rows)


def test_a_movej_is_the_recorded_one():
    recording = Recording("moves")
    q = recording.joints("target_q")
    moving = np.flatnonzero(np.abs(np.diff(q, axis=0)).max(axis=1) > 0.0)
    first = int(moving[0]) + 1
    last = int(moving[moving < 800][-1]) + 1
    goal = q[last]
    lead = int(np.argmax(np.abs(goal - q[0])))
    speed = recording.joints("target_qd")[: last + 1, lead]
    a = recording.joints("target_qdd")[first, lead]
    v = speed.max()
    bench = Bench(q[0])
    bench.load(f"movej({goal.tolist()}, a={a}, v={v})")
    # How long it had been moving at its first row: speed over acceleration.
    mine = bench.rows(last - first + 3, late=ROW - round(speed[first] / a / DT))

    assert (a, v) == pytest.approx((0.5, 1.0), abs=1e-9)
    assert np.abs(mine - q[first : last + 3]).max() < 1e-4

    bench = Bench(q[0])
    bench.load(f"movej({goal.tolist()}, a={a}, v={v})")
    bench.rows(100, late=ROW - round(speed[first] / a / DT))
    for name in ("target_qd", "target_qdd"):
        assert getattr(bench.state, name) == pytest.approx(
            recording.joints(name)[first + 99], abs=1e-6
        )

    assert (mine[last - first] == mine[-1]).all() and (mine[last - first - 1] != mine[-1]).any()


def twists(rotation: np.ndarray) -> list[tuple[int, np.ndarray, float]]:
    """Return the commands behind a tool's angular velocity (rows, 3).

    A command is its cycle from the first row, its target (3,), and rad/s^2.

    The velocity is straight between the times of the commands and of the targets reached; straight
    pieces meet there.
    """
    slope = np.diff(rotation, axis=0)
    new = np.abs(np.diff(slope, axis=0)).max(axis=1) > 2e-5
    edges = np.concatenate([[0], np.flatnonzero(new) + 1, [len(slope)]])
    pieces = [(int(i), slope[i]) for i, j in pairwise(edges) if j - i > 1]
    errors = []
    for (i, before), (j, after) in pairwise(pieces):
        gap = rotation[i] - i * before - rotation[j] + j * after
        row = float((after - before) @ gap / ((after - before) @ (after - before)))
        errors.append((round(row * ROW), rotation[i] + (row - i) * before, after / (ROW * DT)))
    commands = []
    for n, (cycle, speed, acceleration) in enumerate(errors):
        if not np.allclose(acceleration, 0.0):
            # A piece that no plateau follows had not reached its target.
            reached = n + 1 < len(errors) and np.allclose(errors[n + 1][2], 0.0)
            target = errors[n + 1][1] if reached else speed + 10.0 * acceleration
            commands.append((cycle, target, float(np.linalg.norm(acceleration))))
    return commands


def repeated(recording: Recording, first: int, last: int) -> tuple[Bench, np.ndarray]:
    """Return the bench after rows first..last of a recorded rotation.

    With it the differences of its targets (rows, 6), rad.
    """
    q = recording.joints("target_q")[first : last + 1]
    commands = twists(recording.rotation[first : last + 1])
    bench = Bench(q[0])
    lines = []
    for n, (cycle, target, acceleration) in enumerate(commands):
        after = commands[n + 1][0] if n + 1 < len(commands) else ROW * len(q)
        xd = [0.0, 0.0, 0.0, *target.tolist()]
        lines.append(
            f"speedl({xd}, a={acceleration}, t={(after - cycle) * DT})"
            if not np.allclose(target, 0.0)
            else "stopl(10.0)"
        )
    bench.load(*lines)
    start = commands[0][0] // ROW + 1
    return bench, bench.rows(len(q) - start, late=commands[0][0] % ROW) - q[start:]


# The project requires 2 mrad, and 10 mrad while braking.


def test_speedl_rotation_is_the_recorded_one():
    _bench, difference = repeated(Recording("moves"), 900, 1499)

    assert np.abs(difference).max() < 1e-5


def test_stopl_of_rotation_is_the_recorded_one():
    bench, difference = repeated(Recording("protective_stop"), 515, 860)
    braking = 835 - 861  # rows from the end

    assert np.abs(difference[:braking]).max() < 1e-5
    # For two cycles before the stop another command was in force, which the rows do not show.
    assert np.abs(difference).max() < 2e-4
    assert not bench.state.target_qd.any()


def test_a_protective_stop_is_the_recorded_one():
    recording = Recording("protective_stop")
    q = recording.joints("target_q")
    runtime = recording.column("runtime_state")
    scaling = recording.column("speed_scaling")
    stop = int(np.flatnonzero(recording.column("safety_mode") == SafetyMode.PROTECTIVE_STOP)[0])
    bench, difference = repeated(recording, 1240, stop - 1)

    assert np.abs(difference).max() < 1e-5

    bench.controller.settings = bench.controller.settings.changed({"on_protective_stop": "stop"})
    for _ in range(ROW - 1):
        bench.controller.tick()
    bench.controller.protective_stop()  # in the last cycle before the recorded row
    for row, late in ((stop, ROW - 1), (stop + 1, 0)):
        assert np.abs(bench.rows(1, late) - q[row]).max() < 2e-3
        state = bench.state
        assert (state.runtime_state, state.limiter_scaling) == (
            runtime[row],
            pytest.approx(scaling[row], abs=1e-3),
        )

    assert not state.target_qd.any()


@pytest.mark.parametrize("setting", ["pause", "stop"])
def test_targets_rest_after_protective_stop(setting):
    recording = Recording("protective_stop")
    stop = int(np.flatnonzero(recording.column("safety_mode") == SafetyMode.PROTECTIVE_STOP)[0])
    bench, _difference = repeated(recording, 1240, stop)
    bench.controller.settings = bench.controller.settings.changed({"on_protective_stop": setting})
    bench.controller.protective_stop()
    rest = bench.rows(2)[-1]

    assert not bench.state.target_qd.any()
    assert np.abs(rest - recording.joints("target_q")[stop + 2]).max() < 1e-2
