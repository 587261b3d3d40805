"""The two kinds of UR controllers as backends: URSim, and that of a real arm."""

from __future__ import annotations

import contextlib
import time

from simbridge.backends import preflight
from simbridge.backends.controller import ControllerBackend
from simbridge.ur.controller import ControllerFacts
from simbridge.ur.dashboard import DashboardClient
from simbridge.ur.errors import ArmNotReady, CommandRefused, ControllerError

# URSim may still be booting.
POWER_TIMEOUT = 30.0  # s
# A controller refuses to be unlocked in the first five seconds after a protective stop.
UNLOCK_TIMEOUT = 7.0  # s


class UrsimBackend(ControllerBackend):
    """URSim, UR's simulator of the controller; it is powered on and unlocked as needed."""

    ursim = True
    default_host = "127.0.0.1"
    approach_joint_speed = 1.0
    approach_tool_speed = 0.4

    def _ready(self) -> ControllerFacts:
        facts = self._identify()
        preflight.check_not_stopped(facts)
        power_up(facts)
        return super()._ready()

    def recover(self) -> None:
        self.stop()
        self._identify()
        unlock(self.host)
        super().recover()


class RealBackend(ControllerBackend):
    """A real arm; it moves only after confirmation, and is never powered on or unlocked from here."""

    ursim = False
    tool_speed_limit = 0.25
    approach_joint_speed = 0.25
    approach_tool_speed = 0.1


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
            raise ArmNotReady(facts.host, *facts.state.modes)
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
