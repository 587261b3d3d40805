"""The doctor's checks of a controller with PolyScope X, on facts that it could have."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simbridge.doctor.controller_checks import (
    check_kind,
    check_port,
    check_remote_control,
    check_serial_number,
    check_software,
)
from simbridge.doctor.polyscope_x_checks import check_robot_api
from simbridge.ur.errors import ConnectionLost
from simbridge.ur.robot_api_facts import facts_without_robot_api
from tests.doctor.surveys import ARM, READ, STATE, UR10E, assert_verdict

HOST = "192.0.2.7"
SERIAL_NUMBER = "2026350123"
CLOSED = {80: ConnectionLost(HOST, 80, "Connection refused", was_connected=False)}


def polyscope_x(minor, *, remote_control=None, serial_number=None, lost=None):
    """Return what a controller with PolyScope 10.MINOR reports."""
    lost = lost or {}
    state = replace(STATE, version=(10, minor, 0))
    unknown = facts_without_robot_api(state.version, lost.get(80))
    pendant = replace(unknown, remote_control=remote_control, serial_number=serial_number)
    return replace(READ, host=HOST, state=state, pendant=pendant, lost=lost)


def test_its_software_is_named():
    finding = check_software(polyscope_x(7))

    assert_verdict(finding, "pass", "PolyScope X 10.7.0", "500 Hz")


@pytest.mark.parametrize(("port", "service"), [(30001, "Primary"), (30004, "RTDE")])
def test_a_closed_port_names_the_service(port, service):
    lost = {port: ConnectionLost(HOST, port, "Connection refused", was_connected=False)}

    finding = check_port(polyscope_x(10, lost=lost), port, UR10E, ursim=False)

    assert_verdict(finding, "fail", f"switch on {service} under Settings > Security > Services")


def test_an_open_port_passes():
    assert_verdict(check_port(polyscope_x(10), 30004, UR10E, ursim=False), "pass", "RTDE answers")


@pytest.mark.parametrize(
    ("survey", "status", "words"),
    [
        (polyscope_x(7), "skip", "10.11"),
        (polyscope_x(11, lost=CLOSED), "skip", "before 10.12 a run reads nothing from it"),
        (polyscope_x(12, remote_control=True), "pass", "answers"),
        (polyscope_x(12, lost=CLOSED), "warn", "Without it, Local or Remote cannot be read."),
        (polyscope_x(14, lost=CLOSED), "warn", "neither Local or Remote nor the serial number"),
        (polyscope_x(14, lost=CLOSED), "warn", "switch on HTTP under Settings > Security"),
    ],
)
def test_a_run_can_do_without_the_robot_api(survey, status, words):
    (finding,) = check_robot_api(survey)

    assert_verdict(finding, status, words)


def test_other_controllers_have_no_robot_api():
    assert check_robot_api(READ) == []


@pytest.mark.parametrize(
    ("survey", "status", "words"),
    [
        (polyscope_x(12, remote_control=True), "pass", "Remote"),
        (polyscope_x(12, remote_control=False), "fail", "Safety Overview > Mode Selection"),
        (polyscope_x(7), "warn", "from 10.12 on"),
        (polyscope_x(12, lost=CLOSED), "warn", "could not be read: Connection refused"),
        (polyscope_x(14, lost=CLOSED), "warn", "the service HTTP"),
    ],
)
def test_remote_is_checked_where_it_is_reported(survey, status, words):
    assert_verdict(check_remote_control(survey), status, words)


@pytest.mark.parametrize(
    ("survey", "expected", "status", "words"),
    [
        (polyscope_x(14, serial_number=SERIAL_NUMBER), None, "pass", SERIAL_NUMBER),
        (polyscope_x(14, serial_number=SERIAL_NUMBER), "1", "fail", "says 1"),
        (polyscope_x(12), None, "warn", "from 10.14 on"),
        (polyscope_x(12), "1", "warn", "the cell file says 1"),
        (polyscope_x(14, lost=CLOSED), None, "warn", "the service HTTP"),
    ],
)
def test_an_unknown_serial_number_is_explained(survey, expected, status, words):
    assert_verdict(check_serial_number(survey, expected), status, words)


@pytest.mark.parametrize("checksum", [(0xFFFFFFFF,) * 6, (1, 2, 3, 4, 5, 6)])
def test_it_is_always_taken_for_a_real_arm(checksum):
    survey = replace(polyscope_x(12), arm=replace(ARM, checksum=checksum))

    assert_verdict(check_kind(survey, ursim=False), "pass", "taken for a real arm")
    assert_verdict(check_kind(survey, ursim=True), "fail", "--backend real")


def test_the_emulator_is_known_by_its_build():
    survey = polyscope_x(7)
    emulated = replace(survey, state=replace(survey.state, build=2026123456))

    assert check_kind(emulated, ursim=False).seen.startswith("emulator (")
