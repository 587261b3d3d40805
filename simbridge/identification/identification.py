"""What a recording of a controller shows of its arm: servo law, joint servo, kinematics, payload and friction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from simbridge.identification.calls import Calls, find_calls, predict
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
    MISFIT,
    fit_friction,
    fit_joint_servo,
    fit_payload,
    gravity_direction,
    moment_misfit,
)
from simbridge.identification.held import fit_to_held_commands
from simbridge.identification.kinematics import (
    OTHER_ARM,
    OtherArm,
    fit_kinematics,
    nominal_residual,
)
from simbridge.identification.servoj import NotIdentified, TargetMotion, Tuning, along, fit_to_path
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.text import fixed, millimetres

T = TypeVar("T")

# Cycles of the controllers, s.
E_SERIES, CB3 = 0.002, 0.008
# How far target_qd may be off as the rate of target_q, relative.
_INCONSISTENT = 0.3
# One standard deviation of the tool's position that is still given, m.
_UNCERTAIN_TOOL = 1e-4
# Error of a prediction (rad) from which calls without rows explain it, if the rows themselves obey the law.
_UNSEEN = 1e-5
# Moving rows in which servoj is looked for.
_STRETCH = 25


def identify(
    samples: Samples,
    *,
    robot: Robot | None,
    others: Sequence[Robot] = (),
    given_kinematics: bool = False,
) -> Identification:
    """Everything that a recording can show.

    Args:
        robot: The arm; None: the one of `others` that fits best.
        others: Arms that it may be instead.
        given_kinematics: Whether the robot's kinematics are those of this very arm.

    Raises:
        UnusableSamples: The joint positions of the recording or of the commands are in degrees, or not the robot's.
    """
    samples.check_joints(robot)
    reasons: dict[str, str] = {}
    notes = list(samples.notes)

    def attempt(name: str, find: Callable[[], T]) -> T | None:
        try:
            return find()
        except NotIdentified as reason:
            reasons[name] = str(reason)
            return None

    chosen = robot if robot is not None else attempt("robot", lambda: _fitting(samples, others))
    if robot is None and chosen is not None:
        notes.append(f"robot not named: the {chosen.title} fits best")
    motion = attempt("motion", lambda: _motion(samples, chosen))
    missing = reasons.pop("motion", None)
    servoj: ServojResult | None = None
    predicted: PredictionResult | None = None
    if motion is None:
        reasons["servoj"] = missing or ""
    else:
        servoj, predicted = _servoj(motion, samples.commands, reasons, notes)
    if servoj is None:
        reasons.setdefault("prediction", "it needs the tuning of servoj")
    joint_servo = attempt("joint_servo", lambda: _joint_servo(samples, motion, missing))
    kinematics = attempt(
        "kinematics", lambda: _kinematics(samples, chosen, others, given_kinematics, reasons)
    )
    checked = kinematics is not None
    payload = attempt("payload_kg", lambda: _payload(samples, chosen, others, checked, reasons))
    friction = attempt("friction", lambda: _friction(samples, missing))
    return Identification(
        robot=None if chosen is None else chosen.name,
        cycle_s=None if motion is None else motion.cycle,
        servoj=servoj,
        prediction=predicted,
        joint_servo=joint_servo,
        kinematics=kinematics,
        payload_kg=payload,
        friction=friction,
        not_identified=reasons,
        notes=notes,
    )


def _fitting(samples: Samples, robots: Sequence[Robot]) -> Robot:
    """The arm whose kinematics, or else whose masses, fit the recording best."""
    found: list[tuple[float, Robot]] = []
    try:
        q, poses = samples.need("actual_q", "actual_TCP_pose")
        found = [(nominal_residual(robot, q, poses), robot) for robot in robots]
        bound = OTHER_ARM
    except NotIdentified:
        try:
            arrays = samples.need("target_q", "target_qd", "target_qdd", "target_moment")
            found = [(moment_misfit(robot, *arrays), robot) for robot in robots]
            bound = MISFIT
        except NotIdentified:
            pass
    if found:
        misfit, robot = min(found, key=lambda one: one[0])
        if misfit < bound:
            return robot
    raise NotIdentified("the recording does not show which arm it is of; name it (--robot)")


def _motion(samples: Samples, robot: Robot | None) -> TargetMotion:
    """The controller's joint targets, checked."""
    times, (q,) = samples.times, samples.need("target_q")
    velocity, acceleration = samples.columns.get("target_qd"), samples.columns.get("target_qdd")
    cycle = samples.cycle or _cycle(times, velocity, acceleration, robot)
    if velocity is None or acceleration is None:
        # On whole cycles these are what the controller would report.
        if np.median(np.diff(times)) > 1.01 * cycle:
            samples.need("target_qd", "target_qdd")
        steps = np.diff(q, axis=0) / np.diff(times)[:, None]
        velocity = np.concatenate([steps[:1], steps])
        acceleration = np.concatenate(
            [np.zeros_like(q[:1]), np.diff(velocity, axis=0) / np.diff(times)[:, None]]
        )
        times, q, velocity, acceleration = (
            column[2:] for column in (times, q, velocity, acceleration)
        )
    motion = TargetMotion(times, q, velocity, acceleration, cycle)
    moving = motion.moving
    if moving.sum() < 10:
        raise NotIdentified("the arm does not move")
    if not acceleration[moving].any():
        raise NotIdentified(
            "target_qdd is zero while the arm moves: it was led by hand (freedrive), not by servoj"
        )
    span = np.diff(times)
    near = moving[1:] & moving[:-1] & (span < 1.5 * np.median(span))
    step = np.diff(q, axis=0)[near]
    off = step - (0.5 * (velocity[1:] + velocity[:-1]) * span[:, None])[near]
    if np.median(np.linalg.norm(off, axis=1)) > _INCONSISTENT * np.median(
        np.linalg.norm(step, axis=1)
    ):
        raise NotIdentified(
            "target_qd is not the rate of target_q: the recording is noise, or in other units"
        )
    return motion


