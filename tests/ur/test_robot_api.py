"""The client of PolyScope X's Robot API: its protocol, and with fake ports."""

from __future__ import annotations

import pytest

from simbridge.ur.errors import ConnectionLost
from simbridge.ur.robot_api import (
    CONTROL_MODE,
    SERIAL_NUMBER,
    RobotApiClient,
    UnusableAnswer,
    read_api_version,
    read_text,
    redirected_path,
)
from tests.controllers import loopback
from tests.ur.fake_ports import listening, robot_api, saying

HOST = loopback(88)
PORT = 8080
BASE = "/universal-robots/robot-api"
DESCRIPTION = {"info": {"version": "3.1.4"}}
LOCAL = {f"{BASE}/openapi.json": DESCRIPTION, f"{BASE}/system/v1/controlmode": {"mode": "LOCAL"}}


def answering(answers):
    return listening(HOST, PORT, robot_api(answers))


def test_the_description_states_the_version():
    assert read_api_version(b'{"info": {"version": "5.0.107"}}') == (5, 0, 107)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"[]",
        b"{}",
        b'{"info": 3}',
        b'{"info": {"version": "x"}}',
        b'{"info": {"version": "3.%s"}}' % (b"1" * 5000),
        b'{"info": {"version": %s}}' % (b"1" * 5000),
        b"[" * 100_000,
    ],
    ids=lambda body: body[:30].decode(),
)
def test_another_description_is_refused(body):
    with pytest.raises(UnusableAnswer):
        read_api_version(body)


@pytest.mark.parametrize("body", [b"{}", b'{"mode": 3}', b'"LOCAL"', b"\xff"])
def test_an_answer_without_its_text_is_refused(body):
    with pytest.raises(UnusableAnswer):
        read_text(body, "mode")


@pytest.mark.parametrize(
    ("location", "path"),
    [("/new", "/new"), ("http://arm/new?a=1", "/new?a=1"), ("http://arm:80/x", "/x")],
)
def test_a_redirection_on_the_same_host_is_followed(location, path):
    assert redirected_path(location, "arm") == path


@pytest.mark.parametrize("location", ["https://arm/x", "http://other/x", "x", "//other/x", "//["])
def test_a_redirection_elsewhere_is_refused(location):
    with pytest.raises(UnusableAnswer, match="redirects"):
        redirected_path(location, "arm")


def test_the_control_mode_is_read():
    with answering(LOCAL), RobotApiClient(HOST, port=PORT) as api:
        assert api.version == (3, 1, 4)
        assert api.ask(CONTROL_MODE) == "LOCAL"


def test_a_question_of_a_newer_version_is_not_asked():
    with answering(LOCAL), RobotApiClient(HOST, port=PORT) as api:
        assert api.ask(SERIAL_NUMBER) is None


def test_a_path_that_has_moved_is_found():
    moved = {**LOCAL, f"{BASE}/system/v1/controlmode": "/v2/mode", "/v2/mode": {"mode": "REMOTE"}}

    with answering(moved), RobotApiClient(HOST, port=PORT) as api:
        assert api.ask(CONTROL_MODE) == "REMOTE"


def test_a_path_that_moves_for_ever_is_given_up():
    circle = {**LOCAL, f"{BASE}/system/v1/controlmode": f"{BASE}/system/v1/controlmode"}

    with (
        answering(circle),
        RobotApiClient(HOST, port=PORT) as api,
        pytest.raises(ConnectionLost, match="redirects"),
    ):
        api.ask(CONTROL_MODE)


@pytest.mark.parametrize(
    "talk",
    [
        robot_api({}),
        robot_api({f"{BASE}/openapi.json": {}}),
        saying(b"Connected: Universal Robots Dashboard Server\n"),
        lambda connection: None,
    ],
    ids=["404", "no version", "no HTTP", "closed"],
)
def test_what_is_no_robot_api_is_a_lost_connection(talk):
    with listening(HOST, PORT, talk), pytest.raises(ConnectionLost) as lost:
        RobotApiClient(HOST, timeout=1.0, port=PORT)

    assert lost.value.port == PORT


def test_a_silent_port_is_a_lost_connection():
    with (
        listening(HOST, PORT, saying(b"")),
        pytest.raises(ConnectionLost, match=r"within 0\.1 s"),
    ):
        RobotApiClient(HOST, timeout=0.1, port=PORT)


def test_a_closed_port_is_a_lost_connection():
    with pytest.raises(ConnectionLost, match="refused"):
        RobotApiClient(HOST, port=PORT)


def test_only_reading_requests_are_sent():
    sent = []
    talk = robot_api(LOCAL, sent)

    with listening(HOST, PORT, talk), RobotApiClient(HOST, port=PORT) as api:
        api.ask(CONTROL_MODE)

    assert [line.split()[0] for line in sent] == ["GET", "GET"]
