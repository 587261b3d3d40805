"""URScript's functions, called through programs; poses and kinematics against pinocchio."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any
from xmlrpc.server import SimpleXMLRPCServer

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from simbridge.emulator.accepted_functions import RESULTS
from simbridge.emulator.arm import frame_of, pose_of
from simbridge.emulator.emulated_controller import EmulatedController
from simbridge.emulator.joint_torque import COMPENSATED_TIME, FRICTION_TIME
from simbridge.emulator.program import ScriptProgram, builtin_functions
from simbridge.emulator.remote_procedures import MAX_ANSWER_BYTES
from simbridge.emulator.sockets import SocketFunctions
from simbridge.emulator.state import profile
from simbridge.emulator.urscript.library import LIBRARY
from simbridge.emulator.urscript.values import Pose
from simbridge.errors import InvalidParameter
from simbridge.robot import load_robot
from simbridge.ur.tables import RobotMode, RuntimeState

ROBOT = load_robot("ur10e")
TURN = pin.SE3(np.diag([-1.0, -1.0, 1.0]), np.zeros(3))
numbers = st.floats(-1.5, 1.5)
poses = st.lists(numbers, min_size=6, max_size=6).map(Pose)


@pytest.fixture(scope="module")
def controller() -> EmulatedController:
    controller = EmulatedController(ROBOT, profile("5.12"), ScriptProgram)
    controller.state.robot_mode = RobotMode.RUNNING
    return controller


@pytest.fixture(scope="module")
def call(controller):
    table = {**LIBRARY, **builtin_functions(controller)}

    def call(name: str, *arguments: Any, thread: Any = None) -> Any:
        result = table[name](thread or Thread(), *arguments)
        return finished(result) if isinstance(result, Generator) else result

    return call


def finished(generator: Generator[Any, None, Any]) -> Any:
    """Run a function that may have to wait to its end, and return its value."""
    while True:
        try:
            next(generator)
        except StopIteration as end:
            return end.value


class Thread:
    """The part of a calling thread that a built-in function uses."""

    def charge(self, cost: int) -> None:
        """Without a budget."""

    def work(self, cost: int) -> Iterator[None]:
        return iter(())


def flange(q: np.ndarray) -> pin.SE3:
    """tool0 in the pendant's base, by pinocchio's own forward kinematics of the arm's model."""
    data = ROBOT.model.createData()
    pin.forwardKinematics(ROBOT.model, data, np.asarray(q, dtype=float))
    return TURN * data.oMi[-1] * ROBOT.tool0


def same(pose: object, frame: pin.SE3, tolerance: float = 1e-9) -> bool:
    return bool(np.abs(frame_of(np.array(pose)).homogeneous - frame.homogeneous).max() < tolerance)


@given(q=st.lists(st.floats(-3.0, 3.0), min_size=6, max_size=6))
@settings(max_examples=50)
def test_forward_kinematics_are_pinocchios(call, q):
    assert same(call("get_forward_kin", q), flange(q))


def test_forward_kinematics_accept_another_tcp(controller, call):
    q = [0.1, -1.2, 1.3, -1.4, -1.5, 0.6]
    tcp = Pose([0.01, 0.02, 0.1, 0.3, -0.2, 0.1])

    assert same(call("get_forward_kin", q, tcp), flange(q) * frame_of(np.array(tcp)))

    call("set_tcp", tcp)

    assert same(call("get_forward_kin", q), flange(q) * frame_of(np.array(tcp)))
    assert same(call("get_forward_kin", q, Pose([0.0] * 6)), flange(q))
    assert call("get_tcp_offset") == tcp

    call("set_tcp", Pose([0.0] * 6))


