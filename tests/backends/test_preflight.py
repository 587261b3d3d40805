"""Conditions for sending a control script to a controller; each refusal states what was found."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from simbridge.backends import preflight
from simbridge.robot import load_robot
from simbridge.robot.calibration import nominal_dh
from simbridge.robot.cell import Cell
from simbridge.ur.controller_facts import ControllerFacts, DashboardFacts, StateFacts
from simbridge.ur.errors import (
    ArmChanged,
    ArmNotReady,
    EmergencyStop,
    FullTurn,
    ModelMismatch,
    NotURSim,
    ProgramRunning,
    ProtectiveStop,
    RemoteControlDisabled,
    SafeguardStop,
    SafetyFault,
    SpeedScaled,
)
from simbridge.ur.primary import ArmDescription

UR10, UR10E = load_robot("ur10"), load_robot("ur10e")
UR5E = replace(UR10E, name="ur5e", title="UR5e")
TCP = (0.0, 0.01, 0.15, 0.0, 0.0, 1.5)
FACTS = ControllerFacts(
    "192.0.2.7",
    StateFacts((5, 12, 6), 10.0, 7, 1, 1, 1.0, np.zeros(6), 1.5, (0.0, 0.0, 0.05)),
    DashboardFacts("5.12.6.1102099", "20261234567", True, "lift.urp"),
    ArmDescription(
        kinematics=nominal_dh(UR10E),
        checksum=(1, 2, 3, 4, 5, 6),
        limits=None,
        robot_type=2,
        tcp_offset=np.array(TCP),
    ),
)
URSIM = replace(FACTS, arm=replace(FACTS.arm, checksum=(0xFFFFFFFF,) * 6))


def state(**changes):
    return replace(FACTS, state=replace(FACTS.state, **changes))


# ---- is it the intended one


def test_the_intended_arm_passes():
    preflight.check_identity(FACTS, UR10E, None, ursim=False)
    preflight.check_identity(URSIM, UR10E, None, ursim=True)
    preflight.check_identity(FACTS, UR10E, Cell(serial_number="20261234567"), ursim=False)


def test_a_real_arm_is_no_ursim():
    with pytest.raises(NotURSim, match="--backend real") as refused:
        preflight.check_identity(FACTS, UR10E, None, ursim=True)
    assert refused.value.checksum == (1, 2, 3, 4, 5, 6)


@pytest.mark.parametrize("robot", [UR10, UR5E])
def test_another_model_is_refused_with_the_robot_to_choose(robot):
    with pytest.raises(ModelMismatch, match="--robot ur10e") as refused:
        preflight.check_identity(FACTS, robot, None, ursim=False)
    assert (refused.value.what, refused.value.actual) == ("model", "UR10e")


def test_without_a_model_the_series_must_match():
    unknown = replace(FACTS, arm=replace(FACTS.arm, robot_type=None))
    preflight.check_identity(unknown, UR10E, None, ursim=False)
    with pytest.raises(ModelMismatch) as refused:
        preflight.check_identity(unknown, UR10, None, ursim=False)
    assert (refused.value.what, refused.value.actual, refused.value.expected) == (
        "series",
        "e-Series",
        "CB3",
    )


@pytest.mark.parametrize("serial_number", ["20269999999", None])
def test_another_serial_number_than_the_cells_is_refused(serial_number):
    other = replace(FACTS, dashboard=replace(FACTS.dashboard, serial_number=serial_number))
    with pytest.raises(ModelMismatch, match="20261234567") as refused:
        preflight.check_identity(other, UR10E, Cell(serial_number="20261234567"), ursim=False)
    assert refused.value.what == "serial number"


def test_ursim_may_be_used_with_the_cell_of_any_arm():
    preflight.check_identity(URSIM, UR10E, Cell(serial_number="20269999999"), ursim=True)


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"arm": {"checksum": (9, 2, 3, 4, 5, 6)}}, "calibration"),
        ({"arm": {"robot_type": 1}}, "model"),
        ({"state": {"version": (5, 13, 0)}}, "software"),
        ({"arm": {"tcp_offset": np.array([0.0, 0.0, 0.1, 0.0, 0.0, 0.0])}}, "TCP"),
        ({"state": {"payload": 1.0}}, "payload"),
        ({"state": {"payload": None, "payload_cog": None}}, "payload"),
        ({"state": {"payload_cog": (0.0, 0.02, 0.05)}}, "centre of gravity"),
        ({"state": {"payload_cog": None}}, "centre of gravity"),
    ],
)
def test_a_controller_that_has_changed_since_the_plan_was_made_is_refused(changed, what):
    now = replace(
        FACTS, **{part: replace(getattr(FACTS, part), **values) for part, values in changed.items()}
    )
    with pytest.raises(ArmChanged, match="since it was first read") as raised:
        preflight.check_unchanged(now, FACTS)
    assert (raised.value.what, raised.value.cause) == (what, "arm_changed")


def test_a_payload_that_was_unknown_is_compared_and_one_of_no_mass_has_no_centre_of_gravity():
    with pytest.raises(ArmChanged, match=r"payload .* is 1\.5 kg, and unknown was expected"):
        preflight.check_unchanged(FACTS, state(payload=None, payload_cog=None))
    unknown, empty = state(payload=None, payload_cog=None), state(payload=0.0)
    preflight.check_unchanged(unknown, unknown)
    preflight.check_unchanged(empty, state(payload=0.0, payload_cog=(0.0, 0.0, 0.1)))
    # Within the rounding of the pendant.
    preflight.check_unchanged(state(payload=1.503, payload_cog=(0.0, 0.0005, 0.05)), FACTS)


def test_a_tool_that_the_run_sets_may_have_changed():
    arm = replace(FACTS.arm, tcp_offset=np.array([0.0, 0.0, 0.1, 0.0, 0.0, 0.0]))
    now = replace(
        FACTS, arm=arm, state=replace(FACTS.state, payload=1.0, payload_cog=(0.0, 0.0, 0.1))
    )
    preflight.check_unchanged(now, FACTS, sets_tcp=True, sets_payload=True)


@pytest.mark.parametrize(("degrees", "refused"), [(179.0, False), (180.6, True), (-355.0, True)])
def test_a_joint_more_than_half_a_turn_away_is_refused_with_its_angle(degrees, refused):
    goal = UR10E.home
    begin = goal + np.radians(degrees) * np.eye(6)[5]
    if not refused:
        preflight.check_turns("arm", UR10E, begin, goal)
        return
    with pytest.raises(FullTurn, match=re.escape(f"{degrees:+.1f} degrees")):
        preflight.check_turns("arm", UR10E, begin, goal)


def test_the_period_is_the_controllers():
    preflight.check_period(FACTS, None)
    preflight.check_period(FACTS, 0.002)
    preflight.check_period(state(version=(3, 15, 8)), None)
    preflight.check_period(state(version=(3, 15, 8)), 0.008)

    with pytest.raises(ModelMismatch, match="--period"):
        preflight.check_period(FACTS, 0.008)


# ---- may it be used


def test_local_control_is_refused_and_a_controller_without_that_setting_is_not():
    preflight.check_remote_control(FACTS)
    preflight.check_remote_control(
        replace(FACTS, dashboard=replace(FACTS.dashboard, remote_control=None))
    )
    with pytest.raises(RemoteControlDisabled, match="Remote Control"):
        preflight.check_remote_control(
            replace(FACTS, dashboard=replace(FACTS.dashboard, remote_control=False))
        )


@pytest.mark.parametrize(
    ("runtime_state", "word"), [(2, "running"), (3, "pausing"), (4, "paused"), (5, "resuming")]
)
def test_a_running_program_is_refused_and_named(runtime_state, word):
    with pytest.raises(ProgramRunning, match=rf"lift\.urp\) is {word}"):
        preflight.check_idle(state(runtime_state=runtime_state))


@pytest.mark.parametrize("runtime_state", [0, 1])
def test_no_program_is_fine(runtime_state):
    preflight.check_idle(state(runtime_state=runtime_state))


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"robot_mode": 3}, ArmNotReady),
        ({"robot_mode": 5}, ArmNotReady),
        ({"safety_mode": 3}, ProtectiveStop),
        ({"safety_mode": 5}, SafeguardStop),
        ({"safety_mode": 6, "robot_mode": 3}, EmergencyStop),
        ({"safety_mode": 9}, SafetyFault),
    ],
)
def test_an_arm_that_cannot_move_is_refused_with_the_cause(changes, kind):
    with pytest.raises(kind) as refused:
        preflight.check_ready(state(**changes), follow_scaling=True)
    assert type(refused.value) is kind


@pytest.mark.parametrize("safety_mode", [1, 2])
def test_an_arm_that_can_move_passes_at_any_speed_if_scaling_is_followed(safety_mode):
    preflight.check_ready(state(safety_mode=safety_mode, slider=0.0), follow_scaling=True)
    preflight.check_ready(state(safety_mode=safety_mode), follow_scaling=False)


def test_a_slider_below_full_speed_is_refused_if_scaling_is_not_followed():
    with pytest.raises(SpeedScaled, match=r"30 %.* so nothing was moved") as refused:
        preflight.check_ready(state(slider=0.3), follow_scaling=False)
    assert refused.value.cause == "refused"


# ---- TCP and payload


def test_tcp_and_payload_are_compared_only_if_requested_and_reported():
    preflight.check_tool(FACTS, None, None)
    preflight.check_tool(FACTS, TCP, 1.5)
    preflight.check_tool(state(payload=None), None, 9.0)


@pytest.mark.parametrize("axis", range(6))
def test_a_tcp_may_differ_by_rounding_and_no_more(axis):
    allowed = 0.5e-4 if axis < 3 else 0.4e-3
    near, far = list(TCP), list(TCP)
    near[axis] += allowed
    far[axis] += 10.0 * allowed
    preflight.check_tool(FACTS, near, None)
    with pytest.raises(ModelMismatch) as refused:
        preflight.check_tool(FACTS, far, None)
    assert refused.value.what == "TCP"


def test_another_payload_is_refused():
    with pytest.raises(ModelMismatch, match=r"1\.5 kg") as refused:
        preflight.check_tool(FACTS, None, 2.0)
    assert refused.value.what == "payload"


def test_another_centre_of_gravity_is_refused_if_there_is_a_mass():
    facts = state(payload=1.5, payload_cog=(0.0, 0.0, 0.06))
    preflight.check_tool(facts, None, 1.5, (0.0, 0.0005, 0.06))
    preflight.check_tool(
        state(payload=0.0, payload_cog=(0.0, 0.0, 0.0)), None, 0.0, (0.0, 0.0, 0.06)
    )
    with pytest.raises(ModelMismatch, match=r"0\.0 0\.0 60\.0 mm") as refused:
        preflight.check_tool(facts, None, 1.5, (0.0, 0.02, 0.06))
    assert refused.value.what == "centre of gravity"
