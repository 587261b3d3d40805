"""PolyScope X's Robot API: requests of HTTP in, answers of JSON out, without sockets.

Source: paths, keys and versions as UR's client library uses them; the statuses as a third party
describes them. The content of an answer with another status than 200, and which action a state
does not allow, are not known: the choices made here are in docs/emulator_reference.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from simbridge.emulator.emulated_controller import EmulatedController
from simbridge.emulator.errors import ProtocolViolation
from simbridge.emulator.http_requests import HttpAnswer, HttpRequest, RequestBuffer
from simbridge.emulator.state import ControllerEvent
from simbridge.ur.polyscope_x import ROBOT_API_DESCRIPTION, ROBOT_API_PATH
from simbridge.ur.tables import RobotMode, RuntimeState, SafetyMode

# Versions of the API.
FIRST = (0,)
OF_POLYSCOPE_10_12 = (3, 1, 4)
OF_POLYSCOPE_10_14 = (5, 0, 107)

# The state of the program, by the controller's runtime state.
PROGRAM_STATES = {
    RuntimeState.PLAYING: "PLAYING",
    RuntimeState.RESUMING: "PLAYING",
    RuntimeState.PAUSING: "PAUSED",
    RuntimeState.PAUSED: "PAUSED",
    RuntimeState.STOPPING: "STOPPED",
    RuntimeState.STOPPED: "STOPPED",
}

Respond = Callable[[HttpRequest], HttpAnswer]


class RobotApi:
    """The answers of a controller's Robot API; shared by all connections.

    Args:
        controller: The controller.
    """

    def __init__(self, controller: EmulatedController) -> None:
        self._controller = controller
        version = tuple(int(part) for part in controller.profile.api_version.split("."))
        # The functions that answer, by path and method, that this version of the API has.
        self._routes: dict[str, dict[str, Respond]] = {}
        for since, path, method, respond in self._endpoints():
            if version >= since:
                self._routes.setdefault(path, {})[method] = respond

        self._robot_actions: dict[str, Callable[[], bool]] = {
            "POWER_ON": self._power_on,
            "POWER_OFF": self._power_off,
            "BRAKE_RELEASE": self._release_brakes,
            "UNLOCK_PROTECTIVE_STOP": self._unlock_protective_stop,
            "RESTART_SAFETY": self._restart_safety,
        }
        # No program is ever loaded, so there is none to play.
        self._program_actions: dict[str, Callable[[], bool]] = {
            "play": lambda: False,
            "pause": controller.pause_program,
            "resume": controller.play_program,
            "stop": self._stop_program,
        }

    def _endpoints(self) -> list[tuple[tuple[int, ...], str, str, Respond]]:
        """Return the endpoints: first version of the API, path, method, answering function."""
        ten_twelve = OF_POLYSCOPE_10_12
        ten_fourteen = OF_POLYSCOPE_10_14
        return [
            (FIRST, ROBOT_API_DESCRIPTION, "GET", self._describe),
            (FIRST, "/robotstate/v1/state", "PUT", self._act_on_robot),
            (FIRST, "/program/v1/state", "GET", self._report_program_state),
            (FIRST, "/program/v1/state", "PUT", self._act_on_program),
            (ten_twelve, "/robotstate/v1/robotmode", "GET", self._report_robot_mode),
            (ten_twelve, "/robotstate/v1/safetymode", "GET", self._report_safety_mode),
            (ten_twelve, "/system/v1/controlmode", "GET", self._report_control_mode),
            (ten_twelve, "/system/v1/operationalmode", "GET", self._report_operational_mode),
            (ten_twelve, "/program/v1/loaded", "GET", self._report_loaded_program),
            (ten_twelve, "/program/v1/loaded", "PUT", self._load_program),
            (ten_fourteen, "/versions/v1", "GET", self._report_versions),
            (ten_fourteen, "/system/v1/information", "GET", self._report_system),
            (ten_fourteen, "/popup/v1", "POST", self._open_popup),
            (ten_fourteen, "/popup/v1", "DELETE", self._close_popup),
            (ten_fourteen, "/popup/v1/safety", "DELETE", self._close_safety_popup),
        ]

    def answer(self, request: HttpRequest) -> HttpAnswer:
        """Return the answer to a request."""
        methods = self._routes.get(request.path.removeprefix(ROBOT_API_PATH))
        if methods is None or not request.path.startswith(f"{ROBOT_API_PATH}/"):
            self._report_unknown(request)
            return _refuse(HTTPStatus.NOT_FOUND, "there is no such path")
        if request.method not in methods:
            self._report_unknown(request)
            return _refuse(HTTPStatus.METHOD_NOT_ALLOWED, "the path does not have this method")
        if request.method != "GET" and not self._controller.remote_control:
            return _refuse(HTTPStatus.FORBIDDEN, "the robot is not in remote control")
        return methods[request.method](request)

    def _report_unknown(self, request: HttpRequest) -> None:
        """Report a request that this version does not answer."""
        polyscope = self._controller.profile.polyscope
        text = (
            f"Robot API: PolyScope {polyscope} is emulated without {request.method} {request.path}"
        )
        self._controller.on_event(ControllerEvent("unknown", text, data=request.body))

    # What is reported

    def _describe(self, _request: HttpRequest) -> HttpAnswer:
        version = self._controller.profile.api_version
        paths: dict[str, dict[str, Any]] = {}
        for path, methods in self._routes.items():
            paths[path] = {method.lower(): {} for method in methods}
        information = {"title": "Robot API", "version": version}
        return _report({"openapi": "3.0.0", "info": information, "paths": paths})

    def _report_program_state(self, _request: HttpRequest) -> HttpAnswer:
        state = RuntimeState(self._controller.state.runtime_state)
        return _report({"state": PROGRAM_STATES[state]})

    def _report_robot_mode(self, _request: HttpRequest) -> HttpAnswer:
        return _report({"mode": RobotMode(self._controller.state.robot_mode).name})

    def _report_safety_mode(self, _request: HttpRequest) -> HttpAnswer:
        mode = SafetyMode(self._controller.state.safety_mode)
        name = "EMERGENCY_STOP" if self._controller.state.emergency_stop else mode.name
        return _report({"mode": name})

    def _report_control_mode(self, _request: HttpRequest) -> HttpAnswer:
        return _report({"mode": "REMOTE" if self._controller.remote_control else "LOCAL"})

    def _report_operational_mode(self, _request: HttpRequest) -> HttpAnswer:
        return _report({"mode": "AUTOMATIC"})

    def _report_loaded_program(self, _request: HttpRequest) -> HttpAnswer:
        return _report({"name": ""})

    def _report_versions(self, _request: HttpRequest) -> HttpAnswer:
        version = ".".join(map(str, self._controller.profile.version[:3]))
        return _report({"marketingVersion": version})

    def _report_system(self, _request: HttpRequest) -> HttpAnswer:
        controller = self._controller
        return _report(
            {"robotType": controller.model_name, "serialNumber": controller.serial_number}
        )

    # What is changed

    def _act_on_robot(self, request: HttpRequest) -> HttpAnswer:
        return _carry_out(request, self._robot_actions)

    def _act_on_program(self, request: HttpRequest) -> HttpAnswer:
        return _carry_out(request, self._program_actions)

    def _load_program(self, request: HttpRequest) -> HttpAnswer:
        name = _read_field(request, "name")
        if name is None:
            return _refuse_body("name")
        return _refuse(HTTPStatus.NOT_FOUND, "there is no such program")

    def _open_popup(self, request: HttpRequest) -> HttpAnswer:
        message = _read_field(request, "message")
        if message is None:
            return _refuse_body("message")
        self._controller.popup(message)
        return _report({})

    def _close_popup(self, _request: HttpRequest) -> HttpAnswer:
        self._controller.close_popup()
        return _report({})

    def _close_safety_popup(self, _request: HttpRequest) -> HttpAnswer:
        return _report({})

    def _power_on(self) -> bool:
        if self._controller.state.emergency_stop:
            return False
        self._controller.power_on()
        return True

    def _power_off(self) -> bool:
        self._controller.power_off()
        return True

    def _release_brakes(self) -> bool:
        if self._controller.state.emergency_stop:
            return False
        self._controller.brake_release()
        return True

    def _unlock_protective_stop(self) -> bool:
        if self._controller.state.safety_mode != SafetyMode.PROTECTIVE_STOP:
            return False
        self._controller.unlock_protective_stop()
        # A protective stop cannot be unlocked in its first seconds.
        return self._controller.state.safety_mode != SafetyMode.PROTECTIVE_STOP

    def _restart_safety(self) -> bool:
        self._controller.restart_safety()
        return True

    def _stop_program(self) -> bool:
        if self._controller.state.runtime_state == RuntimeState.STOPPED:
            return False
        return self._controller.stop_program()


class RobotApiConnection:
    """One client's connection.

    Args:
        api: The answers.

    Attributes:
        finished: Whether the client wanted the connection to end.
    """

    def __init__(self, api: RobotApi) -> None:
        self._api = api
        self._buffer = RequestBuffer()
        self.finished = False

    def receive(self, data: bytes) -> bytes:
        """Return the answers to the requests that these bytes complete.

        Raises:
            ProtocolViolation: The client must be disconnected: what it sends is not HTTP, or a web
                page made a browser send it.
        """
        answers = []
        for request in self._buffer.receive(data):
            # Browsers add this header to every request of a web page except GET, which changes
            # nothing.
            if "origin" in request.headers:
                reason = "a web page made a browser send a request; nothing of it was carried out"
                raise ProtocolViolation("Robot API", reason)
            answers.append(self._api.answer(request).encode())
            self.finished = self.finished or request.is_last
        return b"".join(answers)

    def close(self) -> None:
        """Nothing is kept for a client."""


def _report(content: dict[str, Any]) -> HttpAnswer:
    """Return an answer with a content."""
    return HttpAnswer(HTTPStatus.OK, content)


def _refuse(status: HTTPStatus, message: str) -> HttpAnswer:
    """Return the refusal of a request.

    Args:
        status: The status.
        message: The reason, as a clause.
    """
    return HttpAnswer(status, {"message": message})


def _refuse_body(name: str) -> HttpAnswer:
    """Return the refusal of a body without a field."""
    message = f"the body is not an object of JSON with the text {name}"
    return _refuse(HTTPStatus.UNPROCESSABLE_ENTITY, message)


def _carry_out(request: HttpRequest, actions: dict[str, Callable[[], bool]]) -> HttpAnswer:
    """Carry out the action that a request names, and return the answer.

    Args:
        request: The request.
        actions: Functions by the names of the actions; each returns whether the controller's state
            allows it.
    """
    name = _read_field(request, "action")
    if name is None:
        return _refuse_body("action")
    if name not in actions:
        message = f"there is no such action; known: {', '.join(actions)}"
        return _refuse(HTTPStatus.UNPROCESSABLE_ENTITY, message)
    if not actions[name]():
        return _refuse(HTTPStatus.CONFLICT, f"the robot's state does not allow {name}")
    return _report({})


def _read_field(request: HttpRequest, name: str) -> str | None:
    """Return a text in a request's body; None without one."""
    try:
        content = json.loads(request.body)
    except (ValueError, RecursionError):
        return None
    text = content.get(name) if isinstance(content, dict) else None
    return text if isinstance(text, str) else None