def test_inverse_kinematics_find_the_nearby_joints(call):
    q = np.array([0.1, -1.2, 1.3, -1.4, -1.5, 0.6])
    solution = call("get_inverse_kin", Pose(pose_of(flange(q)).tolist()), (q + 0.05).tolist())

    assert solution == pytest.approx(q, abs=1e-7)
    assert (
        call("get_inverse_kin_has_solution", Pose(pose_of(flange(q)).tolist()), q.tolist()) is True
    )


def test_a_pose_out_of_reach_has_no_solution(call):
    assert call("get_inverse_kin_has_solution", Pose([5.0, 0.0, 0.0, 0.0, 0.0, 0.0])) is False


def test_the_jacobian_is_pinocchios_in_the_pendants_base(call):
    q = np.array([0.1, -1.2, 1.3, -1.4, -1.5, 0.6])
    jacobian = np.array(call("get_jacobian", q.tolist()))
    step = 1e-6
    for i in range(6):
        change = np.zeros(6)
        change[i] = step
        before = flange(q - change)
        after = flange(q + change)
        assert jacobian[:3, i] == pytest.approx(
            (after.translation - before.translation) / (2 * step), abs=1e-6
        )
        turned = pin.log3(after.rotation @ before.rotation.T)
        assert jacobian[3:, i] == pytest.approx(turned / (2 * step), abs=1e-6)


def test_the_jacobian_accepts_another_tcp(call):
    q = [0.1, -1.2, 1.3, -1.4, -1.5, 0.6]
    tcp = Pose([0.01, 0.02, 0.1, 0.3, -0.2, 0.1])
    bare = np.array(call("get_jacobian", q))
    jacobian = np.array(call("get_jacobian", q, tcp))
    arm = flange(q).rotation @ np.array(tcp[:3])

    assert jacobian[3:] == pytest.approx(bare[3:], abs=1e-9)
    assert jacobian[:3] == pytest.approx(bare[:3] + np.cross(bare[3:], arm, axis=0), abs=1e-9)


@given(a=poses, b=poses)
def test_pose_trans_and_pose_inv_are_products_of_frames(call, a, b):
    left = frame_of(np.array(a))
    right = frame_of(np.array(b))

    assert same(call("pose_trans", a, b), left * right)
    assert same(call("pose_inv", a), left.inverse())


@given(a=poses, b=poses)
def test_pose_sub_undoes_pose_add(call, a, b):
    assert same(
        call("pose_sub", call("pose_add", b, a), a),
        pin.SE3(frame_of(np.array(b)).rotation, frame_of(np.array(b)).translation),
    )


@given(a=poses, b=poses, alpha=st.floats(0.0, 1.0))
def test_an_interpolated_pose_divides_translation_and_rotation_evenly(call, a, b, alpha):
    start = frame_of(np.array(a))
    end = frame_of(np.array(b))

    here = frame_of(np.array(call("interpolate_pose", a, b, alpha)))

    assert here.translation == pytest.approx(
        start.translation + alpha * (end.translation - start.translation)
    )

    turn = np.linalg.norm(pin.log3(end.rotation @ start.rotation.T))

    assert np.linalg.norm(pin.log3(here.rotation @ start.rotation.T)) == pytest.approx(
        alpha * turn, abs=1e-6
    )


def test_distances_are_of_the_positions(call):
    assert call("point_dist", Pose([0.0] * 6), Pose([3.0, 4.0, 0, 1, 0, 0])) == pytest.approx(5.0)
    assert call("pose_dist", Pose([0.0] * 6), Pose([3.0, 4.0, 0, 1, 0, 0])) == pytest.approx(5.0)


def test_the_mass_matrix_is_pinocchios_and_symmetric(call):
    q = np.array([0.1, -1.2, 1.3, -1.4, -1.5, 0.6])
    data = ROBOT.model.createData()
    upper = np.triu(pin.crba(ROBOT.model, data, q))

    mass_matrix = np.array(call("get_mass_matrix", q.tolist()))

    assert mass_matrix == pytest.approx(mass_matrix.T)
    assert np.triu(mass_matrix) == pytest.approx(upper)


