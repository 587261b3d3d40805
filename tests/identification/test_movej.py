"""A movej is known by its straight line in joint space and its trapezoid of speed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from simbridge.identification.data import read_recording_samples
from simbridge.identification.identification import identify
from simbridge.identification.movej import find_movej, find_moves
from simbridge.identification.target_motion import TargetMotion
from simbridge.judging.logged_motions import find_motions
from simbridge.judging.read_log import read_log
from simbridge.robot import load_robot
from simbridge.servo.law import JointMotion, ServojLaw
from simbridge.servo.movej import MovejLaw
from tests.judging.logs import movej_and_back

pytestmark = pytest.mark.slow

RECORDING = Path(__file__).parents[1] / "data" / "ur5_movej" / "Movement_No4_Acc.csv.gz"


def record(start: np.ndarray, motion: JointMotion, cycle: float) -> TargetMotion:
    """Return a recording with ten cycles of rest around a motion."""
    rest = np.zeros((10, len(start)))
    positions = np.concatenate([rest + start, motion.q, rest + motion.q[-1]])
    rates = [np.concatenate([rest, values, rest]) for values in (motion.qd, motion.qdd)]
    return TargetMotion(cycle * np.arange(len(positions)), positions, *rates, cycle)


def test_identify_names_the_moves_of_a_real_arm():
    result = identify(read_recording_samples(RECORDING), robot=load_robot("ur5"))

    assert result["servoj"] is None
    assert (
        "movej made 5 moves: 1.40 to 25.0 rad/s^2, 1.05 to 3.20 rad/s; the tuning of servoj does "
        "not show in them"
    ) in result["notes"]


def test_a_short_move_is_a_triangle():
    start = np.array([0.1, 0.2, -0.3])
    move = MovejLaw(0.002, 2.0, 1.0).follow(start, start + np.array([0.1, -0.05, 0.0]))

    (found,) = find_moves(record(start, move, 0.002))

    assert found.acceleration_rad_s2 == pytest.approx(2.0)
    assert found.residual_rad < 1e-6


def test_servojs_answer_to_a_step_is_no_move():
    motion = ServojLaw(0.002, 300.0, 0.1).follow(
        np.tile([0.3, -0.1], (400, 1)), previous=np.zeros(2)
    )

    assert find_moves(record(np.zeros(2), motion, 0.002)) == []


def evidence_of(log):
    """The evidence of each motion of a log."""
    return [
        find_movej(
            log.times[motion.rows],
            log.target_q[motion.rows],
            log.target_qd[motion.rows],
            starts_at_rest=motion.starts_at_rest,
            ends_at_rest=motion.ends_at_rest,
        )
        for motion in find_motions(log)
    ]


def test_a_movej_shows_its_speed_and_acceleration():
    there, back = evidence_of(movej_and_back())

    for evidence in (there, back):
        assert evidence.speed_rad_s == pytest.approx(0.5)
        assert evidence.acceleration_rad_s2 == pytest.approx(1.4)
        assert evidence.residual_rad < 1e-9


def test_every_motion_of_a_real_arm_is_a_movej():
    paces = [
        (round(item.speed_rad_s, 3), round(item.acceleration_rad_s2, 3))
        for item in evidence_of(read_log(RECORDING))
    ]

    # 60 degrees/s at 80 degrees/s^2, then 3.2 rad/s at 25 rad/s^2.
    assert paces == 3 * [(1.047, 1.396)] + 2 * [(3.2, 25.0)]


def test_a_smooth_motion_is_no_movej():
    part = np.linspace(0.0, 1.0, 200)[:, None]
    q = np.array([0.0, 1.0]) + np.array([0.5, -0.3]) * (10 * part**3 - 15 * part**4 + 6 * part**5)
    qd = np.gradient(q, 0.008, axis=0)

    found = find_movej(0.008 * np.arange(200), q, qd, starts_at_rest=True, ends_at_rest=True)

    assert found is None


def test_a_motion_off_the_straight_line_is_no_movej():
    log = movej_and_back()
    motion = find_motions(log)[0]
    q = log.target_q[motion.rows].copy()
    q[:, 1] += 1e-3 * np.sin(np.linspace(0.0, np.pi, len(q)))

    found = find_movej(
        log.times[motion.rows],
        q,
        log.target_qd[motion.rows],
        starts_at_rest=True,
        ends_at_rest=True,
    )

    assert found is None
