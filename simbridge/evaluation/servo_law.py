"""Whether the servo law of a run on a controller is the configured one: see docs/metrics.md."""

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

SAME_TUNING = 0.02
"""The law holds if it explains the joint targets, and gain and lookahead differ by at most this share."""


class ServoLawCheck(TypedDict):
    """The servo law found in a run on a controller. Tunings are `{gain, lookahead_s}`, residuals `{median, p99}`, and
    distances of the tool `{rms, max}`.

    `holds` is whether it is the configured law; None, with a `reason`, where that cannot be said. `delay_s` is that of
    the link, mean over the run; `phase_s` is how long after a cycle's begin calls begin. `residual_rad` is the distance
    of the inferred setpoints from the commands, over all joints. `prediction_off_m` is how far the tool is from the
    prediction where the law has another tuning; None where no tuning explains the cycles. Then `holds` is False if the
    configured law leaves too much, which `residual_rad` states, and `reason` says why no other tuning is named.
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
    law: ServojLaw, log: LogColumns, predicted: Callable[[ServojLaw], Array]
) -> ServoLawCheck:
    """Compare the servo law of a run on a controller with the configured one.

    `predicted` are the poses of the tool (T, 7) that a law makes of the run's commands.
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
    targets = (
        log.controller_target,
        log.controller_target_velocity,
        log.controller_target_acceleration,
    )
    if not all(np.isfinite(values).all() for values in targets):
        check["reason"] = "the controller does not report target_q, target_qd and target_qdd"
        return check
    cycles = np.rint((log.stamp - log.stamp[0]) / law.cycle).astype(np.int64)
    try:
        found = find_servo_law(law, cycles, log.command, *targets)
    except LawNotFound as error:
        check["reason"] = str(error)
        if len(error.residuals) and np.percentile(error.residuals, 99.0) >= MAX_RESIDUAL:
            check |= {"holds": False, "residual_rad": _residual(error.residuals)}
        return check
    off = (abs(found.gain / law.gain - 1.0), abs(found.lookahead / law.lookahead - 1.0))
    residual = _residual(found.residuals)
    p99 = residual["p99"]
    check |= {
        "gain": found.gain,
        "lookahead_s": found.lookahead,
        "delay_s": found.delay,
        "phase_s": found.phase,
        "residual_rad": residual,
        "uncertainty": {"gain": found.deviations[0], "lookahead_s": found.deviations[1]},
        "holds": max(off) <= SAME_TUNING and p99 < MAX_RESIDUAL,
    }
    if p99 < MAX_RESIDUAL and not check["holds"]:
        # None if UR's servoj would refuse it.
        with contextlib.suppress(InvalidParameter):
            other = ServojLaw(law.cycle, found.gain, found.lookahead)
            distance = np.linalg.norm(predicted(law)[:, :3] - predicted(other)[:, :3], axis=1)
            check["prediction_off_m"] = {"rms": rms(distance), "max": float(distance.max())}
    return check


def _residual(residuals: Array) -> dict[str, float]:
    return {"median": float(np.median(residuals)), "p99": float(np.percentile(residuals, 99.0))}


def servo_law_sentence(check: ServoLawCheck) -> str:
    """The check in a sentence or two."""
    configured = check["configured"]
    if check["holds"] is None:
        return f"Whether the controller's servo law is the configured one cannot be said: {check['reason']}."
    assert check["residual_rad"] is not None
    wanted = f"gain {configured['gain']:g}, lookahead {configured['lookahead_s']:g} s"
    residual = (
        f"residual {significant(1e3 * check['residual_rad']['median'])} mrad, "
        f"p99 {significant(1e3 * check['residual_rad']['p99'])} mrad"
    )
    if check["gain"] is None or check["lookahead_s"] is None or check["delay_s"] is None:
        text = f"The controller does not follow the configured servo law ({wanted}): {residual}"
        return f"{text}. Which law it follows cannot be said: {check['reason']}."
    found = f"gain {significant(check['gain'])}, lookahead {significant(check['lookahead_s'])} s"
    link = f"the link's delay is {milliseconds(check['delay_s'])} ms"
    if check["holds"]:
        return f"The controller's servo law is the configured one: {found}, {residual}; {link}."
    off = check["prediction_off_m"]
    if off is None:
        return f"The controller does not follow the servo law: {found} at best, {residual}; {link}."
    text = f"The controller's servo law is not the configured one ({wanted}): {found}, {residual}; {link}."
    amount = f"{millimetres(off['rms'])} mm RMS (max {millimetres(off['max'])} mm)"
    return f"{text} Prediction and feedforward are off by {amount}."
