"""The two kinds of UR controllers as backends: URSim, which is powered on and unlocked from here, and a real arm's.

A real arm never is; before it moves, the operator confirms, or a cell file that matches the controller does.
"""

from __future__ import annotations

import contextlib
import math
import time
import warnings

import numpy as np

from simbridge.backends import preflight
from simbridge.backends.backend import Ask, Facts
from simbridge.backends.controller_backend import ControllerBackend
from simbridge.backends.tool_comparison import tcp_text
from simbridge.robot.cell import Cell
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.ur.controller_facts import ControllerFacts, successors
from simbridge.ur.dashboard import DashboardClient
from simbridge.ur.errors import (
    ArmNotReady,
    CommandRefused,
    ControllerError,
    ModelMismatch,
    NotConfirmed,
)

# URSim may still be booting.
POWER_TIMEOUT = 30.0  # s
# A controller refuses to be unlocked in the first five seconds after a protective stop.
UNLOCK_TIMEOUT = 7.0  # s
# A real arm's approach in which a joint travels farther needs another confirmation.
FAR = 1.0  # rad


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

    def _confirm(self, facts: ControllerFacts, more: Facts, *, yes: bool) -> None:
        """Nobody is beside it."""

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

    def _confirm(self, facts: ControllerFacts, more: Facts, *, yes: bool) -> None:
        confirm(facts, self.robot, self._cell, more, self._ask, yes=yes)

    def _approach(self, begin: Array, goal: Array) -> Array:
        path = super()._approach(begin, goal)
        confirm_approach(path, self.period, self.robot, self._ask)
        return path


# URSim's power and stops


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


# Confirmation for a real arm


def confirm(
    facts: ControllerFacts,
    robot: Robot,
    cell: Cell | None,
    more: Facts,
    ask: Ask | None,
    *,
    yes: bool,
) -> None:
    """Ask for confirmation that the arm may move.

    Args:
        facts: The controller's.
        more: Further facts to display.
        ask: None if there is no operator.
        yes: Let the cell file confirm.

    Raises:
        NotConfirmed: The motion was not confirmed.
        ModelMismatch: The cell file was to confirm, and the controller does not match it.
    """
    if yes:
        check_cell_matches(facts, cell)
        warnings.warn(
            f"Confirmed by the cell file. Its mounting, {mounting_text(cell)}, was not compared: it cannot be read "
            f"from a controller.",
            stacklevel=2,
        )
        return
    if ask is None:
        raise NotConfirmed(
            "A real arm moves only when the operator confirms, and there is no terminal to ask at. Run it in a "
            "terminal, or with --yes and a cell file (--cell) that gives serial_number, tcp, payload and mounting."
        )
    _ask(ask, (*arm_facts(facts, robot, cell), *more), robot)


def confirm_approach(path: Array, period: float, robot: Robot, ask: Ask | None) -> None:
    """Ask for confirmation of an approach (T, n), rad, one sample a period (s), in which a joint travels far.

    Raises:
        NotConfirmed: It was not confirmed.
    """
    travel = np.abs(path[-1] - path[0])
    joint = int(np.argmax(travel))
    if travel[joint] <= FAR:
        return
    shown = (
        (
            "largest joint motion",
            f"{robot.joint_names[joint]}: {math.degrees(travel[joint]):.0f} degrees",
        ),
        ("duration", f"{(len(path) - 1) * period:.0f} s"),
    )
    if ask is None:
        motion = ", ".join(f"{name}: {value}" for name, value in shown)
        raise NotConfirmed(
            f"The arm is far from its goal ({motion}). An operator must confirm such a long motion; the cell file "
            f"cannot, and there is no terminal to ask at. Nothing was moved. Run it in a terminal, or move the arm "
            f"closer at the pendant."
        )
    _ask(ask, shown, robot)


def _ask(ask: Ask, shown: Facts, robot: Robot) -> None:
    if not ask(shown, f"Move the {robot.title}?"):
        raise NotConfirmed("Nothing was moved: the motion was not confirmed.")


def check_cell_matches(facts: ControllerFacts, cell: Cell | None) -> None:
    """Check that a cell file may confirm for the operator: it gives the arm, tool and mounting, and they match.

    Raises:
        NotConfirmed: It leaves one of them out.
        ModelMismatch: It differs from the controller.
    """
    needed = ("serial_number", "tcp", "payload", "mounting")
    missing = [name for name in needed if cell is None or getattr(cell, name) is None]
    if missing:
        raise NotConfirmed(
            f"--yes lets a cell file confirm for the operator, but it does not give {', '.join(missing)}. Add that to "
            f"the file named by --cell, or leave --yes out and confirm yourself."
        )
    assert cell is not None
    number, otherwise = facts.dashboard.serial_number, "leave it out and confirm yourself."
    if number != cell.serial_number:
        remedy = f"--yes needs a controller that reports the cell file's serial number; {otherwise}"
        raise ModelMismatch(
            facts.host, "serial number", number or "unknown", str(cell.serial_number), remedy
        )
    if facts.state.payload is None:
        remedy = (
            f"This software does not report its payload, so --yes cannot compare it; {otherwise}"
        )
        raise ModelMismatch(facts.host, "payload", "unknown", f"{cell.payload:g} kg", remedy)
    preflight.check_tool(facts, cell.tcp, cell.payload, cell.centre_of_gravity)


def arm_facts(facts: ControllerFacts, robot: Robot, cell: Cell | None) -> Facts:
    """The facts that the operator sees before confirming."""
    tcp, payload = facts.arm.tcp_offset, facts.state.payload
    model = successors(facts.model) or robot.title
    mass = (
        "not reported by this software"
        if payload is None
        else f"{payload:g} kg (on the controller now)"
    )
    return (
        (
            "arm",
            f"{model}, serial number {facts.dashboard.serial_number or 'unknown'}, at {facts.host}",
        ),
        ("PolyScope", ".".join(map(str, facts.state.version))),
        ("TCP", f"{tcp_text(tcp)} (on the controller now)"),
        ("payload", mass),
        ("mounting", f"{mounting_text(cell)}; it cannot be read, so look at the arm"),
        ("speed slider", f"{100.0 * facts.state.slider:.0f} %"),
    )


def mounting_text(cell: Cell | None) -> str:
    """How the arm is mounted: "ceiling", "floor (assumed)", "rotated by [0.0, 1.5, 0.0] rad"."""
    if cell is None or cell.mounting is None:
        return "floor (assumed)"
    return (
        cell.mounting if isinstance(cell.mounting, str) else f"rotated by {list(cell.mounting)} rad"
    )
