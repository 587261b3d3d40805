"""From a run directory to numbers: what the log, the plan and the settings say about tracking."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simbridge.evaluation.metrics.delays import sampled
from simbridge.evaluation.metrics.dexterity import near_limits, near_singularity
from simbridge.evaluation.metrics.effort import joint_effort
from simbridge.evaluation.metrics.path import ContourError, contour_error
from simbridge.evaluation.metrics.pose_errors import ErrorBudget, error_budget
from simbridge.evaluation.metrics.summary import path_summary, pose_error_summary, smoothness_summary, tracking_summary
from simbridge.ik.task import freed
from simbridge.planning.plan import Plan
from simbridge.recording.log import LogColumns
from simbridge.recording.run_directory import RunDirectory
from simbridge.robot.kinematics import joint_origins, movable_directions, task_jacobians, tool_poses
from simbridge.robot.pose import Array


@dataclass(frozen=True)
class Evaluation:
    """A run, read back from its directory: nothing in it comes from the process that made the run.

    All poses are (T, 7) from base_link to the TCP and belong to the stamps `log.stamp`.

    Attributes:
        directory: Where it was read from.
        settings: settings.toml.
        plan: plan.npz.
        log: log.mcap, as far as it was written.
    """

    directory: RunDirectory
    settings: dict[str, Any]
    plan: Plan
    log: LogColumns

    @staticmethod
    def of(directory: RunDirectory) -> Evaluation:
        """Read a run.

        Raises:
            NotARun, LogReadError: A part is missing or broken.
        """
        return Evaluation(directory, directory.settings(), directory.plan(Plan.from_arrays), directory.log())

    @cached_property
    def _chain(self) -> tuple[Array, NDArray[np.bool_]]:
        chain = self.settings["kinematics"]
        placements = np.array(chain["placements"], dtype=float).reshape(-1, 4, 4)
        return placements, np.array(chain["prismatic"], dtype=bool)

    def _tool(self, joints: Array) -> Array:
        return tool_poses(*self._chain, joints)

    def _jacobians(self, joints: Array) -> Array:
        return task_jacobians(*self._chain, joints, self.task)

    @property
    def task(self) -> str:
        """What of a target the solver was to attain: "pose", "axis" or "position"."""
        return str(self.settings["solver"].get("task", "pose"))

    @cached_property
    def reference(self) -> Array:
        """The continuous path at the stamps; what the solver's task leaves free is as the solver chose it."""
        return freed(self.task, self.plan.trajectory.reference(self.log.plan_time), self.solution)

    @property
    def target(self) -> Array:
        """What the solver was given; what its task leaves free is as it chose it."""
        return freed(self.task, self.log.target, self.solution)

    @cached_property
    def solution(self) -> Array:
        """Where the solver's joints put the tool."""
        return self._tool(self.log.solution)

    @cached_property
    def setpoint(self) -> Array:
        """Where the joints that were sent put the tool."""
        return self._tool(self.log.setpoint)

    @cached_property
    def attained(self) -> Array:
        """Where the measured joints put the tool."""
        return self._tool(self.log.position)

    @property
    def joint_origins(self) -> Array:
        """Where each joint's frame has its origin, (T, n, 3) in base_link, at the measured joints."""
        return joint_origins(*self._chain, self.log.position)

    @cached_property
    def budget(self) -> ErrorBudget:
        """The error of every sample, split into who caused it."""
        return error_budget(self.reference, self.target, self.solution, self.setpoint, self.attained)

    @cached_property
    def tracking(self) -> dict[str, Any]:
        """The error budget's statistics and the delays: see `tracking_summary`."""
        return tracking_summary(
            self.log.stamp,
            self.reference_at,
            self.target,
            self.solution,
            self.setpoint,
            self.attained,
            budget=self.budget,
        )

    @cached_property
    def pose_errors(self) -> dict[str, Any]:
        """APE and RPE of the attained poses: see `pose_error_summary`."""
        return pose_error_summary(self.plan.period, self.reference, self.attained, tracking=self.budget.tracking)

    @cached_property
    def contour(self) -> ContourError:
        """How far off the reference's path each sample is, time aside, and how far behind along it."""
        return self.contour_of(self.log.stamp, self.attained[:, :3])

    def contour_of(self, times: Array, positions: Array) -> ContourError:
        """The contour error of positions (K, 3) at instants (K,) of the log's clock."""
        path, late = self.plan.trajectory, self.tracking["delay_s"] or 0.0
        due, expected = (np.interp(times - d, self.log.stamp, self.log.plan_time) for d in (0.0, late))
        return contour_error(path.elapsed, path.poses[:, :3], due, positions, expected=expected)

    @cached_property
    def smoothness(self) -> dict[str, Any]:
        """SPARC and LDLJ of the tool and the joints as measured."""
        return smoothness_summary(self.log.stamp, self.attained[:, :3], self.log.velocity)

    @cached_property
    def joint_effort(self) -> dict[str, Any]:
        """Peak and RMS of what was asked of the joints, against their limits."""
        # Only the limiter keeps a limit of acceleration; without it the velocity jump is limited.
        limited = self.settings["scenario"]["on_limits"] == "limit"
        return joint_effort(
            self.log.stamp,
            self.log.velocity,
            self.torque,
            max_velocity=self.max_velocity,
            max_acceleration=self.settings["robot"].get("max_acceleration") if limited else None,
            max_torque=self.max_effort,
        )

    @cached_property
    def near_singularity(self) -> dict[str, float]:
        """How near the measured joints come to a posture singular for the task, and for which share of the samples."""
        motions = movable_directions(*self._chain, self.task)
        return near_singularity(self.log.position, self._jacobians, motions=motions)

    @cached_property
    def near_limits(self) -> dict[str, Any]:
        """The share of the samples at which a joint is near a limit of position, velocity or torque."""
        low, high = (np.array(self.settings["robot"][name], dtype=float) for name in ("position_min", "position_max"))
        return near_limits(
            self.log.position,
            self.log.velocity,
            self.torque,
            position_min=low,
            position_max=high,
            max_velocity=self.max_velocity,
            max_torque=self.max_effort,
        )

    @property
    def torque(self) -> Array | None:
        """Measured torques (T, n), N m; None where the controller tells only currents, which no torque limit fits."""
        return self.log.effort if self.settings["backend"].get("effort_unit", "N m") != "A" else None

    def reference_at(self, times: Array) -> Array:
        """The continuous path (K, 7) at instants (K,) of the log's clock, within its range."""
        poses = self.plan.trajectory.reference(np.interp(times, self.log.stamp, self.log.plan_time))
        return poses if self.task == "pose" else freed(self.task, poses, sampled(self.log.stamp, self.solution)(times))

    @property
    def outcome(self) -> str:
        """How the run ended, as far as its directory tells: see `RunDirectory.outcome`."""
        at, end = self.log.plan_time, self.plan.trajectory_times[-1]
        arrived = len(at) > 0 and bool(at[-1] >= end - 0.5 * self.plan.period)
        return self.directory.outcome(complete=self.log.complete, arrived=arrived)

    def summary(self, outcome: str, loop: dict[str, Any] | None = None) -> dict[str, Any]:
        """What summary.json holds, as numbers in SI units.

        Args:
            outcome: "completed", or why the run ended early.
            loop: The control loop's timing; simulated time has none.
        """
        log, settings = self.log, self.settings
        summary: dict[str, Any] = {
            "scenario": settings["scenario"]["name"],
            "robot": settings["robot"]["name"],
            "solver": settings["solver"]["name"],
            "backend": settings["backend"]["name"],
            "outcome": outcome,
            "period_s": self.plan.period,
            "samples": len(log.stamp),
            "duration_s": float(log.stamp[-1] - log.stamp[0]) if len(log.stamp) else 0.0,
            "predicted_lag_s": settings["solver"].get("predicted_lag_s"),
            "solver_notes": settings["solver"].get("notes", []),
            "limited_samples": int(log.limited.sum()),
            "trajectory_duration_s": float(log.plan_time[-1] - log.plan_time[0]) if len(log.stamp) else 0.0,
        }
        if len(log.stamp) == 0:
            return summary
        summary |= self.tracking | path_summary(self.contour)
        torques = self.torque is not None
        summary |= {
            "peak_joint_velocity": np.abs(log.velocity).max(axis=0).tolist(),
            "peak_joint_torque": np.abs(log.effort).max(axis=0).tolist() if torques else None,
            "peak_joint_current": None if torques else np.abs(log.effort).max(axis=0).tolist(),
            "saturated_samples": int((np.abs(log.effort) >= self.max_effort).any(axis=1).sum()) if torques else 0,
            "speed_scaling": {"min": float(log.speed_scaling.min()), "mean": float(log.speed_scaling.mean())},
            "loop": loop,
            "smoothness": self.smoothness,
            "joint_effort": self.joint_effort,
            "near_singularity": self.near_singularity,
            "near_limits": self.near_limits,
            **self.pose_errors,
        }
        return summary

    @property
    def max_effort(self) -> Array:
        """Torque limits (n,), N m."""
        return np.array(self.settings["robot"]["max_effort"], dtype=float)

    @property
    def max_velocity(self) -> Array:
        """Velocity limits (n,), rad/s."""
        return np.array(self.settings["robot"]["max_velocity"], dtype=float)


def judged(summary: Mapping[str, Any], tolerance: Mapping[str, float] | None) -> dict[str, Any]:
    """What a summary says of a tolerance.

    Args:
        summary: As `Evaluation.summary` makes it.
        tolerance: Largest RMS of the tracking error, `{position_m, rotation_rad}`; None to judge nothing.

    Returns:
        `tolerance`, and `passed`: whether the run completed and kept it; None without a tolerance.
    """
    if tolerance is None:
        return {"tolerance": None, "passed": None}
    kept = summary["outcome"] == "completed" and all(
        summary["tracking_error"][part]["rms"] <= most for part, most in tolerance.items()
    )
    return {"tolerance": dict(tolerance), "passed": kept}
