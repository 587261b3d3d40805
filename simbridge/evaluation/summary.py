"""The summary of a run: the content of summary.json, typed.

`Summary` is the only description of a run's numbers. It is a typed dictionary because `run.summary[...]` and
summary.json share its keys: JSON, the tables in the terminal and the report all read the same object.

A new metric needs a function in `metrics/`; here its key in `Summary`, its value in `summarize` (a missing one is a
type error), and its label and unit in `METRICS`, which terminal and page show; and a line in docs/metrics.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypedDict, cast

import msgspec
import numpy as np

from simbridge.errors import Cause, InvalidParameter
from simbridge.evaluation.evaluation import Evaluation
from simbridge.evaluation.metrics import motion_figures as motion
from simbridge.evaluation.metrics import pose_errors, samples
from simbridge.evaluation.metrics.path import PathSummary, path_summary
from simbridge.evaluation.metrics.samples import largest
from simbridge.evaluation.metrics.smoothness import Smoothness, smoothness_summary
from simbridge.evaluation.metrics.tracking import Tracking, part_delays
from simbridge.evaluation.servo_law import ServoLawCheck, check_servo_law
from simbridge.recording.kinematics_record import KinematicsSummary, summarize_kinematics
from simbridge.recording.run_record import Record, SessionRecord, ToleranceRecord
from simbridge.recording.servo_description import describe_plant, name_servo
from simbridge.robot.kinematics import task_jacobians
from simbridge.robot.pose import Array
from simbridge.robot.postures import movable_directions
from simbridge.servo.law import ServojLaw
from simbridge.sessions.figures import CommandToArm, Inputs, Latency
from simbridge.text import displayed
from simbridge.ur.tables import EMULATOR_SERIAL_NUMBER


class SpeedScaling(TypedDict):
    """The controller's speed scaling during the run, without pauses, 0 to 1."""

    min: float
    mean: float


class Pauses(TypedDict):
    """How often, and for how long in all, the controller's program was paused."""

    count: int
    duration_s: float


class CommandLead(TypedDict):
    """How far the commands were ahead of the joints that the servo law predicts, rad."""

    max: float


class Uncertainty(TypedDict):
    """One standard deviation of the RMS tracking error, m and rad."""

    position_m: float
    rotation_rad: float


class EndedBy(TypedDict):
    """What ended a run, from evidence (docs/stops.md).

    `at_s` is the time since the first setpoint by the controller's clock, None if none left; `arm_at_rest` is None
    where it was not seen.
    """

    cause: Cause
    evidence: list[str]
    at_s: float | None
    arm_at_rest: bool | None


class WhatRan(TypedDict):
    """What was run, by its settings; `servo` names what follows the commands as a noun phrase.

    `emulated` is whether the controller was that of `simbridge emulate`.
    """

    label: str
    scenario: str
    robot: str
    robot_title: str
    solver: str
    backend: str
    emulated: bool
    servo: str
    feedforward: bool


def what_ran(record: Record) -> WhatRan:
    """Return a record in short."""
    controller = record.controller
    return {
        "label": record.label or "",
        "scenario": record.scenario.name,
        "robot": record.robot.name,
        "robot_title": record.robot.title,
        "solver": record.solver.name,
        "backend": record.backend.name,
        "emulated": controller is not None and controller.serial_number == EMULATOR_SERIAL_NUMBER,
        "servo": name_servo(record.backend),
        "feedforward": record.scenario.feeds_forward,
    }


class RunFacts(WhatRan):
    """What every summary holds, also that of a run without a sample.

    `outcome` is "completed" or why the run ended early; `ended_by` is None where it was not recorded; times are in s,
    `predicted_lag_s` is the solver's. `plant_model` names what follows the commands in one line. `inputs`, `latency`:
    of a session.
    """

    plant_model: str
    outcome: str
    ended_by: EndedBy | None
    period_s: float
    samples: int
    duration_s: float
    predicted_lag_s: float | None
    solver_notes: list[str]
    limited_samples: int
    trajectory_duration_s: float
    kinematics: KinematicsSummary
    inputs: Inputs | None
    latency: Latency | None


class Judgement(TypedDict):
    """The tolerance `{position_m, rotation_rad}` for the RMS of the tracking error, and whether the run kept it."""

    tolerance: dict[str, float] | None
    passed: bool | None


class Summary(RunFacts, Tracking, PathSummary, pose_errors.PoseErrorSummary, Judgement):
    """The content of summary.json, in SI units; see docs/metrics.md. A run without a sample has only the keys of
    `RunFacts` and `Judgement`.

    Peaks are per joint, in rad/s, N m or A; `saturated_samples` counts samples with a torque at its limit. `loop` is
    the control loop's timing; simulated time has none. `servo_law` compares the controller's servo law with the
    configured one; None in simulation. `command_lead_rad` is that of feedforward; None without. `uncertainty` is
    that of the RMS tracking error which follows from that of the simulated plant; None where that is not known.
    """

    uncertainty: Uncertainty | None

    peak_joint_velocity: list[float]
    peak_joint_torque: list[float] | None
    peak_joint_current: list[float] | None
    saturated_samples: int
    speed_scaling: SpeedScaling
    pauses: Pauses
    servo_law: ServoLawCheck | None
    command_lead_rad: CommandLead | None
    loop: dict[str, float | None] | None
    smoothness: Smoothness
    joint_effort: motion.JointEffort
    near_singularity: motion.Singularity
    near_limits: motion.NearLimits


