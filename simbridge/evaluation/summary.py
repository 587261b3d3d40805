"""The summary of a run: the content of summary.json, typed.

`Summary` is the only description of a run's numbers. It is a typed dictionary because
`run.summary[...]` and summary.json share its keys: JSON, the tables in the terminal and the report
all read the same object.

A new metric needs a function in `metrics/`; here its key in `Summary`, its value in `summarize` (a
missing one is a type error), and its label and unit in `METRICS`, which terminal, report and
`simbridge compare` show; and a line in docs/metrics.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, TypedDict, cast

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
from simbridge.json_output import SCHEMA_VERSION
from simbridge.recording.kinematics_record import KinematicsSummary, summarize_kinematics
from simbridge.recording.run_record import Record, SessionRecord, ToleranceRecord
from simbridge.recording.servo_description import (
    describe_plant,
    extrapolated_gain,
    name_servo,
    plant_notes,
)
from simbridge.robot.kinematics import task_jacobians
from simbridge.robot.pose import Array
from simbridge.robot.postures import movable_directions
from simbridge.servo.law import ServojLaw
from simbridge.sessions.figures import CommandToArm, Inputs, Latency
from simbridge.text import displayed
from simbridge.ur.tables import is_emulator


class SpeedScaling(TypedDict):
    """The controller's speed scaling during the run, without pauses, 0 to 1."""

    min: float
    mean: float


class Pauses(TypedDict):
    """Number of pauses of the controller's program, and their total duration, s."""

    count: int
    duration_s: float


class CommandLead(TypedDict):
    """Largest lead of the commands over the joints that the servo law predicts, rad."""

    max: float


class Uncertainty(TypedDict):
    """One standard deviation of the RMS tracking error, m and rad."""

    position_m: float
    rotation_rad: float


class EndedBy(TypedDict):
    """The cause of a run's end, with its evidence (docs/stops.md).

    Attributes:
        cause: What ended it.
        evidence: What shows this, as sentences.
        at_s: Time since the first setpoint by the controller's clock, s; None if none left.
        arm_at_rest: Whether the arm came to rest; None if it was not seen.
    """

    cause: Cause
    evidence: list[str]
    at_s: float | None
    arm_at_rest: bool | None


class WhatRan(TypedDict):
    """A run in short, by its settings.

    Attributes:
        schema_version: Version of the schema of this object (docs/json.md).
        label: The user's label of the run; "" for none.
        scenario: Name of the scenario.
        robot: The arm's name.
        robot_title: The arm's name for people.
        solver: Name of the solver.
        backend: Name of the backend.
        emulated: Whether the controller was that of `simbridge emulate`.
        servo: What follows the commands, as a noun phrase.
        extrapolated_servo_gain: Gain of servoj, 1/s^2, with which the run is predicted, if the law
            was never compared with a real arm at such a gain; None otherwise.
        feedforward: Whether commands were sent ahead of the setpoints.
    """

    schema_version: int
    label: str
    scenario: str
    robot: str
    robot_title: str
    solver: str
    backend: str
    emulated: bool
    servo: str
    extrapolated_servo_gain: float | None
    feedforward: bool


def what_ran(record: Record) -> WhatRan:
    """Return a record in short."""
    controller = record.controller
    is_emulated = controller is not None and (
        bool(controller.emulated) or is_emulator(controller.serial_number)
    )

    return {
        "schema_version": SCHEMA_VERSION,
        "label": record.label or "",
        "scenario": record.scenario.name,
        "robot": record.robot.name,
        "robot_title": record.robot.title,
        "solver": record.solver.name,
        "backend": record.backend.name,
        "emulated": is_emulated,
        "servo": name_servo(record.backend),
        "extrapolated_servo_gain": extrapolated_gain(record.backend),
        "feedforward": record.scenario.feeds_forward,
    }


class RunFacts(WhatRan):
    """The facts that every summary holds, also that of a run without a sample.

    Attributes:
        plant_model: What follows the commands, in one line.
        plant_notes: Remarks on the plant's file, as sentences.
        outcome: "completed", or why the run ended early.
        ended_by: What ended the run; None if it was not recorded.
        period_s: Control period, s.
        samples: Number of samples in the log.
        duration_s: Duration by the log's stamps, s.
        predicted_lag_s: Predicted lag of the solver, s; None if it is not known.
        solver_notes: Special cases that the solver met, as sentences.
        limited_samples: Number of setpoints that the limiter changed.
        trajectory_duration_s: Duration of the part of the trajectory that was covered, s.
        kinematics: The kinematics with which the run was solved.
        inputs: The inputs of a live session; None for a replay.
        latency: The latency of a live session's inputs; None for a replay.
    """

    plant_model: str
    plant_notes: list[str]
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
    """The verdict on a run, by its tolerance.

    Attributes:
        tolerance: `{position_m, rotation_rad}` for the RMS of the tracking error; None without.
        passed: Whether the run completed and kept it; None without.
    """

    tolerance: dict[str, float] | None
    passed: bool | None


