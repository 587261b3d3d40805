"""A solver that is slower than the control period is named, with the figures."""

from __future__ import annotations

import time

import pinocchio as pin
import pytest

import simbridge
from simbridge.robot import load_robot
from simbridge.running.run_setup import prepare
from simbridge.running.step_timing import StepTimes
from simbridge.trajectory import square

pytestmark = pytest.mark.usefixtures("without_pages")

UR5E = load_robot("ur5e")
SMALL = simbridge.Scenario(square(side=0.005, laps=1), name="small", on_limits="limit")
INNER = simbridge.Pseudoinverse(UR5E)


def slow(q, target):
    """Take 4 ms for a step, the control period of a UR5e being 2 ms."""
    begin = time.perf_counter()
    answer = INNER.track(pin.SE3ToXYZQUAT(target)[None], q)[0]
    while time.perf_counter() - begin < 0.004:
        pass
    return answer


def test_a_slow_step_is_said_with_median_p99_and_period():
    note = StepTimes(mean=0.004, median=0.0041, p99=0.0062, count=50).note("my_ik:step", 0.002)

    assert note.startswith("my_ik:step takes longer than the control period on this computer: ")
    assert "4.10 ms median, 6.20 ms p99 of 50 steps; the period is 2 ms" in note


def test_a_step_that_is_slow_now_and_then_is_said():
    assert "sometimes takes" in StepTimes(0.001, 0.001, 0.003, 100).note("mine", 0.002)


def test_a_fast_solver_has_no_note():
    assert StepTimes(0.001, 0.001, 0.0015, 100).note("mine", 0.002) == ""
    assert StepTimes(0.00001).note("mine", 0.002) == ""


@pytest.mark.slow
def test_plan_of_a_slow_solver_has_a_note():
    prepared = prepare(SMALL, robot="ur5e", solver=slow)

    (note,) = prepared.solver_notes

    assert "The solver slow takes longer than the control period" in note
    assert prepared.step_times.median >= 0.004


def test_a_solver_of_simbridge_is_not_timed_step_by_step():
    prepared = prepare(SMALL, robot="ur5e", solver="pseudoinverse")

    assert prepared.step_times.mean > 0.0
    assert prepared.step_times.median is None
    assert prepared.solver_notes == ()
