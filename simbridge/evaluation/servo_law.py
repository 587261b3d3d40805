"""The servo law that a controller follows in a run, compared with the configured one.

See docs/metrics.md.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TypedDict

import numpy as np

from simbridge.errors import InvalidParameter
from simbridge.evaluation.metrics.samples import rms
from simbridge.identification.servo_law import MAX_RESIDUAL, LawNotFound, find_servo_law
from simbridge.recording.samples import LogColumns
from simbridge.robot.pose import Array
from simbridge.servo.law import ServojLaw
from simbridge.text import millimetres, milliseconds, significant

# The law holds if it explains the joint targets, and gain and lookahead differ by at most this
# part.
SAME_TUNING = 0.02


class ServoLawCheck(TypedDict):
    """The servo law of a run on a controller, as the joint targets show it.

    If no tuning explains the cycles, gain and lookahead are None. Then `holds` is False if the
    configured law leaves too much, which `residual_rad` states, and `reason` says why no other
    tuning is named.

    Attributes:
        gain: Gain of the law that explains the joint targets best.
        lookahead_s: Lookahead of that law, s.
        delay_s: Mean delay of the link over the run, s.
        phase_s: Time from the beginning of a cycle to that of its calls, s.
        residual_rad: Distance of the inferred setpoints from the commands, over all joints, rad:
            `{median, p99}`.
        holds: Whether it is the configured law; None, with a `reason`, where that cannot be said.
        configured: The configured tuning, `{gain, lookahead_s}`.
        uncertainty: Standard deviations of the tuning, `{gain, lookahead_s}`.
        prediction_off_m: How far the tool is from the prediction, `{rms, max}`, where the law has
            another tuning, m.
        reason: Why something cannot be said, as a clause.
    """

    gain: float | None
    lookahead_s: float | None
    delay_s: float | None
    phase_s: float | None
    residual_rad: dict[str, float] | None
    holds: bool | None
    configured: dict[str, float]
    uncertainty: dict[str, float] | None
    prediction_off_m: dict[str, float] | None
    reason: str | None


def check_servo_law(
    law: ServojLaw, log: LogColumns, predict: Callable[[ServojLaw], Array]
) -> ServoLawCheck:
    """Compare the servo law of a run on a controller with the configured one.

    Args:
        law: The configured servo law.
        log: The run's log.
        predict: Function that returns the tool poses (T, 7) that a law makes of the run's commands.
    """
    check: ServoLawCheck = {
        "gain": None,
        "lookahead_s": None,
        "delay_s": None,
        "phase_s": None,
        "residual_rad": None,
        "holds": None,
        "configured": {"gain": law.gain, "lookahead_s": law.lookahead},
        "uncertainty": None,
        "prediction_off_m": None,
        "reason": None,
    }

    q = log.controller_target
    qd = log.controller_target_velocity
    qdd = log.controller_target_acceleration
    if not (np.isfinite(q).all() and np.isfinite(qd).all() and np.isfinite(qdd).all()):
        check["reason"] = "the controller does not report target_q, target_qd and target_qdd"
        return check

    cycles = np.rint((log.stamp - log.stamp[0]) / law.cycle).astype(np.int64)
    try:
        best = find_servo_law(law, cycles, log.command, q=q, qd=qd, qdd=qdd)
    except LawNotFound as error:
        check["reason"] = str(error)
        if len(error.residuals) and np.percentile(error.residuals, 99.0) >= MAX_RESIDUAL:
            check["holds"] = False
            check["residual_rad"] = _residual(error.residuals)
        return check

    # The configured law holds if the best one explains the cycles and has its tuning.
    residual = _residual(best.residuals)
    is_same_tuning = not _tunings_differ(best.gain, best.lookahead, law.gain, law.lookahead)
    is_explained = residual["p99"] < MAX_RESIDUAL
    check["gain"] = best.gain
    check["lookahead_s"] = best.lookahead
    check["delay_s"] = best.delay
    check["phase_s"] = best.phase
    check["residual_rad"] = residual
    check["uncertainty"] = {"gain": best.deviations[0], "lookahead_s": best.deviations[1]}
    check["holds"] = is_same_tuning and is_explained

    if is_explained and not is_same_tuning:
        # Nothing is said of a law that UR's servoj would refuse.
        with contextlib.suppress(InvalidParameter):
            best_law = ServojLaw(law.cycle, best.gain, best.lookahead)
            difference = predict(law)[:, :3] - predict(best_law)[:, :3]
            distance = np.linalg.norm(difference, axis=1)
            check["prediction_off_m"] = {"rms": rms(distance), "max": float(distance.max())}
    return check


def _tunings_differ(gain: float, lookahead: float, gain_b: float, lookahead_b: float) -> bool:
    """Return whether two tunings differ by more than `SAME_TUNING` allows."""
    gain_difference = abs(gain / gain_b - 1.0)
    lookahead_difference = abs(lookahead / lookahead_b - 1.0)
    return max(gain_difference, lookahead_difference) > SAME_TUNING


def has_other_tuning(check: ServoLawCheck | None) -> bool:
    """Return whether the check found a gain or lookahead that is not the configured one.

    A law that does not hold may still have the configured tuning, such as where many commands came
    too late.
    """
    if check is None or check["gain"] is None or check["lookahead_s"] is None:
        return False
    configured = check["configured"]
    return _tunings_differ(
        check["gain"], check["lookahead_s"], configured["gain"], configured["lookahead_s"]
    )


def _residual(residuals: Array) -> dict[str, float]:
    """Return median and 99th percentile of residuals (K,), rad."""
    return {"median": float(np.median(residuals)), "p99": float(np.percentile(residuals, 99.0))}


def servo_law_sentence(check: ServoLawCheck) -> str:
    """Say in a sentence or two what the check shows."""
    if check["holds"] is None:
        return (
            "It cannot be determined whether the controller's servo law is the configured one: "
            f"{check['reason']}."
        )

    assert check["residual_rad"] is not None
    median = significant(1e3 * check["residual_rad"]["median"])
    p99 = significant(1e3 * check["residual_rad"]["p99"])
    residual = f"residual {median} mrad, p99 {p99} mrad"
    configured = check["configured"]
    configured_tuning = f"gain {configured['gain']:g}, lookahead {configured['lookahead_s']:g} s"

    if check["gain"] is None or check["lookahead_s"] is None or check["delay_s"] is None:
        return (
            f"The controller does not follow the configured servo law ({configured_tuning}): "
            f"{residual}. It cannot be determined which law it follows: {check['reason']}."
        )

    tuning = f"gain {significant(check['gain'])}, lookahead {significant(check['lookahead_s'])} s"
    link = f"the link's delay is {milliseconds(check['delay_s'])} ms"
    if check["holds"]:
        return f"The controller's servo law is the configured one: {tuning}, {residual}; {link}."

    if not has_other_tuning(check):
        return (
            f"The controller's servo law has the configured tuning ({tuning}), but the joint "
            f"targets do not follow the recorded commands: {residual}; {link}. Commands that came "
            "too late or were lost have this effect."
        )

    off = check["prediction_off_m"]
    if off is None:
        return (
            f"The controller does not follow the servo law: {tuning} at best, {residual}; {link}."
        )
    distance = f"{millimetres(off['rms'])} mm RMS (max {millimetres(off['max'])} mm)"
    return (
        f"The controller's servo law is not the configured one ({configured_tuning}): {tuning}, "
        f"{residual}; {link}. Prediction and feedforward are off by {distance}."
    )