def _cycle(
    times: Array, velocity: Array | None, acceleration: Array | None, robot: Robot | None
) -> float:
    """The controller's cycle, s: 2 ms, or 8 ms of a CB3, whose velocity then changes by 8 ms of acceleration a row."""
    span = np.diff(times)
    if span.min() < 0.0079:
        return E_SERIES
    if velocity is not None and acceleration is not None:
        # Where the acceleration changes: with a constant one it holds for any cycle.
        jerk = np.abs(np.diff(acceleration, axis=0)).max(axis=1)
        rows = (
            (np.abs(span - CB3) < 1e-4)
            & (jerk > 1e-2 * np.abs(acceleration[1:]).max(axis=1))
            & (jerk > 1e-6)
        )
        if rows.sum() > 10:
            change = np.diff(velocity, axis=0)[rows]
            off = float(np.median(np.linalg.norm(change - CB3 * acceleration[1:][rows], axis=1)))
            off /= max(float(np.median(np.linalg.norm(change, axis=1))), 1e-12)
            if off < 1e-4 or off > 1e-2:
                return CB3 if off < 1e-4 else E_SERIES
    return E_SERIES if robot is None else robot.period


def _servoj(
    motion: TargetMotion, commands: Array | None, reasons: dict[str, str], notes: list[str]
) -> tuple[ServojResult | None, PredictionResult | None]:
    """Tuning and prediction; what is not identified is added to `reasons`."""
    held = fit = None
    failed: list[str] = []
    missing = "it needs the commands (--commands)"
    try:
        held = fit_to_held_commands(motion).checked()
    except NotIdentified as reason:
        failed.append(str(reason))
    if commands is not None:
        failed = [reason.replace(", which is needed without the commands", "") for reason in failed]
        # Split cycles and skipped commands may mislead the path; but it may be all there is.
        for by_path in (False, True) if held is not None else (True,):
            try:
                fit = _with_commands(
                    motion, commands.astype(np.float32).astype(float), held, by_path
                )
                break
            except NotIdentified as reason:
                failed.append(missing := str(reason))
    if fit is None:
        reasons["prediction"] = missing
        if held is None:
            reasons["servoj"] = "; ".join(reversed(failed))
            return None, None
        reasons["servoj.phase_s"] = missing
        return _servoj_result(held), None
    obeying, calls, refined, errors, restarts = fit
    if len(obeying) < len(motion):
        notes.append(
            f"servoj ran from {obeying.times[0] - motion.times[0]:.2f} to "
            f"{obeying.times[-1] - motion.times[0]:.2f} s: the rest is left out"
        )
    turn = calls.law.begin / motion.cycle
    phase = max(float(motion.cycle * (turn - np.floor(turn + 1e-6))), 0.0)
    servoj, size = _servoj_result(refined, phase, float(calls.law.duration)), np.abs(errors)
    left = float(np.sqrt(np.mean(size**2)))
    span = float(np.median(np.diff(obeying.times)))
    if span > 1.01 * calls.law.duration and left > max(
        _UNSEEN, 10.0 * servoj["residual_rad"]["p99"]
    ):
        reasons["prediction"] = (
            f"rows are {1e3 * span:.3g} ms apart and calls last {1e3 * calls.law.duration:.3g} ms: which commands the "
            f"calls between rows took is not recorded (with the likeliest ones it is off by {left:.1e} rad)"
        )
        return servoj, None
    return servoj, {
        "rms_rad": left,
        "median_rad": float(np.median(size)),
        "max_rad": float(size.max()),
        "restarts": restarts,
    }