def test_an_output_integer_register_is_32_bits_wide(controller, call):
    call("write_output_integer_register", 3, 2**31)

    assert call("read_output_integer_register", 3) == -(2**31)


@pytest.mark.parametrize("index", [-1, 48, 1.5, "0"])
def test_a_missing_register_is_refused(call, index):
    with pytest.raises(InvalidParameter, match="register"):
        call("read_input_integer_register", index)


def test_payload_and_outputs_can_be_read_back(controller, call):
    call("set_payload", 2.5, [0.0, 0.01, 0.05])

    assert call("get_target_payload") == 2.5
    assert call("get_target_payload_cog") == [0.0, 0.01, 0.05]

    call("set_digital_out", 2, True)

    assert controller.state.digital_outputs == 1 << 2

    call("set_digital_out", 2, False)

    assert controller.state.digital_outputs == 0


@given(rpy=st.lists(st.floats(-1.4, 1.4), min_size=3, max_size=3))
def test_roll_pitch_yaw_turns_about_fixed_axes_and_comes_back(call, rpy):
    rotation = Rotation.from_euler("xyz", rpy)
    vector = call("rpy2rotvec", tuple(rpy))

    assert np.allclose(vector, rotation.as_rotvec(), atol=1e-9)
    assert np.allclose(call("rotvec2rpy", tuple(vector)), rpy, atol=1e-9)


def test_matrices_are_inverted_and_transposed(call):
    matrix = ((2.0, 1.0), (1.0, 3.0))

    assert np.allclose(np.array(matrix) @ call("inv", matrix, thread=Thread()), np.eye(2))
    assert call("transpose", ((1, 2, 3), (4, 5, 6))) == [[1, 4], [2, 5], [3, 6]]
    with pytest.raises(InvalidParameter, match="has an inverse"):
        call("inv", ((1.0, 2.0), (2.0, 4.0)), thread=Thread())

    pose = Pose([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])

    assert call("inv", pose) == call("pose_inv", pose)


def test_a_normalized_list_has_length_one_and_zeros_have_none(call):
    assert np.allclose(call("normalize", (3.0, 0.0, 4.0)), [0.6, 0.0, 0.8])
    with pytest.raises(InvalidParameter, match="not all zero"):
        call("normalize", (0.0, 0.0))


def test_digital_outputs_are_named_by_their_groups(controller, call):
    call("set_standard_digital_out", 1, True)
    call("set_configurable_digital_out", 2, True)
    call("set_tool_digital_out", 1, True)

    assert controller.state.digital_outputs == 1 << 1 | 1 << 10 | 1 << 17
    assert call("get_configurable_digital_out", 2)
    assert not call("get_tool_digital_out", 0)

    controller.state.digital_inputs = 1 << 9

    assert call("get_configurable_digital_in", 1)
    assert call("get_digital_in", 9)


def test_an_analog_output_has_the_level_of_its_domain(controller, call):
    call("set_analog_outputdomain", 0, 0)
    call("set_standard_analog_out", 0, 0.5)

    assert call("get_standard_analog_out", 0) == pytest.approx(0.012)  # A

    call("set_analog_outputdomain", 0, 1)
    call("set_standard_analog_out", 0, 0.5)

    assert call("get_standard_analog_out", 0) == 5.0  # V
    assert controller.state.analog_output_types == 1


def test_flags_and_the_tool_voltage_are_kept(controller, call):
    call("set_flag", 7, True)

    assert call("get_flag", 7)

    call("set_tool_voltage", 24)

    assert call("get_rtde_value", "tool_output_voltage") == 24
    with pytest.raises(InvalidParameter, match="0, 12 or 24"):
        call("set_tool_voltage", 5)


