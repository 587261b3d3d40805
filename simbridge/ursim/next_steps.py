"""List the steps that are left until a run can use a URSim that has started."""

from __future__ import annotations

from simbridge.robot.robot import Robot
from simbridge.text import join_words
from simbridge.ur.controller_facts import Survey
from simbridge.ur.survey import survey
from simbridge.ur.tables import PORT_NAMES
from simbridge.ur.ursim_image import pendant_page

SERVICES_STEP = (
    "Allow what does not answer yet ({}): Settings > Security > Services. If the pendant is still "
    "starting, wait for it."
)
REMOTE_STEP = (
    "Allow programs from outside: Settings > System > Remote Control > Enable; then switch from "
    "Local to Remote at the top right."
)
UNKNOWN_REMOTE_STEP = (
    "If the top right shows Local: Settings > System > Remote Control > Enable, then switch to "
    "Remote."
)


def describe_next_steps(robot: Robot, host: str) -> list[str]:
    """Return lines about a URSim whose controller answers: its pendant, and what comes next.

    Args:
        robot: The arm.
        host: The loopback address of its ports.
    """
    controller = survey(host)
    version = ""
    if controller.state is not None:
        version = f" (PolyScope {'.'.join(map(str, controller.state.version))})"

    lines = [
        f"URSim for a {robot.ur_model}{version} answers at {host}.",
        f"Pendant: {pendant_page(host)}",
    ]
    steps = pendant_steps(controller, robot)
    if steps:
        lines.append("Left to do at the pendant:")
        lines += [f"  {number}. {step}" for number, step in enumerate(steps, start=1)]

    address = "" if host == "127.0.0.1" else f" --host {host}"
    options = f"--backend ursim --robot {robot.name}{address}"
    lines += [
        "Then:" if steps else "Next:",
        f"  simbridge doctor {options}",
        f"  simbridge run square_tracking {options}",
        "`simbridge ursim stop` removes it, with the programs saved in it.",
    ]
    return lines


def pendant_steps(controller: Survey, robot: Robot) -> list[str]:
    """Return what has to be set at the pendant, as sentences.

    There are two settings, services and remote control; a CB3 has neither.

    Args:
        controller: What the controller has reported on its ports.
        robot: The arm.
    """
    if robot.series == "CB3":
        return []

    steps = []
    if controller.lost:
        names = [PORT_NAMES[port] for port in controller.lost]
        steps.append(SERVICES_STEP.format(join_words(names)))

    # Without the dashboard, or on older software, nothing tells Local from Remote.
    is_remote = None if controller.pendant is None else controller.pendant.remote_control
    if is_remote is None:
        steps.append(UNKNOWN_REMOTE_STEP)
    elif not is_remote:
        steps.append(REMOTE_STEP)
    return steps