Value = float | Sequence[float | None] | None


@dataclass(frozen=True)
class Metric:
    """A metric that the terminal and the page show in a line of their table of metrics.

    Attributes:
        value: Reads it from a summary; of several numbers, as one per joint, the range is shown.
    """

    unit: (
        str  # of the value in the summary: "m", "m/s", "s", "rad", "share" (0 to 1), or "" for none
    )
    value: Callable[[Summary], Value]
    meaning: str = ""  # how to read it; shown on the page only


_SMOOTH = "closer to 0: smoother"
_CLOSE = f"at {100.0 * motion.NEAR_LIMIT:g} % of the limit or more"
METRICS: dict[str, Metric] = {
    "SPARC of the tool": Metric("", lambda s: s["smoothness"]["tool"]["sparc"], _SMOOTH),
    "SPARC of the joints": Metric("", lambda s: s["smoothness"]["joints"]["sparc"], _SMOOTH),
    "LDLJ of the tool": Metric("", lambda s: s["smoothness"]["tool"]["ldlj"], _SMOOTH),
    "Samples near a singularity": Metric(
        "share",
        lambda s: s["near_singularity"]["share"],
        f"smallest singular value below {motion.NEAR_SINGULAR:g}",
    ),
    "Smallest singular value": Metric(
        "", lambda s: s["near_singularity"]["smallest_singular_value"], "of all samples"
    ),
    "Samples near a position limit": Metric(
        "share",
        lambda s: s["near_limits"]["position"],
        f"within {100.0 * motion.NEAR_END:g} % of a joint's range",
    ),
    "Samples near a velocity limit": Metric(
        "share", lambda s: s["near_limits"]["velocity"], _CLOSE
    ),
    "Samples near a torque limit": Metric(
        "share",
        lambda s: s["near_limits"]["torque"],
        f"{_CLOSE}; unknown where the controller reports only currents",
    ),
}
"""The table of metrics in the terminal and on the page, by their names there."""


def shown_metrics(summary: Summary) -> list[tuple[str, str, str, str]]:
    """The lines of the table of metrics: name, value, unit and meaning."""
    return [
        (name, *_displayed(metric.value(summary), metric.unit), metric.meaning)
        for name, metric in METRICS.items()
    ]


def _displayed(value: Value, unit: str) -> tuple[str, str]:
    if not isinstance(value, Sequence):
        return displayed(value, unit)
    known = [each for each in value if each is not None]
    (low, shown), (high, _) = (displayed(pick(known, default=None), unit) for pick in (min, max))
    return low if low == high else f"{low} to {high}", shown


def summarize(
    run: Evaluation,
    outcome: str,
    *,
    ended_by: EndedBy | None = None,
    loop: dict[str, Any] | None = None,
    tolerance: ToleranceRecord | None = None,
) -> Summary:
    """Measure a run.

    Args:
        outcome: "completed", or why the run ended early.
        ended_by: What ended it.
        loop: The control loop's timing; simulated time has none.
        tolerance: Largest RMS of the tracking error; None for no verdict.
    """
    log, settings, session = run.log, run.settings, run.session
    facts: RunFacts = {
        **what_ran(settings),
        "plant_model": describe_plant(settings.backend),
        "outcome": outcome,
        "ended_by": ended_by,
        "period_s": run.plan.period,
        "samples": len(log.stamp),
        "duration_s": float(log.stamp[-1] - log.stamp[0]) if run.has_samples else 0.0,
        "predicted_lag_s": settings.solver.predicted_lag_s,
        "solver_notes": settings.solver.notes or [],
        "limited_samples": int(log.limited.sum()),
        "trajectory_duration_s": float(log.plan_time[-1] - log.plan_time[0])
        if run.has_samples
        else 0.0,
        "kinematics": summarize_kinematics(settings.kinematics),
        "inputs": None if session is None else session.input_counts(),
        "latency": None if session is None else session.latency(_command_to_arm(run)),
    }
    judgement: Judgement = {
        "tolerance": None if tolerance is None else msgspec.structs.asdict(tolerance),
        "passed": None,
    }
    if tolerance is not None:
        judgement["passed"] = outcome == "completed" and _is_within(
            run.tracking["tracking_error"], tolerance
        )
    if not run.has_samples:
        return cast(Summary, {**facts, **judgement})
    torque, peak_effort = run.torque, largest(run.column("effort"))
    found: Summary = {
        **facts,
        **run.tracking,
        "uncertainty": _uncertainty(run),
        **path_summary(run.contour),
        "peak_joint_velocity": largest(run.column("velocity")),
        "peak_joint_torque": None if torque is None else peak_effort,
        "peak_joint_current": peak_effort if torque is None else None,
        "saturated_samples": 0
        if torque is None
        else int(motion.at_limit(torque, run.max_effort).any(axis=1).sum()),
        "speed_scaling": {
            "min": float(run.speed_scaling.min()),
            "mean": float(run.speed_scaling.mean()),
        },
        "pauses": {"count": len(run.pauses), "duration_s": float(np.diff(run.pauses).sum())},
        "servo_law": _servo_law(run),
        "command_lead_rad": _command_lead(run),
        "loop": loop,
        "smoothness": smoothness_summary(log.stamp, run.attained[:, :3], run.column("velocity")),
        "joint_effort": _joint_effort(run),
        "near_singularity": motion.near_singularity(
            run.column("position"),
            lambda q: task_jacobians(*run.chain, q, run.task),
            motions=movable_directions(*run.chain, run.task),
        ),
        "near_limits": _near_limits(run),
        **pose_errors.pose_error_summary(
            run.plan.period, run.reference, run.attained, tracking=run.errors.tracking
        ),
        **judgement,
    }
    log.arrays.release()
    return found