def test_the_jacobians_time_derivative_times_a_time_is_its_change(call):
    q = np.array([0.1, -1.2, 1.3, -0.5, 0.7, 0.2])
    qd = np.array([0.3, -0.2, 0.5, 0.1, -0.4, 0.6])
    change = np.array(call("get_jacobian", tuple(q + 1e-3 * qd))) - call(
        "get_jacobian", tuple(q - 1e-3 * qd)
    )

    assert np.allclose(
        call("get_jacobian_time_derivative", tuple(q), tuple(qd)), change / 2e-3, atol=1e-6
    )


def run(source: str, ticks: int) -> EmulatedController:
    controller = EmulatedController(ROBOT, profile("5.25"), ScriptProgram)
    controller.state.robot_mode = RobotMode.RUNNING
    controller.load_script(source)
    controller.program.compilation.join()
    for _ in range(ticks):
        controller.tick()
    return controller


def test_torque_accelerates_as_the_model():
    torque = [0.0, 0.0, 0.0, 0.0, 0.0, 5.0]
    source = (
        f"def f():\n i = 0\n while i < 50:\n  direct_torque({torque})\n  i = i + 1\n end\n"
        " sleep(1)\nend\n"
    )
    moving = run(source, 40)
    ended = run(source, 200)
    mass = pin.crba(ROBOT.model, ROBOT.model.createData(), ROBOT.home)
    mass = (
        np.triu(mass) + np.triu(mass, 1).T + np.diag([6.03, 6.05, 1.94, 0.61, 0.61, 0.61])
    )  # the rotors
    expected = np.linalg.solve(mass, torque)
    # Friction takes its part, though it is compensated.
    reached = COMPENSATED_TIME * (1.0 - np.exp(-0.08 / COMPENSATED_TIME))

    assert moving.state.target_qd[5] == pytest.approx(reached * expected[5], rel=0.02)
    assert not ended.state.target_qd.any()


def test_friction_slows_a_joint_without_torque_and_its_compensation_less():
    push = (
        "def f():\n i = 0\n while i < 25:\n  direct_torque([0, 0, 0, 0, 0, 9], %s)\n  i = i + 1\n"
        " end\n"
    )
    coast = f" while i < 425:\n  direct_torque({SIX}, %s)\n  i = i + 1\n end\nend\n"
    for flag, seconds in (("True", COMPENSATED_TIME), ("False", FRICTION_TIME)):
        source = (push + coast) % (flag, flag)
        pushed, later = (run(source, ticks).state.target_qd[5] for ticks in (30, 280))
        assert later == pytest.approx(pushed * np.exp(-0.5 / seconds), rel=0.05)


def test_optimovej_goes_where_movej_goes():
    goal = ROBOT.home + 0.1
    arrived = run(f"optimovej({goal.tolist()}, a=1, v=1)\nsleep(1)\n", 400)

    assert np.allclose(arrived.state.target_q, goal)


def test_a_remote_procedure_gets_and_returns_urscripts_values():
    asked = []
    with SimpleXMLRPCServer(("127.0.0.118", 0), logRequests=False, allow_none=True) as server:
        server.register_function(
            lambda *values: asked.append(values) or {**values[0], "x": 2.5}, "shift"
        )
        server.timeout = 10
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        url = f"http://127.0.0.118:{server.server_address[1]}"
        controller = run(
            f'h = rpc_factory("xmlrpc", "{url}")\n'
            "x = h.shift(p[1, 2, 3, 0, 0, 0], [1, True], struct(a=1))\n"
            "write_output_float_register(0, x[0] + x[1])\nsleep(100)\n",
            1,
        )
        thread.join()
        deadline = time.monotonic() + 10.0
        while not controller.state.output_double[0] and time.monotonic() < deadline:
            controller.tick()

    assert controller.state.output_double[0] == 4.5
    assert asked == [
        ({"x": 1.0, "y": 2.0, "z": 3.0, "rx": 0.0, "ry": 0.0, "rz": 0.0}, [1, True], {"a": 1})
    ]


