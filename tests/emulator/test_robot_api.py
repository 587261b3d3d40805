"""The emulated Robot API: what it reports, does and refuses, by version."""

from __future__ import annotations

import json

import pytest

from simbridge.emulator.errors import ProtocolViolation
from simbridge.emulator.http_requests import HttpRequest
from simbridge.emulator.robot_api import RobotApi, RobotApiConnection
from simbridge.emulator.state import RuntimeState, SafetyMode
from simbridge.ur.tables import RobotMode
from tests.emulator.fake_controller import FakeController

BASE = "/universal-robots/robot-api"
STATE = "/robotstate/v1/state"
PROGRAM = "/program/v1/state"


@pytest.fixture
def controller():
    return FakeController("10.14")


def request(controller, method, path, content=None):
    """Return status and content of an answer."""
    body = b"" if content is None else json.dumps(content).encode()
    answer = RobotApi(controller).answer(HttpRequest(method, BASE + path, {}, body, is_last=False))
    return answer.status.value, answer.content


@pytest.mark.parametrize(("polyscope", "version"), [("10.12", "3.1.4"), ("10.14", "5.0.107")])
def test_the_description_states_the_version(polyscope, version):
    status, content = request(FakeController(polyscope), "GET", "/openapi.json")

    assert status == 200
    assert content["info"]["version"] == version


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("/robotstate/v1/robotmode", {"mode": "RUNNING"}),
        ("/robotstate/v1/safetymode", {"mode": "NORMAL"}),
        ("/system/v1/controlmode", {"mode": "REMOTE"}),
        ("/system/v1/operationalmode", {"mode": "AUTOMATIC"}),
        (PROGRAM, {"state": "STOPPED"}),
        ("/versions/v1", {"marketingVersion": "10.14.0"}),
        ("/system/v1/information", {"robotType": "UR10", "serialNumber": "20261234567"}),
    ],
)
def test_it_reports_the_controllers_state(controller, path, content):
    assert request(controller, "GET", path) == (200, content)


@pytest.mark.parametrize(
    ("state", "shown"),
    [
        (RuntimeState.PLAYING, "PLAYING"),
        (RuntimeState.PAUSED, "PAUSED"),
        (RuntimeState.STOPPING, "STOPPED"),
    ],
)
def test_the_program_state_is_one_of_three(controller, state, shown):
    controller.state.runtime_state = state

    assert request(controller, "GET", PROGRAM) == (200, {"state": shown})


def test_an_emergency_stop_has_one_name(controller):
    controller.state.safety_mode = SafetyMode.ROBOT_EMERGENCY_STOP

    assert request(controller, "GET", "/robotstate/v1/safetymode")[1] == {"mode": "EMERGENCY_STOP"}


@pytest.mark.parametrize(
    ("path", "versions"),
    [
        ("/system/v1/controlmode", {"10.12", "10.14"}),
        ("/versions/v1", {"10.14"}),
        ("/system/v1/information", {"10.14"}),
        ("/program/v1/load", set()),
    ],
)
def test_a_path_is_there_from_its_version_on(path, versions):
    known = set()
    for polyscope in ("10.12", "10.14"):
        status, _ = request(FakeController(polyscope), "GET", path)
        if status == 200:
            known.add(polyscope)

    assert known == versions


@pytest.mark.parametrize(
    ("action", "call"),
    [
        ("POWER_ON", "power_on"),
        ("POWER_OFF", "power_off"),
        ("BRAKE_RELEASE", "brake_release"),
        ("RESTART_SAFETY", "restart_safety"),
    ],
)
def test_an_action_reaches_the_controller(controller, action, call):
    assert request(controller, "PUT", STATE, {"action": action})[0] == 200
    assert controller.calls == [(call,)]


def test_a_program_is_paused_resumed_and_stopped(controller):
    controller.state.runtime_state = RuntimeState.PLAYING

    for action in ("pause", "resume", "stop"):
        assert request(controller, "PUT", PROGRAM, {"action": action})[0] == 200

    assert controller.calls == [("pause_program",), ("play_program",), ("stop_program",)]


@pytest.mark.parametrize("action", ["play", "pause", "stop"])
def test_an_action_that_the_state_does_not_allow_conflicts(controller, action):
    assert request(controller, "PUT", PROGRAM, {"action": action})[0] == 409


def test_an_emergency_stop_cannot_be_overridden(controller):
    controller.state.safety_mode = SafetyMode.ROBOT_EMERGENCY_STOP
    controller.state.robot_mode = RobotMode.POWER_OFF

    for action in ("POWER_ON", "BRAKE_RELEASE"):
        assert request(controller, "PUT", STATE, {"action": action})[0] == 409

    assert controller.calls == []


@pytest.mark.parametrize("content", [{}, {"action": "FLY"}, {"action": 3}, [], "POWER_ON"])
def test_a_body_without_a_known_action_cannot_be_processed(controller, content):
    assert request(controller, "PUT", STATE, content)[0] == 422


def test_in_local_nothing_is_changed(controller):
    controller.remote_control = False

    assert request(controller, "PUT", STATE, {"action": "POWER_OFF"})[0] == 403
    assert request(controller, "POST", "/popup/v1", {"message": "a"})[0] == 403
    assert request(controller, "GET", "/system/v1/controlmode") == (200, {"mode": "LOCAL"})
    assert controller.calls == []


def test_a_missing_path_or_method_is_logged(controller):
    assert request(controller, "GET", "/supportfiles/v1")[0] == 404
    assert request(controller, "DELETE", PROGRAM)[0] == 405

    assert [event.kind for event in controller.events] == ["unknown", "unknown"]
    assert "GET /universal-robots/robot-api/supportfiles/v1" in controller.events[0].text


def test_no_program_can_be_loaded(controller):
    assert request(controller, "PUT", "/program/v1/loaded", {"name": "pick"})[0] == 404
    assert request(controller, "GET", "/program/v1/loaded") == (200, {"name": ""})


def test_a_popup_is_shown_and_closed(controller):
    request(controller, "POST", "/popup/v1", {"title": "Note", "message": "Done"})
    request(controller, "DELETE", "/popup/v1")

    assert controller.calls == [("popup", "Done"), ("close_popup",)]


def test_a_web_page_cannot_act(controller):
    connection = RobotApiConnection(RobotApi(controller))
    body = b'{"action": "POWER_OFF"}'
    head = (
        f"PUT {BASE}{STATE} HTTP/1.1\r\nOrigin: http://evil.example\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )

    with pytest.raises(ProtocolViolation, match="web page"):
        connection.receive(head.encode() + body)

    assert controller.calls == []


def test_a_connection_ends_when_its_client_wants_it(controller):
    connection = RobotApiConnection(RobotApi(controller))
    request_text = f"GET {BASE}{PROGRAM} HTTP/1.1\r\nConnection: close\r\n\r\n"

    answer = connection.receive(request_text.encode())

    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert connection.finished
