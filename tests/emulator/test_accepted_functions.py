"""Functions and arguments without effect are named once in the log."""

from __future__ import annotations

import pytest

from tests.emulator.calls import fault_of


@pytest.mark.slow
def test_an_idle_function_is_logged_once(caplog):
    fault_of(
        "def f():\n  set_tool_output_mode(0)\n  set_tool_output_mode(1)\n"
        "  set_tcp(p[0, 0, 0, 0, 0, 0])\nend\n"
    )

    assert [record.getMessage() for record in caplog.records] == [
        "URScript: set_tool_output_mode is accepted without effect: the emulator does not model it."
    ]


SIX = "[0, 0, 0, 0, 0, 0]"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call_text", "said"),
    [
        (
            "ft_rtde_input_enable(True, 0.5, [0, 0, 0], [0, 0, 0])",
            "the mass and place of an external force sensor",
        ),
        (
            "set_target_payload(1.0, [0, 0, 0], transition_time=0.5)",
            "set_target_payload's transition_time",
        ),
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
def test_an_idle_argument_is_logged_once(caplog, call_text, said):
    _, messages = fault_of(f"def f():\n  {call_text}\n  {call_text}\nend\n")

    assert messages == []

    text = f"URScript: {said} is accepted without effect: the emulator does not model it."

    assert [record.getMessage() for record in caplog.records] == [text]
