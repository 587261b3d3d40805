"""servoj's tuning from how the arm comes to rest, with the decimals that recorders write."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from simbridge.identification.servoj_results import fit_servoj
from simbridge.identification.settling import fit_to_settling
from simbridge.identification.target_motion import NotIdentified, TargetMotion
from tests.identification.controller import Sender, recorded, wandering
from tests.properties import variants

pytestmark = pytest.mark.slow

START = np.array([0.3, -1.2, 0.8, -0.5, 0.4, 0.1])
TUNINGS = [(300.0, 0.1), (500.0, 0.05), (2000.0, 0.03), (100.0, 0.2)]
CYCLES = [0.002, 0.008]


def smooth_path(cycle: float, random: np.random.Generator) -> np.ndarray:
    """Return 4 s of commands (K, 6), rad, that begin and end at rest with a polynomial's ends."""
    count = round(4.0 / cycle)
    progress = np.linspace(0.0, 1.0, count)
    angle = 4.0 * np.pi * progress**3 * (10.0 - 15.0 * progress + 6.0 * progress**2)
    amplitudes = random.uniform(-0.4, 0.4, size=(2, 6))
    return START + np.outer(np.sin(angle), amplitudes[0]) + np.outer(np.cos(angle), amplitudes[1])


def smoothed_goal(cycle: float, random: np.random.Generator) -> np.ndarray:
    """Return commands (K, 6), rad, that approach a goal exponentially for 1.5 s."""
    goal = wandering(round(4.0 / cycle), cycle, random)
    goal[-round(1.5 / cycle) :] = goal[-round(1.5 / cycle)]
    fraction = cycle / random.uniform(0.02, 0.15)
    commands = goal.copy()
    for k in range(1, len(goal)):
        commands[k] = commands[k - 1] + fraction * (goal[k] - commands[k - 1])
    return commands


def record(
    commands: np.ndarray,
    tuning: tuple[float, float],
    cycle: float,
    decimals: int,
    rest: float = 0.4,
    phase: float = 0.0,
) -> TargetMotion:
    """Return the joint targets that servoj makes of a command per cycle, rounded."""
    rows = recorded(
        commands,
        list(range(len(commands))),
        Sender(duration=cycle, phase=phase),
        gain=tuning[0],
        lookahead=tuning[1],
        cycle=cycle,
        rest=rest,
    )
    names = ("target_q", "target_qd", "target_qdd")
    return TargetMotion(rows["timestamp"], *(rows[name].round(decimals) for name in names), cycle)


def names_no_wrong_tuning(motion: TargetMotion, tuning: tuple[float, float]) -> bool:
    held = fit_servoj(motion, None).held
    if held is None:
        return True
    difference = np.abs([held.gain - tuning[0], held.lookahead - tuning[1]])
    return bool((difference < 4.0 * held.deviation).all())


@pytest.mark.parametrize(("tuning", "cycle"), [(TUNINGS[0], 0.002), (TUNINGS[1], 0.008)])
def test_six_decimals_show_a_settling_arm(tuning, cycle):
    motion = record(smooth_path(cycle, np.random.default_rng(0)), tuning, cycle, 6)

    result = fit_to_settling(motion).round_and_check(0.05)

    assert result.gain == pytest.approx(tuning[0], rel=0.02)
    assert result.lookahead == pytest.approx(tuning[1], rel=0.02)
    assert abs(result.gain - tuning[0]) < 3.0 * result.deviation[0]
    assert abs(result.lookahead - tuning[1]) < 3.0 * result.deviation[1]


def test_too_few_decimals_say_what_they_need():
    motion = record(smooth_path(0.002, np.random.default_rng(0)), (2000.0, 0.03), 0.002, 5)

    with pytest.raises(NotIdentified, match="positions were recorded to 1e-05 rad"):
        fit_to_settling(motion)


@cache
def smooth_logs() -> list[tuple[TargetMotion, tuple[float, float]]]:
    """Return logs of each tuning and rate in which commands moved on, or crept, to the end."""
    random = np.random.default_rng(8)
    logs = []
    for tuning in TUNINGS:
        for cycle in CYCLES:
            for commands in (
                wandering(round(3.0 / cycle), cycle, random),
                smoothed_goal(cycle, random),
            ):
                for decimals in (5, 6):
                    logs.append((record(commands, tuning, cycle, decimals, rest=0.0), tuning))
    return logs


def test_commands_that_never_stop_give_no_wrong_tuning():
    for motion, tuning in smooth_logs():
        try:
            result = fit_to_settling(motion).round_and_check(0.05)
        except NotIdentified:
            continue

        assert abs(result.gain - tuning[0]) < 4.0 * result.deviation[0]
        assert abs(result.lookahead - tuning[1]) < 4.0 * result.deviation[1]


@pytest.mark.parametrize("phase", variants([0.0007, 0.001], 0.001))
def test_split_cycles_are_within_the_uncertainty(phase):
    commands = smooth_path(0.002, np.random.default_rng(3))

    assert names_no_wrong_tuning(
        record(commands, (300.0, 0.1), 0.002, 6, phase=phase), (300.0, 0.1)
    )


def test_a_single_exponential_shows_no_tuning():
    """Targets of a first-order filter: acceleration and velocity are proportional."""
    time = np.arange(500) * 0.008
    decay = np.exp(-30.0 * np.maximum(time - 2.0, 0.0))[:, np.newaxis]
    q = START + 0.3 * decay * np.sin(np.minimum(time, 2.0))[:, np.newaxis]
    velocity = np.diff(q, axis=0, prepend=q[:1]) / 0.008
    acceleration = np.diff(velocity, axis=0, prepend=velocity[:1]) / 0.008
    rounded = (part.round(6) for part in (q, velocity, acceleration))

    with pytest.raises(NotIdentified):
        fit_to_settling(TargetMotion(time, *rounded, 0.008)).round_and_check(0.05)


@pytest.mark.parametrize("tuning", TUNINGS)
@pytest.mark.parametrize("decimals", [5, 6])
def test_commands_held_one_after_another_show_the_tuning(tuning, decimals):
    """A teleoperation that sends a goal every 80 ms."""
    commands = wandering(400, 0.008, np.random.default_rng(1))
    commands = commands[np.arange(400) // 10 * 10]
    motion = record(commands, tuning, 0.008, decimals)

    held = fit_servoj(motion, None).held

    assert held is not None
    assert held.gain == pytest.approx(tuning[0], rel=1e-3)
    assert held.lookahead == pytest.approx(tuning[1], rel=1e-3)