def _with_commands(
    motion: TargetMotion, commands: Array, held: Tuning | None, by_path: bool
) -> tuple[TargetMotion, Calls, Tuning, Array, int]:
    """The rows in which servoj ran, the calls, the tuning, and the prediction with its restarts."""
    tuning = fit_to_path(motion, commands) if by_path or held is None else held
    index, off = along(motion, tuning, commands)
    rows = _obeying(motion, off, tuning)
    calls, refined = find_calls(motion[rows], commands, tuning, index[rows])
    refined = refined.checked()
    if held is not None:
        refined = _agreeing(held, refined)
    return motion[rows], calls, refined, *predict(motion[rows], calls, commands)


def _agreeing(one: Tuning, other: Tuning) -> Tuning:
    """The other tuning, as uncertain as it differs from one that was found in another way, beyond that one's deviation.

    Raises:
        NotIdentified: They differ by more than their uncertainty.
    """
    apart = np.abs([one.gain - other.gain, one.lookahead - other.lookahead])
    allowed = 10.0 * np.hypot(one.deviation, other.deviation) + 1e-4 * np.array(
        [one.gain, one.lookahead]
    )
    if (apart > allowed).any():
        raise NotIdentified(
            f"the commands lead to a gain of {other.gain:.6g}, moments in which one was held to {one.gain:.6g}: too "
            "many calls were not recorded"
        )
    return replace(
        other, deviation=np.hypot(other.deviation, np.maximum(apart - one.deviation, 0.0))
    )


def _obeying(motion: TargetMotion, off: Array, tuning: Tuning) -> slice:
    """The rows in which servoj ran: from the first to the last stretch whose setpoints are not far off (T,), rad, from
    the commands' path."""
    bound = max(50.0 * float(np.median(tuning.residuals)), 1e-4)
    moving = np.flatnonzero(motion.moving)
    off_path = off[moving] > bound
    if not off_path.any():
        return slice(0, len(motion))
    stretch = min(_STRETCH, len(moving))
    share = np.convolve(off_path, np.ones(stretch) / stretch, mode="valid")
    good = np.flatnonzero(share < 0.2)
    if not len(good):
        raise NotIdentified("the motion follows the commands nowhere for long")
    first = 0 if good[0] == 0 else moving[good[0]]
    last = len(motion) if good[-1] == len(share) - 1 else moving[good[-1] + stretch - 1] + 1
    return slice(int(first), int(last))


