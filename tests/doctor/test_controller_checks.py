"""Checks of a controller: which facts pass, and how the others are reported."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from simbridge.backends import link_choice
from simbridge.doctor.controller_checks import (
    check_kind,
    check_model,
    check_mounting,
    check_payload,
    check_port,
    check_program,
    check_realtime_port,
    check_registers,
    check_remote_control,
    check_robot_mode,
    check_safety_mode,
    check_serial_number,
    check_slider,
    check_software,
    check_tcp,
)
from simbridge.robot.cell import Cell
from tests.doctor.surveys import (
    DASHBOARD,
    READ,
    SILENT,
    TCP,
    UR10,
    UR10E,
    assert_verdict,
    with_arm,
    with_pendant,
    with_state,
)


def test_a_silent_port_has_a_reason_and_remedy():
    assert_verdict(check_port(READ, 30004, UR10E, ursim=True), "pass", "RTDE")

    advice = ("it is silent", "`simbridge ursim start ur10e`")
    assert_verdict(check_port(SILENT, 30004, UR10E, ursim=True), "fail", *advice)
    assert_verdict(check_port(SILENT, 30004, UR10E, ursim=False), "fail", "cable", "ping 127.0.0.1")


@pytest.mark.parametrize(
    ("link", "is_installed", "status", "words"),
    [
        ("ur_rtde", True, "fail", "it is silent"),
        (None, True, "warn", "a run uses --link rtde"),
        (None, False, "skip", "only --link ur_rtde needs it"),
        ("rtde", True, "skip", "only --link ur_rtde needs it"),
    ],
)
def test_only_ur_rtde_needs_the_realtime_port(link, is_installed, status, words, monkeypatch):
    monkeypatch.setattr(link_choice.util, "find_spec", lambda _name: is_installed or None)

    assert_verdict(check_realtime_port(SILENT, UR10E, link, ursim=False), status, words)
    assert_verdict(check_realtime_port(READ, UR10E, link, ursim=False), "pass", "answers")


def test_the_software_determines_the_rate():
    assert_verdict(check_software(READ), "pass", "5.12.6", "e-Series", "500 Hz")

    three = replace(
        with_state(version=(3, 15, 8)), pendant=replace(DASHBOARD, version="3.15.8.106339")
    )
    assert_verdict(check_software(three), "pass", "CB3", "125 Hz")
    assert_verdict(check_software(with_state(version=(10, 6, 0))), "fail", "10.6.0", "from 10.7 on")
    assert_verdict(check_software(with_pendant(version="5.1.0")), "warn", "5.1.0")
    assert_verdict(check_software(with_pendant(version="5.12.60.1")), "warn", "5.12.60.1")


def test_a_real_arm_behind_ursim_fails():
    real = with_arm(checksum=(1, 2, 3, 4, 5, 6))

    assert_verdict(check_kind(READ, ursim=True), "pass", "URSim")
    assert_verdict(check_kind(real, ursim=True), "fail", "--backend real")
    assert_verdict(check_kind(real, ursim=False), "pass", "real arm")
    assert_verdict(check_kind(READ, ursim=False), "warn", "--backend ursim")


def test_the_emulator_has_its_own_name():
    calibrated = with_arm(checksum=(1, 2, 3, 4, 5, 6))

    assert check_kind(READ, ursim=True).seen.startswith("emulator (")
    assert check_kind(calibrated, ursim=False).seen.startswith("emulator (")


@pytest.mark.parametrize("serial_number", ["2019350123", None])
def test_other_controllers_are_no_emulators(serial_number):
    ursim = with_pendant(serial_number=serial_number)
    real = replace(with_arm(checksum=(1, 2, 3, 4, 5, 6)), pendant=ursim.pendant)

    assert check_kind(ursim, ursim=True).seen == "URSim (kinematics checksum all ones)"
    assert check_kind(real, ursim=False).seen == "real arm (it has its own calibration)"


def test_another_model_is_named():
    # A UR12e has no robot type of its own.
    ur12e = replace(UR10E, name="ur12e", ur_model="UR12e")
    assert_verdict(check_model(READ, ur12e), "pass", "UR12e, as chosen with --robot", "UR10e")
    ur7e = replace(UR10E, name="ur7e", ur_model="UR7e")
    assert_verdict(check_model(READ, ur7e), "fail", "not UR7e")
    assert_verdict(check_model(READ, UR10), "fail", "UR10e", "--robot ur10e")
    assert_verdict(
        check_model(with_arm(robot_type=6), UR10E),
        "fail",
        "UR8 Long",
        "--robot ur8long",
    )
    assert_verdict(check_model(with_arm(robot_type=13), UR10E), "fail", "UR17g", "robots/README.md")
    assert_verdict(check_model(with_arm(robot_type=11), UR10E), "warn", "robot type 11")
    assert_verdict(check_model(with_arm(robot_type=None), UR10E), "warn", "UR10e")
    assert_verdict(check_model(READ, replace(UR10E, name="mine")), "pass", "UR10e")
    assert_verdict(check_model(READ, replace(UR10E, name="mine", series="CB3")), "fail", "CB3")


def test_the_operator_compares_the_mounting():
    assert_verdict(check_mounting(Cell(mounting="ceiling")), "warn", "ceiling", "pendant")
    assert_verdict(check_mounting(Cell(mounting=(0.0, 1.5, 0.0))), "warn", "[0.0, 1.5, 0.0] rad")
    assert_verdict(check_mounting(Cell()), "warn", "floor mounting is assumed")


def test_the_serial_number_must_be_the_cells():
    assert_verdict(check_serial_number(READ, None), "pass", "20261234567")
    assert_verdict(check_serial_number(READ, "20261234567"), "pass", "cell file")
    assert_verdict(check_serial_number(READ, "1"), "fail", "20261234567", "says 1")
    assert_verdict(check_serial_number(with_pendant(serial_number=None), None), "pass", "3.12")
    assert_verdict(check_serial_number(with_pendant(serial_number=None), "1"), "warn", "plate")


def test_remote_control_must_be_on():
    assert_verdict(check_remote_control(READ), "pass")
    assert_verdict(
        check_remote_control(with_pendant(remote_control=False)),
        "fail",
        "Settings > System > Remote Control",
    )
    assert_verdict(check_remote_control(with_pendant(remote_control=None)), "warn", "5.6")

    old = replace(with_state(version=(3, 15, 8)), pendant=replace(DASHBOARD, remote_control=None))
    assert_verdict(check_remote_control(old), "skip", "CB3")


@pytest.mark.parametrize("mode", [3, 4, 5])
def test_only_ursim_may_be_without_power(mode):
    assert_verdict(check_robot_mode(with_state(robot_mode=mode), ursim=True), "pass", f"({mode})")
    assert_verdict(
        check_robot_mode(with_state(robot_mode=mode), ursim=False),
        "fail",
        "release the brakes",
    )


@pytest.mark.parametrize("mode", [-1, 0, 1, 2, 6, 8, 99])
def test_an_arm_that_cannot_be_powered_fails_everywhere(mode):
    assert_verdict(check_robot_mode(with_state(robot_mode=mode), ursim=True), "fail", f"({mode})")


@pytest.mark.parametrize(
    ("mode", "status", "word"),
    [
        (1, "pass", "normal"),
        (2, "warn", "reduced"),
        (3, "fail", "five seconds"),
        (5, "fail", "safeguard"),
        (6, "fail", "release the button"),
        (7, "fail", "release the button"),
        (8, "fail", "violation"),
        (9, "fail", "fault"),
        (99, "fail", "unknown"),
    ],
)
def test_every_stop_has_its_own_fix(mode, status, word):
    assert_verdict(check_safety_mode(with_state(safety_mode=mode)), status, word, f"({mode})")


@pytest.mark.parametrize("running", [2, 3, 4, 5])
def test_a_loaded_program_at_work_fails(running):
    assert_verdict(check_program(READ), "pass", "stopped")

    busy = replace(
        with_state(runtime_state=running),
        pendant=replace(DASHBOARD, program="/programs/pick.urp"),
    )
    assert_verdict(check_program(busy), "fail", "pick.urp", "never stops")


def test_registers_of_another_client_are_named():
    assert_verdict(check_registers((), "lower"), "pass", "free")
    occupied = check_registers(("a", "b", "c"), "lower")
    assert_verdict(occupied, "fail", "a, b and 1 more", "ROS driver", "--registers upper")
    assert_verdict(check_registers(("a",), "upper"), "fail", "--registers lower")


def test_the_slider_must_not_be_at_zero():
    assert_verdict(check_slider(READ), "pass", "100 %")
    assert_verdict(check_slider(with_state(slider=0.3)), "warn", "30 %")
    assert_verdict(check_slider(with_state(slider=0.0)), "fail", "0 %")


def test_tcp_and_payload_are_the_cells():
    assert_verdict(check_tcp(READ, None), "pass", "150.0")
    assert_verdict(check_tcp(READ, TCP), "pass", "cell file")
    assert_verdict(check_tcp(READ, (0.0, 0.01, 0.16, *TCP[3:])), "fail", "150.0", "160.0")
    assert_verdict(check_tcp(READ, (*TCP[:5], 1.5 - 2.0 * np.pi)), "pass")
    assert_verdict(check_payload(READ, None), "pass", "1.5 kg", "50.0 mm")
    assert_verdict(check_payload(READ, 1.5), "pass", "cell file")
    assert_verdict(check_payload(READ, 2.0), "fail", "1.5 kg", "2 kg")
    assert_verdict(check_payload(READ, 1.5, (0.0, 0.0, 0.0505)), "pass", "cell file")
    assert_verdict(
        check_payload(READ, 1.5, (-0.2, 0.0, 0.05)),
        "fail",
        "0 0 50.0 mm; the cell file",
        "−200 0 50.0 mm",
    )
    assert_verdict(check_payload(with_state(payload=None, payload_cog=None), 2.0), "warn", "3.11")
