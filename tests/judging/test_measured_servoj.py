"""The tuning of servoj is found in the measured joints, or its uncertainty is stated."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from simbridge.judging.judgement import judge
from simbridge.judging.log import Commands
from simbridge.judging.read_log import LogOptions, read_log
from simbridge.judging.wording import evidence, headline
from simbridge.robot.load import load_robot
from simbridge.servo.law import ServojLaw
from tests.judging.logs import CYCLE, START, TRAVEL, make_log, rest

pytestmark = pytest.mark.slow

# Noise of measured joints, rad.
NOISE = 2e-5


def judged_motion(targets_of, delay_cycles=7):
    """A judged motion: joints that follow commands, some cycles late, of which none is a target.

    Args:
        targets_of: What the controller makes of commands (T, n), rad.
        delay_cycles: How many cycles later the joints are at the targets.
    """
    part = np.linspace(0.0, 1.0, 400)[:, np.newaxis]
    sweep = START + 2.0 * TRAVEL * np.sin(np.pi * part) ** 2 * np.sin(3.0 * np.pi * part)
    commands = np.concatenate([rest(START, 1.5), sweep, rest(START, 1.0)])
    targets = targets_of(commands)
    delayed = np.concatenate([rest(START, delay_cycles * CYCLE), targets])[: len(targets)]
    actual = delayed + NOISE * np.random.default_rng(0).standard_normal(delayed.shape)

    times = CYCLE * np.arange(len(commands))
    log = make_log(actual, position_commands=Commands(commands, times - CYCLE), robot="ur5")
    del log.columns["target_q"]
    return judge(log, [load_robot("ur5")])


@pytest.mark.parametrize(("gain", "lookahead"), [(100.0, 0.2), (300.0, 0.1)])
def test_a_soft_tuning_is_known_within_its_uncertainty(gain, lookahead):
    judgement = judged_motion(lambda commands: ServojLaw(CYCLE, gain, lookahead).follow(commands).q)
    servoj = judgement.motions[0].kind.servoj

    assert servoj.is_measured
    assert abs(servoj.gain - gain) < 2.0 * servoj.gain_uncertainty < 0.8 * gain
    assert abs(servoj.lookahead_s - lookahead) < 2.0 * servoj.lookahead_uncertainty_s
    assert servoj.delay_s == pytest.approx(7 * CYCLE, abs=0.02)
    assert "by the measured joints" in headline(judgement)


def test_a_stiff_tuning_stays_unknown_with_the_reason():
    judgement = judged_motion(lambda commands: ServojLaw(CYCLE, 2000.0, 0.03).follow(commands).q)
    motion = judgement.motions[0]

    assert motion.kind.name == "unknown"
    assert "they determine its gain and lookahead only to within" in evidence(motion)


def test_a_mere_delay_is_no_servoj():
    motion = judged_motion(lambda commands: commands, delay_cycles=25).motions[0]

    assert motion.kind.name == "unknown"


@pytest.mark.parametrize("name", ["125hzLAN", "10hzLAN"])
def test_a_real_arm_with_gain_100_shows_it(name):
    if "SIMBRIDGE_RECORDINGS" not in os.environ:
        pytest.skip("SIMBRIDGE_RECORDINGS names no folder with recordings of real arms")
    folder = Path(os.environ["SIMBRIDGE_RECORDINGS"]) / "akig_ur5_cb3_servoj"
    goals = str(folder / f"{name}_goals.csv.gz")
    log = read_log(folder / f"{name}_joints.csv.gz", LogOptions(goals=goals))

    found = [motion.kind.servoj for motion in judge(log, [load_robot("ur5")]).motions]

    tunings = [servoj for servoj in found if servoj is not None]
    assert len(tunings) >= 5
    for servoj in tunings:
        assert abs(servoj.gain - 100.0) < 2.0 * servoj.gain_uncertainty
        assert abs(servoj.lookahead_s - 0.2) < 2.0 * servoj.lookahead_uncertainty_s