class Summary(RunFacts, Tracking, PathSummary, pose_errors.PoseErrorSummary, Judgement):
    """The content of summary.json, in SI units; see docs/metrics.md.

    A run without a sample has only the keys of `RunFacts` and `Judgement`.

    Attributes:
        uncertainty: Uncertainty of the RMS tracking error, from that of the simulated plant; None
            if that is not known.
        peak_joint_velocity: Largest velocity of each joint, rad/s.
        peak_joint_torque: Largest torque of each joint, N m; None if the controller reports
            currents.
        peak_joint_current: Largest current of each joint, A; None if torques are known.
        saturated_samples: How many samples have a torque at its limit.
        speed_scaling: Smallest and mean speed scaling of the controller.
        pauses: Number and duration of the pauses.
        servo_law: The controller's servo law, compared with the configured one; None in simulation.
        command_lead_rad: Lead of the commands of feedforward, rad; None without feedforward.
        loop: The control loop's timing; simulated time has none.
        smoothness: Smoothness of the measured motion.
        joint_effort: What each joint did.
        near_singularity: How near to a singularity the run came.
        near_limits: Parts of the samples in which a joint is near a limit.
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


# A metric's value in a summary; of several numbers, as one per joint, the range is shown.
MetricValue: TypeAlias = float | Sequence[float | None] | None


@dataclass(frozen=True)
class Metric:
    """A metric that terminal, report and comparison show in a line of their table of metrics.

    Attributes:
        unit: Unit of the value in the summary, an SI unit, or "" for none. "m", "m/s", "s", "rad"
            and "share" (0 to 1) are shown as mm, mm/s, ms, degrees and percent, all others as they
            are.
        value: Reads it from a summary.
        meaning: How to read it; shown on the page only.
    """

    unit: str
    value: Callable[[Summary], MetricValue]
    meaning: str = ""


SMOOTH_MEANING = "closer to 0: smoother"
NEAR_LIMIT_MEANING = f"at {100.0 * motion.NEAR_LIMIT:g} % of the limit or more"

# The table of metrics in the terminal, the report and the comparison, by their names there.
METRICS: dict[str, Metric] = {
    "SPARC of the tool": Metric(
        "",
        lambda s: s["smoothness"]["tool"]["sparc"],
        SMOOTH_MEANING,
    ),
    "SPARC of the joints": Metric(
        "",
        lambda s: s["smoothness"]["joints"]["sparc"],
        SMOOTH_MEANING,
    ),
    "LDLJ of the tool": Metric(
        "",
        lambda s: s["smoothness"]["tool"]["ldlj"],
        SMOOTH_MEANING,
    ),
    "Samples near a singularity": Metric(
        "share",
        lambda s: s["near_singularity"]["share"],
        f"smallest singular value below {motion.NEAR_SINGULAR:g}",
    ),
    "Smallest singular value": Metric(
        "",
        lambda s: s["near_singularity"]["smallest_singular_value"],
        "of all samples",
    ),
    "Samples near a position limit": Metric(
        "share",
        lambda s: s["near_limits"]["position"],
        f"within {100.0 * motion.NEAR_END:g} % of a joint's range",
    ),
    "Samples near a velocity limit": Metric(
        "share",
        lambda s: s["near_limits"]["velocity"],
        NEAR_LIMIT_MEANING,
    ),
    "Samples near a torque limit": Metric(
        "share",
        lambda s: s["near_limits"]["torque"],
        f"{NEAR_LIMIT_MEANING}; unknown where the controller reports only currents",
    ),
}


def shown_metrics(summary: Summary) -> list[tuple[str, str, str, str]]:
    """Return the lines of the table of metrics: name, value, unit and meaning."""
    lines = []
    for name, metric in METRICS.items():
        value, unit = _display(metric.value(summary), metric.unit)
        lines.append((name, value, unit, metric.meaning))
    return lines


def _display(value: MetricValue, unit: str) -> tuple[str, str]:
    """Return a value, or the range of several, and its unit as they are shown."""
    if not isinstance(value, Sequence):
        return displayed(value, unit)

    known = [number for number in value if number is not None]
    low, shown_unit = displayed(min(known, default=None), unit)
    high, _ = displayed(max(known, default=None), unit)
    return low if low == high else f"{low} to {high}", shown_unit


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
        run: Read back from its directory.
        outcome: "completed", or why the run ended early.
        ended_by: What ended it.
        loop: The control loop's timing; simulated time has none.
        tolerance: Largest RMS of the tracking error; None for no verdict.
    """
    facts = _run_facts(run, outcome, ended_by)
    judgement = _judge(run, outcome, tolerance)
    if not run.has_samples:
        return cast(Summary, {**facts, **judgement})

    torque = run.torque
    peak_effort = largest(run.column("effort"))
    saturated = 0
    if torque is not None:
        saturated = int(motion.at_limit(torque, run.max_effort).any(axis=1).sum())

    summary: Summary = {
        **facts,
        **run.tracking,
        "uncertainty": _uncertainty(run),
        **path_summary(run.contour),
        "peak_joint_velocity": largest(run.column("velocity")),
        "peak_joint_torque": None if torque is None else peak_effort,
        "peak_joint_current": peak_effort if torque is None else None,
        "saturated_samples": saturated,
        "speed_scaling": {
            "min": float(run.speed_scaling.min()),
            "mean": float(run.speed_scaling.mean()),
        },
        "pauses": {"count": len(run.pauses), "duration_s": float(np.diff(run.pauses).sum())},
        "servo_law": _servo_law(run),
        "command_lead_rad": _command_lead(run),
        "loop": loop,
        "smoothness": smoothness_summary(
            run.log.stamp, run.attained[:, :3], run.column("velocity")
        ),
        "joint_effort": _joint_effort(run),
        "near_singularity": _near_singularity(run),
        "near_limits": _near_limits(run),
        **pose_errors.pose_error_summary(
            run.plan.period, run.reference, run.attained, tracking=run.errors.tracking
        ),
        **judgement,
    }
    # A long log need not stay in memory.
    run.log.arrays.release()
    return summary


