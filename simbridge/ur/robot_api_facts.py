"""What PolyScope X's Robot API reports of a controller, and why the rest of it is not known."""

from __future__ import annotations

from collections.abc import Sequence

from simbridge.quoting import quoted
from simbridge.ur.controller_facts import PendantFacts
from simbridge.ur.errors import ConnectionLost, ControllerError
from simbridge.ur.polyscope_x import HTTP_SWITCH_SINCE
from simbridge.ur.robot_api import CONTROL_MODE, SERIAL_NUMBER, Question, RobotApiClient

# Whether programs from outside are accepted, by the Robot API's control modes.
CONTROL_MODES = {"REMOTE": True, "LOCAL": False}


def read_robot_api(host: str, timeout: float, *, port: int) -> PendantFacts:
    """Read control mode and serial number from the Robot API.

    If one of them cannot be read, the facts say why, and the other is read all the same.

    Args:
        host: The controller's address.
        timeout: Longest time for connecting and for each answer, s.
        port: The port of its Robot API.

    Raises:
        ConnectionLost: Nothing listens, or what answers is not the Robot API.
    """
    with RobotApiClient(host, timeout, port) as api:
        control_mode, control_mode_obstacle = _ask(api, CONTROL_MODE)
        serial_number, serial_number_obstacle = _ask(api, SERIAL_NUMBER)

    remote_control = None
    if control_mode is not None:
        remote_control = CONTROL_MODES.get(control_mode)
        if remote_control is None:
            control_mode_obstacle = f"the Robot API reports the unknown mode {quoted(control_mode)}"
    if serial_number == "":
        serial_number = None
        serial_number_obstacle = "the Robot API reports an empty serial number"

    return PendantFacts(
        version="",
        serial_number=serial_number,
        remote_control=remote_control,
        program="",
        serial_number_obstacle=serial_number_obstacle,
        remote_control_obstacle=control_mode_obstacle,
    )


def facts_without_robot_api(
    version: Sequence[int], error: ControllerError | None = None
) -> PendantFacts:
    """Return the facts of a controller with PolyScope X whose Robot API was not read.

    Args:
        version: Version of its software, major and minor first.
        error: The error of the Robot API's port; None if this version does not have it.
    """
    return PendantFacts(
        version="",
        serial_number=None,
        remote_control=None,
        program="",
        serial_number_obstacle=_obstacle_without_robot_api(SERIAL_NUMBER, version, error),
        remote_control_obstacle=_obstacle_without_robot_api(CONTROL_MODE, version, error),
    )


def _ask(api: RobotApiClient, question: Question) -> tuple[str | None, str]:
    """Ask a question.

    Returns:
        The answer, or None; and as a clause what keeps it from being known, or "".
    """
    try:
        answer = api.ask(question)
    except ConnectionLost as error:
        return None, f"the Robot API reports it, but could not be read: {error.reason}"
    if answer is None:
        needed = _version_text(question.since)
        version = _version_text(api.version)
        obstacle = f"{_first_report(question)} (Robot API {needed}; this one is {version})"
        return None, obstacle
    return answer, ""


def _obstacle_without_robot_api(
    question: Question, version: Sequence[int], error: ControllerError | None
) -> str:
    """Return as a clause why the answer to a question is not known; see `facts_without_robot_api`.

    Args:
        question: The question that was not asked.
        version: Version of the software.
        error: The error of the Robot API's port.
    """
    if tuple(version[:2]) < question.polyscope or error is None:
        return _first_report(question)
    interface = "the Robot API"
    if tuple(version[:2]) >= HTTP_SWITCH_SINCE:
        interface += " (the service HTTP)"
    reason = error.reason if isinstance(error, ConnectionLost) else str(error)
    return f"{interface} reports it, but could not be read: {reason}"


def _first_report(question: Question) -> str:
    """Return the clause that names the first version of PolyScope that answers a question."""
    return f"PolyScope X reports {question.fact} from {_version_text(question.polyscope)} on"


def _version_text(version: Sequence[int]) -> str:
    """Return a version as text: "10.12"."""
    return ".".join(map(str, version))
