"""A real UR5 of the CB3 series under servoj, in a recording whose calls can be reconstructed.

`$SIMBRIDGE_RECORDINGS/akig_ur5_cb3_servoj`: ROS's ur_modern_driver gave the controller the
waypoints of each move. A program on the controller evaluates the cubic between two waypoints once
a cycle, calls servoj with it for 8 ms, and holds the last command for 1 ms at each waypoint.

The recording does not say when the program of a move began. For each move the cycle and the phase
in whole milliseconds are chosen in which the prediction is best. The joints behind the targets have
three coefficients each, which are fitted to the moves of a calibration bag only.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from simbridge.servo.law import JointMotion, ServojLaw

# Cycle of the controller, and of the recorded rows, s.
CYCLE = 0.008
# Duration of the call that holds the last command at a waypoint, s.
WAITING_CALL = 0.001
# The joints that move: shoulder_pan and wrist_3.
MOVING_JOINTS = (0, 5)
# Number of the first goal that is a move of seconds; goal 0 only moves to the start.
FIRST_MOVE = 1
# Cycles that are predicted after the last command.
SETTLING_CYCLES = 150
# Cycles after a goal was received, within which its program begins.
LATEST_BEGIN = 60
PHASES = 0.001 * np.arange(8)
# Slowest target that counts as moving, rad/s.
MOVING_SPEED = 0.01
# Below this speed friction has no sign, rad/s.
SIGN_SPEED = 1e-3


class Commands(NamedTuple):
    """Calls of servoj.

    Attributes:
        q: Commands (K, 6), rad.
        durations: Duration of each call (K,), s.
    """

    q: np.ndarray
    durations: np.ndarray


class JointFit(NamedTuple):
    """How a joint follows its target: actual - target = -lag qd + acceleration qdd + friction.

    Attributes:
        lag: Delay, s.
        acceleration: Coefficient of the target's acceleration, s^2.
        friction: Coefficient of the sign of the velocity, rad.
    """

    lag: float
    acceleration: float
    friction: float

    def predict(self, motion: JointMotion, joint: int) -> np.ndarray:
        """Return the positions (N,), rad, of a joint whose targets move so."""
        return motion.q[:, joint] + regressors(motion, joint) @ np.array(self)


@dataclass(frozen=True, eq=False)
class Recording:
    """Moves of the arm, and its joints.

    Attributes:
        stamps: When each row was received (T,), s.
        actual_q: Measured joint positions (T, 6), rad.
        waypoints: Table (points, 13) of each move: time, positions and velocities.
        received: When each move's goal was received, s.
    """

    stamps: np.ndarray
    actual_q: np.ndarray
    waypoints: list[np.ndarray]
    received: list[float]


class Placed(NamedTuple):
    """A prediction of a move, placed where it fits the recording best.

    Attributes:
        first: Row of the first predicted cycle.
        motion: Predicted targets of the rows from there on.
        error: Sum of the squared errors, rad^2.
    """

    first: int
    motion: JointMotion
    error: float


# Predicts targets from calls: commands, phase, number of cycles.
Prediction = Callable[[Commands, float, int], JointMotion]


def recordings_folder() -> Path:
    """Return the folder of the recording; skip the test without it."""
    if "SIMBRIDGE_RECORDINGS" not in os.environ:
        pytest.skip("SIMBRIDGE_RECORDINGS names no folder with recordings of real arms")
    return Path(os.environ["SIMBRIDGE_RECORDINGS"]) / "akig_ur5_cb3_servoj"


def read_table(name: str) -> np.ndarray:
    """Read a table of numbers of the recording."""
    with gzip.open(recordings_folder() / name, "rt") as file:
        return np.loadtxt(file, delimiter=",", skiprows=1)


@cache
def read_recording(bag: str) -> Recording:
    """Read a bag: "125hzLAN" or "10hzLAN"."""
    goals = read_table(f"{bag}_goals.csv.gz")
    joints = read_table(f"{bag}_joints.csv.gz")
    numbers = range(FIRST_MOVE, int(goals[-1, 0]) + 1)
    moves = [goals[goals[:, 0] == number] for number in numbers]
    return Recording(
        stamps=joints[:, 0],
        actual_q=joints[:, 1:7],
        waypoints=[move[:, 2:] for move in moves],
        received=[float(move[0, 1]) for move in moves],
    )


def evaluate_waypoints(waypoints: np.ndarray, waits: bool = True) -> Commands:
    """Return the calls that the driver's program makes of the waypoints of a move.

    Args:
        waypoints: Time, positions and velocities (points, 13).
        waits: Whether it calls servoj for 1 ms at each waypoint.
    """
    q = []
    durations = []
    time = waypoints[:, 0]
    now = 0.0
    for begin, end in pairwise(waypoints):
        length = end[0] - begin[0]
        while now <= end[0] - time[0]:
            q.append(_cubic(now - (begin[0] - time[0]), length, begin[1:], end[1:]))
            durations.append(CYCLE)
            now += CYCLE
        if waits:
            q.append(q[-1])
            durations.append(WAITING_CALL)
    return Commands(np.array(q), np.array(durations))


def _cubic(time: float, length: float, begin: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Return the cubic between two waypoints (12,), positions and velocities, after a time, s."""
    u = time / length
    weights = (
        (1.0 + 2.0 * u) * (1.0 - u) ** 2,
        u * (1.0 - u) ** 2 * length,
        u * u * (3.0 - 2.0 * u),
        u * u * (u - 1.0) * length,
    )
    states = (begin[:6], begin[6:], end[:6], end[6:])
    return np.sum([weight * state for weight, state in zip(weights, states, strict=True)], axis=0)


