"""A live motion follows the inputs that count, as far as nothing keeps the arm from it."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from simbridge.ik.forward_dynamics import ForwardDynamics
from simbridge.ik.settings import SOLVERS
from simbridge.robot import load_robot
from simbridge.robot.kinematics import tool_path
from simbridge.servo.law import ServojLaw
from simbridge.sessions.inputs import Fate, Input
from simbridge.sessions.limits import ServoModel
from simbridge.sessions.motion import LiveMotion
from simbridge.sessions.options import TIMEOUTS, LiveOptions
from simbridge.sessions.phases import LivePhase, Order
from tests.sessions.trial import (
    ROBOT as UR10E,
)
from tests.sessions.trial import (
    TimedInput,
    TimedOrder,
    count_cause_changes,
    engage_motion,
    pose_of,
    repeat_input,
    run,
    run_there_and_back,
    shift_pose,
)

pytestmark = pytest.mark.slow

UR10 = load_robot("ur10")
HOME = pose_of(UR10.home, UR10)
VALUES = {
    "twist": [0.1, 0, 0, 0, 0, 0],
    "jog": [0.2, 0, 0, 0, 0, 0],
    "pose": shift_pose(HOME, 0.0, 0.05, 0.0),
    "joints": UR10.home + 0.1,
    "follow": [[0.3, *shift_pose(HOME, 0.0, 0.05, 0.0)]],
    "follow_joints": [[0.3, *(UR10.home + 0.1)]],
}


def run_script(script, seconds, **facts):
    """Run an engaged motion of the UR10 through a script."""
    return run(engage_motion(UR10, **facts), script, seconds, robot=UR10)


def fates(trace):
    """Return the fates of the inputs, in order."""
    return [step.fate for step in trace.steps if step.fate is not Fate.NONE]


@pytest.mark.parametrize(
    ("kind", "timeout"),
    [
        *((kind, None) for kind in VALUES),
        ("twist", 0.1),
        *(pytest.param(kind, 0.1, marks=pytest.mark.soak) for kind in VALUES if kind != "twist"),
    ],
)
def test_without_inputs_the_arm_holds_after_the_timeout(kind, timeout):
    end = 0.3 if kind.startswith("follow") else 0.0
    due = end + (timeout or TIMEOUTS[kind])
    trace = run_script([TimedInput(0.0, kind, VALUES[kind])], due + 0.5, timeout=timeout)
    first = next(
        k
        for k, step in enumerate(trace.steps)
        if step.phase is LivePhase.BRAKING or step.phase is LivePhase.HOLDING
    )

    assert trace.times[first] == pytest.approx(due + UR10.period, abs=1.01 * UR10.period)

    cause = trace.steps[-1].causes[0]

    assert trace.phases[-1] is LivePhase.HOLDING
    assert cause.kind == "stale"
    assert cause.value == pytest.approx(trace.times[-1] - end, abs=1e-6)
    assert not trace.velocity[-1].any()
    assert np.abs(trace.acceleration).max() <= UR10.max_acceleration


def test_an_input_after_a_timeout_is_late():
    script = [
        *repeat_input("twist", VALUES["twist"], 0.0, 0.5),
        *repeat_input("twist", VALUES["twist"], 1.2, 1.5),
    ]
    trace = run_script(script, 1.6)

    assert trace.phases == [
        LivePhase.TRACKING,
        LivePhase.BRAKING,
        LivePhase.HOLDING,
        LivePhase.TRACKING,
    ]
    assert fates(trace).count(Fate.LATE) == 1

    held = trace.setpoints[trace.index_at(1.1)]

    # No leap to where the twist would have led meanwhile.
    assert trace.setpoints[trace.index_at(1.21)] == pytest.approx(held, abs=4e-3)


def test_an_input_in_time_is_not_late():
    assert set(fates(run_script(repeat_input("pose", VALUES["pose"], 0.0, 1.0, 0.4), 1.2))) == {
        Fate.ACCEPTED
    }


def test_a_replacing_chunk_is_not_late():
    rows = np.column_stack([[0.5, 1.5], [HOME, shift_pose(HOME, 0.0, 0.05, 0.0)]])
    trace = run_script([TimedInput(0.0, "follow", rows), TimedInput(1.2, "follow", rows)], 1.4)

    assert fates(trace) == [Fate.ACCEPTED, Fate.ACCEPTED]


def test_inputs_of_older_engagements_move_nothing():
    script = [
        TimedOrder(0.0, Order.DISENGAGE),
        TimedOrder(0.1, Order.ENGAGE, 2),
        TimedInput(0.2, "jog", VALUES["jog"]),
    ]
    trace = run_script(script, 0.4)

    assert not trace.velocity.any()
    assert fates(trace) == [Fate.NOT_ENGAGED]


@pytest.mark.parametrize("order", [Order.ENGAGE, Order.HALT])
def test_inputs_from_before_an_order_never_move_the_arm(order):
    # The input is in the mailbox when the order is taken, in the same period.
    script = [TimedInput(0.1, "jog", VALUES["jog"]), TimedOrder(0.1, order, 1, upto=1)]
    trace = run_script(script, 0.4)

    assert not trace.velocity.any()


def test_engaging_a_moving_arm_brakes_it():
    script = [
        *repeat_input("jog", VALUES["jog"], 0.0, 1.0),
        TimedOrder(0.3, Order.ENGAGE, 2),
        *repeat_input("jog", [-0.2, 0, 0, 0, 0, 0], 1.0, 1.2, engagement=2),
    ]
    trace = run_script(sorted(script, key=lambda event: event.time), 1.2)

    assert trace.phases == [
        LivePhase.TRACKING,
        LivePhase.BRAKING,
        LivePhase.HOLDING,
        LivePhase.TRACKING,
    ]
    assert not trace.velocity[trace.index_at(0.5) : trace.index_at(0.95)].any()
    assert trace.velocity[-1, 0] == pytest.approx(-0.2)
    assert np.abs(trace.acceleration).max() <= UR10.max_acceleration


def test_a_second_engagement_begins_at_the_present_setpoint():
    script = [
        *repeat_input("jog", VALUES["jog"], 0.0, 0.5),
        TimedOrder(0.5, Order.DISENGAGE),
        TimedOrder(0.8, Order.ENGAGE, 2),
        TimedInput(0.9, "pose", np.eye(7)[6], relative=True, engagement=2),
    ]
    trace = run_script(script, 1.2)

    assert trace.phases[-2:] == [LivePhase.ENGAGED, LivePhase.TRACKING]
    # The pose at the engagement, relative to itself: nothing moves.
    assert np.abs(trace.velocity[trace.index_at(0.85) :]).max() < 1e-6


def test_a_pause_disengages():
    motion = engage_motion(UR10)
    before = run(motion, repeat_input("jog", VALUES["jog"], 0.0, 0.4), 0.4, robot=UR10)
    stopped = before.setpoints[-1] + 0.01
    motion.rest_at(stopped)
    motion.order(Order.PAUSE)

    assert motion.phase is LivePhase.PAUSED

    step = motion.step(0.5, 0.0)

    assert np.array_equal(step.setpoint, stopped)
    assert step.causes[0].kind == "paused"

    motion.rest_at(stopped)
    motion.order(Order.RESUME)
    after = run(motion, [TimedInput(0.0, "jog", VALUES["jog"])], 0.2, robot=UR10)

    assert motion.phase is LivePhase.IDLE
    assert np.array_equal(after.setpoints[-1], stopped)

    motion.order(Order.ENGAGE, engagement=2)

    assert motion.phase is LivePhase.ENGAGED


def test_an_order_before_a_pause_moves_nothing():
    motion = engage_motion(UR10)
    run(motion, repeat_input("jog", VALUES["jog"], 0.0, 0.4), 0.4, robot=UR10)
    motion.rest_at(UR10.home)
    motion.order(Order.HALT)

    assert np.array_equal(motion.step(0.5).setpoint, UR10.home)


@pytest.mark.parametrize("stop", [None, Order.HALT])
def test_a_relative_pose_is_followed_once(stop):
    sixty = [*(0.0, 0.06, 0.0), *(0.0, 0.0, 0.0, 1.0)]
    script = repeat_input("pose", sixty, 0.0, 1.2, relative=True)
    if stop is not None:
        script = sorted([*script, TimedOrder(0.6, stop)], key=lambda event: event.time)
    trace = run_script(script, 1.3)

    assert np.linalg.norm(trace.tool[-1, :3] - HOME[:3]) == pytest.approx(0.06, abs=1e-4)


@pytest.mark.parametrize(("kind", "far", "name"), [
    ("pose", shift_pose(HOME, 0.0, 0.16, 0.0), "max_jump"),
    ("joints", UR10.home + 0.7, "max_turn"),
    ("follow", [[0.0, *shift_pose(HOME, 0.0, 0.16, 0.0)]], "max_jump"),
])  # fmt: skip
def test_after_a_jump_the_input_before_counts(kind, far, name):
    script = [
        TimedInput(0.0, kind, VALUES[kind]),
        TimedInput(0.2, kind, far),
        *repeat_input(kind, VALUES[kind], 0.4, 0.8),
    ]
    trace = run_script(script, 0.8)

    assert fates(trace)[1] is Fate.TOO_FAR
    assert trace.phases == [LivePhase.TRACKING]
    assert trace.cause_names(trace.index_at(0.2))[0] == (name, "")

    without = run_script([event for event in script if event.time != 0.2], 0.8)

    assert np.array_equal(trace.setpoints, without.setpoints)


def test_equal_calls_give_equal_setpoints():
    def once():
        script = [
            *repeat_input("twist", [0.1, 0.05, -0.2, 0.3, 0, 0.5], 0.0, 0.3, frame="tool"),
            *repeat_input("pose", VALUES["pose"], 0.3, 0.6),
            *repeat_input("jog", VALUES["jog"], 0.6, 0.8),
        ]
        return run_script(script, 1.1, max_jump=(1.0, 1.0), filter="butterworth").setpoints

    assert once().tobytes() == once().tobytes()


AHEAD = np.linspace(0.0, 1.0, 11)


def pose_at(time):
    """Return where the tool is to be at a time, s: on a smooth motion along y."""
    s = np.clip(time / 2.0, 0.0, 1.0)
    return shift_pose(HOME, 0.0, 0.2 * s**3 * (10.0 - 15.0 * s + 6.0 * s**2), 0.0)


def make_chunk(now, stamps=AHEAD):
    """Return a chunk of poses for these times from now, s."""
    return np.column_stack([stamps, [pose_at(now + stamp) for stamp in stamps]])


def test_a_chunk_is_followed_at_its_stamps():
    trace = run(
        engage_motion(UR10),
        [TimedInput(0.0, "follow", make_chunk(0.0, np.linspace(0.0, 2.0, 41)))],
        2.2,
        robot=UR10,
    )
    wanted = np.array([pose_at(at) for at in trace.times])

    assert trace.tool[:, 1] == pytest.approx(wanted[:, 1], abs=1e-3)


def test_a_newer_chunk_replaces_without_a_jump():
    script = [TimedInput(at, "follow", make_chunk(at)) for at in np.arange(0.0, 2.0, 0.2).tolist()]
    trace = run(engage_motion(UR10), script, 2.2, robot=UR10)
    wanted = np.array([pose_at(at) for at in trace.times])

    assert trace.tool[:, 1] == pytest.approx(wanted[:, 1], abs=2e-3)
    # The corners of its straight parts, and no more than that.
    assert np.diff(trace.twist_speed).max() < 0.03


def test_a_later_chunk_begins_in_a_line():
    goal = shift_pose(HOME, 0.0, 0.05, 0.0)
    trace = run(engage_motion(UR10), [TimedInput(0.0, "follow", [[1.0, *goal]])], 1.2, robot=UR10)

    assert trace.tool[trace.index_at(0.5), 1] - HOME[1] == pytest.approx(0.025, abs=1e-3)
    assert trace.tool[-1] == pytest.approx(goal, abs=1e-6)


def test_a_chunk_of_joints_is_followed():
    goal = UR10.home + 0.2
    trace = run(
        engage_motion(UR10),
        [TimedInput(0.0, "follow_joints", [[0.0, *UR10.home], [1.0, *goal]])],
        1.2,
        robot=UR10,
    )

    assert trace.setpoints[trace.index_at(0.5)] == pytest.approx(UR10.home + 0.1, abs=3e-3)
    assert np.array_equal(trace.setpoints[-1], goal)


def test_joints_follow_a_chunk_of_poses():
    goal = UR10.home + 0.1
    script = [
        TimedInput(0.0, "follow", make_chunk(0.0)),
        TimedInput(0.5, "follow_joints", [[0.5, *goal]]),
    ]
    trace = run(engage_motion(UR10), script, 1.3, robot=UR10)

    assert np.array_equal(trace.setpoints[-1], goal)


@pytest.mark.parametrize("preview", [False, True])
def test_preview_lets_the_arm_arrive_on_time(preview):
    law = ServojLaw(UR10.period)
    motion = engage_motion(UR10, law=law, preview=preview)
    trace = run(
        motion,
        [TimedInput(0.0, "follow", make_chunk(0.0, np.linspace(0.0, 2.0, 41)))],
        2.2,
        robot=UR10,
    )
    # The state after the cycle of a command belongs to the next instant.
    arm = tool_path(UR10, trace.follow(law).q)[:-1, 1]
    late = arm - np.array([pose_at(at)[1] for at in trace.times[1:]])
    lag = 0.0 if preview else law.lag

    assert np.abs(late).max() == pytest.approx(0.19 * lag, abs=2e-3)


def test_only_chunks_are_previewed():
    script = [TimedInput(0.05 * k, "pose", pose_at(0.05 * k)) for k in range(14)]
    previewed = run(engage_motion(UR10, preview=True), script, 0.8, robot=UR10)
    without = run(engage_motion(UR10, preview=False), script, 0.8, robot=UR10)

    assert np.array_equal(previewed.setpoints, without.setpoints)


# Base turned by pi about z; the tool of this posture points down and is turned.
FRAMES = {
    "base_link": np.eye(3),
    "base": np.diag([-1.0, -1.0, 1.0]),
    "tool": pin.Quaternion(HOME[3:]).matrix(),
}


@pytest.mark.parametrize("frame", FRAMES)
def test_a_twist_moves_along_its_frames_own_x(frame):
    trace = run_script(repeat_input("twist", [0.1, 0, 0, 0, 0, 0], 0.0, 1.0, frame=frame), 1.0)
    path = trace.tool[-1, :3] - trace.tool[0, :3]

    assert path / np.linalg.norm(path) == pytest.approx(FRAMES[frame] @ [1.0, 0.0, 0.0], abs=1e-3)


@pytest.mark.parametrize("frame", FRAMES)
def test_a_twist_turns_about_its_frames_own_x(frame):
    trace = run_script(repeat_input("twist", [0, 0, 0, 0.3, 0, 0], 0.0, 0.6, frame=frame), 0.6)
    first = pin.Quaternion(trace.tool[0, 3:]).matrix()
    last = pin.Quaternion(trace.tool[-1, 3:]).matrix()
    turn = pin.log3(last @ first.T)

    assert turn / np.linalg.norm(turn) == pytest.approx(FRAMES[frame] @ [1.0, 0.0, 0.0], abs=2e-3)
    assert trace.tool[-1, :3] == pytest.approx(trace.tool[0, :3], abs=1e-3)


@pytest.mark.parametrize("name", SOLVERS)
def test_every_solver_keeps_a_twists_speed(name):
    trace = run(
        engage_motion(UR10, name),
        repeat_input("twist", [0, 0.2, 0, 0, 0, 0.2], 0.0, 0.8),
        0.8,
        robot=UR10,
    )
    steady = slice(trace.index_at(0.4), None)

    assert trace.twist_speed[steady] == pytest.approx(0.2, rel=0.02)

    turn = pin.log3(
        pin.Quaternion(trace.tool[-1, 3:]).matrix()
        @ pin.Quaternion(trace.tool[trace.index_at(0.4), 3:]).matrix().T
    )

    assert turn[2] / (trace.times[-1] - trace.times[trace.index_at(0.4)]) == pytest.approx(
        0.2, rel=0.02
    )


def test_a_jogs_steady_speed_is_what_was_asked():
    wanted = np.array([0.3, -0.2, 0.1, 0.4, -0.5, 0.6])
    trace = run(engage_motion(), repeat_input("jog", wanted, 0.0, 0.5), 0.5)

    assert trace.velocity[-100:] == pytest.approx(np.tile(wanted, (100, 1)), abs=1e-6)
    # As fast as the acceleration allows, and not faster than asked on the way.
    assert (np.abs(trace.velocity) <= np.abs(wanted) + 1e-9).all()


def test_a_wrist_swing_stays_within_limits():
    # This twist once asked wrist_3 for 3.17 rad/s, until the controller stopped the arm.
    law = ServojLaw(0.002)
    trace = run(
        engage_motion(law=law),
        repeat_input("twist", [0, 0, 0, 3.0, 0, 3.0], 0.0, 1.0, frame="tool"),
        1.0,
    )
    arm = trace.follow(law)

    assert (np.abs(arm.qd) <= UR10E.max_velocity).all()
    assert np.abs(arm.qdd).max() <= UR10E.max_acceleration

    named = {name for k in range(len(trace.steps)) for name, _ in trace.cause_names(k)}

    assert "joint_velocity" in named


def test_the_slider_scales_a_twist():
    script = repeat_input("twist", [0.1, 0, 0, 0, 0, 0], 0.0, 1.0)
    trace = run(engage_motion(UR10), script, 1.0, robot=UR10, slider=lambda now: 0.3)

    assert trace.twist_speed[trace.index_at(0.8) :] == pytest.approx(0.03, rel=0.01)
    assert trace.cause_names(-1) == [("speed_slider", "")]
    assert trace.steps[-1].causes[0].text == "speed_slider 0.30"


def test_the_arm_holds_at_a_slider_of_zero():
    def slider(now):
        return 0.0 if 0.5 <= now < 1.2 else 1.0

    script = repeat_input("twist", [0.1, 0, 0, 0, 0, 0], 0.0, 2.0)
    trace = run(engage_motion(UR10), script, 2.0, robot=UR10, slider=slider)
    held = slice(trace.index_at(0.8), trace.index_at(1.2))

    assert not trace.velocity[held].any()
    assert trace.cause_names(trace.index_at(1.0)) == [("speed_slider", "")]
    assert trace.twist_speed[trace.index_at(1.9) :] == pytest.approx(0.1, rel=0.01)
    # The way of 0.2 s down and up at a constant rate, and none while it was held.
    assert trace.tool[-1, 0] - trace.tool[0, 0] == pytest.approx(
        0.1 * (0.5 + 0.125 + 0.125 + 0.55), rel=0.05
    )


def test_a_pose_is_followed_no_faster_than_the_slider_allows():
    script = repeat_input("pose", shift_pose(HOME, 0.0, 0.4, 0.0), 0.0, 1.5, 0.1)
    motion = engage_motion(UR10, max_jump=(1.0, 1.0))
    trace = run(motion, script, 1.5, robot=UR10, slider=lambda now: 0.1)
    after = slice(trace.index_at(0.4), None)

    assert (np.abs(trace.velocity[after]) <= 0.1 * UR10.max_velocity).all()
    assert trace.twist_speed[after].max() <= 0.1 * UR10.max_tool_speed


@pytest.mark.parametrize("robot", [UR10, UR10E], ids=["UR10", "UR10e"])
@pytest.mark.parametrize("tuning", [(2000.0, 0.03), (300.0, 0.1)])
def test_an_arm_does_not_overshoot_its_range(robot, tuning):
    law = ServojLaw(robot.period, *tuning)
    motion = LiveMotion(ForwardDynamics(robot), robot.period, LiveOptions(), servo=ServoModel(law))
    begin = robot.home + np.array([0.0, 0.0, 0.0, 0.0, 0.0, 5.0])
    motion.rest_at(begin)
    motion.order(Order.ENGAGE, engagement=1)
    fast = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 10.0])
    setpoints = [
        motion.step(k * robot.period, 1.0, Input("jog", fast, k + 1, 1)).setpoint
        for k in range(round(1.2 / robot.period))
    ]
    attained = law.follow(np.array(setpoints), previous=begin).q[:, 5]
    end = robot.position_max[5]

    assert end - 0.005 < attained[-1] <= attained.max() <= end


def test_an_arm_rests_at_its_range_end():
    start = UR10E.home.copy()
    start[5] = UR10E.position_max[5]
    script = repeat_input("jog", [0, 0, 0, 0, 0, 0.5], 0.0, 0.2) + repeat_input(
        "jog", [0, 0, 0, 0, 0, -0.5], 0.2, 0.6
    )
    trace = run(
        engage_motion(UR10E, law=ServojLaw(UR10E.period), start=start), script, 0.6, robot=UR10E
    )

    assert np.ptp(trace.setpoints[: trace.index_at(0.19), 5]) == 0.0
    assert trace.velocity[-1, 5] == pytest.approx(-0.5, abs=0.01)
    assert np.abs(trace.acceleration).max() <= UR10E.max_acceleration


@pytest.mark.parametrize("kind", ["jog", "twist"])
def test_a_range_end_is_named_and_free_to_leave(kind):
    start = UR10.home.copy()
    start[5] = 6.0
    values = [0, 0, 0, 0, 0, 1.0]
    facts = {} if kind == "jog" else {"frame": "tool"}
    trace = run_there_and_back(UR10, values, 1.0, start=start, kind=kind, **facts)
    end = trace.index_at(0.95)
    # Room is left for the overshoot of the servo law: the overshoot test below.
    room = UR10.position_max[5] - trace.setpoints[end, 5]

    assert 0.0 < room < 0.005
    assert [cause.text for cause in trace.steps[end].causes] == [
        f"joint_limit wrist_3 {room:.3f} rad"
    ]
    assert trace.velocity[-1, 5] == pytest.approx(-1.0, abs=0.01)
    assert count_cause_changes(trace, 0.0, 1.0) == 1


def test_a_range_end_behind_an_obstacle_is_not_named():
    # The elbow is wanted beyond its end, but the floor is in the way.
    trace = run(
        engage_motion(UR10), repeat_input("jog", [0, 0, 3.0, 0, 0, 0], 0.0, 2.0), 2.0, robot=UR10
    )

    assert {name for name, _ in trace.cause_names(-1)} == {"obstacle"}


def test_a_joint_at_its_limit_is_named():
    law = ServojLaw(UR10.period)
    trace = run(
        engage_motion(UR10, law=law),
        repeat_input("jog", [0, 0, 0, 0, 0, 9.0], 0.0, 0.6),
        0.6,
        robot=UR10,
    )
    share = np.abs(trace.velocity[-1, 5]) / UR10.max_velocity[5]

    assert [cause.text for cause in trace.steps[-1].causes] == [
        f"joint_velocity wrist_3 {share:.2f}"
    ]
    assert share == pytest.approx(1.0 / law.velocity_gain().of_any_motion, rel=1e-3)
    assert count_cause_changes(trace, 0.0, 0.6) == 1


def test_a_tool_at_its_limit_is_named():
    motion = engage_motion(UR10, max_tool_speed=0.25)
    trace = run(motion, repeat_input("twist", [0, 0.9, 0, 0, 0, 0], 0.0, 0.8), 0.8, robot=UR10)

    assert trace.cause_names(-1) == [("tool_speed", "")]
    assert trace.steps[-1].causes[0].value == pytest.approx(trace.twist_speed[-1], rel=1e-6)
    assert trace.twist_speed.max() <= 0.25
    assert count_cause_changes(trace, 0.1, 0.8) == 0
