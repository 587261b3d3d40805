"""Whether a motion obeys servoj's law, and with which tuning.

The law shows itself where the commands are known, or where a command was held while the arm still
moved (`simbridge.identification`). servoL obeys the same law; only joint commands tell them apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simbridge.identification.data import Samples, ServojResult
from simbridge.identification.read_motion import read_motion
from simbridge.identification.servoj_results import identify_servoj
from simbridge.identification.target_motion import NotIdentified
from simbridge.robot.robot import Robot


@dataclass(frozen=True)
class ServojEvidence:
    """The tuning of servoj in a motion.

    Attributes:
        gain: Gain of servoj, 1/s^2.
        gain_uncertainty: One standard deviation of the gain, 1/s^2.
        lookahead_s: Lookahead of servoj, s.
        lookahead_uncertainty_s: One standard deviation of the lookahead, s.
        call_s: Duration of a call, s; None if the commands do not show it.
        phase_s: How long after the beginning of a cycle calls begin, s; None if the commands do
            not show it.
        residual_rad: Median distance of the setpoints from the commands, or from the held command,
            over all joints, rad.
        has_commands: Whether the joint commands were recorded and explain the motion.
    """

    gain: float
    gain_uncertainty: float
    lookahead_s: float
    lookahead_uncertainty_s: float
    call_s: float | None
    phase_s: float | None
    residual_rad: float
    has_commands: bool


def find_servoj(samples: Samples, robot: Robot | None) -> tuple[ServojEvidence | None, str]:
    """Return the tuning of servoj in a motion, and why it is not known where it is not.

    Args:
        samples: The rows of the motion, and the commands of the log.
        robot: The arm; None if it is not known.

    Returns:
        The tuning and ""; or None and the reason, as a clause.
    """
    reasons: dict[str, str] = {}
    try:
        motion = read_motion(samples, robot)
    except NotIdentified as reason:
        return None, str(reason)
    result, _ = identify_servoj(motion, samples.commands, reasons=reasons, notes=[])
    if result is None:
        return None, reasons["servoj"]
    return _evidence(result), ""


def _evidence(result: ServojResult) -> ServojEvidence:
    """Return the result of an identification as evidence."""
    has_commands = result["call_s"] is not None
    return ServojEvidence(
        gain=result["gain"],
        gain_uncertainty=result["uncertainty"]["gain"],
        lookahead_s=result["lookahead_s"],
        lookahead_uncertainty_s=result["uncertainty"]["lookahead_s"],
        call_s=result["call_s"],
        phase_s=result["phase_s"],
        residual_rad=float(np.float64(result["residual_rad"]["median"])),
        has_commands=has_commands,
    )
