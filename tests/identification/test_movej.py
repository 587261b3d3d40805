"""Moves of movej in a recording of a real UR5, and motions that are none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from simbridge.identification.data import read_recording_samples
from simbridge.identification.identification import identify
from simbridge.identification.movej import find_moves
from simbridge.identification.target_motion import TargetMotion
from simbridge.robot import load_robot
from simbridge.servo.law import JointMotion, ServojLaw
from simbridge.servo.movej import MovejLaw

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

    assert found.acceleration == pytest.approx(2.0)
    assert found.residual < 1e-6


def test_servojs_answer_to_a_step_is_no_move():
    motion = ServojLaw(0.002, 300.0, 0.1).follow(
        np.tile([0.3, -0.1], (400, 1)), previous=np.zeros(2)
    )

    assert find_moves(record(np.zeros(2), motion, 0.002)) == []
