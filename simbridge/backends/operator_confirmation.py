"""Before a real arm moves, the operator confirms; or a cell file that matches the controller does."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable

import numpy as np

from simbridge.backends import preflight
from simbridge.backends.backend import Ask, Facts
from simbridge.robot.cell import Cell
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.ur.controller import ControllerFacts, successors
from simbridge.ur.errors import ModelMismatch, NotConfirmed

# A real arm's approach in which a joint travels farther needs another confirmation.
FAR = 1.0  # rad


def confirm_approach(path: Array, period: float, robot: Robot, cell: Cell | None, ask: Ask | None) -> None:
    """Ask for confirmation (see `confirm`) of an approach (T, n), rad, in which a joint travels far."""
    travel = np.abs(path[-1] - path[0])
    joint = int(np.argmax(travel))
    if travel[joint] > FAR:
        facts = (
            ("largest joint motion", f"{robot.joint_names[joint]}: {math.degrees(travel[joint]):.0f} degrees"),
            ("duration", f"{(len(path) - 1) * period:.0f} s"),
        )
        confirm(None, robot, cell, facts, ask, yes=False)


def confirm(
    facts: ControllerFacts | None,
    robot: Robot,
    cell: Cell | None,
    more: Iterable[tuple[str, str]],
    ask: Ask | None,
    *,
    yes: bool,
) -> None:
    """Ask for confirmation that the arm may move.

    Args:
        facts: The controller's facts; None if the operator has seen them already.
        more: Further facts to display.
        ask: None if there is no operator.
        yes: Let the cell file confirm.

    Raises:
        NotConfirmed: The motion was not confirmed.
        ModelMismatch: The cell file was to confirm, and the controller does not match it.
    """
    if yes and facts is not None:
        check_cell_matches(facts, cell)
        assert cell is not None
        warnings.warn(
            f"Confirmed by the cell file. Its mounting, {mounting_text(cell)}, was not compared: it cannot be read "
            f"from a controller.",
            stacklevel=2,
        )
        return
    shown: Facts = (*(() if facts is None else arm_facts(facts, robot, cell)), *more)
    if ask is None and facts is None:
        motion = ", ".join(f"{name}: {value}" for name, value in shown)
        raise NotConfirmed(
            f"The arm is far from its goal ({motion}). An operator must confirm such a long motion; the cell file "
            f"cannot, and there is no terminal to ask at. Nothing was moved. Run it in a terminal, or move the arm "
            f"closer at the pendant."
        )
    if ask is None:
        raise NotConfirmed(
            "A real arm moves only when the operator confirms, and there is no terminal to ask at. Run it in a "
            "terminal, or with --yes and a cell file (--cell) that gives serial_number, tcp, payload and mounting."
        )
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
        raise ModelMismatch(facts.host, "serial number", number or "unknown", str(cell.serial_number), remedy)
    if facts.state.payload is None:
        remedy = f"This software does not report its payload, so --yes cannot compare it; {otherwise}"
        raise ModelMismatch(facts.host, "payload", "unknown", f"{cell.payload:g} kg", remedy)
    preflight.check_tool(facts, cell.tcp, cell.payload, cell.centre_of_gravity)


def arm_facts(facts: ControllerFacts, robot: Robot, cell: Cell | None) -> Facts:
    """The facts that the operator sees before confirming."""
    tcp, payload = facts.arm.tcp_offset, facts.state.payload
    model = successors(facts.model) or robot.title
    mass = "not reported by this software" if payload is None else f"{payload:g} kg (on the controller now)"
    return (
        ("arm", f"{model}, serial number {facts.dashboard.serial_number or 'unknown'}, at {facts.host}"),
        ("PolyScope", ".".join(map(str, facts.state.version))),
        ("TCP", f"{preflight.tcp_text(tcp)} (on the controller now)"),
        ("payload", mass),
        ("mounting", f"{mounting_text(cell)}; it cannot be read, so look at the arm"),
        ("speed slider", f"{100.0 * facts.state.slider:.0f} %"),
    )


def mounting_text(cell: Cell | None) -> str:
    """How the arm is mounted: "ceiling", "floor (assumed)", "rotated by [0.0, 1.5, 0.0] rad"."""
    if cell is None or cell.mounting is None:
        return "floor (assumed)"
    return cell.mounting if isinstance(cell.mounting, str) else f"rotated by {list(cell.mounting)} rad"
