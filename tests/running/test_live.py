"""A live arm follows its targets within its limits, and after a violation only once `recover` was called."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

import simbridge
from simbridge.backends.backend import ArmState, Backend, Capabilities
from simbridge.errors import GuardViolation, InvalidParameter, UnknownName
from simbridge.robot import load_robot
from simbridge.robot.kinematics import tool_path
from simbridge.running.live import LiveArm
from simbridge.trajectory.shapes import TOOL_DOWN
from tests.refusals import refuses

ROBOT = simbridge.load_robot("ur10")
PERIOD = ROBOT.period
PLACE = np.array([0.7, 0.164, 0.3])


def target(position):
    return np.concatenate([position, TOOL_DOWN])


def tool(q):
    """The tool's position and rotation at joint positions (n,), by pinocchio."""
    data = ROBOT.model.createData()
    pin.framesForwardKinematics(ROBOT.model, data, q)
    return data.oMf[ROBOT.model.getFrameId("tool0")]


@pytest.fixture
def arm():
    """A simulated arm at rest with its tool at PLACE."""
    with simbridge.connect("pybullet", robot=ROBOT) as arm:
        arm.move_to(simbridge.ForwardDynamics(ROBOT).solve(target(PLACE)).q)
        yield arm


def test_a_tuning_unstable_at_the_controllers_cycle_is_refused_before_the_controller_is_used(
    monkeypatch,
):
    class Controller:
        capabilities = Capabilities(simulated_time=False, effort_unit="A")

        @staticmethod
        def resolve(arm, options):
            return None, arm, options

    monkeypatch.setattr("simbridge.running.run_setup.backend_class", lambda _name: Controller)
    with pytest.raises(InvalidParameter, match=r"below 0\.121"):
        simbridge.connect("ursim", robot=ROBOT, servo_lookahead=0.13)


def test_a_slow_target_is_followed_with_the_lag_of_the_servo(arm):
    speed = np.array([0.0, 0.05, 0.02])
    for k in range(1, 101):
        wanted = PLACE + speed * k * PERIOD
        state = arm.servo(target(wanted))
    attained = tool(state.q)
    # The lookahead less the cycle of 8 ms, and half a millisecond of the joints.
    assert np.abs(attained.translation - (wanted - 0.0225 * speed)).max() < 1e-4
    assert np.abs(pin.log3(attained.rotation.T @ tool(arm.read().command).rotation)).max() < 1e-3
    assert np.linalg.norm(wanted - PLACE) > 0.04


def test_targets_may_be_pinocchio_poses(arm):
    pose = pin.SE3(pin.Quaternion(TOOL_DOWN).matrix(), np.add(PLACE, [0.0, 0.0, 0.01]))
    for _ in range(60):
        state = arm.servo(pose)
    assert np.abs(tool(state.q).translation - pose.translation).max() < 1e-3


def test_a_jump_of_the_target_is_limited_and_reached(arm):
    far = np.add(PLACE, [0.1, -0.3, 0.2])
    states = [arm.servo(target(far)) for _ in range(200)]
    setpoints = np.array([state.command for state in states])
    velocity = np.diff(setpoints, axis=0) / PERIOD
    assert (np.abs(velocity) <= ROBOT.max_velocity).all()
    assert np.abs(np.diff(velocity, axis=0)).max() <= ROBOT.max_acceleration * PERIOD * 1.001
    points = np.array([tool(q).translation for q in setpoints])
    assert np.linalg.norm(np.diff(points, axis=0), axis=1).max() <= ROBOT.max_tool_speed * PERIOD
    assert np.abs(tool(states[-1].q).translation - far).max() < 1e-3


def test_a_lower_tool_speed_holds_for_every_target():
    with simbridge.connect(robot=ROBOT, max_tool_speed=0.1) as arm:
        begin = tool(arm.read().q).translation
        points = [begin] + [tool(arm.servo(target(PLACE)).command).translation for _ in range(50)]
    assert np.linalg.norm(np.diff(points, axis=0), axis=1).max() <= 0.1 * PERIOD
    assert np.linalg.norm(points[-1] - begin) > 0.02


def test_time_and_sequence_advance_by_one_period_per_call(arm):
    states = [arm.servo(target(PLACE)) for _ in range(5)]
    assert np.diff([state.timestamp for state in states]) == pytest.approx(
        np.full(4, arm.period), rel=1e-9
    )
    assert np.diff([state.sequence for state in states]).tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize(
    "nonsense", [[1.0, 2.0], [np.nan] * 7, [0.0] * 7], ids=["two numbers", "nan", "no rotation"]
)
def test_a_target_that_is_no_pose_is_refused_and_the_next_one_is_followed(arm, nonsense):
    arm.servo(target(PLACE))
    with pytest.raises(InvalidParameter, match="target"):
        arm.servo(nonsense)
    state = arm.servo(target(PLACE))
    assert np.abs(tool(state.command).translation - PLACE).max() < 1e-3