def _uncertainty(run: Evaluation) -> Uncertainty | None:
    """How far a simulated tracking error is uncertain because gain and lookahead are, as identified of the arm.

    Each changes by its standard deviation, and the servo law is followed once more; the changes are independent. None
    where the plant has no deviations.
    """
    backend, law = run.settings.backend, run.servo
    deviations = {
        "gain": backend.gain_deviation or 0.0,
        "lookahead": backend.lookahead_deviation or 0.0,
    }
    if not run.is_simulated or law is None or run.predicted is None or not any(deviations.values()):
        return None

    def size(predicted: Array) -> Array:
        error = samples.PoseError.between(run.reference, predicted)
        return np.array([samples.rms(error.distance), samples.rms(error.angle)])

    known = size(run.predicted)
    others = [_changed(law, name, by) for name, by in deviations.items()]
    changes = [size(run.tool(run.followed(other))) - known for other in others]
    position, rotation = (float(np.linalg.norm(change)) for change in np.transpose(changes))
    return {"position_m": position, "rotation_rad": rotation}


def _changed(law: ServojLaw, name: str, by: float) -> ServojLaw:
    """The law with a smaller value, which is stable, too; at the end of UR's range with a larger one."""
    try:
        return replace(law, **{name: getattr(law, name) - by})
    except InvalidParameter:
        return replace(law, **{name: getattr(law, name) + by})


def _servo_law(run: Evaluation) -> ServoLawCheck | None:
    """None in simulation."""
    if run.servo is None or run.is_simulated:
        return None
    return check_servo_law(run.servo, run.log, lambda law: run.tool(run.followed(law)))


def _command_to_arm(run: Evaluation) -> CommandToArm:
    """Of a session. A command leaves a period before the instant to which it belongs."""
    law, correlation, period = None, None, run.plan.period
    if run.servo is not None:
        trail = 0.0 if _leads(run) else run.servo.lag
        law = period + trail + (run.settings.backend.joint_lag or 0.0)
    if run.has_samples:
        found = part_delays(run.tracking, run.tracking["delay_of"]).plant
        # Where nothing moved it counts as 0.
        correlation = period + found if found else None
    return {"servo_law": law, "correlation": correlation}


def _command_lead(run: Evaluation) -> CommandLead | None:
    """Of a run with feedforward, or a session with lead; None without, where the joints trail the commands."""
    if run.predicted_joints is None or not _leads(run):
        return None
    return {"max": float(np.abs(run.column("command") - run.predicted_joints).max())}


def _leads(run: Evaluation) -> bool:
    """Return whether commands were sent ahead of the setpoints, so that the arm does not lag."""
    record = run.settings
    if isinstance(record, SessionRecord):
        return record.live.lead
    return record.scenario.feeds_forward


def _is_within(error: samples.PoseStatistics, tolerance: ToleranceRecord) -> bool:
    is_close = error["position_m"]["rms"] <= tolerance.position_m
    return is_close and error["rotation_rad"]["rms"] <= tolerance.rotation_rad


def _joint_effort(run: Evaluation) -> motion.JointEffort:
    # Only the limiter keeps a limit of acceleration; without it the velocity jump is limited.
    limited = run.settings.scenario.on_limits == "limit"
    return motion.joint_effort(
        run.log.stamp,
        run.column("velocity"),
        run.torque,
        max_velocity=run.max_velocity,
        max_acceleration=run.settings.robot.max_acceleration if limited else None,
        max_torque=run.max_effort,
    )


def _near_limits(run: Evaluation) -> motion.NearLimits:
    return motion.near_limits(
        run.column("position"),
        run.column("velocity"),
        run.torque,
        position_min=np.array(run.settings.robot.position_min, dtype=float),
        position_max=np.array(run.settings.robot.position_max, dtype=float),
        max_velocity=run.max_velocity,
        max_torque=run.max_effort,
    )
