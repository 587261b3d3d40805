"""The built-in functions that a program may call, and what an invalid call does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from simbridge.emulator.accepted_functions import RESULTS
from simbridge.emulator.program import builtin_functions
from simbridge.emulator.sockets import SocketFunctions
from simbridge.emulator.urscript.library import LIBRARY
from simbridge.ur.tables import RuntimeState
from tests.emulator.bench import ROBOT
from tests.emulator.calls import fault_of


@pytest.mark.slow
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


@pytest.mark.slow
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
