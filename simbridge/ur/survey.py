"""Read what a controller reports about itself, before anything is moved or claimed.

Each port is read independently, so that a silent one does not hide what the others report.
"""

from __future__ import annotations

import functools
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from simbridge.ur.controller_facts import ControllerFacts, PendantFacts, StateFacts, Survey
from simbridge.ur.dashboard import DashboardClient
from simbridge.ur.errors import ConnectionLost, ControllerError, UnsupportedController
from simbridge.ur.polyscope_x import has_robot_api, is_polyscope_x
from simbridge.ur.primary import read_arm_description
from simbridge.ur.robot_api_facts import facts_without_robot_api, read_robot_api
from simbridge.ur.rtde import NO_SUCH_VARIABLE, RtdeClient, RtdeReader
from simbridge.ur.rtde_writer import IN_USE, MAX_CLAIM_ATTEMPTS, RELEASE_TIME_S
from simbridge.ur.tables import DASHBOARD, PRIMARY, REALTIME, REST, RTDE

# Reads a port of a controller, within a timeout, s.
Reader: TypeAlias = Callable[[str, float], Any]

# Shortest time that is waited on a socket, s: with zero, a socket does not wait at all.
SHORTEST_TIMEOUT_S = 1e-3

# Variables of a state without which a controller cannot be driven.
NEEDED_VARIABLES = (
    "timestamp",
    "robot_mode",
    "safety_mode",
    "runtime_state",
    "target_speed_fraction",
    "speed_scaling",
    "actual_q",
)
# Variables that only some versions have.
OPTIONAL_VARIABLES = ("payload", "payload_cog", "safety_status_bits")


def read_controller(host: str, timeout: float = 2.0, rest_port: int = REST) -> ControllerFacts:
    """Read everything about a controller, the ports in parallel; moves nothing, claims nothing.

    Args:
        host: Address of the controller.
        timeout: Longest time for each connection and each answer, s.
        rest_port: The port of its Robot API, if it has PolyScope X.

    Raises:
        ConnectionLost: Nothing listens on a needed port, or no valid answer comes.
        UnsupportedController: The version of PolyScope is too old.
    """
    return survey(host, timeout, rest_port).complete()


def survey(host: str, timeout: float = 2.0, rest_port: int = REST) -> Survey:
    """Read what a controller reports; a port that fails is recorded, and the others are still read.

    The ports that every controller has are read first: they tell which further ones this one has.

    Args:
        host: Address of the controller.
        timeout: Longest time for each connection and each answer, s.
        rest_port: The port of its Robot API, if it has PolyScope X.
    """
    common = _read_ports(host, timeout, {RTDE: _read_state, PRIMARY: read_arm_description})
    answers = dict(common.answers)
    lost = dict(common.lost)
    version = Survey(host, lost, answers.get(RTDE), arm=answers.get(PRIMARY)).version

    further_readers: dict[int, Reader] = {}
    if version is None or not is_polyscope_x(version):
        further_readers[DASHBOARD] = _read_dashboard
        further_readers[REALTIME] = _await_realtime
    if version is None or has_robot_api(version):
        further_readers[REST] = functools.partial(read_robot_api, port=rest_port)
    further = _read_ports(host, timeout, further_readers)
    answers |= further.answers
    lost |= further.lost

    # If no port tells the version: only PolyScope X has a Robot API, and only other software has a
    # dashboard.
    if version is None:
        absent_ports = (DASHBOARD, REALTIME) if REST in answers else (REST,)
        for port in absent_ports:
            lost.pop(port, None)

    pendant = answers.get(DASHBOARD) or answers.get(REST)
    if pendant is None and version is not None and is_polyscope_x(version):
        pendant = facts_without_robot_api(version, lost.get(REST))
    # In the order of the ports, whichever failed first.
    lost = {port: lost[port] for port in (RTDE, DASHBOARD, PRIMARY, REALTIME, REST) if port in lost}
    return Survey(
        host,
        lost,
        state=answers.get(RTDE),
        pendant=pendant,
        arm=answers.get(PRIMARY),
        has_robot_api=REST in answers,
    )


@dataclass(frozen=True)
class _Readings:
    """Answers of some ports.

    Attributes:
        answers: The report of each port that answered.
        lost: The error of each port that did not.
    """

    answers: Mapping[int, Any]
    lost: Mapping[int, ControllerError]


def _read_ports(host: str, timeout: float, readers: Mapping[int, Reader]) -> _Readings:
    """Read some ports of a controller in parallel.

    Args:
        host: Address of the controller.
        timeout: Longest time for each connection and each answer, s.
        readers: The function that reads each port.
    """
    answers: dict[int, Any] = {}
    lost: dict[int, ControllerError] = {}

    def read(port: int) -> None:
        try:
            answers[port] = readers[port](host, timeout)
        except ControllerError as error:
            lost[port] = error
        except UnicodeError:  # from looking up an invalid name
            lost[port] = ConnectionLost(host, port, "host not found", was_connected=False)

    if readers:
        with ThreadPoolExecutor(len(readers)) as pool:
            list(pool.map(read, readers))
    return _Readings(answers, lost)


