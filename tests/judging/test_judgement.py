"""A log is judged: kinds of motions, lags, errors by source, events and predictions."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from simbridge.errors import UnusableSamples
from simbridge.judging.events import find_jumps
from simbridge.judging.judgement import judge
from simbridge.judging.log import Clock, Commands, Signal, TrackedReference
from simbridge.judging.wording import headline, remarks
from simbridge.robot.load import load_robot
from simbridge.robot.robot import UR_JOINTS
from simbridge.servo.law import ServojLaw
from simbridge.ur.tables import RuntimeState, SafetyMode
from tests.judging.logs import START, TRAVEL, make_log, movej_and_back, rest

pytestmark = pytest.mark.shares_setup

# A cycle of a CB3 controller and of an e-Series controller, s.
CYCLE = 0.008
E_SERIES_CYCLE = 0.002
# How long the joints of the logs trail their targets, s.
JOINT_LAG = 0.0005
# Of a log of servoj: so slow a motion shows the delay of its commands within 0.01 ms.
LATE = {"link_cycles": 2, "duration": 8.0}


def sweep(times):
    """A smooth motion of all joints, at rest at both ends."""
    part = np.clip(times / times[-1], 0.0, 1.0)[:, None]
    turn = np.sin(np.pi * part) ** 2 * np.sin(5.0 * np.pi * part)
    return START + TRAVEL * turn


@cache
def servoj_log(gain=300.0, lookahead=0.1, link_cycles=0, cycle=CYCLE, duration=4.0):
    """A log of servoj with a command each cycle, which arrives some cycles late.

    The commands move for a duration, s.
    """
    times = cycle * np.arange(round(duration / cycle))
    still = np.tile(START, (round(0.8 / cycle), 1))
    commands = np.concatenate([still, sweep(times), still])
    arrived = np.concatenate([np.tile(START, (link_cycles, 1)), commands])[: len(commands)]
    motion = ServojLaw(cycle, gain, lookahead).follow(arrived)
    actual = motion.q - JOINT_LAG * motion.qd

    stamps = cycle * np.arange(len(commands))
    return make_log(
        motion.q,
        times=stamps,
        columns={"target_qd": motion.qd, "target_qdd": motion.qdd, "actual_q": actual},
        position_commands=Commands(commands, stamps - cycle),
        robot="ur5" if cycle == CYCLE else "ur5e",
    )


@cache
def judged_servoj(**facts):
    """The judgement of a `servoj_log` with these arguments."""
    log = servoj_log(**facts)
    return judge(log, [load_robot(log.robot)])


def test_servoj_is_known_with_its_tuning():
    (motion,) = judged_servoj().motions

    assert motion.kind.name == "servoj"
    assert motion.kind.servoj.gain == pytest.approx(300.0, rel=1e-6)
    assert motion.kind.servoj.lookahead_s == pytest.approx(0.1, rel=1e-6)


def test_commands_with_times_after_their_use_are_named():
    log = servoj_log(duration=2.5)
    stamped_late = Commands(log.position_commands.values, log.position_commands.times + 2 * CYCLE)

    late = judge(replace(log, position_commands=stamped_late), [load_robot("ur5")])

    assert any("before their times" in sentence for sentence in remarks(late))
    assert not any("before their times" in sentence for sentence in remarks(judged_servoj()))


def test_the_error_of_servoj_is_split_by_source():
    (motion,) = judged_servoj().motions
    lags = {part.source: part.lag.lag_s for part in motion.errors.parts}

    assert motion.errors.largest.source == "servo law"
    assert lags["servo law"] == pytest.approx(0.1 - CYCLE, abs=2e-3)
    assert lags["arm"] == pytest.approx(JOINT_LAG, abs=1e-6)


@pytest.mark.parametrize(
    ("log", "delay"),
    [
        pytest.param(LATE, 2 * CYCLE, id="cb3"),
        pytest.param(
            {"link_cycles": 5, "cycle": E_SERIES_CYCLE},
            5 * E_SERIES_CYCLE,
            marks=pytest.mark.soak,
            id="e_series",
        ),
    ],
)
def test_late_commands_are_the_networks_part(log, delay):
    (motion,) = judged_servoj(**log).motions

    lags = {part.source: part.lag for part in motion.errors.parts}
    assert lags["network"].lag_s == pytest.approx(delay, abs=1e-5)
    assert motion.kind.servoj.delay_s == pytest.approx(delay, abs=1e-5)


def test_the_parts_lags_add_up():
    (motion,) = judged_servoj(**LATE).motions

    whole = motion.errors.whole.lag.lag_s

    assert sum(part.lag.lag_s for part in motion.errors.parts) == pytest.approx(whole, abs=2e-3)


def test_servoj_is_predicted_as_it_was_sent():
    (motion,) = judged_servoj().motions
    as_sent = motion.predictions[0]

    assert as_sent.rms_rad == pytest.approx(motion.errors.whole.size.rms_rad, rel=1e-3)
    assert as_sent.off_rms_rad < 5e-5
    assert not as_sent.is_extrapolated


def test_feedforward_would_remove_the_lag():
    (motion,) = judged_servoj().motions
    feedforward = motion.predictions[-1]

    assert feedforward.variant == "feedforward"
    assert feedforward.rms_rad < 0.01 * motion.errors.whole.size.rms_rad


def test_a_gain_of_2000_is_said_to_be_extrapolated():
    judgement = judged_servoj()
    (motion,) = judgement.motions

    assert motion.predictions[1].gain == 2000.0
    assert motion.predictions[1].is_extrapolated
    assert any("extrapolated" in sentence for sentence in remarks(judgement))


def test_an_arm_at_rest_shows_nothing():
    judgement = judge(make_log(rest(START, 2.0)), [])

    assert judgement.motions == ()
    assert headline(judgement) == (
        "An arm was at rest throughout (2.0 s): this log shows nothing to judge."
    )


def test_an_arm_at_rest_may_be_a_real_one():
    judgement = judge(make_log(rest(START, 2.0)), [])

    assert judgement.arm.is_simulated is None


def test_freedrive_is_no_tracking():
    times = 0.008 * np.arange(500)
    actual = START + 0.3 * np.sin(np.pi * times)[:, None] ** 2
    target = START + 0.3 * np.sin(np.pi * (times - 0.002))[:, None] ** 2
    log = make_log(target, columns={"actual_q": actual})

    judgement = judge(log, [])

    assert {motion.kind.name for motion in judgement.motions} == {"freedrive"}
    assert judgement.whole is None
    assert "by hand" in headline(judgement)


def test_a_motion_without_evidence_is_unknown():
    times = 0.008 * np.arange(500)
    log = make_log(sweep(times))

    (motion,) = judge(log, []).motions

    assert motion.kind.name == "unknown"
    assert motion.kind.reason


def test_a_protective_stop_is_named():
    log = movej_and_back()
    end = 160
    modes = np.full(len(log.times), float(SafetyMode.NORMAL))
    modes[end:] = SafetyMode.PROTECTIVE_STOP
    target = log.target_q.copy()
    target[end:] = target[end]
    velocity = log.target_qd.copy()
    velocity[end:] = 0.0
    stopped = make_log(
        target, columns={"target_qd": velocity}, safety_mode=Signal(log.times, modes)
    )

    (motion,) = judge(stopped, []).motions

    assert motion.stop.cause == "protective stop"
    assert motion.stop.at_s == pytest.approx(log.times[end])


def test_a_program_that_ends_after_its_movej_stopped_nothing():
    log = movej_and_back()
    states = np.full(len(log.times), float(RuntimeState.PLAYING))
    states[-45:] = RuntimeState.STOPPED

    judgement = judge(replace(log, program_state=Signal(log.times, states)), [])

    assert [motion.stop for motion in judgement.motions] == [None, None]


def test_lost_rows_are_counted():
    log = movej_and_back()
    kept = np.ones(len(log.times), dtype=bool)
    kept[90:110] = False
    columns = {"target_qd": log.target_qd[kept]}

    judgement = judge(make_log(log.target_q[kept], times=log.times[kept], columns=columns), [])

    assert [gap.lost for gap in judgement.gaps] == [20]
    assert judgement.gaps[0].at_s == pytest.approx(log.times[89])


def test_a_jump_of_the_commands_is_found():
    commands = servoj_log(duration=8.0).position_commands
    values = commands.values.copy()
    # Amid the motion.
    index = 375
    values[index:, 2] += 0.05

    (jump,) = find_jumps(Commands(values, commands.times), UR_JOINTS)

    assert (jump.index, jump.joint) == (index, "elbow_joint")
    assert jump.size_rad == pytest.approx(0.05, abs=3e-3)
    assert jump.at_s == pytest.approx(commands.times[index])


def test_smooth_commands_do_not_jump():
    assert find_jumps(servoj_log().position_commands, UR_JOINTS) == ()


def test_a_slow_controller_is_named():
    log = movej_and_back()
    scaling = np.ones(len(log.times))
    scaling[80:120] = 0.4

    judgement = judge(replace(log, speed_scaling=Signal(log.times, scaling)), [])

    (slowdown,) = judgement.motions[0].slowdowns
    assert slowdown.least == 0.4
    assert slowdown.begin_s == pytest.approx(log.times[80])


def test_an_arm_of_which_only_the_joints_were_recorded_has_no_error():
    log = movej_and_back()
    measured = replace(log, columns={"actual_q": log.actual_q})

    judgement = judge(measured, [])

    assert judgement.signals == ("actual",)
    assert judgement.whole is None
    assert "only the measured joints were recorded" in headline(judgement)


def test_rows_that_are_not_numbers_are_left_out():
    log = movej_and_back()
    actual = log.actual_q.copy()
    actual[60:65, 3] = np.nan

    judgement = judge(replace(log, columns={**log.columns, "actual_q": actual}), [])

    assert judgement.samples == len(log.times) - 5
    assert any("5 rows" in note for note in judgement.notes)


def test_joints_in_degrees_are_refused():
    log = movej_and_back()
    columns = {"target_q": np.degrees(log.target_q), "actual_q": np.degrees(log.actual_q)}

    with pytest.raises(UnusableSamples):
        judge(replace(log, columns=columns), [])


def test_a_log_without_joints_is_refused():
    with pytest.raises(UnusableSamples):
        judge(replace(movej_and_back(), columns={}), [])


@cache
def judged_bag():
    """The judgement of a log of ROS.

    It has the reference of a trajectory controller and the joints, with 6 ms of network.
    """
    log = servoj_log(gain=2000.0, lookahead=0.03, link_cycles=3, cycle=E_SERIES_CYCLE, duration=2.0)
    reference = TrackedReference(
        "/controller/state",
        log.times,
        log.position_commands.values,
        None,
        log.actual_q,
        log.position_commands.values - log.actual_q,
    )
    bag_log = replace(
        log,
        clock=Clock.HOST,
        columns={"actual_q": log.actual_q},
        position_commands=None,
        reference=reference,
        robot="",
    )
    return judge(bag_log, [])


def test_without_targets_the_sources_are_not_separable():
    (motion,) = judged_bag().motions
    (part,) = motion.errors.parts

    assert part.lag.lag_s == pytest.approx(0.028 + 0.006 + JOINT_LAG, abs=1e-3)
    assert part.source == "sending, network, interpolation, servo law and arm"


def test_without_targets_the_drivers_tuning_is_an_assumption():
    judgement = judged_bag()
    driver, _ = judgement.motions[0].predictions

    assert driver.variant == "driver's tuning"
    assert driver.off_rms_rad < 0.3 * judgement.whole.whole.size.rms_rad
    assert any("if servoj has the tuning" in sentence for sentence in remarks(judgement))
