"""Identifies an arm from a controller's recording: servo law, kinematics, payload, friction."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from simbridge.identification.data import (
    FrictionResult,
    Identification,
    JointServoResult,
    KinematicsResult,
    Measured,
    PredictionResult,
    Samples,
    ServojResult,
)
from simbridge.identification.dynamics import (
    MAX_MISFIT,
    fit_payload,
    gravity_direction,
    moment_misfit,
)
from simbridge.identification.friction import fit_friction
from simbridge.identification.joint_lag import fit_joint_servo
from simbridge.identification.kinematics import (
    OTHER_ARM_RESIDUAL,
    Kinematics,
    OtherArm,
    fit_kinematics,
    nominal_residual,
)
from simbridge.identification.read_motion import NotProgrammedMotion, read_motion
from simbridge.identification.servoj_results import identify_servoj
from simbridge.identification.target_motion import NotIdentified, TargetMotion
from simbridge.robot.robot import Robot
from simbridge.text import fixed, join_words, millimetres

T = TypeVar("T")

# Largest standard deviation of a tool position that is reported, m.
MAX_TOOL_DEVIATION = 1e-4
# Another arm fits the torques better if its residual is below this fraction of the arm's ...
BETTER_FIT_FRACTION = 0.5
# ... by more than this margin, N m.
BETTER_FIT_MARGIN = 0.002
# Torques tell two arms apart if the other one's misfit is at least this many times as large ...
DISTINCT_MISFIT_RATIO = 3.0
# ... and larger by this much, N m: a posture at rest fits several arms with another payload each.
DISTINCT_MISFIT_MARGIN = 0.005
# Speed of the fastest joint below which the arm is still, rad/s.
MAX_STILL_SPEED = 1e-3


def identify(
    samples: Samples,
    *,
    robot: Robot | None,
    others: Sequence[Robot] = (),
    is_calibrated: bool = False,
) -> Identification:
    """Identify every property of an arm that a recording shows.

    What the recording does not show is None in the result, with the reason in `not_identified`.

    Args:
        samples: The recording.
        robot: The arm; None to take the one of `others` that fits best.
        others: Arms that the recording may be of instead.
        is_calibrated: Whether the robot has the calibration of this very arm.

    Raises:
        UnusableSamples: The joint positions of the recording or of the commands are in degrees, or
            not the robot's.
    """
    samples.check_joints(robot)
    # Why a property was not identified, by the key of the result: as errors, and as sentences.
    failures: dict[str, NotIdentified] = {}
    reasons: dict[str, str] = {}
    notes = list(samples.notes)

    def attempt(name: str, identification: Callable[[], T]) -> T | None:
        """Return the result of an identification; None if it fails, with the reason kept."""
        try:
            return identification()
        except NotIdentified as failure:
            failures[name] = failure
            reasons[name] = str(failure)
            return None

    # Identify the arm, and read its joint targets.
    arm = robot
    if arm is None:
        arm = attempt("robot", lambda: choose_robot(samples, others))
        if arm is not None:
            notes.append(f"robot not named: the {title_of_body(arm, others)} fits best")
    motion = attempt("motion", lambda: read_motion(samples, arm))
    # The motion is not a result of its own: why it is missing is the reason of what needs it.
    no_motion = failures.get("motion")
    reasons.pop("motion", None)

    # Identify servoj.
    servoj: ServojResult | None = None
    prediction: PredictionResult | None = None
    if motion is None:
        reasons["servoj"] = str(no_motion)
    else:
        servoj, prediction = identify_servoj(motion, samples.commands, reasons=reasons, notes=notes)
    if servoj is None:
        reasons.setdefault("prediction", "it needs the tuning of servoj")

    # Identify the arm's joints, geometry and forces.
    joint_servo = attempt("joint_servo", lambda: _joint_servo(samples, motion, no_motion))
    kinematics = attempt(
        "kinematics",
        lambda: _kinematics(samples, arm, others, is_calibrated=is_calibrated, reasons=reasons),
    )
    # If the kinematics fit, the arm is certain, and other arms' torques need not be compared.
    rivals = others if kinematics is None else ()
    no_kinematics = failures.get("kinematics")
    payload = attempt("payload_kg", lambda: _payload(samples, arm, rivals, no_kinematics))
    friction = attempt("friction", lambda: _friction(samples, no_motion))

    return Identification(
        robot=None if arm is None else arm.name,
        cycle_s=None if motion is None else motion.cycle,
        servoj=servoj,
        prediction=prediction,
        joint_servo=joint_servo,
        kinematics=kinematics,
        payload_kg=payload,
        friction=friction,
        not_identified=reasons,
        notes=notes,
    )


def choose_robot(samples: Samples, robots: Sequence[Robot]) -> Robot:
    """Return the arm whose kinematics fit the recording best, or whose torques do without poses.

    Raises:
        NotIdentified: No arm fits, or the torques of several do.
    """
    fits: list[tuple[float, Robot]] = []
    max_misfit = 0.0
    # How much larger the misfit of another arm must be.
    distinct_ratio = 1.0
    distinct_margin = 0.0
    try:
        q, poses = samples.need("actual_q", "actual_TCP_pose")
        fits = [(nominal_residual(robot, q, poses), robot) for robot in robots]
        max_misfit = OTHER_ARM_RESIDUAL
    except NotIdentified:
        with contextlib.suppress(NotIdentified):
            q, qd, qdd, moment = samples.need(
                "target_q", "target_qd", "target_qdd", "target_moment"
            )
            fits = [
                (moment_misfit(robot, q=q, qd=qd, qdd=qdd, moment=moment), robot)
                for robot in robots
            ]
            max_misfit = MAX_MISFIT
            distinct_ratio = DISTINCT_MISFIT_RATIO
            distinct_margin = DISTINCT_MISFIT_MARGIN

    if fits:
        misfit, best = min(fits, key=lambda fit: fit[0])
        rivals = [other for other, robot in fits if not _has_same_body(robot, best)]
        least_rival = max(distinct_ratio * misfit, misfit + distinct_margin)
        if misfit < max_misfit and min(rivals, default=np.inf) >= least_rival:
            return best
    raise NotIdentified("the recording does not show which arm it was made on; name it (--robot)")


def title_of_body(arm: Robot, robots: Sequence[Robot]) -> str:
    """Return the titles of an arm and of those with the same links: "UR10e or UR12e"."""
    same = [robot.title for robot in robots if _has_same_body(robot, arm)]
    return join_words(list(dict.fromkeys([arm.title, *same])), "or")


def _has_same_body(robot: Robot, arm: Robot) -> bool:
    """Return whether two arms have the same links."""
    return np.array_equal(robot.placements, arm.placements) and all(
        link.inertia == arm_link.inertia
        for link, arm_link in zip(robot.links, arm.links, strict=True)
    )


def _joint_servo(
    samples: Samples, motion: TargetMotion | None, no_motion: NotIdentified | None
) -> JointServoResult:
    """Identify the lag of the joints behind their targets.

    Args:
        samples: The recording.
        motion: The controller's joint targets; None if there are none.
        no_motion: Why there are none; None if there are some.
    """
    target, actual = samples.need("target_q", "actual_q")
    if motion is None:
        assert no_motion is not None
        raise no_motion
    rows = np.searchsorted(samples.times, motion.times)
    return fit_joint_servo(target[rows], motion.qd, actual[rows])


def _friction(samples: Samples, no_motion: NotIdentified | None) -> FrictionResult:
    """Identify the friction of the joints.

    Args:
        samples: The recording.
        no_motion: Why the recording has no joint targets of servoj; None if it has some.
    """
    # The currents do not match torque and friction if the arm was moved by hand, or if the joint
    # targets are noise.
    if isinstance(no_motion, NotProgrammedMotion):
        raise no_motion

    (moment,) = samples.need("target_moment")
    columns = samples.columns
    velocity = columns.get("target_qd", columns.get("actual_qd"))
    # The current that the controller expects contains its model of friction, without noise; the
    # measured current contains the arm's friction.
    current = columns.get("target_current", columns.get("actual_current"))

    missing_columns = []
    if velocity is None:
        missing_columns.append("target_qd")
    if current is None:
        missing_columns.append("target_current")
    # Raise an error that names the columns that are missing, if any are.
    samples.need(*missing_columns)
    assert velocity is not None and current is not None
    return fit_friction(velocity, moment, current)


def _kinematics(
    samples: Samples,
    robot: Robot | None,
    others: Sequence[Robot],
    *,
    is_calibrated: bool,
    reasons: dict[str, str],
) -> KinematicsResult:
    """Compare the chain of an arm with the recorded poses; see `identify`."""
    q, poses = samples.need("actual_q", "actual_TCP_pose")
    if robot is None:
        raise NotIdentified("the arm is not known")
    try:
        kinematics = fit_kinematics(robot, q, poses, is_calibrated=is_calibrated)
    except OtherArm as reason:
        # Add which arm fits to the reason, if one does.
        fits = [(nominal_residual(other, q, poses), other.title) for other in others]
        residual, title = min(fits, key=lambda fit: fit[0], default=(OTHER_ARM_RESIDUAL, ""))
        if residual < OTHER_ARM_RESIDUAL:
            raise OtherArm(
                f"{reason}; a {title} fits to within {millimetres(residual)} mm"
            ) from None
        raise

    tcp = [float(value) for value in kinematics.tcp]
    deviation = [float(value) for value in kinematics.tcp_deviation]
    is_known = max(deviation[:3]) <= MAX_TOOL_DEVIATION
    if not is_known:
        reasons["kinematics.tcp"] = _why_tool_unknown(kinematics)
    return {
        "residual_m": {"rms": kinematics.residual},
        "tcp": tcp if is_known else None,
        "source": kinematics.source,
        "uncertainty": {"tcp": deviation if is_known else None},
    }


def _why_tool_unknown(kinematics: Kinematics) -> str:
    """Return why the tool is not determined accurately enough, and what would help, as a clause."""
    deviation = float(kinematics.tcp_deviation[:3].max())
    position = ", ".join(fixed(1e3 * float(value), 2) for value in kinematics.tcp[:3])
    explanation = (
        "this motion cannot separate it from the calibration of the arm and its flange; give the "
        "arm's own kinematics (--kinematics)"
    )
    if kinematics.source == "given":
        explanation = (
            "with the given kinematics the recorded poses do not agree on one tool; check that the "
            "kinematics are those of this very arm, and that its TCP was not changed while "
            "recording"
        )
    return (
        f"the tool is only determined to within {millimetres(deviation)} mm, but "
        f"{1e3 * MAX_TOOL_DEVIATION:g} mm is required (the estimate is ({position}) mm): "
        f"{explanation}"
    )


def _payload(
    samples: Samples,
    robot: Robot | None,
    rivals: Sequence[Robot],
    no_kinematics: NotIdentified | None,
) -> Measured:
    """Identify the payload that the controller calculates with.

    Args:
        samples: The recording.
        robot: The arm; None if it is not known.
        rivals: Arms whose torques must not fit better than the arm's.
        no_kinematics: Why the kinematics were not identified; None if they were.
    """
    q, qd, qdd, moment = samples.need("target_q", "target_qd", "target_qdd", "target_moment")
    if robot is None:
        raise NotIdentified("the arm is not known")
    if isinstance(no_kinematics, OtherArm):
        raise no_kinematics

    still = np.abs(qd).max(axis=1) < MAX_STILL_SPEED
    accelerometer = samples.columns.get("actual_tool_accelerometer")
    gravity = gravity_direction(robot, q, still, accelerometer)
    payload, residual = fit_payload(robot, q=q, qd=qd, qdd=qdd, moment=moment, gravity=gravity)

    for rival in rivals:
        misfit = moment_misfit(rival, q=q, qd=qd, qdd=qdd, moment=moment)
        fits_better = misfit < BETTER_FIT_FRACTION * residual - BETTER_FIT_MARGIN
        if rival.name != robot.name and fits_better:
            raise NotIdentified(
                f"target_moment fits the model of a {rival.title} better (a residual of "
                f"{misfit:.2g} N m instead of {residual:.2g} N m): this is a recording of another "
                "arm"
            )
    return payload