def _servoj_result(
    tuning: Tuning, phase: float | None = None, call: float | None = None
) -> ServojResult:
    return {
        "gain": float(tuning.gain),
        "lookahead_s": float(tuning.lookahead),
        "phase_s": phase,
        "call_s": call,
        "uncertainty": {
            "gain": float(tuning.deviation[0]),
            "lookahead_s": float(tuning.deviation[1]),
        },
        "residual_rad": {
            "median": float(np.median(tuning.residuals)),
            "p99": float(np.percentile(tuning.residuals, 99.0)),
        },
    }


def _joint_servo(
    samples: Samples, motion: TargetMotion | None, missing: str | None
) -> JointServoResult:
    target, actual = samples.need("target_q", "actual_q")
    if motion is None:
        raise NotIdentified(missing or "")
    rows = np.searchsorted(samples.times, motion.times)
    return fit_joint_servo(target[rows], motion.qd, actual[rows])


def _friction(samples: Samples, missing: str | None) -> FrictionResult:
    columns = samples.columns
    if missing is not None and any(word in missing for word in ("freedrive", "noise")):
        raise NotIdentified(missing)
    (moment,) = samples.need("target_moment")
    velocity = columns.get("target_qd", columns.get("actual_qd"))
    # The controller's own current has its friction without noise; the measured one has the arm's.
    current = columns.get("target_current", columns.get("actual_current"))
    if velocity is None or current is None:
        samples.need(
            *(
                name
                for name, there in (("target_qd", velocity), ("target_current", current))
                if there is None
            )
        )
    assert velocity is not None and current is not None
    return fit_friction(velocity, moment, current)


def _kinematics(
    samples: Samples,
    robot: Robot | None,
    others: Sequence[Robot],
    given: bool,
    reasons: dict[str, str],
) -> KinematicsResult:
    q, poses = samples.need("actual_q", "actual_TCP_pose")
    if robot is None:
        raise NotIdentified("the arm is not known")
    try:
        found = fit_kinematics(robot, q, poses, given=given)
    except OtherArm as reason:
        fits = [(nominal_residual(other, q, poses), other.title) for other in others]
        near, title = min(fits, key=lambda one: one[0], default=(OTHER_ARM, ""))
        if near < OTHER_ARM:
            raise OtherArm(f"{reason}; a {title} fits within {millimetres(near)} mm") from None
        raise
    tcp, deviation = [[float(v) for v in values] for values in (found.tcp, found.tcp_deviation)]
    known = max(deviation[:3]) <= _UNCERTAIN_TOOL
    if not known:
        at = ", ".join(fixed(1e3 * value, 2) for value in tcp[:3])
        reasons["kinematics.tcp"] = (
            f"the tool is only determined to {millimetres(max(deviation[:3]))} mm, and "
            f"{1e3 * _UNCERTAIN_TOOL:g} mm is needed (it would be at ({at}) mm): this motion does not separate "
            "it from the calibration of the arm and its flange; give the arm's own kinematics (--kinematics)"
        )
    return {
        "residual_m": {"rms": found.residual},
        "tcp": tcp if known else None,
        "source": found.source,
        "uncertainty": {"tcp": deviation if known else None},
    }


def _payload(
    samples: Samples,
    robot: Robot | None,
    others: Sequence[Robot],
    checked: bool,
    reasons: Mapping[str, str],
) -> Measured:
    q, qd, qdd, moment = samples.need("target_q", "target_qd", "target_qdd", "target_moment")
    if robot is None:
        raise NotIdentified("the arm is not known")
    if "another arm" in reasons.get("kinematics", ""):
        raise NotIdentified(reasons["kinematics"])
    still = np.abs(qd).max(axis=1) < 1e-3
    gravity = gravity_direction(robot, q, still, samples.columns.get("actual_tool_accelerometer"))
    found, left = fit_payload(robot, q, qd, qdd, moment, gravity)
    if not checked:
        for other in others:
            misfit = moment_misfit(other, q, qd, qdd, moment)
            if other.name != robot.name and misfit < 0.5 * left - 0.002:
                raise NotIdentified(
                    f"target_moment fits the model of a {other.title} better ({misfit:.2g} N m are left, not "
                    f"{left:.2g}): this is a recording of another arm"
                )
    return found
