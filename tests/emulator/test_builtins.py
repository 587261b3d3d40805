"""URScript's functions, called through programs; poses and kinematics against pinocchio."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simbridge.emulator.arm import frame_of, pose_of
from simbridge.emulator.builtin_without_effect import WITHOUT_EFFECT
from simbridge.emulator.controller import Controller
from simbridge.emulator.program import ScriptProgram, builtin_functions
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
def controller() -> Controller:
    found = Controller(ROBOT, profile("5.12"), ScriptProgram)
    found.state.robot_mode = RobotMode.RUNNING
    return found


@pytest.fixture(scope="module")
def call(controller):
    table = builtin_functions(controller)
    return lambda name, *arguments: table[name](None, *arguments)


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
    q, tcp = [0.1, -1.2, 1.3, -1.4, -1.5, 0.6], Pose([0.01, 0.02, 0.1, 0.3, -0.2, 0.1])
    assert same(call("get_forward_kin", q, tcp), flange(q) * frame_of(np.array(tcp)))
    call("set_tcp", tcp)
    assert same(call("get_forward_kin", q), flange(q) * frame_of(np.array(tcp)))
    assert same(call("get_forward_kin", q, Pose([0.0] * 6)), flange(q))
    assert call("get_tcp_offset") == tcp
    call("set_tcp", Pose([0.0] * 6))


def test_inverse_kinematics_find_the_nearby_joints(call):
    q = np.array([0.1, -1.2, 1.3, -1.4, -1.5, 0.6])
    found = call("get_inverse_kin", Pose(pose_of(flange(q)).tolist()), (q + 0.05).tolist())
    assert found == pytest.approx(q, abs=1e-7)
    assert call("get_inverse_kin_has_solution", Pose(pose_of(flange(q)).tolist()), q.tolist()) is True


def test_a_pose_out_of_reach_has_no_solution(call):
    assert call("get_inverse_kin_has_solution", Pose([5.0, 0.0, 0.0, 0.0, 0.0, 0.0])) is False


def test_the_jacobian_is_pinocchios_in_the_pendants_base(call):
    q = np.array([0.1, -1.2, 1.3, -1.4, -1.5, 0.6])
    found, step = np.array(call("get_jacobian", q.tolist())), 1e-6
    for i in range(6):
        change = np.zeros(6)
        change[i] = step
        before, after = flange(q - change), flange(q + change)
        assert found[:3, i] == pytest.approx((after.translation - before.translation) / (2 * step), abs=1e-6)
        turned = pin.log3(after.rotation @ before.rotation.T)
        assert found[3:, i] == pytest.approx(turned / (2 * step), abs=1e-6)


def test_the_jacobian_accepts_another_tcp(call):
    q, tcp = [0.1, -1.2, 1.3, -1.4, -1.5, 0.6], Pose([0.01, 0.02, 0.1, 0.3, -0.2, 0.1])
    bare, found = np.array(call("get_jacobian", q)), np.array(call("get_jacobian", q, tcp))
    arm = flange(q).rotation @ np.array(tcp[:3])
    assert found[3:] == pytest.approx(bare[3:], abs=1e-9)
    assert found[:3] == pytest.approx(bare[:3] + np.cross(bare[3:], arm, axis=0), abs=1e-9)


@given(a=poses, b=poses)
def test_pose_trans_and_pose_inv_are_products_of_frames(call, a, b):
    left, right = frame_of(np.array(a)), frame_of(np.array(b))
    assert same(call("pose_trans", a, b), left * right)
    assert same(call("pose_inv", a), left.inverse())


@given(a=poses, b=poses)
def test_pose_sub_undoes_pose_add(call, a, b):
    assert same(call("pose_sub", call("pose_add", b, a), a), pin.SE3(
        frame_of(np.array(b)).rotation, frame_of(np.array(b)).translation))  # fmt: skip


@given(a=poses, b=poses, alpha=st.floats(0.0, 1.0))
def test_an_interpolated_pose_divides_translation_and_rotation_evenly(call, a, b, alpha):
    start, end = frame_of(np.array(a)), frame_of(np.array(b))
    here = frame_of(np.array(call("interpolate_pose", a, b, alpha)))
    assert here.translation == pytest.approx(start.translation + alpha * (end.translation - start.translation))
    turn = np.linalg.norm(pin.log3(end.rotation @ start.rotation.T))
    assert np.linalg.norm(pin.log3(here.rotation @ start.rotation.T)) == pytest.approx(alpha * turn, abs=1e-6)


def test_distances_are_of_the_positions(call):
    assert call("point_dist", Pose([0.0] * 6), Pose([3.0, 4.0, 0, 1, 0, 0])) == pytest.approx(5.0)
    assert call("pose_dist", Pose([0.0] * 6), Pose([3.0, 4.0, 0, 1, 0, 0])) == pytest.approx(5.0)


def test_the_mass_matrix_is_pinocchios_and_symmetric(call):
    q = np.array([0.1, -1.2, 1.3, -1.4, -1.5, 0.6])
    data = ROBOT.model.createData()
    upper = np.triu(pin.crba(ROBOT.model, data, q))
    found = np.array(call("get_mass_matrix", q.tolist()))
    assert found == pytest.approx(found.T)
    assert np.triu(found) == pytest.approx(upper)


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


def fault_of(source: str) -> tuple[Controller, list[tuple[str, str, int]]]:
    controller = Controller(ROBOT, profile("5.12"), ScriptProgram)
    controller.state.robot_mode = RobotMode.RUNNING
    messages: list[tuple[str, str, int]] = []
    controller.on_event = lambda event: event.kind == "error" and messages.append((event.kind, event.text, event.line))
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
def test_an_invalid_call_ends_the_program_and_is_reported_with_its_line(call_text, named):
    controller, messages = fault_of(f"def f():\n  sync()\n  {call_text}\n  sleep(100)\nend\n")
    assert controller.state.runtime_state == RuntimeState.STOPPED
    [(kind, text, line)] = messages
    assert kind == "error"
    assert named in text
    assert line == 3
    assert (controller.state.target_q == ROBOT.home).all()


def test_the_manual_lists_every_function_as_what_it_is(controller):
    manual = (Path(__file__).parents[2] / "docs" / "emulator.md").read_text()
    rows = manual.split("## The URScript it runs")[1].split("| for | functions |")[1].split("\n\n")[0].splitlines()
    listed = {"executed": [], "accepted without effect": [], "unknown": []}
    for row in rows[2:]:
        kind = row.strip("| ").split(" | ")[0].split(":")[0]
        listed[kind] += re.findall(r"`(\w+)`", row)
    known = {**LIBRARY, **builtin_functions(controller), **SocketFunctions(0.002).table()}
    without_effect = [name for _, names in WITHOUT_EFFECT for name in names.split()]
    assert sorted(listed["executed"]) == sorted(known.keys() - set(without_effect))
    assert sorted(listed["accepted without effect"]) == sorted(without_effect)
    assert not known.keys() & set(listed["unknown"])


def test_a_function_without_effect_says_so_once_in_the_log(caplog):
    fault_of("def f():\n  set_tool_output_mode(0)\n  set_tool_output_mode(1)\n  set_tcp(p[0, 0, 0, 0, 0, 0])\nend\n")
    assert [record.getMessage() for record in caplog.records] == [
        "URScript: set_tool_output_mode is accepted without effect: the emulator does not model it."
    ]
