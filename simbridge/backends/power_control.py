"""Switching a controller through its dashboard: URSim on, and what a stop has left behind off."""

from __future__ import annotations

import contextlib
import time

from simbridge.robot.robot import Robot
from simbridge.ur.dashboard import DashboardClient
from simbridge.ur.errors import ArmNotReady, CommandRefused, ControllerError
from simbridge.ur.facts import ControllerFacts

# URSim takes its time to boot.
POWER_TIMEOUT = 30.0  # s
# A controller refuses to be unlocked in the first five seconds after a protective stop.
UNLOCK_TIMEOUT = 7.0  # s


def power_up(facts: ControllerFacts, robot: Robot) -> None:
    """Power on URSim and release its brakes; does nothing when it is ready.

    Args:
        facts: What has shown that it is URSim.
        robot: The arm of the run.

    Raises:
        ArmNotReady: It did not get ready.
        ConnectionLost, RemoteControlDisabled, CommandRefused: The dashboard does not do it.
    """
    assert facts.ursim, "only URSim is ever switched on"
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
    """Confirm a protective stop of URSim, as soon as the controller lets itself be unlocked.

    Raises:
        ConnectionLost, RemoteControlDisabled, CommandRefused: The dashboard does not do it.
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


def stop_paused_program(host: str) -> None:
    """Stop the program that a stop of the arm has paused, so that nobody can make it go on; silent when it cannot."""
    with contextlib.suppress(ControllerError), DashboardClient(host, timeout=1.0) as dashboard:
        if dashboard.program_state().startswith("PAUSED"):
            dashboard.stop()
