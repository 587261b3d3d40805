"""Make URSim ready for a run: its power, its brakes, and after a stop."""

from __future__ import annotations

import contextlib
import time

from simbridge.ur.controller_facts import ControllerFacts
from simbridge.ur.dashboard import DashboardClient
from simbridge.ur.errors import ArmNotReady, CommandRefused, ControllerError

# URSim may still be booting, s.
POWER_TIMEOUT_S = 30.0
# How long to wait between two looks at the robot mode, s.
MODE_POLL_S = 0.05
# A controller refuses to be unlocked in the first five seconds after a protective stop, s.
UNLOCK_TIMEOUT_S = 7.0
# How long to wait between two attempts to unlock, s.
UNLOCK_PAUSE_S = 0.1


def power_up(facts: ControllerFacts) -> None:
    """Power URSim on and release its brakes; does nothing when it is ready.

    Args:
        facts: The facts that identify it as URSim.

    Raises:
        ArmNotReady: URSim did not become ready within `POWER_TIMEOUT_S`.
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
    """Wait until the robot mode is one of some; raise `ArmNotReady` if it does not become one."""
    deadline = time.monotonic() + POWER_TIMEOUT_S
    while dashboard.robot_mode() not in modes:
        if time.monotonic() > deadline:
            raise ArmNotReady(facts.host, *facts.state.modes)
        time.sleep(MODE_POLL_S)


def unlock(host: str) -> None:
    """Unlock a protective stop of URSim as soon as the controller allows it.

    Raises:
        ConnectionLost, RemoteControlDisabled, CommandRefused: The dashboard refused.
    """
    with DashboardClient(host) as dashboard:
        deadline = time.monotonic() + UNLOCK_TIMEOUT_S
        while dashboard.safety_status() == "PROTECTIVE_STOP":
            # The message about the stop may be closed already.
            with contextlib.suppress(ControllerError):
                dashboard.close_safety_popup()
            try:
                dashboard.unlock_protective_stop()
            except CommandRefused:
                if time.monotonic() > deadline:
                    raise
            time.sleep(UNLOCK_PAUSE_S)
