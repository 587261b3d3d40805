"""Tiny solvers for `--solver`, each with one fault; without it each is the closed form."""

from __future__ import annotations

import math
import time

import numpy as np

from simbridge.ik.closed_form import ClosedForm


def make_step(robot, spoil):
    """A step of the closed form, of which `spoil` changes each answer by its number of calls."""
    exact = ClosedForm(robot)
    calls = 0

    def step(q, target):
        nonlocal calls
        calls += 1
        exact.reset(q)
        return spoil(exact.step(target), calls)

    return step


def exact(robot):
    return make_step(robot, lambda q, calls: q)


def raises(robot):
    def spoil(q, calls):
        if calls % 20 == 0:
            raise ArithmeticError(f"no solution at call {calls}")
        return q

    return make_step(robot, spoil)


def not_a_number(robot):
    return make_step(robot, lambda q, calls: np.full(len(q), math.nan) if calls % 10 == 0 else q)


def slow(robot):
    def spoil(q, calls):
        time.sleep(0.02)
        return q

    return make_step(robot, spoil)


def jumps(robot):
    solver = ClosedForm(robot)
    calls = 0

    def step(q, target):
        nonlocal calls
        calls += 1
        solver.reset(robot.home)
        answer = solver.step(target)
        # Another whole turn of the last joint, for twenty calls: the same pose.
        answer[-1] += math.tau * (calls // 20 % 2)
        return answer

    return step


def drifts(robot):
    def spoil(q, calls):
        # The answer of the arm's last joint creeps away, call by call.
        q = q.copy()
        q[-1] += 2e-3 * calls
        return q

    return make_step(robot, spoil)


def interrupts(robot):
    """Ctrl-C in the middle of the second motion, once."""

    def spoil(q, calls):
        if calls == 300:
            raise KeyboardInterrupt
        return q

    return make_step(robot, spoil)


def hangs(robot):
    def spoil(q, calls):
        while calls == 20:
            pass
        return q

    return make_step(robot, spoil)
