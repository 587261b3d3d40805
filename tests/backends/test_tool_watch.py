"""A controller's tool is watched during a motion."""

from __future__ import annotations

import pytest

from simbridge.backends.tool_watch import ToolWatch
from simbridge.ur.errors import ToolChanged

TCP = (0.01, 0.0, 0.15, 0.0, 0.0, 0.5)
BARE = {
    "tcp_offset": (0.0,) * 6,
    "payload": 0.0,
    "payload_cog": (0.0,) * 3,
    "payload_inertia": (0.0,) * 6,
}
GRIPPER = {
    "tcp_offset": TCP,
    "payload": 1.2,
    "payload_cog": (0.0, 0.0, 0.06),
    "payload_inertia": (0.01, 0.01, 0.01, 0.0, 0.0, 0.0),
}


def follow(watch, *states, may_change=False):
    """Let a watch follow these states."""
    for state in states:
        watch.follow(state, payload_may_change=may_change)


def test_what_the_control_script_sets_is_no_change():
    watch = ToolWatch("arm", tcp=TCP, payload=1.2, payload_cog=(0.0, 0.0, 0.06), before=BARE)

    follow(watch, BARE, BARE | {"tcp_offset": TCP}, GRIPPER)

    assert not watch.has_other_payload


def test_another_tcp_than_the_scripts_is_a_change():
    watch = ToolWatch("arm", tcp=TCP, before=BARE)
    follow(watch, BARE, BARE | {"tcp_offset": TCP})

    with pytest.raises(ToolChanged):
        follow(watch, BARE)


def test_another_payload_than_the_scripts_is_a_change():
    watch = ToolWatch("arm", payload=1.2, payload_cog=(0.0, 0.0, 0.06), before=BARE)
    payload = {name: value for name, value in GRIPPER.items() if name != "tcp_offset"}
    follow(watch, BARE, BARE | payload)

    with pytest.raises(ToolChanged):
        follow(watch, BARE | payload | {"payload": 2.0})


def test_an_inertia_of_the_scripts_payload_is_no_change():
    watch = ToolWatch("arm", payload=1.2, payload_cog=(0.0, 0.0, 0.06), before=GRIPPER)

    follow(watch, GRIPPER, GRIPPER | {"payload_inertia": (0.0,) * 6})

    assert not watch.has_other_payload


def test_an_early_change_of_the_tool_counts():
    watch = ToolWatch("arm", before=BARE)

    with pytest.raises(ToolChanged):
        follow(watch, BARE | {"tcp_offset": TCP})


def test_without_a_mass_centre_and_inertia_have_no_effect():
    watch = ToolWatch("arm", before=BARE)

    follow(watch, BARE | {"payload_cog": (0.1, 0.0, 0.0), "payload_inertia": (1.0,) * 6})

    assert not watch.has_other_payload


def test_an_older_version_is_compared_without_inertia():
    older = {name: value for name, value in GRIPPER.items() if name != "payload_inertia"}
    watch = ToolWatch("arm", before=older)
    follow(watch, older)

    with pytest.raises(ToolChanged) as raised:
        follow(watch, older | {"payload": 3.0})

    assert raised.value.actual == "3 kg"
    assert raised.value.expected == "1.2 kg"


def test_the_oldest_versions_report_the_tcp_alone():
    watch = ToolWatch("arm", before={"tcp_offset": TCP})
    follow(watch, {"tcp_offset": TCP})

    with pytest.raises(ToolChanged):
        follow(watch, {"tcp_offset": (0.0,) * 6})


def test_changes_are_kept_where_the_payload_may_change():
    watch = ToolWatch("arm", before=BARE)

    follow(watch, BARE, BARE | {"payload": 0.5}, BARE | {"payload": 0.5001}, BARE, may_change=True)

    assert [payload.mass for payload in watch.changes] == [0.5, 0.0]
