"""When a trajectory controller would have given up: which joint, how early it showed, and why."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from simbridge.errors import InvalidParameter
from simbridge.judging.log import (
    Clock,
    ControllerLog,
    GoalResult,
    LogSource,
    Signal,
    TrackedReference,
    TrajectoryGoal,
    joint_names,
)
from simbridge.judging.tolerances import Tolerances, compare_tolerances
from simbridge.ur.tables import RuntimeState, SafetyMode

PERIOD = 0.01
TIMES = PERIOD * np.arange(400)
SPEED = 0.5
TOLERANCES = Tolerances(path_rad=0.05)


def ramp(times, begin=0.5, end=2.5):
    """Joint 1 moves at SPEED from `begin` to `end`, the others rest (T, 6)."""
    q = np.zeros((len(times), 6))
    q[:, 1] = SPEED * (np.clip(times, begin, end) - begin)
    return q


def tracked(actual, reference=None, times=TIMES, **more) -> ControllerLog:
    """The log of a trajectory controller."""
    reference = ramp(times) if reference is None else reference
    state = TrackedReference("/state", times, reference, None, actual, reference - actual)
    return ControllerLog(
        name="bag",
        source=LogSource.ROS2_BAG,
        clock=Clock.HOST,
        start=0.0,
        times=times,
        joint_names=joint_names(6),
        columns={"actual_q": actual},
        reference=state,
        **more,
    )


def stopped(at: float):
    """The ramp of an arm that stops at an instant (T, 6)."""
    return ramp(np.minimum(TIMES, at))


def test_an_arm_that_keeps_up_violates_nothing():
    report = compare_tolerances(tracked(ramp(TIMES - 0.03)), TOLERANCES)

    assert report.violations == ()
    assert report.worst.joint == "shoulder_lift_joint"
    assert report.worst.error_rad == pytest.approx(0.03 * SPEED)


def test_lag_is_the_cause_of_an_error_that_grows_with_speed():
    (violation,) = compare_tolerances(tracked(ramp(TIMES - 0.12)), TOLERANCES).violations

    assert violation.kind == "path"
    assert violation.joint == "shoulder_lift_joint"
    # The error is SPEED times the time since 0.5 s, until the arm sets off.
    assert violation.at_s == pytest.approx(0.5 + 0.05 / SPEED, abs=1.5 * PERIOD)
    assert violation.warning_s == pytest.approx(0.025 / SPEED, abs=1.5 * PERIOD)
    assert violation.growth_rad_s == pytest.approx(SPEED, rel=1e-6)
    assert violation.cause.name == "lag"
    assert "120" in violation.cause.evidence


@pytest.mark.parametrize(
    ("more", "cause"),
    [
        (
            {"safety_mode": (SafetyMode.NORMAL, SafetyMode.PROTECTIVE_STOP)},
            "protective stop",
        ),
        (
            {"program_state": (RuntimeState.PLAYING, RuntimeState.STOPPED)},
            "program not running",
        ),
        ({"speed_scaling": (1.0, 0.0)}, "speed scaling"),
        ({}, "the joint did not move"),
    ],
)
def test_what_stopped_an_arm_is_the_cause(more, cause):
    signals = {
        name: Signal(np.array([0.0, 1.0]), np.array(values, dtype=float))
        for name, values in more.items()
    }
    log = tracked(stopped(1.0), **signals)

    (violation,) = compare_tolerances(log, TOLERANCES).violations

    assert violation.at_s == pytest.approx(1.0 + 0.05 / SPEED, abs=1.5 * PERIOD)
    assert violation.cause.name == cause


def test_speed_scaling_that_holds_little_back_is_not_the_cause():
    scaling = Signal(np.array([0.0, 0.55]), np.array([0.998, 1.0]))

    (violation,) = compare_tolerances(
        tracked(ramp(TIMES - 0.12), speed_scaling=scaling), TOLERANCES
    ).violations

    assert violation.cause.name == "lag"


def test_a_jump_of_the_reference_is_the_cause():
    reference = ramp(TIMES)
    reference[100:, 4] += 0.08

    (violation,) = compare_tolerances(tracked(ramp(TIMES), reference), TOLERANCES).violations

    assert violation.joint == "wrist_2_joint"
    assert violation.at_s == pytest.approx(1.0)
    assert violation.cause.name == "jump of the reference"


def test_a_start_away_from_the_arm_is_the_cause():
    actual = ramp(TIMES)
    actual[:, 3] -= 0.06

    (violation,) = compare_tolerances(tracked(actual), TOLERANCES).violations

    assert violation.cause.name == "start away from the arm"


def test_a_log_that_begins_within_a_motion_shows_its_lag():
    times = PERIOD * np.arange(150)
    reference = ramp(times, begin=-1.0, end=9.0)
    actual = ramp(times - 0.12, begin=-1.0, end=9.0)

    (violation,) = compare_tolerances(tracked(actual, reference, times), TOLERANCES).violations

    assert violation.at_s == 0.0
    assert violation.cause.name == "lag"


def test_large_steps_of_a_fast_motion_are_not_jumps():
    times = 0.1 * np.arange(80)
    log = tracked(ramp(times - 0.15), ramp(times), times)

    (violation,) = compare_tolerances(log, Tolerances(path_rad=0.06)).violations

    assert violation.cause.name == "lag"


def test_an_error_without_a_known_cause_names_what_is_missing():
    actual = ramp(TIMES)
    actual[:, 3] += 0.2 * np.sin(3.0 * TIMES) * (TIMES > 1.0) * (TIMES - 1.0)

    (violation,) = compare_tolerances(tracked(actual), TOLERANCES).violations

    assert violation.cause.name == "unknown"


def test_each_trajectory_can_violate_a_tolerance_once():
    times = PERIOD * np.arange(1000)
    reference = ramp(times) + ramp(times, 5.0, 7.0)
    actual = ramp(times - 0.12) + ramp(times - 0.12, 5.0, 7.0)

    violations = compare_tolerances(tracked(actual, reference, times), TOLERANCES).violations

    assert [violation.at_s for violation in violations] == pytest.approx([0.6, 5.1], abs=0.02)


def test_joints_that_do_not_arrive_violate_the_goal_tolerance():
    actual = ramp(TIMES - 0.03)
    actual[:, 1] *= 0.98

    (violation,) = compare_tolerances(tracked(actual), Tolerances(goal_rad=0.01)).violations

    assert violation.kind == "goal"
    assert violation.joint == "shoulder_lift_joint"
    assert violation.error_rad == pytest.approx(0.02)
    assert violation.warning_s is None


def test_a_joint_that_stops_short_does_not_trail():
    """Until it stops, a delay explains its error."""
    actual = np.minimum(ramp(TIMES - 0.03), SPEED * 2.0 - 0.02)

    tolerances = Tolerances(goal_rad=0.01)
    (violation,) = compare_tolerances(tracked(actual), tolerances).violations

    assert violation.error_rad == pytest.approx(0.02)
    assert violation.cause.name == "the joint stopped short"


def test_joints_that_arrive_late_do_not_violate_the_goal_tolerance():
    report = compare_tolerances(tracked(ramp(TIMES - 0.3)), Tolerances(goal_rad=0.01))

    assert report.violations == ()


def goal(**more) -> TrajectoryGoal:
    return TrajectoryGoal(
        0.5, np.array([0.0, 2.0]), np.array([ramp(TIMES)[0], ramp(TIMES)[-1]]), goal_id="a", **more
    )


def test_tolerances_of_a_goal_are_used():
    tolerances = np.array([0.0, 0.05, -1.0, 0.0, 0.0, 0.0])
    log = tracked(ramp(TIMES - 0.12), goals=(goal(path_tolerance=tolerances),))

    (violation,) = compare_tolerances(log, Tolerances()).violations

    assert violation.tolerance_rad == 0.05


def test_the_time_tolerance_of_a_goal_is_used():
    limits = np.full(6, 0.01)
    log = tracked(ramp(TIMES - 0.3), goals=(goal(goal_tolerance=limits, goal_time_tolerance=0.1),))

    (violation,) = compare_tolerances(log, Tolerances()).violations

    assert violation.kind == "goal"
    assert violation.at_s == pytest.approx(2.6, abs=0.02)


def test_a_reported_violation_is_told_without_a_tolerance():
    # The controller holds the measured position from then on.
    reference = ramp(TIMES)
    actual = ramp(TIMES - 0.12)
    reference[100:] = actual[100]
    result = GoalResult(1.02, "aborted", "PATH_TOLERANCE_VIOLATED", "path error", "a")
    log = tracked(actual, reference, goals=(goal(),), results=(result,))

    (violation,) = compare_tolerances(log, Tolerances()).violations

    assert violation.was_reported
    assert violation.report == "PATH_TOLERANCE_VIOLATED (path error)"
    assert violation.tolerance_rad is None
    assert violation.joint == "shoulder_lift_joint"
    assert violation.error_rad == pytest.approx(0.12 * SPEED)


def test_a_report_is_told_with_the_tolerance_of_its_goal():
    actual = np.minimum(ramp(TIMES - 0.03), SPEED * 2.0 - 0.02)
    times = TIMES[:280]
    result = GoalResult(2.8, "aborted", "GOAL_TOLERANCE_VIOLATED", goal_id="a")
    log = tracked(
        actual[:280],
        times=times,
        goals=(goal(goal_tolerance=np.full(6, 0.01)),),
        results=(result,),
    )

    (violation,) = compare_tolerances(log, Tolerances()).violations

    assert (violation.tolerance_rad, violation.was_reported) == (0.01, True)
    assert violation.at_s == pytest.approx(times[-1])


def test_an_abort_without_a_reason_is_told():
    actual = ramp(TIMES - 0.12)
    log = tracked(actual, goals=(goal(),), results=(GoalResult(1.02, "aborted", goal_id="a"),))

    (violation,) = compare_tolerances(log, Tolerances()).violations

    assert violation.kind == "unknown"
    assert violation.cause.name == "lag"


def test_an_abort_for_another_reason_is_not_a_violation():
    result = GoalResult(1.02, "aborted", "INVALID_GOAL", goal_id="a")
    log = tracked(ramp(TIMES - 0.12), goals=(goal(),), results=(result,))

    assert compare_tolerances(log, Tolerances()).violations == ()


def test_a_violation_that_was_also_reported_is_told_once():
    actual = ramp(TIMES - 0.12)
    result = GoalResult(0.65, "aborted", "PATH_TOLERANCE_VIOLATED", "", "a")
    log = tracked(actual, goals=(goal(),), results=(result,))

    (violation,) = compare_tolerances(log, TOLERANCES).violations

    assert violation.was_reported
    assert violation.tolerance_rad == 0.05


def test_a_log_without_a_reference_has_no_worst_error():
    log = replace(tracked(ramp(TIMES)), reference=None)

    report = compare_tolerances(log, TOLERANCES)

    assert report.worst is None
    assert report.violations == ()


@pytest.mark.parametrize("value", [0.0, -0.1, float("nan"), float("inf")])
def test_a_tolerance_that_is_not_a_positive_number_is_refused(value):
    with pytest.raises(InvalidParameter) as refusal:
        Tolerances(path_rad=value)
    assert refusal.value.name == "--path-tolerance"
