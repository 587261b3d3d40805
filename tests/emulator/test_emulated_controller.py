"""The controller without its network.

Its ticks are called directly, so nothing waits for real time.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from simbridge.emulator import record as record_module
from simbridge.emulator.record import TickRecord
from simbridge.errors import InvalidParameter
from simbridge.ik.forward_dynamics import ForwardDynamics
from simbridge.planning.options import Options
from simbridge.planning.planner import make_plan
from simbridge.planning.scenario import Scenario
from simbridge.robot.kinematics import tool_path
from simbridge.robot.parts import DhTable
from simbridge.trajectory import Trajectory
from simbridge.ur.tables import RobotMode, RuntimeState, SafetyMode
from tests.emulator.bench import AHEAD, DT, ROBOT, Bench
from tests.properties import variants

pytestmark = pytest.mark.slow


@pytest.fixture
def bench() -> Bench:
    return Bench().running()


# Power


def test_it_boots_from_off_to_idle():
    bench = Bench(boot_time=0.5)

    assert bench.state.robot_mode == RobotMode.POWER_OFF

    bench.tick(1.0)

    assert bench.state.robot_mode == RobotMode.POWER_OFF

    bench.controller.power_on()
    bench.tick(0.4)

    assert bench.state.robot_mode == RobotMode.BOOTING

    bench.tick(0.2)

    assert bench.state.robot_mode == RobotMode.IDLE

    bench.tick(5.0)

    assert bench.state.robot_mode == RobotMode.IDLE


def test_a_release_in_booting_takes_effect():
    bench = Bench(boot_time=0.5)
    bench.controller.power_on()
    bench.tick(0.1)
    bench.controller.brake_release()
    bench.tick(0.1)

    assert bench.state.robot_mode == RobotMode.BOOTING

    bench.tick(0.8)

    assert bench.state.robot_mode == RobotMode.RUNNING


def test_an_idle_release_takes_a_second():
    bench = Bench(boot_time=0.1)
    bench.controller.power_on()
    bench.tick(3.0)
    bench.controller.brake_release()

    assert bench.state.robot_mode == RobotMode.IDLE

    bench.tick(1.0)

    assert bench.state.robot_mode == RobotMode.RUNNING


def test_the_boot_time_is_an_option():
    bench = Bench(boot_time=3.0)
    bench.controller.brake_release()
    bench.tick(2.9)

    assert bench.state.robot_mode == RobotMode.BOOTING

    bench.tick(0.5)

    assert bench.state.robot_mode == RobotMode.RUNNING


def test_no_program_runs_without_power(bench):
    bench.load(f"movej({AHEAD})")
    bench.tick(0.5)
    bench.controller.power_off()
    bench.tick(0.1)

    assert bench.state.robot_mode == RobotMode.POWER_OFF
    assert bench.state.runtime_state == RuntimeState.STOPPED
    assert bench.at_rest

    bench.controller.load_script("def f():\nsync()\nend")

    assert bench.state.runtime_state == RuntimeState.STOPPED
    assert "not started" in bench.texts("error")


# Speed slider and pauses


def path(bench: Bench) -> np.ndarray:
    """Joints 1 and 2 over joint 0, at places along the path."""
    q = np.array(bench.q)
    places = np.linspace(q[0, 0], q[-1, 0], 50)
    return np.column_stack([np.interp(places, q[:, 0], q[:, i]) for i in (1, 2)])


MOVE = "movej([q[0] + 0.6, q[1] + 0.2, q[2] - 0.3, q[3], q[4], q[5]], a=1.4, v=1.0)"


def test_slider_slows_a_move_along_its_path(bench):
    bench.load(MOVE)
    bench.finish()
    whole = path(bench)
    ticks = len(bench.q)
    bench.load(f"movej({ROBOT.home.tolist()}, a=20, v=2)")
    bench.finish()
    bench.controller.set_speed_slider(0.4)
    bench.tick()

    assert 0.4 < bench.state.speed_scaling < 1.0

    bench.tick(1.0)

    assert bench.state.speed_scaling == pytest.approx(0.4)

    bench.load(MOVE)
    bench.finish()

    assert path(bench) == pytest.approx(whole, abs=1e-9)
    assert len(bench.q) == pytest.approx(ticks / 0.4, rel=0.02)


@pytest.mark.parametrize("fraction", variants([0.25, 0.3, 1.0], 0.3, 1.0))
def test_timed_speeds_cover_the_same_distance(bench, fraction):
    bench.controller.set_speed_slider(fraction)
    bench.tick(1.0)
    begin = bench.state.tick
    bench.load(
        "i = 0",
        "while i < 100:",
        "speedj([0.2, 0, 0, 0, 0, 0], 40, 0.002)",
        "i = i + 1",
        "end",
        "stopj(40)",
    )
    bench.finish()

    assert (bench.state.tick - begin) * DT == pytest.approx(0.2 / fraction, abs=0.03)
    assert bench.joint()[-1] - bench.joint()[0] == pytest.approx(0.2 * 0.2, abs=2e-3)


def test_servoj_keeps_real_time_by_default(bench):
    def answer(follows: bool) -> np.ndarray:
        bench.controller.settings = bench.controller.settings.changed(
            {"servoj_follows_slider": follows}
        )
        bench.load(f"movej({ROBOT.home.tolist()}, a=20, v=2)")
        bench.finish()
        bench.load(
            "while True:",
            f"servoj({AHEAD.replace('1.0', '0.02')}, t=0.002, lookahead_time=0.03)",
            "end",
        )
        bench.tick(0.4)
        bench.controller.stop_program()
        return np.trim_zeros(bench.joint() - ROBOT.home[0], "f")

    full = answer(False)
    bench.controller.set_speed_slider(0.25)
    bench.tick(1.0)

    assert np.array_equal(answer(False), full)
    assert answer(True)[3::4] == pytest.approx(full[: len(full) // 4], abs=1e-12)


def test_paused_move_resumes_to_its_goal(bench):
    bench.load(MOVE)
    bench.finish()
    whole = path(bench)
    goal = bench.state.target_q
    bench.load(f"movej({ROBOT.home.tolist()}, a=20, v=2)")
    bench.finish()
    bench.load(MOVE)
    bench.tick(0.5)

    assert bench.controller.pause_program()

    bench.tick(0.5)

    assert bench.state.runtime_state == RuntimeState.PAUSED
    assert bench.at_rest and (bench.state.target_q != goal).any()

    resting = bench.state.target_q
    bench.tick(1.0)

    assert (bench.state.target_q == resting).all()
    assert bench.controller.play_program()

    bench.finish()

    assert (bench.state.target_q == goal).all()
    assert path(bench) == pytest.approx(whole, abs=1e-9)


@pytest.mark.parametrize(
    "motion", ["speedj([0.5, 0, 0, 0, 0, 0], 0.1, 60)", "speedl([0, 0, 0.05, 0, 0, 0], 0.05, 60)"]
)
def test_paused_speed_ramps_up_again(bench, motion):
    bench.load(motion)
    bench.tick(0.6)
    fastest = np.abs(bench.speeds()).max()

    assert fastest > 0.01

    bench.controller.pause_program()
    bench.tick(0.3)

    assert bench.at_rest

    bench.controller.play_program()
    bench.q = [bench.state.target_q]
    bench.tick(0.3)

    assert 0.0 < np.abs(bench.speeds()).max() < fastest


def test_only_playing_programs_pause(bench):
    assert not bench.controller.pause_program()
    assert not bench.controller.play_program()

    bench.load("sleep(100)")

    assert not bench.controller.play_program()


# Safety


@pytest.fixture
def strict(bench) -> Bench:
    """Its joint speed limits are the arm's own."""
    limits = {"joint_speed_limit": ROBOT.max_velocity.tolist()}
    bench.controller.settings = bench.controller.settings.changed(limits)
    return bench


