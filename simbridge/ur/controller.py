"""What a controller says of itself and its arm before anything is moved or claimed.

Each port is asked by itself, so that one that is silent hides nothing of what the others say.
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
from simbridge.ur.facts import (
    DASHBOARD,
    PRIMARY,
    REAL_TIME,
    RTDE,
    ControllerFacts,
    DashboardFacts,
    StateFacts,
    Survey,
)
from simbridge.ur.primary import read_arm_description
from simbridge.ur.rtde import RtdeConnection, RtdeReader

# What ur_rtde's control interface writes, as seen on the wire with ur_rtde 1.6.5 (23 recipes, these variables in all).
WRITTEN_BY_THE_BRIDGE = (
    *(f"input_int_register_{i}" for i in range(8)),
    *(f"input_double_register_{i}" for i in range(18)),
    "external_force_torque",
)

_NEEDED = (
    "timestamp",
    "robot_mode",
    "safety_mode",
    "runtime_state",
    "target_speed_fraction",
    "speed_scaling",
    "actual_q",
)
_WHERE_KNOWN = ("payload", "payload_cog")
# How often it is asked for registers, and how long a controller is given to see that a client has left, s.
_TRIES, _LETTING_GO = 3, 0.25


def read_controller(host: str, timeout: float = 2.0) -> ControllerFacts:
    """Read all that can be read of a controller; moves nothing, claims nothing.

    Args:
        host: Its address.
        timeout: For each connection and each answer, s. The ports are asked side by side.

    Raises:
        ConnectionLost: Names the port where nothing listens or nothing sensible comes.
        UnsupportedController: PolyScope X, or software older than CB3's.
    """
    return survey(host, timeout).complete()


def survey(host: str, timeout: float = 2.0) -> Survey:
    """Like `read_controller`, but a port that fails is noted, and the others are read all the same."""
    readers: dict[int, Callable[[str, float], Any]] = {
        RTDE: _read_state,
        DASHBOARD: _read_dashboard,
        PRIMARY: read_arm_description,
        REAL_TIME: _listen,
    }

    def read(port: int) -> Any:
        try:
            return readers[port](host, timeout)
        except ControllerError as error:
            return error
        except UnicodeError:  # from looking up a name that cannot be one
            return ConnectionLost(host, port, "there is no host of that name")

    with ThreadPoolExecutor(len(readers)) as pool:
        found = dict(zip(readers, pool.map(read, readers), strict=True))
    lost = {port: part for port, part in found.items() if isinstance(part, ControllerError)}
    parts = {port: None if port in lost else part for port, part in found.items()}
    return Survey(host, lost, parts[RTDE], parts[DASHBOARD], parts[PRIMARY])


def registers_taken(host: str, timeout: float = 2.0) -> tuple[str, ...]:
    """The RTDE inputs that the bridge would write and another client holds already.

    Asks for all of them on a connection of its own. A controller that refuses one gives none; those that it gives are
    free again as soon as it sees that the connection has ended, which can be a moment later: whoever asks then is given
    another try, so that nobody is refused because of a client that has just left. Nothing is written.

    Raises:
        ConnectionLost: Port 30004 does not answer.
    """
    for _ in range(_TRIES - 1):
        taken = _refused(host, timeout)
        if not taken:
            return ()
        time.sleep(_LETTING_GO)
    return _refused(host, timeout)


def _refused(host: str, timeout: float) -> tuple[str, ...]:
    connection = RtdeConnection(host, timeout)
    try:
        types = connection.input_types(WRITTEN_BY_THE_BRIDGE)
    finally:
        connection.close()
    return tuple(name for name, kind in zip(WRITTEN_BY_THE_BRIDGE, types, strict=False) if kind == "IN_USE")


def _read_state(host: str, timeout: float) -> StateFacts:
    with RtdeReader(host, (*_NEEDED, *_WHERE_KNOWN), timeout=timeout) as reader:
        state, version = reader.first(), reader.version[:3]
    missing = [name for name in _NEEDED if name not in state]
    if missing:
        named = ".".join(map(str, version))
        raise UnsupportedController(host, named, f"Its RTDE does not tell {', '.join(missing)}; update PolyScope.")
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
    """Wait for any byte on the real-time port, which a controller fills 125 or 500 times a second."""
    deadline = time.monotonic() + timeout
    try:
        with socket.create_connection((host, REAL_TIME), timeout=timeout) as connection:
            connection.settimeout(max(deadline - time.monotonic(), 1e-3))
            if not connection.recv(1):
                raise ConnectionLost(host, REAL_TIME, "the controller ended the connection")
    except TimeoutError:
        raise ConnectionLost(host, REAL_TIME, f"nothing came within {timeout:g} s") from None
    except ConnectionLost:
        raise
    except OSError as error:
        raise ConnectionLost(host, REAL_TIME, f"no connection ({error.strerror or error})") from None
