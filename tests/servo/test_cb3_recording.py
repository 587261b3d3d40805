"""servoj's law on a real CB3 arm: predictions from the commands, and worse variants of the law."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from simbridge.servo.law import JointMotion, ServojLaw
from tests.servo.cb3_recording import CYCLE, Commands, Prediction, Predictor, predict_by
from tests.servo.laser_tracker import TrackerFit, fit_tracker, row_stamps

BAGS = ("125hzLAN", "10hzLAN")
# ur_modern_driver asks for gain 100 and a lookahead of 1 s, which the controller clips.
LAW = ServojLaw(CYCLE, 100.0, 0.2)
# A ramp of a call that lasts no time, s.
NO_RAMP = 1e-7


@cache
def predictor(bag: str) -> Predictor:
    return Predictor(bag, predict_by(LAW))


def rms_across(predict: Prediction, *, waits: bool = True) -> float:
    """Return the RMS error, mrad, in one bag, as calibrated on the other."""
    fits = Predictor("125hzLAN", predict, waits=waits).calibrate()
    errors = Predictor("10hzLAN", predict, waits=waits).errors(fits)
    return 1e3 * float(np.sqrt(np.mean(errors**2)))


@pytest.mark.parametrize(("calibration", "bag", "most"), [(*BAGS, 0.60e-3), (*BAGS[::-1], 0.75e-3)])
def test_the_law_predicts_the_other_bag(calibration, bag, most):
    fits = predictor(calibration).calibrate()

    errors = predictor(bag).errors(fits)

    assert np.sqrt(np.mean(errors**2)) <= most
    assert np.median(np.abs(errors)) <= 0.4e-3


def step_ramps(commands: Commands, phase: float, cycles: int) -> JointMotion:
    """A call that jumps to its command instead of moving there."""
    # Each call as a jump and a hold.
    durations = np.stack([np.full(len(commands.q), NO_RAMP), commands.durations - NO_RAMP], axis=1)
    return LAW.follow(
        np.repeat(commands.q, 2, axis=0), call=durations.ravel(), begin=phase, cycles=cycles
    )


def make_sampled(substep: float) -> Prediction:
    """Return the law in equal steps, without a split where a call ends."""

    def predict(commands: Commands, phase: float, cycles: int) -> JointMotion:
        edges = phase + np.concatenate([[0.0], np.cumsum(commands.durations)])
        nodes = np.concatenate([commands.q[:1], commands.q])
        steps = round(CYCLE / substep)
        times = substep * np.arange(1, cycles * steps + 1)
        setpoints = np.stack([np.interp(times, edges, joint) for joint in nodes.T], axis=1)

        q = commands.q[0].copy()
        qd = np.zeros(6)
        positions = [q]
        for setpoint in setpoints:
            qd = qd + substep * LAW.gain * (setpoint - q - LAW.lookahead * qd)
            q = q + substep * qd
            positions.append(q)
        return motion_of(np.array(positions)[::steps])

    return predict


def motion_of(positions: np.ndarray) -> JointMotion:
    """Return the motion of joint targets (N + 1, 6), rad, one a cycle, from rest."""
    qd = np.diff(positions, axis=0) / CYCLE
    qdd = np.diff(qd, axis=0, prepend=0.0 * qd[:1]) / CYCLE
    return JointMotion(positions[1:], qd, qdd)


def delay_only(commands: Commands, phase: float, cycles: int) -> JointMotion:
    """Commands that only come later, by the lag of the law."""
    edges = phase + LAW.lag + np.concatenate([[0.0], np.cumsum(commands.durations)])
    nodes = np.concatenate([commands.q[:1], commands.q])
    times = CYCLE * np.arange(cycles + 1)
    positions = np.stack([np.interp(times, edges, joint) for joint in nodes.T], axis=1)
    return motion_of(positions)


VARIANTS = {
    "no ramp": step_ramps,
    "no split": make_sampled(CYCLE),
    "substeps of 1 ms": make_sampled(0.001),
    "gain 300, lookahead 0.1": predict_by(ServojLaw(CYCLE, 300.0, 0.1)),
    "gain 100, lookahead 0.1": predict_by(ServojLaw(CYCLE, 100.0, 0.1)),
    "a pure delay": delay_only,
}


# RMS error above which a variant is clearly worse than the law's 0.53 mrad.
CLEARLY_WORSE = 0.8


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_of_the_law_is_worse(name):
    assert rms_across(VARIANTS[name]) > CLEARLY_WORSE


def test_without_the_calls_of_1_ms_it_is_worse():
    assert rms_across(predict_by(LAW), waits=False) > CLEARLY_WORSE


@cache
def tracker(bag: str) -> TrackerFit:
    return fit_tracker(bag)


def rms_at_reflector(bag: str, joints: np.ndarray) -> float:
    """Return the RMS distance, mm, of joints (T, 6) from the tracker's points."""
    distances = tracker(bag).distances(row_stamps(bag), joints)
    return 1e3 * float(np.sqrt(np.nanmean(distances**2)))


@pytest.mark.parametrize("bag", BAGS)
def test_a_laser_tracker_sees_the_measured_joints(bag):
    assert rms_at_reflector(bag, predictor(bag).recording.actual_q) < 0.28


@pytest.mark.parametrize(("calibration", "bag"), [BAGS, BAGS[::-1]])
def test_a_laser_tracker_sees_the_predicted_joints(calibration, bag):
    fits = predictor(calibration).calibrate()

    assert rms_at_reflector(bag, predictor(bag).predicted_joints(fits)) < 0.55