def test_a_remote_procedure_that_answers_too_much_ends_the_program():
    with SimpleXMLRPCServer(("127.0.0.118", 0), logRequests=False) as server:
        server.register_function(lambda: "x" * (MAX_ANSWER_BYTES + 1), "f")
        server.timeout = 10
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        controller, messages = fault_of(
            f'h = rpc_factory("xmlrpc", "127.0.0.118:{server.server_address[1]}")\nh.f()\n'
        )
        thread.join()
        deadline = time.monotonic() + 10.0
        while not messages and time.monotonic() < deadline:
            controller.tick()

    assert f"the answer has more than {MAX_ANSWER_BYTES} bytes" in messages[0][1]


def test_a_remote_procedure_that_cannot_be_reached_ends_the_program():
    controller, messages = fault_of('h = rpc_factory("xmlrpc", "127.0.0.118:9")\nh.f()\n')
    deadline = time.monotonic() + 10.0
    while not messages and time.monotonic() < deadline:
        controller.tick()

    assert "The remote procedure f of http://127.0.0.118:9 failed" in messages[0][1]


def test_ethernet_ip_data_has_the_labels_that_were_defined():
    source = (
        'h = eip_writer_factory("101", 8)\nh.define_bit(0, 1, "on")\n'
        'h.define_int16_array(2, 3, "axes")\n'
        'h.write(struct(on=True))\nr = h.read(["on", "axes"])\n'
        'write_output_integer_register(0, length(r.axes))\nh.read("none")\n'
    )
    controller, messages = fault_of(source)

    assert controller.state.output_int[0] == 3
    assert "has no label 'none'" in messages[0][1]


def fault_of(source: str) -> tuple[EmulatedController, list[tuple[str, str, int]]]:
    controller = EmulatedController(ROBOT, profile("5.12"), ScriptProgram)
    controller.state.robot_mode = RobotMode.RUNNING
    messages: list[tuple[str, str, int]] = []
    controller.on_event = lambda event: (
        event.kind == "error" and messages.append((event.kind, event.text, event.line))
    )
    controller.load_script(source)
    controller.program.compilation.join()
    for _ in range(50):
        controller.tick()
    return controller, messages


@pytest.mark.parametrize(
    ("call_text", "named"),
    [
        ("reticulate_splines(1)", "reticulate_splines"),
        ("movej([1, 2, 3])", "joint positions"),
        ("movej(1)", "joint positions"),
        ("servoj([0, 0, 0, 0, 0, 0], t=0.002, lookahead_time=0.01, gain=300)", "lookahead"),
        ("servoj([0, 0, 0, 0, 0, 0], t=0.002, lookahead_time=0.1, gain=5)", "gain"),
        ("set_payload(-1)", "payload"),
        ("read_input_float_register(99)", "register"),
        ("movel(p[9, 9, 9, 0, 0, 0], v=0)", "v"),
    ],
)
def test_invalid_call_is_reported_with_line(call_text, named):
    controller, messages = fault_of(f"def f():\n  sync()\n  {call_text}\n  sleep(100)\nend\n")

    assert controller.state.runtime_state == RuntimeState.STOPPED

    [(kind, text, line)] = messages

    assert kind == "error"
    assert named in text
    assert line == 3
    assert (controller.state.target_q == ROBOT.home).all()


def test_the_manual_lists_every_function_as_what_it_is(controller):
    manual = (Path(__file__).parents[2] / "docs" / "emulator_reference.md").read_text()
    rows = (
        manual.split("## The URScript it runs")[1]
        .split("| for | functions |")[1]
        .split("\n\n")[0]
        .splitlines()
    )
    listed = {"executed": [], "accepted without effect": [], "unknown": []}
    for row in rows[2:]:
        kind = row.strip("| ").split(" | ")[0].split(":")[0]
        listed[kind] += re.findall(r"`(\w+)`", row)
    known = {**LIBRARY, **builtin_functions(controller), **SocketFunctions(0.002).table()}

    without_effect = list(RESULTS)

    assert sorted(listed["executed"]) == sorted(known.keys() - set(without_effect))
    assert sorted(listed["accepted without effect"]) == sorted(without_effect)
    assert not known.keys() & set(listed["unknown"])

    # Kept apart from the table and from the code, so that a function that is lost from both is
    # missed here.
    collected = Path(__file__).with_name("script_manual.txt").read_text().splitlines()[1:]

    assert set(" ".join(collected).split()) <= {name for names in listed.values() for name in names}