def claimed_registers(host: str, inputs: Sequence[str]) -> tuple[str, ...]:
    """Return the RTDE inputs that a run would write and another client has already claimed.

    It tries to claim all of them on a separate connection. A controller that refuses one grants
    none. Granted inputs are released when the controller notices that the connection has ended,
    possibly a moment later; so there are several attempts, and a client that has just left is not
    reported. Nothing is written.

    Args:
        host: The controller's address.
        inputs: Names of the inputs.

    Raises:
        ConnectionLost: Port 30004 does not answer.
        UnsupportedController: The controller does not have some of the registers.
    """
    for _ in range(MAX_CLAIM_ATTEMPTS - 1):
        if not _refused_registers(host, inputs):
            return ()
        time.sleep(RELEASE_TIME_S)
    return _refused_registers(host, inputs)


def _refused_registers(host: str, inputs: Sequence[str]) -> tuple[str, ...]:
    """Try to claim inputs; return those that another client has.

    Raises:
        ConnectionLost: Port 30004 does not answer.
        UnsupportedController: The controller does not have some of the registers.
    """
    with RtdeClient(host) as connection:
        types = connection.input_types(inputs)
        version = ".".join(map(str, connection.version[:3]))
    types_by_name = dict(zip(inputs, types, strict=False))

    # Only missing registers matter: ur_rtde does without any other input that this version lacks.
    missing = [
        name
        for name, kind in types_by_name.items()
        if kind == NO_SUCH_VARIABLE and "_register_" in name
    ]
    if missing:
        reason = (
            f"Its RTDE interface does not have {missing[0]}, for one; run with --registers lower, "
            "or update PolyScope."
        )
        raise UnsupportedController(host, version, reason)
    return tuple(name for name, kind in types_by_name.items() if kind == IN_USE)


def _read_state(host: str, timeout: float) -> StateFacts:
    """Read one state from RTDE."""
    variables = (*NEEDED_VARIABLES, *OPTIONAL_VARIABLES)
    with RtdeReader(host, variables, timeout=timeout) as reader:
        state = reader.first()
        version = reader.version[:3]
        build = reader.version[3]

    missing = [name for name in NEEDED_VARIABLES if name not in state]
    if missing:
        version_text = ".".join(map(str, version))
        reason = f"Its RTDE interface does not have {', '.join(missing)}; update PolyScope."
        raise UnsupportedController(host, version_text, reason)

    q = np.array(state["actual_q"])
    q.setflags(write=False)
    return StateFacts(
        version=version,
        timestamp=state["timestamp"],
        robot_mode=state["robot_mode"],
        safety_mode=state["safety_mode"],
        runtime_state=state["runtime_state"],
        slider=state["target_speed_fraction"],
        q=q,
        payload=state.get("payload"),
        payload_cog=state.get("payload_cog"),
        safety_status_bits=state.get("safety_status_bits", 0),
        build=build,
    )


def _read_dashboard(host: str, timeout: float) -> PendantFacts:
    """Ask the dashboard."""
    with DashboardClient(host, timeout) as dashboard:
        return PendantFacts(
            version=dashboard.polyscope_version(),
            serial_number=dashboard.serial_number(),
            remote_control=dashboard.is_in_remote_control(),
            program=dashboard.loaded_program(),
        )


def _await_realtime(host: str, timeout: float) -> None:
    """Wait for any byte on the real-time port, where a controller sends 125 or 500 times a second.

    Args:
        host: The controller's address.
        timeout: How long to wait for connection and byte together, s.

    Raises:
        ConnectionLost: No connection was made, or no byte came in time.
    """
    deadline = time.monotonic() + timeout
    try:
        connection = socket.create_connection((host, REALTIME), timeout=timeout)
    except OSError as error:
        reason = str(error.strerror or error)
        raise ConnectionLost(host, REALTIME, reason, was_connected=False) from None

    with connection:
        remaining = deadline - time.monotonic()
        connection.settimeout(max(remaining, SHORTEST_TIMEOUT_S))
        try:
            received = connection.recv(1)
        except TimeoutError:
            reason = f"nothing was received within {timeout:g} s"
            raise ConnectionLost(host, REALTIME, reason) from None
        except OSError as error:
            raise ConnectionLost(host, REALTIME, str(error.strerror or error)) from None
    if not received:
        raise ConnectionLost(host, REALTIME, "the controller closed the connection")
