"""Before a real arm moves, a person says yes; or a cell file that matches the controller does."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable

from simbridge.backends import preflight
from simbridge.robot.cell import Cell
from simbridge.robot.robot import Robot
from simbridge.ur.errors import ModelMismatch, NotConfirmed
from simbridge.ur.facts import ControllerFacts, successors

Shown = tuple[tuple[str, str], ...]
# Shows names and values, asks a question, and returns whether the person said yes.
Ask = Callable[[Shown, str], bool]


def agree(
    facts: ControllerFacts | None,
    robot: Robot,
    cell: Cell | None,
    more: Iterable[tuple[str, str]],
    ask: Ask | None,
    *,
    yes: bool,
) -> None:
    """Have it confirmed that the arm moves.

    Args:
        facts: What the controller says; None when a person has seen it already.
        robot: The arm.
        cell: The cell.
        more: What else is shown.
        ask: Asks a person; None when there is none.
        yes: Let the cell file answer.

    Raises:
        NotConfirmed: Nobody said yes.
        ModelMismatch: The cell file was to answer, and the controller is not as it says.
    """
    if yes and facts is not None:
        check_cell_answers(facts, cell)
        assert cell is not None
        warnings.warn(
            f"The cell file has answered. Its mounting, {mounted(cell)}, is not compared: no controller tells its own.",
            stacklevel=2,
        )
        return
    shown = (*(() if facts is None else arm_facts(facts, robot, cell)), *more)
    if ask is None and facts is None:
        way = ", ".join(f"{name}: {value}" for name, value in shown)
        raise NotConfirmed(
            f"The arm is far from where it shall go ({way}). For so long a way a person must say yes, whatever the "
            f"cell file says, and there is no terminal to ask at. Nothing was moved. Run it in a terminal, or bring "
            f"the arm nearer at the pendant."
        )
    if ask is None:
        raise NotConfirmed(
            "A real arm moves only when a person says yes, and there is no terminal to ask at. Run it in a terminal, "
            "or with --yes and a cell file (--cell) that says serial_number, tcp, payload and mounting of the arm."
        )
    if not ask(shown, f"Move the {robot.title}?"):
        raise NotConfirmed("Nothing was moved: it was not confirmed.")


def check_cell_answers(facts: ControllerFacts, cell: Cell | None) -> None:
    """Whether a cell file may answer for a person: it names the arm, its tool and its mounting, and they match.

    Raises:
        NotConfirmed: It leaves something out.
        ModelMismatch: It says something else than the controller.
    """
    needed = ("serial_number", "tcp", "payload", "mounting")
    missing = [name for name in needed if cell is None or getattr(cell, name) is None]
    if missing:
        raise NotConfirmed(
            f"--yes lets a cell file answer for a person, and it must say {', '.join(missing)} as well. Give it with "
            f"--cell, or leave --yes out and answer yourself."
        )
    assert cell is not None
    if facts.serial_number != cell.serial_number:
        raise ModelMismatch(
            facts.host,
            "serial number",
            facts.serial_number or "not told",
            str(cell.serial_number),
            "--yes needs a controller that tells the serial number of the cell file; leave it out and answer yourself.",
        )
    if facts.state.payload is None:
        raise ModelMismatch(
            facts.host,
            "payload",
            "not told",
            f"{cell.payload:g} kg",
            "This software does not tell its payload, so --yes cannot compare it; leave it out and answer yourself.",
        )
    preflight.check_tool(facts, cell.tcp, cell.payload, cell.centre_of_gravity)


def arm_facts(facts: ControllerFacts, robot: Robot, cell: Cell | None) -> Shown:
    """What a person must have seen before saying yes."""
    tcp, payload = facts.arm.tcp_offset, facts.state.payload
    model = successors(facts.model) or robot.title
    return (
        ("arm", f"{model}, serial number {facts.serial_number or 'not told'}, at {facts.host}"),
        ("PolyScope", ".".join(map(str, facts.version))),
        ("TCP", f"{preflight.shown_tcp(tcp)} (on the controller now)"),
        ("payload", f"{payload:g} kg (on the controller now)" if payload is not None else "not told by this software"),
        ("mounting", f"{mounted(cell)}; it cannot be read, so look at the arm"),
        ("speed slider", f"{facts.state.slider:.0%}"),
    )


def mounted(cell: Cell | None) -> str:
    """How the arm is mounted, as people read it."""
    if cell is None or cell.mounting is None:
        return "floor (not said)"
    return cell.mounting if isinstance(cell.mounting, str) else f"turned by {list(cell.mounting)} rad"
