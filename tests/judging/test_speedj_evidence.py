"""A speedj is known by velocities that follow the commands some whole cycles later."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from simbridge.judging.judgement import judge
from simbridge.judging.log import Commands
from simbridge.judging.read_log import read_log
from simbridge.judging.speedj_evidence import find_speedj
from simbridge.judging.wording import headline

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parents[1] / "data" / "ur5_speedj"


@pytest.mark.parametrize(
    ("name", "late"), [("K5Proportional", 2), ("K5ProportionalFeedforward", 1), ("StepPINV", 7)]
)
def test_a_real_arm_follows_three_cycles_later(name, late):
    log = read_log(FOLDER / f"{name}.csv.gz")

    found = find_speedj(log.times, log.target_qd, log.speed_commands)

    assert found.delay_rows == 3
    assert len(found.late_s) == late


def test_measured_joints_leave_the_delay_in_the_headline():
    log = read_log(FOLDER / "StepPINV.csv.gz")
    lagging = log.target_q - 0.005 * log.target_qd
    log = replace(log, columns={**log.columns, "actual_q": lagging})

    sentence = headline(judge(log, []))

    assert "the joints trailed their targets" in sentence
    assert "the joint targets follow the commands" in sentence
    assert "ms (3 rows) later, and 7 commands came late" in sentence


def test_a_real_arm_shows_its_acceleration():
    log = read_log(FOLDER / "StepPINV.csv.gz")

    found = find_speedj(log.times, log.target_qd, log.speed_commands)

    assert found.acceleration_rad_s2 == pytest.approx(4.0 * np.pi, rel=1e-5)


def test_gentle_commands_do_not_show_the_acceleration():
    """Velocities two cycles behind commands that never ask for more than speedj allows."""
    times = 0.008 * np.arange(500)
    commands = np.sin(times)[:, np.newaxis] * np.ones(6)
    velocities = np.concatenate([np.zeros((2, 6)), commands[:-2]])

    evidence = find_speedj(times, velocities, Commands(commands, times))

    assert evidence.delay_rows == 2
    assert evidence.acceleration_rad_s2 is None


def test_commands_of_another_motion_explain_nothing():
    log = read_log(FOLDER / "StepPINV.csv.gz")
    commands = replace(log.speed_commands, values=log.speed_commands.values[::-1])

    assert find_speedj(log.times, log.target_qd, commands) is None


def test_commands_without_times_show_nothing():
    log = read_log(FOLDER / "StepPINV.csv.gz")

    assert find_speedj(log.times, log.target_qd, Commands(log.speed_commands.values)) is None
