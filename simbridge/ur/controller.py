"""Reads what a controller reports about itself and its arm, before anything is moved or claimed.

Each port is read independently, so that a silent one does not hide what the others report.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from simbridge.ur.dashboard import DashboardClient
from simbridge.ur.errors import ConnectionLost, ControllerError, UnsupportedController
from simbridge.ur.facts import ControllerFacts, DashboardFacts, StateFacts, Survey
from simbridge.ur.primary import read_arm_description
from simbridge.ur.rtde import RtdeConnection, RtdeReader
from simbridge.ur.tables import DASHBOARD, PRIMARY, REALTIME, RTDE

# What ur_rtde's control interface writes, as seen on the wire with ur_rtde 1.6.5 (23 recipes with these variables).
WRITTEN_BY_THE_BRIDGE = (
    *(f"input_int_register_{i}" for i in range(8)),
    *(f"input_double_register_{i}" for i in range(18)),
    "external_force_torque",
)

_NEEDED = (
    "timestamp", "robot_mode", "safety_mode", "runtime_state", "target_speed_fraction", "speed_scaling", "actual_q",
)  # fmt: skip
_OPTIONAL = ("payload", "payload_cog")
# Attempts to claim registers, and the time between them, s, in which a controller notices that a client has left.
_ATTEMPTS, _RELEASE_TIME = 3, 0.25


def read_controller(host: str, timeout: float = 2.0) -> ControllerFacts:
    """Read everything about a controller; moves nothing, claims nothing.

    Args:
        host: Its address.
        timeout: For each connection and each answer, s. The ports are read in parallel.

    Raises:
        ConnectionLost: A port on which nothing listens, or no valid answer comes.
        UnsupportedController: PolyScope X, or a version older than CB3's.
    """
    return survey(host, timeout).complete()


def survey(host: str, timeout: float = 2.0) -> Survey:
    """Like `read_controller`, but a port that fails is recorded, and the others are still read."""
    readers: dict[int, Callable[[str, float], Any]] = {
        RTDE: _read_state,
        DASHBOARD: _read_dashboard,
        PRIMARY: read_arm_description,
        REALTIME: _listen,
    }

    def read(port: int) -> Any:
        try:
            return readers[port](host, timeout)
        except ControllerError as error:
            return error
        except UnicodeError:  # from looking up an invalid name
            return ConnectionLost(host, port, "no connection (there is no host of that name)")

    with ThreadPoolExecutor(len(readers)) as pool:
        found = dict(zip(readers, pool.map(read, readers), strict=True))
    lost = {port: part for port, part in found.items() if isinstance(part, ControllerError)}
    parts = {port: None if port in lost else part for port, part in found.items()}
    return Survey(host, lost, parts[RTDE], parts[DASHBOARD], parts[PRIMARY])


def registers_taken(host: str, timeout: float = 2.0) -> tuple[str, ...]:
    """The RTDE inputs that the bridge would write and another client has already claimed.

    Tries to claim all of them on a separate connection. A controller that refuses one grants none. Granted inputs are
    released when the controller notices that the connection has ended, possibly a moment later; so there are several
    attempts, and a client that has just left is not reported. Nothing is written.

    Raises:
        ConnectionLost: Port 30004 does not answer.
    """
    for _ in range(_ATTEMPTS - 1):
        taken = _refused(host, timeout)
        if not taken:
            return ()
        time.sleep(_RELEASE_TIME)
    return _refused(host, timeout)


def _refused(host: str, timeout: float) -> tuple[str, ...]:
    connection = RtdeConnection(host, timeout)
    try:
        types = connection.input_types(WRITTEN_BY_THE_BRIDGE)
    finally:
        connection.close()
    return tuple(name for name, kind in zip(WRITTEN_BY_THE_BRIDGE, types, strict=False) if kind == "IN_USE")


def _read_state(host: str, timeout: float) -> StateFacts:
    with RtdeReader(host, (*_NEEDED, *_OPTIONAL), timeout=timeout) as reader:
        state, version = reader.first(), reader.version[:3]
    missing = [name for name in _NEEDED if name not in state]
    if missing:
        named = ".".join(map(str, version))
        raise UnsupportedController(host, named, f"Its RTDE does not have {', '.join(missing)}; update PolyScope.")
    q = np.array(state["actual_q"])
    q.setflags(write=False)
    return StateFacts(
        version=version,
        timestamp=state["timestamp"],
        robot_mode=state["robot_mode"],
        safety_mode=state["safety_mode"],
        runtime_state=state["runtime_state"],
        slider=state["target_speed_fraction"],
        speed_scaling=state["speed_scaling"],
        q=q,
        payload=state.get("payload"),
        payload_cog=state.get("payload_cog"),
    )


def _read_dashboard(host: str, timeout: float) -> DashboardFacts:
    with DashboardClient(host, timeout) as dashboard:
        return DashboardFacts(
            version=dashboard.polyscope_version(),
            serial_number=dashboard.serial_number(),
            remote_control=dashboard.is_in_remote_control(),
            program_state=dashboard.program_state(),
            program=dashboard.loaded_program(),
        )


def _listen(host: str, timeout: float) -> None:
    """Wait for any byte on the real-time port, on which a controller sends 125 or 500 times per second."""
    deadline = time.monotonic() + timeout
    try:
        with socket.create_connection((host, REALTIME), timeout=timeout) as connection:
            connection.settimeout(max(deadline - time.monotonic(), 1e-3))
            if not connection.recv(1):
                raise ConnectionLost(host, REALTIME, "the controller ended the connection")
    except TimeoutError:
        raise ConnectionLost(host, REALTIME, f"nothing came within {timeout:g} s") from None
    except ConnectionLost:
        raise
    except OSError as error:
        raise ConnectionLost(host, REALTIME, f"no connection ({error.strerror or error})") from None