@pytest.mark.parametrize(("limits", "stopped"), [(None, False), ([2.09] * 6, True)])
def test_joint_speed_limits_are_urs_own(bench, limits, stopped):
    bench.controller.settings = bench.controller.settings.changed({"joint_speed_limit": limits})
    bench.load("speedj([2.29, 0, 0, 0, 0, 0], 20.0, 0.3)", "stopj(20.0)")
    bench.tick(0.3)

    assert (bench.state.safety_mode == SafetyMode.PROTECTIVE_STOP) == stopped


def test_servoj_jump_causes_protective_stop(strict):
    bench = strict
    bench.load("while True:", f"servoj({AHEAD}, t=0.002, lookahead_time=0.03, gain=2000)", "end")
    bench.tick(1.0)

    assert bench.state.safety_mode == SafetyMode.PROTECTIVE_STOP
    assert bench.state.runtime_state == RuntimeState.PAUSED
    assert bench.at_rest
    assert np.abs(bench.speeds()[:, 0]).max() <= ROBOT.max_velocity[0]
    assert ROBOT.joint_names[0] in bench.texts("safety")
    assert bench.state.safety_status_bits & 1 << 2


@pytest.mark.parametrize("gain", variants([2000.0, 100.0], 2000.0))
def test_late_commands_of_limited_turn_are_followed(strict, gain):
    bench = strict
    t = np.arange(0.0, 1.2, 0.01)
    angles = np.minimum(6.0 * np.minimum(t, 0.6), 2.5) - np.minimum(
        6.0 * np.maximum(t - 0.6, 0.0), 2.5
    )
    turns = [pin.SE3(pin.rpy.rpyToMatrix(0.0, 0.0, angle), np.zeros(3)) for angle in angles]
    start = pin.XYZQUATToSE3(tool_path(ROBOT, ROBOT.home[None])[0])
    trajectory = Trajectory(t, np.array([pin.SE3ToXYZQUAT(start * turn) for turn in turns]))
    scenario = Scenario(trajectory, on_limits="limit")
    plan, _ = make_plan(ROBOT, scenario, ForwardDynamics(ROBOT), Options(servo_gain=gain))
    bench.load("while True:", "sync()", "end")
    for k in range(plan.samples):
        # Every 46 ms, a command comes a cycle late.
        bench.controller.servo(plan.setpoints[k - (k % 23 == 22)], DT, lookahead=0.03, gain=gain)
        bench.tick()

    assert bench.state.safety_mode == SafetyMode.NORMAL, bench.texts("safety")

    fastest = (np.abs(bench.speeds()) / ROBOT.max_velocity).max()

    assert 0.6 < fastest <= 1.0
    assert bench.joint(5)[-1] == pytest.approx(plan.setpoints[-1, 5], abs=0.1)