def _run_facts(run: Evaluation, outcome: str, ended_by: EndedBy | None) -> RunFacts:
    """Return what every summary holds, also that of a run without a sample."""
    log = run.log
    settings = run.settings
    session = run.session

    duration = 0.0
    trajectory_duration = 0.0
    if run.has_samples:
        duration = float(log.stamp[-1] - log.stamp[0])
        trajectory_duration = float(log.plan_time[-1] - log.plan_time[0])

    return {
        **what_ran(settings),
        "plant_model": describe_plant(settings.backend),
        "plant_notes": plant_notes(settings.backend, settings.robot.name),
        "outcome": outcome,
        "ended_by": ended_by,
        "period_s": run.plan.period,
        "samples": len(log.stamp),
        "duration_s": duration,
        "predicted_lag_s": settings.solver.predicted_lag_s,
        "solver_notes": settings.solver.notes or [],
        "limited_samples": int(log.limited.sum()),
        "trajectory_duration_s": trajectory_duration,
        "kinematics": summarize_kinematics(settings.kinematics),
        "inputs": None if session is None else session.input_counts(),
        "latency": None if session is None else session.latency(_command_to_arm(run)),
    }


def _judge(run: Evaluation, outcome: str, tolerance: ToleranceRecord | None) -> Judgement:
    """Say whether a run completed and kept its tolerance."""
    if tolerance is None:
        return {"tolerance": None, "passed": None}

    passed = False
    if outcome == "completed":
        error = run.tracking["tracking_error"]
        keeps_position = error["position_m"]["rms"] <= tolerance.position_m
        keeps_rotation = error["rotation_rad"]["rms"] <= tolerance.rotation_rad
        passed = keeps_position and keeps_rotation
    return {"tolerance": msgspec.structs.asdict(tolerance), "passed": passed}


