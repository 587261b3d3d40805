"""Read what a controller reports about itself, before anything is moved or claimed.

Each port is read independently, so that a silent one does not hide what the others report.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from simbridge.ur.controller_facts import ControllerFacts, DashboardFacts, StateFacts, Survey
from simbridge.ur.dashboard import DashboardClient
from simbridge.ur.errors import ConnectionLost, ControllerError, UnsupportedController
from simbridge.ur.primary import read_arm_description
from simbridge.ur.rtde import RtdeClient, RtdeReader
from simbridge.ur.tables import DASHBOARD, PRIMARY, REALTIME, RTDE

# What ur_rtde's control interface writes, as seen on the wire with ur_rtde 1.6.5 (23 recipes with
# these variables).
WRITTEN_BY_THE_BRIDGE = (
    *(f"input_int_register_{i}" for i in range(8)),
    *(f"input_double_register_{i}" for i in range(18)),
    "external_force_torque",
)

# Variables of a state without which a controller cannot be driven, and those that others have.
NEEDED_VARIABLES = (
    "timestamp",
    "robot_mode",
    "safety_mode",
    "runtime_state",
    "target_speed_fraction",
    "speed_scaling",
    "actual_q",
)
OPTIONAL_VARIABLES = ("payload", "payload_cog", "safety_status_bits")

MAX_CLAIM_ATTEMPTS = 3
# Time between attempts to claim registers, s, in which a controller notices that a client has left.
RELEASE_TIME_S = 0.25


def read_controller(host: str, timeout: float = 2.0) -> ControllerFacts:
    """Read everything about a controller, the ports in parallel; moves nothing, claims nothing.

    Args:
        host: Its address.
        timeout: For each connection and each answer, s.

    Raises:
        ConnectionLost: A port on which nothing listens, or no valid answer comes.
        UnsupportedController: PolyScope X, or a version older than CB3's.
    """
    return survey(host, timeout).complete()


def survey(host: str, timeout: float = 2.0) -> Survey:
    """Read what a controller reports; a port that fails is recorded, and the others are still read.

    Args:
        host: Its address.
        timeout: For each connection and each answer, s.
    """
    readers: dict[int, Callable[[str, float], Any]] = {
        RTDE: _read_state,
        DASHBOARD: _read_dashboard,
        PRIMARY: read_arm_description,
        REALTIME: _await_realtime,
    }
    errors: dict[int, ControllerError] = {}

    def read(port: int) -> Any:
        try:
            return readers[port](host, timeout)
        except ControllerError as error:
            errors[port] = error
        except UnicodeError:  # from looking up an invalid name
            reason = "no connection (host not found)"
            errors[port] = ConnectionLost(host, port, reason)

    with ThreadPoolExecutor(len(readers)) as pool:
        state, dashboard, arm, _ = pool.map(read, readers)
    # In the order of the ports, whichever failed first.
    lost = {port: errors[port] for port in readers if port in errors}
    return Survey(host, lost, state, dashboard, arm)


def claimed_registers(host: str) -> tuple[str, ...]:
    """Return the RTDE inputs that the bridge would write and another client has already claimed.

    It tries to claim all of them on a separate connection. A controller that refuses one grants
    none. Granted inputs are released when the controller notices that the connection has ended,
    possibly a moment later; so there are several attempts, and a client that has just left is not
    reported. Nothing is written.

    Raises:
        ConnectionLost: Port 30004 does not answer.
    """
    for _ in range(MAX_CLAIM_ATTEMPTS - 1):
        if not _refused_registers(host):
            return ()
        time.sleep(RELEASE_TIME_S)
    return _refused_registers(host)


def _refused_registers(host: str) -> tuple[str, ...]:
    """Try to claim the registers of the bridge; return those that another client has."""
    with RtdeClient(host) as connection:
        types = connection.input_types(WRITTEN_BY_THE_BRIDGE)
    types_by_name = zip(WRITTEN_BY_THE_BRIDGE, types, strict=False)
    return tuple(name for name, kind in types_by_name if kind == "IN_USE")


def _read_state(host: str, timeout: float) -> StateFacts:
    """Read one state from RTDE."""
    variables = (*NEEDED_VARIABLES, *OPTIONAL_VARIABLES)
    with RtdeReader(host, variables, timeout=timeout) as reader:
        state = reader.first()
        version = reader.version[:3]

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
    )


def _read_dashboard(host: str, timeout: float) -> DashboardFacts:
    """Ask the dashboard."""
    with DashboardClient(host, timeout) as dashboard:
        return DashboardFacts(
            version=dashboard.polyscope_version(),
            serial_number=dashboard.serial_number(),
            remote_control=dashboard.is_in_remote_control(),
            program=dashboard.loaded_program(),
        )


def _await_realtime(host: str, timeout: float) -> None:
    """Wait for any byte on the real-time port.

    A controller sends 125 or 500 times per second on it.
    """
    deadline = time.monotonic() + timeout
    try:
        with socket.create_connection((host, REALTIME), timeout=timeout) as connection:
            # Not 0, with which it would not wait at all.
            connection.settimeout(max(deadline - time.monotonic(), 1e-3))
            if not connection.recv(1):
                raise ConnectionLost(host, REALTIME, "the controller closed the connection")
    except TimeoutError:
        raise ConnectionLost(host, REALTIME, f"nothing was received within {timeout:g} s") from None
    except ConnectionLost:
        raise
    except OSError as error:
        reason = f"no connection ({error.strerror or error})"
        raise ConnectionLost(host, REALTIME, reason) from None
