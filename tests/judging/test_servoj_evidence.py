"""The tuning of servoj in logs as ur_rtde's recorder writes them, with six decimals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from simbridge.judging.kinds import find_kind
from simbridge.judging.log import Commands, ControllerLog
from simbridge.judging.logged_motions import find_motions
from simbridge.judging.servoj_evidence import count_held
from tests.identification.controller import Sender, recorded
from tests.judging.logs import CYCLE, START, TRAVEL, make_log

pytestmark = pytest.mark.slow

DECIMALS = 6


def log_of_smooth_motion(
    gain: float, lookahead: float, *, has_commands: bool = False
) -> ControllerLog:
    """Return the log of a smooth path to a goal and back, which begins and ends at rest.

    Args:
        gain: Gain of servoj, 1/s^2.
        lookahead: Lookahead of servoj, s.
        has_commands: Whether each row has the command that its cycle took, in as many digits.
    """
    progress = np.linspace(0.0, 1.0, 400)
    smooth = progress**3 * (10.0 - 15.0 * progress + 6.0 * progress**2)
    # Each joint moves in its own way.
    phases = np.outer(4.0 * np.pi * smooth, np.array([1.0, 1.5, 0.5, 1.0, 2.0, 0.5]))
    commands = START + TRAVEL * np.sin(phases)
    rows = recorded(
        commands,
        list(range(len(commands))),
        Sender(duration=CYCLE),
        gain=gain,
        lookahead=lookahead,
        cycle=CYCLE,
        rest=1.0,
    )
    rounded = {name: rows[name].round(DECIMALS) for name in rows}
    columns = {name: rounded[name] for name in ("target_qd", "target_qdd")}
    log = make_log(rounded["target_q"], columns=columns)
    if not has_commands:
        return log
    before = np.tile(commands[0], (round(1.0 / CYCLE), 1))
    after = np.tile(commands[-1], (len(log.times) - len(before) - len(commands), 1))
    sent = np.concatenate([before, commands, after]).round(DECIMALS)
    return replace(log, position_commands=Commands(sent, log.times))


@pytest.mark.parametrize(
    ("gain", "lookahead"),
    [
        (300.0, 0.1),
        pytest.param(150.0, 0.1, marks=pytest.mark.soak),
        pytest.param(100.0, 0.2, marks=pytest.mark.soak),
    ],
)
def test_rounded_commands_leave_the_tuning_within_its_uncertainty(gain, lookahead):
    log = log_of_smooth_motion(gain, lookahead, has_commands=True)

    (motion,) = find_motions(log)
    kind, _ = find_kind(log, motion, None)

    assert kind.servoj is not None
    assert abs(kind.servoj.gain - gain) < 3.0 * kind.servoj.gain_uncertainty
    assert abs(kind.servoj.lookahead_s - lookahead) < 3.0 * kind.servoj.lookahead_uncertainty_s


@pytest.mark.parametrize(("gain", "lookahead"), [(500.0, 0.05), (300.0, 0.1)])
def test_an_arm_that_settles_slowly_shows_servoj(gain, lookahead):
    log = log_of_smooth_motion(gain, lookahead)

    (motion,) = find_motions(log)
    kind, signals = find_kind(log, motion, None)

    assert kind.servoj is not None
    assert abs(kind.servoj.gain - gain) < 3.0 * kind.servoj.gain_uncertainty < 0.15 * gain
    assert signals is not None
    assert signals.times[-1] <= motion.end_s


def test_equal_commands_are_not_held():
    """Where commands rest, no setpoint tells whether a call took the next one."""
    commands = np.array([[0.0], [0.1], [0.1], [0.1000001], [0.2]])

    calls_at_rest = count_held(np.array([0, 1, 1, 1, 4]), commands, min_step=1e-6)
    late_calls = count_held(np.array([0, 0, 1, 3, 3, 4]), commands, min_step=1e-6)

    assert calls_at_rest == 0
    assert late_calls == 2