def predict_by(law: ServojLaw) -> Prediction:
    """Return the prediction by a servo law, as simbridge has it."""

    def predict(commands: Commands, phase: float, cycles: int) -> JointMotion:
        return law.follow(commands.q, call=commands.durations, begin=phase, cycles=cycles)

    return predict


def regressors(motion: JointMotion, joint: int) -> np.ndarray:
    """Return the factors (N, 3) of a `JointFit`."""
    qd = motion.qd[:, joint]
    sign = np.sign(qd) * (np.abs(qd) > SIGN_SPEED)
    return np.stack([-qd, motion.qdd[:, joint], sign], axis=1)


class Predictor:
    """Predictions of the moves of a bag in each phase.

    Args:
        bag: "125hzLAN" or "10hzLAN".
        predict: How calls become targets.
        waits: Whether the program calls servoj for 1 ms at each waypoint.
    """

    def __init__(self, bag: str, predict: Prediction, *, waits: bool = True) -> None:
        self.recording = read_recording(bag)
        self._motions: list[list[JointMotion]] = []
        for waypoints in self.recording.waypoints:
            commands = evaluate_waypoints(waypoints, waits)
            cycles = int(commands.durations.sum() / CYCLE) + SETTLING_CYCLES
            self._motions.append([predict(commands, phase, cycles) for phase in PHASES])

    def place(self, fits: Sequence[JointFit]) -> list[Placed]:
        """Return each move's best prediction, with the fits of both joints."""
        return [
            min(
                (self._best_row(motion, received, fits) for motion in motions),
                key=lambda placed: placed.error,
            )
            for motions, received in zip(self._motions, self.recording.received, strict=True)
        ]

    def _best_row(self, motion: JointMotion, received: float, fits: Sequence[JointFit]) -> Placed:
        """Return a prediction, placed at the row where it fits best."""
        positions = np.stack(
            [fit.predict(motion, joint) for fit, joint in zip(fits, MOVING_JOINTS, strict=True)],
            axis=1,
        )
        actual = self.recording.actual_q[:, MOVING_JOINTS]
        after_goal = int(np.searchsorted(self.recording.stamps, received))

        candidates = []
        for first in range(after_goal, after_goal + LATEST_BEGIN):
            rows = actual[first : first + len(positions)]
            error = float(((rows - positions[: len(rows)]) ** 2).sum())
            candidates.append((error, first, len(rows)))
        error, first, count = min(candidates)
        shown = JointMotion(motion.q[:count], motion.qd[:count], motion.qdd[:count])
        return Placed(first, shown, error)

    def calibrate(self) -> list[JointFit]:
        """Fit both joints to this bag, together with the placement of each move."""
        fits = [JointFit(0.0005, -3e-4, 0.0)] * len(MOVING_JOINTS)
        for _ in range(6):
            placed = self.place(fits)
            fits = [self._fit_joint(placed, joint) for joint in MOVING_JOINTS]
        return fits

    def _fit_joint(self, placed: list[Placed], joint: int) -> JointFit:
        factors = np.concatenate([regressors(item.motion, joint) for item in placed])
        behind = np.concatenate(
            [self._actual(item)[:, joint] - item.motion.q[:, joint] for item in placed]
        )
        return JointFit(*np.linalg.lstsq(factors, behind, rcond=None)[0])

    def _actual(self, placed: Placed) -> np.ndarray:
        return self.recording.actual_q[placed.first : placed.first + len(placed.motion.q)]

    def errors(self, fits: Sequence[JointFit]) -> np.ndarray:
        """Return the errors of the prediction while the arm moves, of both joints, rad."""
        errors = []
        for placed in self.place(fits):
            moving = np.abs(placed.motion.qd).max(axis=1) > MOVING_SPEED
            for fit, joint in zip(fits, MOVING_JOINTS, strict=True):
                error = self._actual(placed)[:, joint] - fit.predict(placed.motion, joint)
                errors.append(error[moving])
        return np.concatenate(errors)

    def predicted_joints(self, fits: Sequence[JointFit]) -> np.ndarray:
        """Return the joints (T, 6), rad, with the moving ones predicted; NaN outside of moves."""
        joints = self.recording.actual_q.copy()
        joints[:, MOVING_JOINTS] = np.nan
        for placed in self.place(fits):
            rows = slice(placed.first, placed.first + len(placed.motion.q))
            moving = np.abs(placed.motion.qd).max(axis=1) > MOVING_SPEED
            for fit, joint in zip(fits, MOVING_JOINTS, strict=True):
                predicted = np.where(moving, fit.predict(placed.motion, joint), np.nan)
                joints[rows, joint] = predicted
        return joints
