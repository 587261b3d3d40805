"""From a run directory to numbers: what the log, the plan and the settings say about tracking."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simbridge.ik.kernels import tool_poses
from simbridge.metrics import ErrorBudget, error_budget, tracking_summary
from simbridge.plan import Plan
from simbridge.recording.log import LogColumns
from simbridge.recording.run_directory import RunDirectory

Array = NDArray[np.float64]


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
        return Evaluation(directory, directory.settings(), directory.plan(), directory.log())

    def _tool(self, joints: Array) -> Array:
        chain = self.settings["kinematics"]
        placements = np.array(chain["placements"], dtype=float).reshape(-1, 4, 4)
        return tool_poses(placements, np.array(chain["prismatic"], dtype=bool), np.ascontiguousarray(joints))

    @cached_property
    def reference(self) -> Array:
        """The continuous path at the stamps."""
        return self.plan.trajectory.reference(self.log.plan_time)

    @property
    def target(self) -> Array:
        """What the solver was given."""
        return self.log.target

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

    @cached_property
    def budget(self) -> ErrorBudget:
        """The error of every sample, split into who caused it."""
        return error_budget(self.reference, self.target, self.solution, self.setpoint, self.attained)

    def _reference_at(self, times: Array) -> Array:
        return self.plan.trajectory.reference(np.interp(times, self.log.stamp, self.log.plan_time))

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
            "limited_samples": int(log.limited.sum()),
            "trajectory_duration_s": float(log.plan_time[-1] - log.plan_time[0]) if len(log.stamp) else 0.0,
        }
        if len(log.stamp) == 0:
            return summary
        summary |= tracking_summary(
            log.stamp, self._reference_at, self.target, self.solution, self.setpoint, self.attained
        )
        torques = settings["backend"].get("effort_unit", "N m") != "A"
        summary |= {
            "peak_joint_velocity": np.abs(log.velocity).max(axis=0).tolist(),
            # A current cannot be held against a torque limit.
            "peak_joint_torque": np.abs(log.effort).max(axis=0).tolist() if torques else None,
            "peak_joint_current": None if torques else np.abs(log.effort).max(axis=0).tolist(),
            "saturated_samples": int((np.abs(log.effort) >= self.max_effort).any(axis=1).sum()) if torques else 0,
            "speed_scaling": {"min": float(log.speed_scaling.min()), "mean": float(log.speed_scaling.mean())},
            "loop": loop,
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