def test_servoj_ends_at_its_last_setpoint(bench):
    bench.load(
        "i = 0",
        "while i < 250:",
        "i = i + 1",
        (
            "servoj([q[0] + 0.001 * i, q[1], q[2], q[3], q[4], q[5]], t=0.002, "
            "lookahead_time=0.03, gain=2000)"
        ),
        "end",
        "i = 0",
        "while i < 250:",
        "i = i + 1",
        (
            "servoj([q[0] + 0.25, q[1], q[2], q[3], q[4], q[5]], t=0.002, lookahead_time=0.03, "
            "gain=2000)"
        ),
        "end",
    )
    bench.finish()

    assert bench.state.safety_mode == SafetyMode.NORMAL
    assert bench.state.target_q[0] == pytest.approx(ROBOT.home[0] + 0.25, abs=1e-6)


@pytest.mark.parametrize(("settings", "delay"), [({}, 5.0), ({"unlock_delay": 0.5}, 0.5)])
def test_unlock_is_refused_for_five_seconds(bench, settings, delay):
    bench.controller.set(settings)
    bench.load(f"movej({AHEAD})")
    bench.tick(0.5)
    bench.controller.protective_stop("a test")
    bench.tick(0.2)

    assert bench.at_rest

    bench.tick(delay - 0.3)

    assert f" until {delay:g}s " in bench.controller.unlock_protective_stop()
    assert not bench.controller.play_program()

    bench.tick(0.2)

    assert bench.controller.unlock_protective_stop() == "Protective stop releasing"
    assert bench.state.safety_mode == SafetyMode.NORMAL
    assert bench.state.runtime_state == RuntimeState.PAUSED
    assert bench.controller.play_program()

    bench.finish()

    assert bench.state.target_q[0] == ROBOT.home[0] + 1.0


def test_emergency_stop_cuts_the_power(bench):
    bench.load(f"movej({AHEAD})")
    bench.tick(0.5)
    bench.controller.emergency_stop()
    bench.tick(0.1)

    assert bench.at_rest
    assert (bench.state.safety_mode, bench.state.robot_mode) == (
        SafetyMode.ROBOT_EMERGENCY_STOP,
        RobotMode.POWER_OFF,
    )
    assert bench.state.runtime_state == RuntimeState.PAUSED

    bench.controller.brake_release()
    bench.tick(2.0)

    assert bench.state.robot_mode == RobotMode.POWER_OFF

    bench.controller.release_safety()
    bench.controller.brake_release()
    bench.tick(1.0)
    resting = bench.state.target_q

    assert (bench.state.safety_mode, bench.state.robot_mode) == (
        SafetyMode.NORMAL,
        RobotMode.RUNNING,
    )

    bench.tick(1.0)

    assert (bench.state.target_q == resting).all()
    assert bench.controller.play_program()

    bench.finish()

    assert bench.state.target_q[0] == ROBOT.home[0] + 1.0


