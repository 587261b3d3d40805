"""A plan: the setpoints of a run, with all that is needed to measure how they were tracked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from simbridge.errors import InvalidParameter
from simbridge.robot.pose import Array
from simbridge.trajectory.trajectory import Hold, Trajectory

# What is done with setpoints past a limit.
OnLimits = Literal["refuse", "limit"]

# Largest change per second of the rate at which stretched time passes, 1/s: it adds this much times
# a joint's velocity to its acceleration.
CLOCK_SLOPE = 2.0

# Difference of two control periods that counts as rounding, s.
PERIOD_ROUNDING_S = 1e-12


@dataclass(frozen=True, eq=False)
class Start:
    """The start of a plan that does not begin where home's branch does.

    Attributes:
        joints: Joint positions that attain the first target (n,), rad.
        reason: Why the plan from home was refused.
        is_other_turn: Whether it is the posture that is solved from home, with some joints begun
            whole turns away; else it is on another branch of the inverse kinematics.
    """

    joints: Array
    reason: str
    is_other_turn: bool = False

    @property
    def notice(self) -> str:
        """The start and its reason as they are printed."""
        reason = self.reason.removeprefix("The plan was refused: ")
        flag = home_flag(self.joints)
        if self.is_other_turn:
            return (
                f"The plan starts in home's posture, but whole turns away: {flag}. Starting from "
                f"home itself was refused: {reason}"
            )
        return (
            f"The plan starts on another branch, that of {flag}. Home's branch was "
            f"refused: {reason}"
        )

    @property
    def offer(self) -> str:
        """The sentence that names the start where a plan from home is refused."""
        flag = home_flag(self.joints)
        if self.is_other_turn:
            return (
                f"Starting in the same posture, but whole turns away, would pass: use {flag} or "
                "--start auto."
            )
        return f"Starting on another branch would pass: use {flag} or --start auto."


def home_flag(joints: Array) -> str:
    """Return the flag that chooses the branch of joint positions (n,), rad."""
    return "--home " + " ".join(f"{q:.4g}" for q in joints)


@dataclass(frozen=True)
class Plan:
    """Setpoints, one for each control period.

    Sample k belongs to the instant k * period: target, solution and setpoint alike.

    Attributes:
        checksum: Checksum of the kinematics it was solved with (`Robot.checksum`).
        period: Control period, s.
        trajectory: The sampled path, speed scale applied.
        hold: What the target is between samples.
        trajectory_times: The instant on the trajectory to which each sample belongs (T,), s;
            `k * period`, unless time was stretched for tool speed.
        solution: The solver's joint positions (T, n), rad.
        setpoints: Joint positions to send (T, n), rad.
        limited: Which setpoints the limiter changed (T,).
        source_samples: Samples that the solver gets, as from a low-rate or noisy source; None for
            the trajectory itself.
        joint_targets: The joint targets that the commands are computed for (T, n), rad, with
            feedforward: the setpoints, taken ahead by the lag of the arm, and smoothed at corners.
            They belong to a servo's tuning, so the plan's file does not contain them.
        start: Branch that it begins on; None for home's.
    """

    checksum: str
    period: float
    trajectory: Trajectory
    hold: Hold
    trajectory_times: Array
    solution: Array
    setpoints: Array
    limited: NDArray[np.bool_]
    source_samples: Trajectory | None = None
    joint_targets: Array | None = None
    start: Start | None = None

    def __post_init__(self) -> None:
        for array in (self.trajectory_times, self.solution, self.setpoints, self.limited):
            array.setflags(write=False)

    @property
    def samples(self) -> int:
        return len(self.setpoints)

    @property
    def sent(self) -> Array:
        """Positions for the backend (T, n), rad: `joint_targets` if any, else `setpoints`."""
        return self.setpoints if self.joint_targets is None else self.joint_targets

    @property
    def duration(self) -> float:
        """From the first sample to the last, s."""
        return (self.samples - 1) * self.period

    @cached_property
    def times(self) -> Array:
        """Time at which each sample is due (T,), s since the start."""
        return np.arange(self.samples, dtype=float) * self.period

    @cached_property
    def targets(self) -> Array:
        """The pose (T, 7) towards which the solver was stepped at each sample."""
        return self.target(self.trajectory_times)

    def target(self, times: Array) -> Array:
        """Return poses (K, 7) that the solver gets at instants of the trajectory (K,), s."""
        return (self.source_samples or self.trajectory).target(times, self.hold)

    def reference(self, times: Array) -> Array:
        """Return the continuous path (K, 7) at instants of the plan's clock (K,), s."""
        return self.trajectory.reference(np.interp(times, self.times, self.trajectory_times))

    def as_arrays(self) -> dict[str, Any]:
        """Return the plan as named arrays and scalars, for a file.

        `from_arrays` reads them back bit for bit.
        """
        arrays: dict[str, Any] = {
            "checksum": self.checksum,
            "period": self.period,
            "hold": self.hold,
            "trajectory_source": self.trajectory.source,
            "trajectory_stamps": self.trajectory.times,
            "trajectory_poses": self.trajectory.poses,
            "trajectory_times": self.trajectory_times,
            "solution": self.solution,
            "setpoints": self.setpoints,
            "limited": self.limited,
        }
        # The samples of the file, if they are not the trajectory itself.
        if self.source_samples is not None:
            arrays["given_stamps"] = self.source_samples.times
            arrays["given_poses"] = self.source_samples.poses
        if self.start is not None:
            arrays["start"] = self.start.joints
            arrays["start_reason"] = self.start.reason
            arrays["start_is_other_turn"] = self.start.is_other_turn
        return arrays

    @staticmethod
    def from_arrays(arrays: Mapping[str, Any]) -> Plan:
        """Return the plan whose arrays these are; `as_arrays` gives them.

        Raises:
            KeyError: An array is missing.
            ValueError: Arrays do not fit each other, or are not finite numbers; names the array.
        """
        setpoints = arrays["setpoints"]
        count, joints = setpoints.shape
        _check_array(arrays, "trajectory_times", (count,))
        _check_array(arrays, "limited", (count,))
        _check_array(arrays, "solution", (count, joints))
        _check_array(arrays, "setpoints", (count, joints))

        # Without limited setpoints, keep one array for both: an hour takes 0.1 GB.
        solution = arrays["solution"]
        if np.array_equal(solution, setpoints):
            solution = setpoints

        source = str(arrays["trajectory_source"])
        source_samples = None
        if "given_poses" in arrays:
            source_samples = Trajectory(
                arrays["given_stamps"], arrays["given_poses"], source=source
            )
        start = None
        if "start" in arrays:
            start = Start(
                arrays["start"],
                str(arrays["start_reason"]),
                is_other_turn=bool(arrays.get("start_is_other_turn", False)),
            )

        return Plan(
            checksum=str(arrays["checksum"]),
            period=float(arrays["period"]),
            trajectory=Trajectory(
                arrays["trajectory_stamps"], arrays["trajectory_poses"], source=source
            ),
            hold="zero-order" if str(arrays["hold"]) == "zero-order" else "linear",
            trajectory_times=arrays["trajectory_times"],
            solution=solution,
            setpoints=setpoints,
            limited=arrays["limited"],
            source_samples=source_samples,
            start=start,
        )

    def check_made_for(self, checksum: str, period: float) -> None:
        """Refuse to replay the plan on another arm, or at another control period.

        Args:
            checksum: Checksum of the arm's kinematics.
            period: Control period, s.

        Raises:
            InvalidParameter: The plan was made for another arm or period.
        """
        if self.checksum != checksum:
            needed = (
                f"made for this robot and TCP: its kinematics are {checksum[:12]} (--kinematics "
                "RUN uses those of a run)"
            )
            raise InvalidParameter("plan", self.checksum[:12], needed)
        if not abs(self.period - period) <= PERIOD_ROUNDING_S:
            raise InvalidParameter(
                "plan's period", f"{self.period} s", f"the run's, {period} s (--period)"
            )


def slow_down_reason(feedforward: bool) -> str:
    """Return why a plan takes longer than its trajectory."""
    limits = "limits of tool speed and feedforward" if feedforward else "tool-speed limit"
    return f"to respect the {limits}"


def is_slowed_down(duration: float, trajectory_duration: float, period: float) -> bool:
    """Return whether a motion takes noticeably longer than its trajectory, all in s.

    Noticeable is more than rounding to whole periods.
    """
    return duration - trajectory_duration > max(2.0 * period, 0.01 * trajectory_duration)


def _check_array(arrays: Mapping[str, Any], name: str, shape: tuple[int, ...]) -> None:
    """Refuse an array that is empty, of another shape, or not of finite numbers."""
    array = arrays[name]
    is_of_numbers = array.shape == shape and array.dtype.kind in "fb"
    if not is_of_numbers or shape[0] == 0 or not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite numbers of the shape {shape}, and not empty")
