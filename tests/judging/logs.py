"""Logs of arms that move as the controllers' laws say, for tests of judging."""

from __future__ import annotations

from typing import Any

import numpy as np

from simbridge.judging.log import Clock, ControllerLog, LogSource, joint_names
from simbridge.servo.movej import MovejLaw

CYCLE = 0.008
START = np.array([0.3, -1.2, 0.8, -0.5, 0.4, 0.1])
TRAVEL = np.array([0.5, -0.25, 0.4, 0.0, 0.1, -0.05])


def make_log(target: np.ndarray, **fields: Any) -> ControllerLog:
    """Return a log with joint targets (T, n), one row each cycle, and the joints at them."""
    times = CYCLE * np.arange(len(target))
    columns = {"target_q": target, "actual_q": target, **fields.pop("columns", {})}
    return ControllerLog(
        name="test.csv",
        source=LogSource.RTDE,
        clock=fields.pop("clock", Clock.CONTROLLER),
        start=0.0,
        times=fields.pop("times", times),
        joint_names=joint_names(target.shape[1]),
        columns=columns,
        **fields,
    )


def rest(q: np.ndarray, duration: float) -> np.ndarray:
    """Return joint targets at rest."""
    return np.tile(q, (round(duration / CYCLE), 1))


def movej_and_back(**fields: Any) -> ControllerLog:
    """Return a log of a movej, a rest of 0.4 s, and the movej back."""
    law = MovejLaw(CYCLE, acceleration=1.4, speed=0.5)
    goal = START + TRAVEL
    there = law.follow(START, goal)
    back = law.follow(goal, START)

    still = np.zeros((50, 6))
    target = np.concatenate([rest(START, 0.4), there.q, rest(goal, 0.4), back.q, rest(START, 0.4)])
    velocity = np.concatenate([still, there.qd, still, back.qd, still])
    columns = {"target_qd": velocity, **fields.pop("columns", {})}
    return make_log(target, columns=columns, **fields)