def test_safeguard_stop_pauses_until_resumed(bench):
    bench.load(f"movej({AHEAD})")
    bench.tick(0.5)
    bench.controller.safeguard_stop()
    bench.tick(0.5)

    assert bench.at_rest and bench.state.robot_mode == RobotMode.RUNNING
    assert (bench.state.safety_mode, bench.state.runtime_state) == (
        SafetyMode.SAFEGUARD_STOP,
        RuntimeState.PAUSED,
    )
    assert not bench.controller.play_program()

    bench.controller.release_safety()
    bench.tick(1.0)

    assert bench.at_rest
    assert bench.controller.play_program()

    bench.finish()

    assert bench.state.target_q[0] == ROBOT.home[0] + 1.0


def test_protective_stop_ends_the_program_if_set(bench):
    bench.controller.settings = bench.controller.settings.changed({"on_protective_stop": "stop"})
    bench.load(f"movej({AHEAD})")
    bench.tick(0.5)
    bench.controller.protective_stop()
    bench.tick(0.2)

    assert bench.at_rest and bench.state.runtime_state == RuntimeState.STOPPED
    assert not bench.controller.play_program()


def test_a_safeguard_does_not_end_an_emergency(bench):
    bench.controller.emergency_stop()
    bench.controller.safeguard_stop()

    assert bench.state.safety_mode == SafetyMode.ROBOT_EMERGENCY_STOP


def test_joint_stops_at_end_of_range(bench):
    end = ROBOT.position_max[5]
    bench.load("speedj([0, 0, 0, 0, 0, 2.5], 5.0, 60)")
    bench.tick(4.0)

    assert bench.state.safety_mode == SafetyMode.PROTECTIVE_STOP
    assert bench.at_rest
    assert bench.joint(5).max() <= end + 1e-9
    assert bench.joint(5)[-1] == pytest.approx(end, abs=0.05)
    assert ROBOT.joint_names[5] in bench.texts("safety")


def test_registers_outlive_the_program(bench):
    bench.state.input_int[0] = 11
    bench.load("write_output_integer_register(0, 2)", "write_output_float_register(3, 0.5)")
    bench.finish()

    assert (bench.state.input_int[0], bench.state.output_int[0], bench.state.output_double[3]) == (
        11,
        2,
        0.5,
    )


def test_a_program_is_not_started_in_a_protective_stop(bench):
    bench.controller.protective_stop()
    bench.controller.load_script("def f():\nsync()\nend")

    assert bench.state.runtime_state == RuntimeState.STOPPED
    assert "not started" in bench.texts("error")


# Watchdog and record


@pytest.mark.parametrize(
    ("action", "state"), [("stop", RuntimeState.STOPPED), ("pause", RuntimeState.PAUSED)]
)
def test_the_watchdog_acts_only_when_inputs_stop(bench, action, state):
    bench.load(
        f'rtde_set_watchdog("input_int_register_0", 10, "{action}")',
        "speedj([0.2, 0, 0, 0, 0, 0], 1.0, 60)",
    )
    for _ in range(8):
        bench.tick(0.08)
        bench.controller.record_input(("input_int_register_0",), (1,))

    assert bench.state.runtime_state == RuntimeState.PLAYING and not bench.at_rest

    bench.tick(0.3)

    assert bench.state.runtime_state == state
    assert "input_int_register_0" in bench.texts("error")

    bench.tick(0.3)

    assert bench.at_rest


def test_the_record_holds_setpoints_joints_and_inputs_by_tick(bench):
    bench.load(
        "i = 0",
        "while i < 10:",
        "i = i + 1",
        f"servoj({AHEAD}, t=0.002, lookahead_time=0.2, gain=100)",
        "end",
    )
    bench.tick()
    bench.controller.record_input(("input_int_register_0",), (7,))
    tick = bench.state.tick
    ticks = bench.controller.record.ticks(after=tick - 1)

    assert ticks["tick"].tolist() == [tick]
    assert ticks["setpoint"][0] == pytest.approx(ROBOT.home + np.array([1.0, 0, 0, 0, 0, 0]))
    assert (ticks["target_q"][0] == bench.state.target_q).all() and (
        ticks["actual_q"][0] == bench.state.actual_q
    ).all()
    assert bench.controller.record.inputs[-1] == (tick, ("input_int_register_0",), (7,))

    bench.finish()

    assert np.isnan(bench.controller.record.ticks()["setpoint"][-1]).all()


def test_a_program_reads_the_joints_of_earlier_ticks(bench):
    ask = "write_output_float_register({}, get_actual_joint_positions_history({})[0])"
    bench.load(
        "speedj([0.5, 0, 0, 0, 0, 0], 2.0, 0.2)", ask.format(0, 0), ask.format(1, 5), "sleep(9)"
    )
    bench.tick(0.5)
    newest, earlier = bench.state.output_double[:2]
    seen = bench.controller.record.ticks()["actual_q"][:, 0]
    [now] = np.flatnonzero(seen == newest)

    assert seen[now - 5] == earlier != newest


