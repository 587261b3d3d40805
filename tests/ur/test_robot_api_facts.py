"""What the Robot API reports of a controller, and why something is not known: with fake ports."""

from __future__ import annotations

import pytest

from simbridge.ur.errors import ConnectionLost
from simbridge.ur.robot_api_facts import facts_without_robot_api, read_robot_api
from tests.controllers import loopback
from tests.ur.fake_ports import NO_ANSWER, listening, robot_api

HOST = loopback(88)
PORT = 8080
BASE = "/universal-robots/robot-api"
MODE = f"{BASE}/system/v1/controlmode"
INFORMATION = f"{BASE}/system/v1/information"
CLOSED = ConnectionLost(HOST, PORT, "Connection refused", was_connected=False)


def read(version, answers, timeout=2.0):
    """Return the facts that a Robot API with a version and some answers reports."""
    description = {"info": {"version": version}}
    talk = robot_api({f"{BASE}/openapi.json": description, **answers})
    with listening(HOST, PORT, talk):
        return read_robot_api(HOST, timeout, port=PORT)


def test_both_answers_are_facts():
    facts = read("5.0.107", {MODE: {"mode": "LOCAL"}, INFORMATION: {"serialNumber": "2026350123"}})

    assert facts.remote_control is False
    assert facts.serial_number == "2026350123"
    assert (facts.remote_control_obstacle, facts.serial_number_obstacle) == ("", "")


def test_a_failed_serial_number_does_not_hide_local():
    facts = read("5.0.107", {MODE: {"mode": "LOCAL"}})

    assert facts.remote_control is False
    assert facts.serial_number is None
    assert "HTTP status 404" in facts.serial_number_obstacle


def test_a_failed_control_mode_does_not_hide_the_serial_number():
    facts = read("5.0.107", {MODE: {}, INFORMATION: {"serialNumber": "2026350123"}})

    assert facts.remote_control is None
    assert "no text under mode" in facts.remote_control_obstacle
    assert facts.serial_number == "2026350123"


@pytest.mark.slow
def test_a_silent_control_mode_does_not_hide_the_serial_number():
    answers = {MODE: NO_ANSWER, INFORMATION: {"serialNumber": "2026350123"}}

    facts = read("5.0.107", answers, timeout=1.0)

    assert "within 1 s" in facts.remote_control_obstacle
    assert facts.serial_number == "2026350123"


def test_an_unknown_control_mode_is_named():
    facts = read("3.1.4", {MODE: {"mode": "SERVICE"}})

    assert facts.remote_control is None
    assert "SERVICE" in facts.remote_control_obstacle


def test_an_empty_serial_number_is_unknown():
    facts = read("5.0.107", {MODE: {"mode": "REMOTE"}, INFORMATION: {"serialNumber": ""}})

    assert facts.serial_number is None
    assert facts.serial_number_obstacle


def test_an_older_robot_api_is_named():
    facts = read("3.1.4", {MODE: {"mode": "REMOTE"}})

    assert facts.serial_number_obstacle.startswith("PolyScope X reports the serial number")
    assert "this one is 3.1.4" in facts.serial_number_obstacle


@pytest.mark.parametrize(
    ("version", "error", "words"),
    [
        ((10, 7, 0), None, "from 10.12 on"),
        ((10, 11, 0), CLOSED, "from 10.12 on"),
        ((10, 12, 0), CLOSED, "reports it, but could not be read: Connection refused"),
        ((10, 13), CLOSED, "reports it, but could not be read: Connection refused"),
        ((10, 14, 0), CLOSED, "the Robot API (the service HTTP) reports it"),
    ],
)
def test_what_was_seen_is_said_by_version(version, error, words):
    assert words in facts_without_robot_api(version, error).remote_control_obstacle


def test_before_10_14_the_serial_number_is_not_expected():
    facts = facts_without_robot_api((10, 13, 0), CLOSED)

    assert facts.serial_number_obstacle == "PolyScope X reports the serial number from 10.14 on"
