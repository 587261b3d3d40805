"""Have the motion of a real arm confirmed, by its operator or by a cell file that matches it."""

from __future__ import annotations

import math
import warnings

import numpy as np

from simbridge.backends import preflight
from simbridge.backends.backend import Ask, Facts
from simbridge.backends.controller_model import model_text
from simbridge.backends.tool_comparison import tcp_text
from simbridge.robot.cell import Cell
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.ur.controller_facts import ControllerFacts
from simbridge.ur.errors import ModelMismatch, NotConfirmed

# An approach in which a joint travels farther than this needs another confirmation, rad.
FAR_TRAVEL = 1.0
# The fields that a cell file must give to confirm for the operator.
CONFIRMING_FIELDS = ("serial_number", "tcp", "payload", "mounting")


def confirm_motion(
    facts: ControllerFacts,
    robot: Robot,
    cell: Cell | None,
    *,
    more_facts: Facts,
    ask: Ask | None,
    cell_confirms: bool,
) -> None:
    """Ask for confirmation that the arm may move.

    Args:
        facts: Facts of the controller.
        robot: The arm.
        cell: The installation around it, if there is a file.
        more_facts: Further facts to display.
        ask: Function that asks the operator; None if there is no operator.
        cell_confirms: Let the cell file confirm.

    Raises:
        NotConfirmed: The motion was not confirmed.
        ModelMismatch: The cell file was to confirm, and the controller does not match it.
    """
    if cell_confirms:
        check_cell_matches(facts, cell)
        warnings.warn(
            f"Confirmed by the cell file. Its mounting, {mounting_text(cell)}, was not compared: "
            f"it cannot be read from a controller.",
            stacklevel=2,
        )
        return

    if ask is None:
        raise NotConfirmed(
            "A real arm moves only after the operator has confirmed it, and there is no terminal "
            "to ask at. Run it in a terminal, or with --yes and a cell file (--cell) that gives "
            "serial_number, tcp, payload and mounting."
        )
    _ask_operator(ask, (*arm_facts(facts, robot, cell), *more_facts), robot)


def confirm_approach(path: Array, robot: Robot, *, period: float, ask: Ask | None) -> None:
    """Ask for confirmation of an approach in which a joint travels far.

    Args:
        path: Joint positions (T, n), rad, one a period.
        robot: The arm.
        period: Control period, s.
        ask: Function that asks the operator; None if there is no operator.

    Raises:
        NotConfirmed: The operator did not confirm.
    """
    travel = np.abs(path[-1] - path[0])
    joint = int(np.argmax(travel))
    if travel[joint] <= FAR_TRAVEL:
        return

    joint_motion = f"{robot.joint_names[joint]}: {math.degrees(travel[joint]):.0f} degrees"
    duration = f"{(len(path) - 1) * period:.0f} s"
    facts = (("largest joint motion", joint_motion), ("duration", duration))
    if ask is None:
        motion = ", ".join(f"{name}: {value}" for name, value in facts)
        raise NotConfirmed(
            f"The arm is far from its goal ({motion}). An operator must confirm such a long "
            f"motion; the cell file cannot, and there is no terminal to ask at. Nothing was moved. "
            f"Run it in a terminal, or move the arm closer at the pendant."
        )
    _ask_operator(ask, facts, robot)


def _ask_operator(ask: Ask, facts: Facts, robot: Robot) -> None:
    """Ask whether the arm may move; raise `NotConfirmed` unless the operator says yes."""
    if not ask(facts, f"Move the {robot.title}?"):
        raise NotConfirmed("Nothing was moved: the motion was not confirmed.")


def check_cell_matches(facts: ControllerFacts, cell: Cell | None) -> None:
    """Check that a cell file may confirm for the operator.

    It must give the arm's serial number, the TCP, the payload and the mounting. All but the
    mounting, which no controller reports, must match the controller.

    Args:
        facts: Facts of the controller.
        cell: The cell file's content; None if there is no cell file.

    Raises:
        NotConfirmed: The file leaves one of these out.
        ModelMismatch: One of them differs from the controller's, or the controller does not report
            it.
    """
    # The file must give all four.
    missing = [name for name in CONFIRMING_FIELDS if cell is None or getattr(cell, name) is None]
    if missing:
        raise NotConfirmed(
            f"--yes lets a cell file confirm for the operator, but it does not give "
            f"{', '.join(missing)}. Add that to the file named by --cell, or leave --yes out and "
            f"confirm yourself."
        )
    assert cell is not None

    # The serial number must be the controller's.
    serial_number = facts.pendant.serial_number
    if serial_number != cell.serial_number:
        reason = ""
        if facts.pendant.serial_number_obstacle:
            reason = f" ({facts.pendant.serial_number_obstacle})"
        raise ModelMismatch(
            facts.host,
            "serial number",
            actual=serial_number or "unknown",
            expected=str(cell.serial_number),
            remedy=f"--yes needs a controller that reports the cell file's serial number{reason}; "
            "leave it out and confirm yourself.",
        )

    # The tool must be the controller's, too. `check_tool` accepts a payload that the controller
    # does not report; here it is refused.
    if facts.state.payload is None:
        raise ModelMismatch(
            facts.host,
            "payload",
            actual="unknown",
            expected=f"{cell.payload:g} kg",
            remedy="This software does not report its payload, so --yes cannot compare it; leave "
            "it out and confirm yourself.",
        )
    preflight.check_tool(facts, cell.tcp, cell.payload, cell.centre_of_gravity)


def arm_facts(facts: ControllerFacts, robot: Robot, cell: Cell | None) -> Facts:
    """Return the facts that the operator sees before confirming, as names and values."""
    model = model_text(facts.arm.robot_type, facts.state.version, robot)
    serial_number = facts.pendant.serial_number or "unknown"
    if facts.pendant.serial_number is None and cell is not None and cell.serial_number is not None:
        serial_number = (
            f"unknown (compare the nameplate with that of the cell file, {cell.serial_number})"
        )
    payload = "not reported by this software"
    if facts.state.payload is not None:
        payload = f"{facts.state.payload:g} kg (on the controller now)"
    polyscope = facts.state.version_text
    if facts.state.is_polyscope_x and facts.pendant.remote_control is None:
        polyscope += "; Local or Remote is unknown: look at the pendant, it must be in Remote"
    return (
        ("arm", f"{model}, serial number {serial_number}, at {facts.host}"),
        ("PolyScope", polyscope),
        ("TCP", f"{tcp_text(facts.arm.tcp_offset)} (on the controller now)"),
        ("payload", payload),
        ("mounting", f"{mounting_text(cell)}; it cannot be read, so look at the arm"),
        ("speed slider", f"{100.0 * facts.state.slider:.0f} %"),
    )


def mounting_text(cell: Cell | None) -> str:
    """Say how the arm is mounted.

    Returns:
        "ceiling", "floor (assumed)", "rotated by [0.0, 1.5, 0.0] rad", ...
    """
    if cell is None or cell.mounting is None:
        return "floor (assumed)"
    if isinstance(cell.mounting, str):
        return cell.mounting
    return f"rotated by {list(cell.mounting)} rad"