def test_the_record_is_bounded(monkeypatch):
    # Its own length takes half a second to fill.
    length = 1000
    monkeypatch.setattr(record_module, "RECORD_LENGTH", length)
    record = TickRecord(6)
    q = np.zeros(6)
    for i in range(length + 10):
        record.add(i, None, target_q=q, actual_q=q)
        record.inputs.append((i, (), ()))

    assert len(record.ticks()["tick"]) == len(record.inputs) == length
    assert record.ticks()["tick"][0] == record.inputs[0][0] == 10


def test_movec_refuses_points_on_a_line(bench):
    bench.load("p0 = get_target_tcp_pose()", "movec(p0, p0)")
    bench.finish()

    assert "movec" in bench.texts("error")


def test_the_servo_refuses_what_the_model_refuses(bench):
    with pytest.raises(InvalidParameter, match="gain"):
        bench.controller.servo(ROBOT.home, 0.002, lookahead=0.1, gain=5.0)


# Calibration


def far() -> dict[str, list[float]]:
    """A UR10e whose joint 3 is tilted by 0.08 degrees against joint 2.

    Their common normal is 440 m away.
    """
    away = 440.0
    tilt = 0.6127 / away
    return {
        "theta": [0.0, np.pi / 2, -np.pi / 2, 0.0, 0.0, 0.0],
        "a": [0.0, 0.0, -0.57155, 0.0, 0.0, 0.0],
        "d": [0.1807, away * np.cos(tilt), -away, 0.17415, 0.11985, 0.11655],
        "alpha": [np.pi / 2, tilt, 0.0, np.pi / 2, -np.pi / 2, 0.0],
    }


def near() -> dict[str, list[float]]:
    """A UR10e with errors as they come from a factory."""
    return {
        "theta": [1e-4, -2e-3, 1.5e-3, -4e-4, 2e-4, -1e-4],
        "a": [2e-4, -0.6121, -0.5722, 1e-4, -1e-4, 0.0],
        "d": [0.1809, 0.002, -0.0015, 0.1738, 0.1200, 0.1164],
        "alpha": [np.pi / 2 + 5e-4, 3e-4, -2e-4, np.pi / 2 - 4e-4, -np.pi / 2 + 1e-4, 0.0],
    }


def product(dh: dict[str, list[float]], q: np.ndarray) -> np.ndarray:
    """Return the flange (4, 4) in the pendant's base.

    It is the product of Rz(q + theta) Tz(d) Tx(a) Rx(alpha), joint by joint.
    """
    frame = np.eye(4)
    for angle, a, d, alpha in zip(
        q + np.array(dh["theta"]), dh["a"], dh["d"], dh["alpha"], strict=True
    ):
        c = np.cos(angle)
        s = np.sin(angle)
        ca = np.cos(alpha)
        sa = np.sin(alpha)
        frame = frame @ np.array(
            [[c, -s * ca, s * sa, a * c], [s, c * ca, -c * sa, a * s], [0, sa, ca, d], [0, 0, 0, 1]]
        )
    return frame


@pytest.mark.parametrize("dh", [near(), far()], ids=["near", "far"])
def test_a_calibrated_arm_has_its_own_kinematics(dh):
    bench = Bench(dh=DhTable(**{name: tuple(row) for name, row in dh.items()})).running()
    q = np.array([0.3, -1.2, 1.4, -1.7, -1.5, 0.2])
    writes = "".join(f"write_output_float_register({i}, p[{i}])\n" for i in range(6))
    bench.load(
        f"p = get_forward_kin({q.tolist()})\n{writes}movej({q.tolist()}, a=5, v=2)",
        "sleep(0.1)\nmovel(pose_add(get_target_tcp_pose(), p[0, 0.02, -0.05, 0, 0, 0]), v=0.5)",
    )
    bench.finish()
    expected = product(dh, q)

    assert bench.state.output_double[:3] == pytest.approx(expected[:3, 3], abs=1e-9)

    path = np.array(bench.q)
    start = int(np.flatnonzero((path == q).all(axis=1))[-1])
    places = np.array([product(dh, joints)[:3, 3] for joints in path[start:]]) - expected[:3, 3]
    along = np.array([0.0, 0.02, -0.05]) / np.linalg.norm([0.02, -0.05])

    assert places[-1] == pytest.approx([0.0, 0.02, -0.05], abs=1e-7)
    assert np.linalg.norm(places - np.outer(places @ along, along), axis=1).max() < 1e-6