def _uncertainty(run: Evaluation) -> Uncertainty | None:
    """Return the uncertainty of a simulated tracking error that follows from that of the servo law.

    Gain and lookahead are changed in turn by their standard deviations, as identified of the arm,
    and the servo law predicts the arm once more. Both changes of the error are independent, so
    their squares add. None if the plant has no deviations.
    """
    law = run.servo
    if not run.is_simulated or law is None or run.predicted is None:
        return None
    gain_deviation = run.settings.backend.gain_deviation or 0.0
    lookahead_deviation = run.settings.backend.lookahead_deviation or 0.0
    if gain_deviation == 0.0 and lookahead_deviation == 0.0:
        return None

    def error_size(predicted: Array) -> Array:
        """Return the RMS error (2,) of predicted tool poses (T, 7), m and rad."""
        error = samples.PoseError.between(run.reference, predicted)
        return np.array([samples.rms(error.distance), samples.rms(error.angle)])

    size = error_size(run.predicted)
    changes = []
    for changed_law in (
        _change_law(law, "gain", gain_deviation),
        _change_law(law, "lookahead", lookahead_deviation),
    ):
        changes.append(error_size(run.tool(run.predict_joints(changed_law))) - size)

    position_changes, rotation_changes = np.transpose(changes)
    return {
        "position_m": float(np.linalg.norm(position_changes)),
        "rotation_rad": float(np.linalg.norm(rotation_changes)),
    }


def _change_law(law: ServojLaw, name: Literal["gain", "lookahead"], deviation: float) -> ServojLaw:
    """Return the law with one value lowered by its deviation, which keeps it stable.

    At the lower end of servoj's range the value is raised instead.
    """
    value = law.gain if name == "gain" else law.lookahead
    try:
        return replace(law, **{name: value - deviation})
    except InvalidParameter:
        return replace(law, **{name: value + deviation})


def _servo_law(run: Evaluation) -> ServoLawCheck | None:
    """Compare the controller's servo law with the configured one; None in simulation."""
    if run.servo is None or run.is_simulated:
        return None
    return check_servo_law(run.servo, run.log, lambda law: run.tool(run.predict_joints(law)))


def _command_to_arm(run: Evaluation) -> CommandToArm:
    """Return how long a session's commands take to act on the arm.

    That includes the control period that a command leaves before the instant it belongs to. Each
    value is None if it cannot be determined.
    """
    period = run.plan.period

    by_law = None
    if run.servo is not None:
        trail = 0.0 if _leads(run) else run.servo.lag
        by_law = period + trail + (run.settings.backend.joint_lag or 0.0)

    by_correlation = None
    if run.has_samples:
        # The delay is None or 0 if nothing moved.
        plant_delay = part_delays(run.tracking, run.tracking["delay_of"]).plant
        by_correlation = period + plant_delay if plant_delay else None
    return {"servo_law": by_law, "correlation": by_correlation}


def _command_lead(run: Evaluation) -> CommandLead | None:
    """Return how far commands lead the predicted joints.

    None without feedforward or a session's lead, where the joints trail the commands.
    """
    if run.predicted_joints is None or not _leads(run):
        return None
    return {"max": float(np.abs(run.column("command") - run.predicted_joints).max())}


def _leads(run: Evaluation) -> bool:
    """Return whether commands were sent ahead of the setpoints, so that the arm does not lag."""
    record = run.settings
    if isinstance(record, SessionRecord):
        return record.live.lead
    return record.scenario.feeds_forward


def _joint_effort(run: Evaluation) -> motion.JointEffort:
    """Return what each joint of a run did."""
    # Only the limiter keeps a limit of acceleration; without it the velocity jump is limited.
    max_acceleration = None
    if run.settings.scenario.on_limits == "limit":
        max_acceleration = run.settings.robot.max_acceleration
    return motion.joint_effort(
        run.log.stamp,
        run.column("velocity"),
        run.torque,
        max_velocity=run.max_velocity,
        max_acceleration=max_acceleration,
        max_torque=run.max_effort,
    )


def _near_singularity(run: Evaluation) -> motion.Singularity:
    """Return how near to a singularity a run came."""
    placements, prismatic = run.chain
    return motion.near_singularity(
        run.column("position"),
        lambda q: task_jacobians(placements, prismatic, q, run.task),
        motions=movable_directions(placements, prismatic, run.task),
    )


def _near_limits(run: Evaluation) -> motion.NearLimits:
    """Return in which part of the samples of a run a joint is near a limit."""
    return motion.near_limits(
        run.column("position"),
        run.column("velocity"),
        run.torque,
        position_min=np.array(run.settings.robot.position_min, dtype=float),
        position_max=np.array(run.settings.robot.position_max, dtype=float),
        max_velocity=run.max_velocity,
        max_torque=run.max_effort,
    )
