"""Numbers that are not finite, or do not stay so, never get into the arm's joints."""

from __future__ import annotations

import numpy as np
import pytest

from simbridge.emulator.arm import Unreachable, frame_of
from simbridge.errors import InvalidParameter
from simbridge.ur.tables import SafetyMode
from tests.emulator.bench import ROBOT, Bench

HUGE = "p[1e308, 1e308, 0, 1, 2, 3]"
ZEROS = "[0, 0, 0, 0, 0, 0]"


@pytest.fixture
def bench() -> Bench:
    return Bench().running()


@pytest.mark.parametrize(
    "lines",
    [
        (f"set_tcp({HUGE})", "movel(pose_add(get_target_tcp_pose(), p[0, 0, 0.1, 0, 0, 0]))"),
        (f"movel({HUGE})",),
        (f"force_mode({HUGE}, [0, 0, 1, 0, 0, 0], {ZEROS}, 2, {ZEROS})", "sleep(1)"),
        (
            (
                f"force_mode(p{ZEROS}, [0, 0, 1, 0, 0, 0], [0, 0, 1e308, 0, 0, 0], 2, "
                "[0, 0, 1e308, 0, 0, 0])"
            ),
            "sleep(1)",
        ),
        ("movej([1e400, 0, 0, 0, 0, 0])",),
        (f"set_tcp(pose_trans({HUGE}, {HUGE}))",),
    ],
)
def test_huge_numbers_end_the_program_and_the_arm_stays(bench, lines):
    bench.load(*lines)
    bench.tick(1.0)

    assert "finite numbers" in bench.texts("error")
    assert np.isfinite(bench.state.target_tcp_pose).all()
    assert (bench.state.target_q == ROBOT.home).all()


@pytest.mark.parametrize("part", [slice(0, 3), slice(3, 6)])
def test_undefined_target_is_out_of_reach(bench, part):
    arm = bench.controller.arm
    pose = bench.state.target_tcp_pose.copy()
    pose[part] = np.nan

    with pytest.raises(Unreachable):
        arm.joints(frame_of(pose), ROBOT.home)
    with pytest.raises(Unreachable):
        list(arm.any_joints(frame_of(pose), ROBOT.home))


def test_a_numberless_motion_stops_protectively(bench):
    bench.load("speedj([0.1, 0, 0, 0, 0, 0], 1.0, 5)")
    bench.tick(0.5)
    bench.controller.drive.motion._commanded = np.full(6, np.nan)
    bench.tick(0.1)

    assert bench.state.safety_mode == SafetyMode.PROTECTIVE_STOP
    assert "next target is not a number" in bench.texts("safety")
    assert np.isfinite(bench.state.target_q).all()
    assert np.isfinite(bench.state.actual_tcp_pose).all()


def test_a_distant_tcp_cannot_be_set(bench):
    with pytest.raises(InvalidParameter):
        bench.controller.set({"tcp_offset": [1e308, 0, 0, 0, 0, 0]})


@pytest.mark.parametrize(
    "call",
    [
        'movej("abc")',
        'set_gravity("x")',
        'movej(["a", 1, 2, 3, 4, 5])',
        "set_gravity([[1], 2, 3])",
        "sleep(1e999)",
        'sleep("x")',
        'servoj(q, t="x")',
        'speedj(q, 1, t="x")',
        'rtde_set_watchdog("input_int_register_0", "x")',
        'force_mode_set_gain_scaling("x")',
        'write_output_integer_register(0, "x")',
    ],
)
def test_a_wrong_argument_is_named_by_urscript(bench, call):
    bench.load(call)
    bench.finish(1.0)

    text = bench.texts("error")

    assert "must be" in text
    assert "Error" not in text
    assert "could not convert" not in text


@pytest.mark.parametrize(("feature", "moves"), [('"tool"', 0), ('"base"', 2)])
def test_freedrive_takes_the_tool_and_the_base_as_feature(bench, feature, moves):
    bench.load(
        "movej([0, -1.57, 1.57, -2.0, -1.57, 0.5], a=5, v=3)",
        f"freedrive_mode(freeAxes=[1, 0, 0, 0, 0, 0], feature={feature})",
        "sleep(10)",
    )
    bench.tick(1.5)
    before = bench.controller.arm.tool(bench.state.target_q)
    bench.controller.drive.contact.push([20.0, 20.0, 20.0, 0, 0, 0], 0.5)
    bench.tick(0.5)

    assert not bench.texts("error")

    moved = bench.controller.arm.tool(bench.state.target_q).translation - before.translation
    free = before.rotation[:, 0] if feature == '"tool"' else np.array([1.0, 0, 0])

    assert np.linalg.norm(moved) > 0.01
    assert moved == pytest.approx(free * (moved @ free), abs=1e-3)