@pytest.mark.parametrize(
    "call_text",
    [
        (
            "get_inverse_kin_has_solution(pose=pose, qnear=q, maxPositionError=0.001, "
            "maxOrientationError=0.01, tcp=p0)"
        ),
        (
            "get_inverse_kin(x=pose, qnear=q, maxPositionError=0.001, maxOrientationError=0.01, "
            "tcp=p0)"
        ),
        "wrench_trans(T_from_to=p0, w_from=q)",
        "is_within_safety_limits(pose=pose, qnear=q)",
        'to_num(str="3")',
        'str_sub(src="abc", index=1, len=1)',
        'str_empty(str="")',
    ],
)
def test_arguments_have_the_manuals_names(call_text):
    start = (
        "p0 = p[0, 0, 0, 0, 0, 0]\nq = get_target_joint_positions()\npose = get_target_tcp_pose()\n"
    )
    controller, messages = fault_of(f"{start}x = {call_text}\nset_flag(0, True)\n")

    assert messages == []
    assert controller.state.flags[0]


def test_a_function_without_effect_says_so_once_in_the_log(caplog):
    fault_of(
        "def f():\n  set_tool_output_mode(0)\n  set_tool_output_mode(1)\n"
        "  set_tcp(p[0, 0, 0, 0, 0, 0])\nend\n"
    )

    assert [record.getMessage() for record in caplog.records] == [
        "URScript: set_tool_output_mode is accepted without effect: the emulator does not model it."
    ]


SIX = "[0, 0, 0, 0, 0, 0]"


@pytest.mark.parametrize(
    ("call_text", "said"),
    [
        (
            "ft_rtde_input_enable(True, 0.5, [0, 0, 0], [0, 0, 0])",
            "the mass and place of an external force sensor",
        ),
        ("set_target_payload(1.0, transition_time=0.5)", "set_target_payload's transition_time"),
        (f"force_mode(p{SIX}, {SIX}, {SIX}, 1, {SIX})", "force_mode's type 1 (it is taken for 2)"),
        ("servoc(get_target_tcp_pose(), r=0.1)", "servoc's r"),
        (
            f"direct_torque({SIX}, coulomb_scale={SIX})",
            "direct_torque's compensation of Coulomb friction",
        ),
        ('popup("a", title="b")', "a popup's title and kind"),
        ("x = get_tool_current()", "get_tool_current"),
        ("x = get_freedrive_status()", "get_freedrive_status"),
    ],
)
def test_an_argument_without_effect_says_so_once_in_the_log(caplog, call_text, said):
    _, messages = fault_of(f"def f():\n  {call_text}\n  {call_text}\nend\n")

    assert messages == []

    text = f"URScript: {said} is accepted without effect: the emulator does not model it."

    assert [record.getMessage() for record in caplog.records] == [text]


@pytest.mark.parametrize(("polyscope", "robot"), [("3.15", "ur10"), ("5.12", "ur10e")])
def test_servoj_lasts_one_cycle_by_default(monkeypatch, polyscope, robot):
    controller = EmulatedController(load_robot(robot), profile(polyscope), ScriptProgram)
    durations = []
    monkeypatch.setattr(
        controller, "servo", lambda setpoint, duration, lookahead, gain: durations.append(duration)
    )
    finished(builtin_functions(controller)["servoj"](Thread(), [0.0] * 6))

    assert durations == [controller.period]