class Lapsing(simbridge.ForwardDynamics):
    """A solver that returns nan while `lapsed` is set."""

    lapsed = False

    def step(self, target):
        return np.full(self.robot.n, np.nan) if self.lapsed else super().step(target)


def test_after_a_violation_nothing_moves_until_recover():
    solver = Lapsing(ROBOT)
    with simbridge.connect("pybullet", solver=solver) as arm:
        for _ in range(10):
            before = arm.servo(target(PLACE))
        solver.lapsed = True
        with pytest.raises(GuardViolation) as caught:
            arm.servo(target(PLACE))
        assert caught.value.rule == "finite"
        solver.lapsed = False
        with pytest.raises(GuardViolation) as caught:
            arm.servo(target(PLACE))
        assert caught.value.rule == "latched"
        rest = arm.read()
        assert np.isfinite(rest.q).all() and np.isfinite(rest.command).all()
        assert np.abs(rest.q - before.command).max() < 0.02
        arm.recover()
        assert np.abs(arm.read().q - rest.q).max() < 1e-3
        states = [arm.servo(target(PLACE)) for _ in range(100)]
        assert np.abs(states[0].command - rest.q).max() < 1e-2
        assert np.abs(tool(states[-1].q).translation - PLACE).max() < 1e-3


def test_a_move_through_the_floor_is_refused_and_the_arm_stays(arm):
    before = arm.read().q
    down = before.copy()
    down[1] += 1.2
    with refuses("floor"):
        arm.move_to(down)
    assert np.array_equal(arm.read().q, before)
    arm.servo(target(PLACE))


def test_feedforward_is_not_used_without_knowing_what_comes_next():
    """The commands are those of a session without it."""
    home = tool(ROBOT.home).translation
    with pytest.warns(UserWarning, match="Feedforward is off in this live session"):
        arms = [simbridge.connect(feedforward="on"), simbridge.connect()]
    commands, up = [], np.array([0.0, 0.0, 1.0])
    for arm in arms:
        with arm:
            commands.append([arm.servo(target(home + 0.002 * k * up)).command for k in range(5)])
    assert np.array_equal(*commands)


def test_an_unknown_backend_is_refused_with_the_nearest_name():
    with pytest.raises(UnknownName, match="Did you mean 'pybullet'"):
        simbridge.connect("pybulet")


class Recording(Backend):
    """A backend that records the calls; the first read may fail."""

    capabilities = Capabilities(simulated_time=True, effort_unit="N m")
    period = PERIOD

    def __init__(self, fails=False):
        self.fails, self.calls = fails, []

    def __enter__(self):
        self.calls.append("enter")
        return self

    def __exit__(self, kind, error, trace):
        self.calls.append("exit")

    def read(self):
        if self.fails:
            raise RuntimeError("no state")
        q = ROBOT.home
        return ArmState(0, 0.0, 0.0, 0.0, q, 0.0 * q, 0.0 * q, q, q)

    def move_to(self, q):
        self.calls.append("move_to")

    def stream(self, setpoints):
        try:
            for _ in setpoints:
                yield self.read()
        finally:
            self.calls.append("stop")

    def stop(self):
        self.calls.append("stop")

    def recover(self):
        self.calls.append("recover")


def test_leaving_stops_the_arm_before_it_is_released():
    backend = Recording()
    with LiveArm(backend, simbridge.ForwardDynamics(ROBOT)) as arm:
        arm.servo(target(PLACE))
    assert backend.calls == ["enter", "stop", "exit"]


def test_the_arm_is_released_even_if_its_first_state_cannot_be_read():
    backend = Recording(fails=True)
    with (
        pytest.raises(RuntimeError, match="no state"),
        LiveArm(backend, simbridge.ForwardDynamics(ROBOT)),
    ):
        pass
    assert backend.calls == ["enter", "exit"]


def test_a_live_target_below_the_floor_stops_the_arm_above_it():
    robot = load_robot("ur10")
    target = tool_path(robot, robot.home[None])[0]
    with simbridge.connect("pybullet", robot=robot) as arm:
        with pytest.raises(GuardViolation, match="the floor") as caught:
            for _ in range(2000):
                target[2] -= 0.0005
                arm.servo(target)
        assert caught.value.rule == "collision"
        assert tool_path(robot, arm.read().q[None])[0, 2] > 0.0
        with pytest.raises(GuardViolation, match="recover"):
            arm.servo(tool_path(robot, robot.home[None])[0])
        arm.recover()
        above = tool_path(robot, arm.read().q[None])[0]
        above[2] += 0.0005
        arm.servo(above)


def test_a_latched_guard_refuses_a_move_as_well():
    with simbridge.connect("pybullet") as arm:
        before = arm.read().q
        backend = arm._backend
        with pytest.raises(GuardViolation):
            list(backend.stream([np.full(6, np.nan)]))
        with pytest.raises(GuardViolation, match="recover"):
            arm.move_to(before + np.array([0.4, 0.0, 0.0, 0.0, 0.0, 0.0]))
        assert np.abs(arm.read().q - before).max() < 1e-3
