"""servoj's tuning and the timing of its calls, found in recordings made from the law's formulas."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from simbridge.identification.call_timing import find_calls
from simbridge.identification.calls import Calls
from simbridge.identification.held import fit_to_held_commands
from simbridge.identification.prediction import predict
from simbridge.identification.servoj import fit_to_path, locate_setpoints
from simbridge.identification.target_motion import NotIdentified, TargetMotion
from simbridge.identification.tuning import Tuning
from tests.identification.controller import Sender, recorded, wandering
from tests.properties import variants

pytestmark = pytest.mark.slow

CASES = {
    # name: gain, lookahead, duration of a call, phase, cycle, every so many rows, held, skipped
    "every cycle": (2000.0, 0.03, 0.002, 0.0, 0.002, 1, 0.02, 0.02),
    "every cycle is split": (2000.0, 0.03, 0.002, 0.000625, 0.002, 1, 0.01, 0.01),
    "as the real UR5e": (300.0, 0.1, 0.01, 0.001375, 0.002, 4, 0.1, 0.03),
    "every recorded cycle is split": (100.0, 0.2, 0.004, 0.0013, 0.002, 4, 0.0, 0.0),
    "half of the cycles are split": (1732.0, 0.056, 0.004, 0.0014, 0.002, 1, 0.03, 0.01),
    "CB3": (1000.0, 0.05, 0.008, 0.0, 0.008, 1, 0.02, 0.02),
    "CB3, split": (400.0, 0.1, 0.008, 0.003, 0.008, 1, 0.02, 0.02),
    "25 Hz": (700.0, 0.08, 0.02, 0.0011, 0.002, 20, 0.02, 0.02),
    "no multiple of the cycle": (300.0, 0.1, 1.0 / 60.0, 0.0011, 0.002, 4, 0.02, 0.02),
}


@cache
def made(name: str) -> tuple[TargetMotion, np.ndarray, tuple[float, ...]]:
    """The recording of a case, its commands, and the case."""
    gain, lookahead, duration, phase, cycle, every, held, skipped = CASES[name]
    random = np.random.default_rng(7)
    sender = Sender(duration, phase, held, skipped)
    commands = wandering(round(3.0 / duration), duration, random)
    rows = recorded(
        commands,
        sender.taken(len(commands), random),
        sender,
        gain=gain,
        lookahead=lookahead,
        cycle=cycle,
    )
    motion = TargetMotion(
        rows["timestamp"], rows["target_q"], rows["target_qd"], rows["target_qdd"], cycle
    )
    return motion[slice(0, None, every)], commands.astype(np.float32).astype(float), CASES[name]


def timed(motion: TargetMotion, commands: np.ndarray, tuning: Tuning) -> tuple[Calls, Tuning]:
    return find_calls(motion, commands, tuning, locate_setpoints(motion, tuning, commands)[0])


@pytest.mark.shares_setup
@pytest.mark.parametrize("name", variants(CASES, "CB3, split"))
def test_tuning_timing_and_prediction_with_the_commands(name):
    motion, commands, (gain, lookahead, duration, phase, cycle, *_) = made(name)
    calls, tuning = timed(motion, commands, fit_to_path(motion, commands))

    assert tuning.gain == pytest.approx(gain, rel=1e-7)
    assert tuning.lookahead == pytest.approx(lookahead, rel=1e-7)
    assert calls.law.duration == pytest.approx(duration, abs=1e-9)

    # Call edges relative to the first row's end, which is a cycle after time zero.
    turns = (calls.law.begin + cycle - phase) / duration

    assert abs(turns - round(turns)) * duration < 1e-8

    errors, restarts = predict(motion, calls, commands)

    assert np.abs(errors).max() < 1e-6
    assert restarts == 0


@pytest.mark.shares_setup
@pytest.mark.parametrize(
    "name",
    variants(
        [name for name in CASES if name not in ("25 Hz", "no multiple of the cycle")],
        "every cycle is split",
        "as the real UR5e",
    ),
)
def test_tuning_without_the_commands(name):
    """At the end the last command is held while the arm settles."""
    motion, _, (gain, lookahead, *_) = made(name)
    tuning = fit_to_held_commands(motion).round_and_check()

    assert tuning.gain == pytest.approx(gain, rel=1e-6)
    assert tuning.lookahead == pytest.approx(lookahead, rel=1e-6)


@pytest.mark.parametrize(("name", "decimals"), [("every cycle is split", 6), ("CB3, split", 5)])
def test_hidden_split_cycles_show_no_tuning(name, decimals):
    """Read as whole cycles they fit a gain of 1944 in place of 2000, and of 367 in place of 400."""
    motion, *_ = made(name)
    rounded = (part.round(decimals) for part in (motion.q, motion.qd, motion.qdd))

    with pytest.raises(NotIdentified, match="every cycle was split"):
        fit_to_held_commands(TargetMotion(motion.times, *rounded, motion.cycle))


def test_creeping_commands_are_not_held():
    """As servoL ends: 2e-4 rad/s, slowing down over 0.6 s."""
    random = np.random.default_rng(5)
    for _ in range(3):
        commands = wandering(1000, 0.002, random)
        creep = 6e-5 * (1.0 - (1.0 - np.arange(1, 301) / 300.0) ** 2)
        commands = np.concatenate(
            [commands, commands[-1] + creep[:, None] * np.array([0.7, -0.5, 0.3, 0.3, -0.2, 0.1])]
        )
        rows = recorded(
            commands, list(range(len(commands))), Sender(), gain=300.0, lookahead=0.1, rest=0.0
        )
        rounded = (rows[name].round(6) for name in ("target_q", "target_qd", "target_qdd"))
        with pytest.raises(NotIdentified, match="not exactly as under a held servoj command"):
            fit_to_held_commands(TargetMotion(rows["timestamp"], *rounded, 0.002))


@pytest.mark.shares_setup
def test_rounding_is_within_a_few_deviations():
    motion, commands, (gain, lookahead, *_) = made("CB3, split")
    rounded = TargetMotion(
        motion.times, motion.q.round(6), motion.qd.round(6), motion.qdd.round(6), motion.cycle
    )

    _, tuning = timed(rounded, commands, fit_to_path(rounded, commands))

    assert abs(tuning.gain - gain) < 5.0 * tuning.deviation[0] < 5e-4 * gain
    assert abs(tuning.lookahead - lookahead) < 5.0 * tuning.deviation[1] < 5e-4 * lookahead


@pytest.mark.shares_setup
def test_prediction_begins_again_after_a_hole():
    motion, commands, _ = made("as the real UR5e")
    cycles = motion.cycles
    holed = motion[((cycles < 400) | (cycles > 440)) & (cycles != 900)]
    calls, _ = timed(holed, commands, fit_to_path(holed, commands))

    errors, restarts = predict(holed, calls, commands)

    assert restarts == 1
    assert np.abs(errors).max() < 1e-4
    assert np.sqrt(np.mean(errors**2)) < 2e-5


def test_one_joint_needs_a_held_command():
    random = np.random.default_rng(3)
    sender = Sender(0.008, 0.0)
    commands = wandering(250, 0.008, random, joints=1).astype(np.float32).astype(float)
    rows = recorded(commands, sender.taken(250, random), sender, gain=500.0, lookahead=0.1)
    motion = TargetMotion(
        rows["timestamp"], rows["target_q"], rows["target_qd"], rows["target_qdd"], 0.002
    )

    with pytest.raises(NotIdentified, match="one straight line"):
        fit_to_path(motion, commands)

    assert fit_to_held_commands(motion).gain == pytest.approx(500.0, rel=1e-6)

    _, tuning = timed(motion, commands, fit_to_held_commands(motion))

    assert tuning.gain == pytest.approx(500.0, rel=1e-6)

    with pytest.raises(NotIdentified, match="no command was held"):
        fit_to_held_commands(motion[slice(0, 950)])


def test_motion_of_another_law_has_no_tuning():
    """Smooth joint moves, with commands that have nothing to do with them."""
    time = np.arange(3000) * 0.002
    q = np.array([0.3, -1.4, 1.7, -1.9, -1.5, 0.4]) + 0.4 * np.sin(
        np.outer(time, np.arange(1.0, 7.0) * 0.7)
    )
    rate = np.gradient(q, 0.002, axis=0)
    motion = TargetMotion(time, q, rate, np.gradient(rate, 0.002, axis=0), 0.002)

    with pytest.raises(NotIdentified, match="no command was held"):
        fit_to_held_commands(motion)
    with pytest.raises(NotIdentified):
        fit_to_path(motion, wandering(500, 0.01, np.random.default_rng(1)))


@pytest.mark.skipif(
    "SIMBRIDGE_RECORDINGS" not in os.environ, reason="SIMBRIDGE_RECORDINGS names no recordings"
)
def test_a_real_arm_obeys_the_law():
    from simbridge.trajectory.rtde_recording import read_joint_positions, read_rtde

    folder = Path(os.environ["SIMBRIDGE_RECORDINGS"]) / "ur5e_servoj"
    recording = read_rtde(folder / "replay_begin.csv.gz")
    motion = TargetMotion(
        recording.times,
        *(recording.columns[n] for n in ("target_q", "target_qd", "target_qdd")),
        0.002,
    )
    commands = (
        read_joint_positions(folder / "recorded_in_freedrive.csv.gz")[0]
        .astype(np.float32)
        .astype(float)
    )

    for tuning in (
        timed(motion, commands, fit_to_path(motion, commands))[1],
        fit_to_held_commands(motion),
    ):
        assert tuning.gain == pytest.approx(300.0, rel=1e-6)
        assert tuning.lookahead == pytest.approx(0.1, rel=1e-6)
        assert np.median(tuning.residuals) < 1e-8

    calls, _ = timed(motion, commands, fit_to_path(motion, commands))
    errors, _ = predict(motion, calls, commands)

    assert np.sqrt(np.mean(errors**2)) < 1e-6
