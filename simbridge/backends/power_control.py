"""Power and stops of a controller through its dashboard: power URSim on, unlock it, stop a paused program."""

from __future__ import annotations

import contextlib
import time

from simbridge.ur.controller import ControllerFacts
from simbridge.ur.dashboard import DashboardClient
from simbridge.ur.errors import ArmNotReady, CommandRefused, ControllerError

# URSim may still be booting.
POWER_TIMEOUT = 30.0  # s
# A controller refuses to be unlocked in the first five seconds after a protective stop.
UNLOCK_TIMEOUT = 7.0  # s


def power_up(facts: ControllerFacts) -> None:
    """Power URSim on and release its brakes; does nothing when it is ready.

    Args:
        facts: The facts that identify it as URSim.

    Raises:
        ArmNotReady: It did not become ready within `POWER_TIMEOUT`.
        ConnectionLost, RemoteControlDisabled, CommandRefused: The dashboard refused.
    """
    assert facts.ursim, "only URSim is ever powered on"
    with DashboardClient(facts.host) as dashboard:
        if dashboard.robot_mode() == "RUNNING":
            return
        dashboard.power_on()
        _await_mode(dashboard, facts, "IDLE", "RUNNING")
        dashboard.brake_release()
        _await_mode(dashboard, facts, "RUNNING")


def _await_mode(dashboard: DashboardClient, facts: ControllerFacts, *modes: str) -> None:
    deadline = time.monotonic() + POWER_TIMEOUT
    while dashboard.robot_mode() not in modes:
        if time.monotonic() > deadline:
            raise ArmNotReady(facts.host, facts.state.robot_mode, facts.state.safety_mode, facts.state.runtime_state)
        time.sleep(0.05)


def unlock(host: str) -> None:
    """Unlock a protective stop of URSim as soon as the controller allows it.

    Raises:
        ConnectionLost, RemoteControlDisabled, CommandRefused: The dashboard refused.
    """
    with DashboardClient(host) as dashboard:
        deadline = time.monotonic() + UNLOCK_TIMEOUT
        while dashboard.safety_status() == "PROTECTIVE_STOP":
            with contextlib.suppress(ControllerError):
                dashboard.close_safety_popup()
            try:
                dashboard.unlock_protective_stop()
            except CommandRefused:
                if time.monotonic() > deadline:
                    raise
            time.sleep(0.1)
