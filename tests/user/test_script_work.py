"""A program's functions share the tick's budget by what they cost.

None of them holds up the controller.
"""

from __future__ import annotations

import pytest

from simbridge.emulator.arm import EmulatedArm
from simbridge.emulator.record import TickRecord
from simbridge.ur.tables import RuntimeState
from tests.emulator.bench import Bench

FAR = "p[5, 0, 0, 0, 0, 0]"


@pytest.fixture
def bench() -> Bench:
    return Bench().running()


def most_calls(bench: Bench, monkeypatch: pytest.MonkeyPatch, owner: object, name: str) -> int:
    """Return the largest number of calls of a method in a tick."""
    calls = 0
    original = getattr(owner, name)
    most = 0

    def counting(*arguments):
        nonlocal calls
        calls += 1
        return original(*arguments)

    monkeypatch.setattr(owner, name, counting)
    for _ in range(30):
        calls = 0
        bench.tick()
        most = max(most, calls)
    return most


@pytest.mark.parametrize(
    "call", [f"get_inverse_kin_has_solution({FAR})", f"is_within_safety_limits({FAR})"]
)
def test_a_search_for_joints_continues_in_the_next_tick(bench, monkeypatch, call):
    bench.load(f"while not {call}:", "  i = 1", "end")

    assert 1 <= most_calls(bench, monkeypatch, EmulatedArm, "_search") <= 3
    assert bench.state.runtime_state == RuntimeState.PLAYING


def test_a_secondary_program_may_search_joints_too(bench):
    bench.controller.load_script(
        f"sec s():\n  set_flag(0, get_inverse_kin_has_solution({FAR}))\n  set_flag(1, True)\nend\n"
    )
    bench.start_secondary()
    bench.tick(0.5)

    assert bench.state.flags[:2] == [False, True]


def test_unreachable_movej_holds_no_tick(bench, monkeypatch):
    bench.load(f"movej({FAR})")

    assert most_calls(bench, monkeypatch, EmulatedArm, "_search") <= 3

    bench.finish(1.0)

    assert "no joint positions put the tool there" in bench.texts("error")


@pytest.mark.parametrize(
    ("call", "most"),
    [
        ("get_jacobian()", 21),
        ("get_forward_kin(q)", 51),
        ("get_actual_joint_positions_history(9)", 501),
    ],
)
def test_kinematics_are_charged(bench, monkeypatch, call, most):
    bench.load("while True:", f"  x = {call}", "end")
    owner, name = (
        (EmulatedArm, "jacobian")
        if "jacobian" in call
        else (EmulatedArm, "pose")
        if "kin" in call
        else (TickRecord, "past_q")
    )

    assert 1 <= most_calls(bench, monkeypatch, owner, name) <= most


def test_joints_of_unrecorded_tick_are_a_fault(bench):
    bench.load("x = get_actual_joint_positions_history(190000)")
    bench.finish()

    assert "got 190000" in bench.texts("error")
