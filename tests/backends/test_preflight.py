"""Conditions for sending a control script to a controller; a refusal states what was reported."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from simbridge.backends import preflight
from simbridge.robot import load_robot
from simbridge.robot.cell import Cell
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
    UnsupportedController,
)
from tests.backends.controller_facts import (
    FACTS,
    POLYSCOPE_X,
    SERIAL_NUMBER,
    TCP,
    UR5E,
    UR10,
    UR10E,
    URSIM,
    facts_with_arm,
    facts_with_pendant,
    facts_with_state,
)

OTHER_SERIAL_NUMBER = "20269999999"
OTHER_TCP = np.array([0.0, 0.0, 0.1, 0.0, 0.0, 0.0])

# ---- the intended controller


def test_the_intended_arm_passes():
    preflight.check_identity(FACTS, UR10E, None, ursim=False)
    preflight.check_identity(URSIM, UR10E, None, ursim=True)
    preflight.check_identity(FACTS, UR10E, Cell(serial_number=SERIAL_NUMBER), ursim=False)


def test_a_real_arm_is_no_ursim():
    with pytest.raises(NotURSim, match="--backend real") as refused:
        preflight.check_identity(FACTS, UR10E, None, ursim=True)

    assert refused.value.checksum == (1, 2, 3, 4, 5, 6)


@pytest.mark.parametrize("robot", [UR10, UR5E])
def test_another_model_is_refused_with_the_robot_to_choose(robot):
    with pytest.raises(ModelMismatch, match="--robot ur10e") as refused:
        preflight.check_identity(FACTS, robot, None, ursim=False)

    assert refused.value.what == "model"
    assert refused.value.actual == "UR10e or UR12e"


@pytest.mark.parametrize(
    ("robot_type", "name"), [(1, "ur5e"), (1, "ur7e"), (2, "ur12e"), (6, "ur8long"), (9, "ur15")]
)
def test_a_robot_type_is_accepted_for_its_arms(robot_type, name):
    facts = facts_with_arm(robot_type=robot_type)

    preflight.check_identity(facts, load_robot(name), None, ursim=False)


@pytest.mark.parametrize(
    ("robot_type", "remedy"),
    [(5, "--robot ur18"), (6, "--robot ur8long"), (12, "robots/README.md")],
)
def test_another_arm_is_named_with_its_remedy(robot_type, remedy):
    with pytest.raises(ModelMismatch, match=remedy):
        preflight.check_identity(facts_with_arm(robot_type=robot_type), UR10E, None, ursim=False)


def test_a_file_without_a_model_is_refused_with_the_field():
    unnamed = replace(UR10E, title="Desk arm", ur_model="", source=Path("desk.toml"))

    with pytest.raises(ModelMismatch) as refused:
        preflight.check_identity(FACTS, unnamed, None, ursim=False)

    assert refused.value.expected == "Desk arm"
    assert 'desk.toml describes it, add model = "UR10e" or model = "UR12e"' in str(refused.value)


def test_without_a_model_the_series_must_match():
    unknown_model = facts_with_arm(robot_type=None)
    preflight.check_identity(unknown_model, UR10E, None, ursim=False)

    with pytest.raises(ModelMismatch) as refused:
        preflight.check_identity(unknown_model, UR10, None, ursim=False)

    assert refused.value.what == "series"
    assert refused.value.actual == "e-Series"
    assert refused.value.expected == "CB3"


@pytest.mark.parametrize("serial_number", [OTHER_SERIAL_NUMBER, None])
def test_another_serial_number_than_the_cells_is_refused(serial_number):
    facts = facts_with_pendant(serial_number=serial_number)

    with pytest.raises(ModelMismatch, match=SERIAL_NUMBER) as refused:
        preflight.check_identity(facts, UR10E, Cell(serial_number=SERIAL_NUMBER), ursim=False)

    assert refused.value.what == "serial number"


def test_polyscope_x_may_not_report_its_serial_number():
    facts = replace(POLYSCOPE_X, pendant=replace(POLYSCOPE_X.pendant, serial_number=None))
    cell = Cell(serial_number=SERIAL_NUMBER)

    preflight.check_identity(facts, UR10E, cell, ursim=False)

    with pytest.raises(ModelMismatch, match=SERIAL_NUMBER):
        other = Cell(serial_number=OTHER_SERIAL_NUMBER)
        preflight.check_identity(POLYSCOPE_X, UR10E, other, ursim=False)


@pytest.mark.parametrize("checksum", [(0xFFFFFFFF,) * 6, (1, 2, 3, 4, 5, 6)])
def test_polyscope_x_is_never_ursim(checksum):
    facts = replace(POLYSCOPE_X, arm=replace(POLYSCOPE_X.arm, checksum=checksum))

    assert not facts.ursim
    with pytest.raises(UnsupportedController, match="--backend real") as refused:
        preflight.check_identity(facts, UR10E, None, ursim=True)

    assert refused.value.version == "10.14.0"


def test_local_control_of_polyscope_x_has_its_own_remedy():
    local = replace(POLYSCOPE_X, pendant=replace(POLYSCOPE_X.pendant, remote_control=False))

    with pytest.raises(RemoteControlDisabled, match="Mode Selection"):
        preflight.check_remote_control(local)


def test_ursim_may_be_used_with_the_cell_of_any_arm():
    cell = Cell(serial_number=OTHER_SERIAL_NUMBER)

    preflight.check_identity(URSIM, UR10E, cell, ursim=True)


@pytest.mark.parametrize(
    ("facts", "what"),
    [
        (facts_with_arm(checksum=(9, 2, 3, 4, 5, 6)), "calibration"),
        (facts_with_arm(robot_type=1), "robot type"),
        (facts_with_state(version=(5, 13, 0)), "software"),
        (facts_with_arm(tcp_offset=OTHER_TCP), "TCP"),
        (facts_with_state(payload=1.0), "payload"),
        (facts_with_state(payload=None, payload_cog=None), "payload"),
        (facts_with_state(payload_cog=(0.0, 0.02, 0.05)), "centre of gravity"),
        (facts_with_state(payload_cog=None), "centre of gravity"),
    ],
)
def test_a_controller_that_changed_after_planning_is_refused(facts, what):
    with pytest.raises(ArmChanged, match="since it was first read") as refused:
        preflight.check_unchanged(facts, FACTS)

    assert refused.value.what == what
    assert refused.value.cause == "arm_changed"


def test_a_payload_is_compared_although_it_was_unknown():
    unknown = facts_with_state(payload=None, payload_cog=None)
    preflight.check_unchanged(unknown, unknown)
    # No mass has no centre of gravity.
    empty = facts_with_state(payload=0.0)
    preflight.check_unchanged(empty, facts_with_state(payload=0.0, payload_cog=(0.0, 0.0, 0.1)))
    # Within the rounding of the pendant.
    rounded = facts_with_state(payload=1.503, payload_cog=(0.0, 0.0005, 0.05))
    preflight.check_unchanged(rounded, FACTS)

    with pytest.raises(ArmChanged, match=r"payload .* is 1\.5 kg, but unknown was expected"):
        preflight.check_unchanged(FACTS, unknown)


def test_a_tool_that_the_run_sets_may_have_changed():
    facts = replace(
        facts_with_state(payload=1.0, payload_cog=(0.0, 0.0, 0.1)),
        arm=replace(FACTS.arm, tcp_offset=OTHER_TCP),
    )

    preflight.check_unchanged(facts, FACTS, sets_tcp=True, sets_payload=True)


@pytest.mark.parametrize(("degrees", "refused"), [(179.0, False), (180.6, True), (-355.0, True)])
def test_a_joint_half_a_turn_away_is_refused(degrees, refused):
    goal = UR10E.home
    begin = goal + np.radians(degrees) * np.eye(6)[5]

    if refused:
        with pytest.raises(FullTurn, match=re.escape(f"{degrees:+.1f} degrees")):
            preflight.check_turns("arm", UR10E, begin, goal)
    else:
        preflight.check_turns("arm", UR10E, begin, goal)


def test_the_period_is_the_controllers():
    preflight.check_period(FACTS, None)
    preflight.check_period(FACTS, 0.002)
    cb3 = facts_with_state(version=(3, 15, 8))
    preflight.check_period(cb3, None)
    preflight.check_period(cb3, 0.008)

    with pytest.raises(ModelMismatch, match="--period"):
        preflight.check_period(FACTS, 0.008)


# ---- its state


def test_only_local_control_is_refused():
    preflight.check_remote_control(FACTS)
    without_the_setting = facts_with_pendant(remote_control=None)
    preflight.check_remote_control(without_the_setting)

    with pytest.raises(RemoteControlDisabled, match="Remote Control"):
        preflight.check_remote_control(facts_with_pendant(remote_control=False))


@pytest.mark.parametrize(
    ("runtime_state", "word"), [(2, "running"), (3, "pausing"), (4, "paused"), (5, "resuming")]
)
def test_a_running_program_is_refused_and_named(runtime_state, word):
    with pytest.raises(ProgramRunning, match=rf"lift\.urp\) is {word}"):
        preflight.check_idle(facts_with_state(runtime_state=runtime_state))


@pytest.mark.parametrize("runtime_state", [0, 1])
def test_no_program_is_fine(runtime_state):
    preflight.check_idle(facts_with_state(runtime_state=runtime_state))


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
        preflight.check_ready(facts_with_state(**changes), follow_scaling=True)

    assert type(refused.value) is kind


@pytest.mark.parametrize("safety_mode", [1, 2, 21])
def test_a_ready_arm_passes_with_newer_status_bits(safety_mode):
    ready = facts_with_state(safety_mode=safety_mode, safety_status_bits=2049)

    preflight.check_not_stopped(ready)
    preflight.check_ready(ready, follow_scaling=False)


@pytest.mark.parametrize("safety_mode", [1, 2])
def test_where_scaling_is_followed_any_speed_passes(safety_mode):
    stopped = facts_with_state(safety_mode=safety_mode, slider=0.0)
    at_full_speed = facts_with_state(safety_mode=safety_mode)

    preflight.check_ready(stopped, follow_scaling=True)
    preflight.check_ready(at_full_speed, follow_scaling=False)


def test_where_scaling_is_not_followed_a_lower_slider_is_refused():
    with pytest.raises(SpeedScaled, match=r"30 %.* so nothing was moved") as refused:
        preflight.check_ready(facts_with_state(slider=0.3), follow_scaling=False)

    assert refused.value.cause == "refused"


# ---- its tool


def test_a_tool_is_compared_only_if_requested_and_reported():
    preflight.check_tool(FACTS, None, None)
    preflight.check_tool(FACTS, TCP, 1.5)
    preflight.check_tool(facts_with_state(payload=None), None, 9.0)


@pytest.mark.parametrize("axis", range(6))
def test_a_tcp_may_differ_by_rounding_and_no_more(axis):
    rounding = 0.5e-4 if axis < 3 else 0.4e-3
    near = list(TCP)
    near[axis] += rounding
    far = list(TCP)
    far[axis] += 10.0 * rounding

    preflight.check_tool(FACTS, near, None)
    with pytest.raises(ModelMismatch) as refused:
        preflight.check_tool(FACTS, far, None)

    assert refused.value.what == "TCP"


def test_another_payload_is_refused():
    with pytest.raises(ModelMismatch, match=r"1\.5 kg") as refused:
        preflight.check_tool(FACTS, None, 2.0)

    assert refused.value.what == "payload"


def test_another_centre_of_gravity_is_refused_if_there_is_a_mass():
    facts = facts_with_state(payload=1.5, payload_cog=(0.0, 0.0, 0.06))
    empty = facts_with_state(payload=0.0, payload_cog=(0.0, 0.0, 0.0))

    preflight.check_tool(facts, None, 1.5, (0.0, 0.0005, 0.06))
    preflight.check_tool(empty, None, 0.0, (0.0, 0.0, 0.06))
    with pytest.raises(ModelMismatch, match=r"0\.0 0\.0 60\.0 mm") as refused:
        preflight.check_tool(facts, None, 1.5, (0.0, 0.02, 0.06))

    assert refused.value.what == "centre of gravity"
