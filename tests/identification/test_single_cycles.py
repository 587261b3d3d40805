"""servoj's tuning from single cycles in which the setpoint stood still, with few digits."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from simbridge.identification.data import Samples, read_recording_samples
from simbridge.identification.identification import Identification, identify
from simbridge.identification.single_cycles import fit_to_single_cycles
from simbridge.identification.target_motion import NotIdentified, TargetMotion
from simbridge.robot import load_robot
from tests.identification.controller import Sender, recorded, wandering

pytestmark = pytest.mark.slow

ROBOT = load_robot("ur5e")
MOVEJ = Path(__file__).parents[1] / "data" / "ur5_movej" / "Movement_No4_Acc.csv.gz"
# Decimals as ur_rtde's recorder writes them.
DECIMALS = 6


@cache
def record(gain: float, lookahead: float, cycle: float = 0.002, held: float = 0.05) -> TargetMotion:
    """Return 6 s of an arm whose commands are late in single cycles."""
    random = np.random.default_rng(3)
    commands = wandering(round(6.0 / cycle), cycle, random)
    sender = Sender(duration=cycle, held=held)
    rows = recorded(
        commands,
        sender.taken(len(commands), random),
        sender,
        gain=gain,
        lookahead=lookahead,
        cycle=cycle,
        rest=0.0,
    )
    names = ("target_q", "target_qd", "target_qdd")
    return TargetMotion(rows["timestamp"], *(rows[name].round(DECIMALS) for name in names), cycle)


@pytest.mark.parametrize(
    ("gain", "lookahead", "cycle"),
    [
        (150.0, 0.1, 0.002),
        (300.0, 0.1, 0.002),
        (600.0, 0.05, 0.002),
        (2000.0, 0.03, 0.002),
        (400.0, 0.15, 0.008),
    ],
)
def test_single_late_commands_show_the_tuning(gain, lookahead, cycle):
    tuning = fit_to_single_cycles(record(gain, lookahead, cycle))

    assert tuning.gain == pytest.approx(gain, rel=0.03)
    assert tuning.lookahead == pytest.approx(lookahead, rel=0.015)
    assert abs(tuning.gain - gain) < 3.0 * tuning.deviation[0]
    assert abs(tuning.lookahead - lookahead) < 3.0 * tuning.deviation[1]


def test_rows_too_coarse_for_splits_are_uncertain_by_three_percent():
    tuning = fit_to_single_cycles(record(300.0, 0.1))

    assert tuning.deviation[0] >= 0.029 * tuning.gain
    assert tuning.deviation[1] >= 0.0149 * tuning.lookahead


def test_commands_that_are_never_late_show_nothing():
    with pytest.raises(NotIdentified, match="no command was held, not even for a cycle"):
        fit_to_single_cycles(record(300.0, 0.1, held=0.0))


def test_rows_farther_apart_than_a_cycle_show_nothing():
    with pytest.raises(NotIdentified):
        fit_to_single_cycles(record(300.0, 0.1)[::2])


def identify_columns(motion: TargetMotion) -> Identification:
    columns = {"target_q": motion.q, "target_qd": motion.qd, "target_qdd": motion.qdd}
    return identify(Samples(motion.times, columns), robot=ROBOT)


def test_identify_says_where_the_tuning_comes_from():
    result = identify_columns(record(300.0, 0.1))

    assert result["servoj"]["gain"] == pytest.approx(300.0, rel=0.03)
    assert any("single cycles" in note for note in result["notes"])


def test_a_movej_shows_no_tuning():
    result = identify(read_recording_samples(MOVEJ), robot=load_robot("ur5"))

    assert result["servoj"] is None


@pytest.mark.skipif(
    "SIMBRIDGE_RECORDINGS" not in os.environ, reason="needs recordings of real arms"
)
def test_servol_of_a_real_arm_obeys_servojs_law():
    folder = Path(os.environ["SIMBRIDGE_RECORDINGS"]) / "dmp_project_ur5e_servol"

    result = identify(read_recording_samples(folder / "fast.csv.gz"), robot=ROBOT)

    assert result["servoj"]["gain"] == pytest.approx(300.0, rel=0.005)
    assert result["servoj"]["lookahead_s"] == pytest.approx(0.1, rel=0.005)
    assert result["servoj"]["uncertainty"]["gain"] == pytest.approx(9.0, rel=0.2)
