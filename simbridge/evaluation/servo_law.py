"""Whether the servo law of a run on a controller is the configured one: see docs/metrics.md."""

from __future__ import annotations

from typing import TypedDict

import numpy as np

from simbridge.errors import InvalidParameter
from simbridge.evaluation.evaluation import Evaluation
from simbridge.evaluation.metrics.servo_law import FoundLaw, LawNotFound, find_servo_law
from simbridge.servo.law import ServojLaw
from simbridge.text import millimetres, milliseconds, significant

SAME_TUNING = 0.02
"""The law holds if gain and lookahead differ from the configured ones by at most this share,"""
MAX_RESIDUAL = 1e-4
"""and 99 % of the residuals are smaller than this, in rad."""
UNCERTAIN = 0.005
"""A tuning with a larger relative standard deviation is not judged."""


class Residual(TypedDict):
    """Distances of the inferred setpoints from the commands, over all joints, rad."""

    median: float
    p99: float


class Tuning(TypedDict):
    """Of servoj."""

    gain: float
    lookahead_s: float


class Deviation(TypedDict):
    """Distances of the tool, m."""

    rms: float
    max: float


class ServoLawCheck(TypedDict):
    """The servo law found in a run on a controller.

    `holds` is whether it is the configured law; None, with a `reason`, where that cannot be said. `delay_s` is that of
    the link, mean over the run; `phase_s` is how long after a cycle's begin calls begin. `prediction_off_m` is how far
    prediction and feedforward are off where the law has another tuning; None where the cycles follow no such law.
    """

    gain: float | None
    lookahead_s: float | None
    delay_s: float | None
    phase_s: float | None
    residual_rad: Residual | None
    holds: bool | None
    configured: Tuning
    uncertainty: Tuning | None
    prediction_off_m: Deviation | None
    reason: str | None


def check_servo_law(run: Evaluation) -> ServoLawCheck | None:
    """Compare the servo law of a run on a controller with the configured one; None in simulation."""
    law, log = run.servo, run.log
    if law is None or run.settings["backend"]["simulated_time"]:
        return None
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
    targets = (log.controller_target, log.controller_target_velocity, log.controller_target_acceleration)
    if not all(np.isfinite(values).all() for values in targets):
        check["reason"] = "the controller does not report target_q, target_qd and target_qdd"
        return check
    cycles = np.rint((log.stamp - log.stamp[0]) / law.cycle).astype(np.int64)
    try:
        found = find_servo_law(law, cycles, log.command, *targets)
    except LawNotFound as error:
        check["reason"] = str(error)
        return check
    off = (abs(found.gain / law.gain - 1.0), abs(found.lookahead / law.lookahead - 1.0))
    relative = (found.deviations[0] / abs(found.gain), found.deviations[1] / abs(found.lookahead))
    if max(relative) > UNCERTAIN:
        check["reason"] = (
            f"the motion leaves gain and lookahead uncertain by {100.0 * relative[0]:.2g} and "
            f"{100.0 * relative[1]:.2g} %"
        )
        return check
    p99 = float(np.percentile(found.residuals, 99.0))
    check |= {
        "gain": found.gain,
        "lookahead_s": found.lookahead,
        "delay_s": found.delay,
        "phase_s": found.phase,
        "residual_rad": {"median": float(np.median(found.residuals)), "p99": p99},
        "uncertainty": {"gain": found.deviations[0], "lookahead_s": found.deviations[1]},
        "holds": max(off) <= SAME_TUNING and p99 < MAX_RESIDUAL,
    }
    if p99 < MAX_RESIDUAL and not check["holds"]:
        check["prediction_off_m"] = _prediction_off(run, law, found)
    return check


def _prediction_off(run: Evaluation, configured: ServojLaw, found: FoundLaw) -> Deviation | None:
    """How far apart the tool is with the configured law and with the one that was found; None if the latter is none."""
    try:
        other = ServojLaw(configured.cycle, found.gain, found.lookahead)
    except InvalidParameter:
        return None
    one, two = (run.tool(run.followed(law))[:, :3] for law in (configured, other))
    distance = np.linalg.norm(one - two, axis=1)
    return {"rms": float(np.sqrt(np.mean(distance**2))), "max": float(distance.max())}


def servo_law_sentence(check: ServoLawCheck) -> str:
    """The check in a sentence or two."""
    configured = check["configured"]
    if check["holds"] is None:
        return f"Whether the controller's servo law is the configured one cannot be said: {check['reason']}."
    assert check["gain"] is not None and check["lookahead_s"] is not None and check["delay_s"] is not None
    assert check["residual_rad"] is not None
    found = f"gain {significant(check['gain'])}, lookahead {significant(check['lookahead_s'])} s"
    residual = (
        f"residual {significant(1e3 * check['residual_rad']['median'])} mrad, "
        f"p99 {significant(1e3 * check['residual_rad']['p99'])} mrad"
    )
    link = f"the link's delay is {milliseconds(check['delay_s'])} ms"
    if check["holds"]:
        return f"The controller's servo law is the configured one: {found}, {residual}; {link}."
    off = check["prediction_off_m"]
    if off is None:
        return f"The controller does not follow the servo law: {found} at best, {residual}; {link}."
    wanted = f"gain {configured['gain']:g}, lookahead {configured['lookahead_s']:g} s"
    text = f"The controller's servo law is not the configured one ({wanted}): {found}, {residual}; {link}."
    amount = f"{millimetres(off['rms'])} mm RMS (max {millimetres(off['max'])} mm)"
    return f"{text} Prediction and feedforward are off by {amount}."
