"""Checks of a controller with PolyScope X: its services, its Robot API, and what that reports."""

from __future__ import annotations

from simbridge.doctor.findings import Finding, failure, skipped, success, warning
from simbridge.ur.controller_facts import Survey
from simbridge.ur.errors import ConnectionLost
from simbridge.ur.polyscope_x import (
    CONTROL_MODE_SINCE,
    HTTP_SWITCH_SINCE,
    REMOTE_REMEDY,
    SERIAL_NUMBER_SINCE,
    has_robot_api,
    service_remedy,
)
from simbridge.ur.primary import ArmDescription, is_ursim
from simbridge.ur.tables import PORT_NAMES, REST


def check_port(survey: Survey, port: int) -> Finding:
    """Check that a port that a run needs answers."""
    error = survey.lost.get(port)
    name = f"port {port}"
    if error is None:
        return success(name, f"{PORT_NAMES[port]} answers")
    reason = error.reason if isinstance(error, ConnectionLost) else str(error)
    fix = f"{service_remedy(port)} It is off on a new controller."
    return failure(name, f"{PORT_NAMES[port]}: {reason}", fix)


def check_robot_api(survey: Survey) -> list[Finding]:
    """Check that the Robot API answers, which a run can do without.

    Returns:
        One finding; none where the software is not known to be PolyScope X.
    """
    version = survey.version
    if not survey.is_polyscope_x:
        return []
    name = "Robot API"
    if version is not None and not has_robot_api(version):
        return [skipped(name, "this software does not have it (from PolyScope 10.11 on)")]

    error = survey.lost.get(REST)
    if error is None:
        return [success(name, "answers")]

    # Without the Robot API, a run lacks what this version would report over it.
    reason = error.reason if isinstance(error, ConnectionLost) else str(error)
    assert version is not None
    if version[:2] < CONTROL_MODE_SINCE:
        return [skipped(name, f"{reason}; before 10.12 a run reads nothing from it")]
    fix = "Without it, Local or Remote cannot be read."
    if version[:2] >= SERIAL_NUMBER_SINCE:
        fix = "Without it, neither Local or Remote nor the serial number can be read."
    if version[:2] >= HTTP_SWITCH_SINCE:
        fix = f"{service_remedy(REST)} {fix}"
    return [warning(name, reason, fix)]


def check_remote(survey: Survey) -> Finding:
    """Check that the controller is in Remote."""
    name = "remote control"
    pendant = survey.pendant
    assert pendant is not None
    remote = pendant.remote_control
    if remote is not None:
        seen = "Remote" if remote else "Local: programs from outside the pendant are ignored"
        return failure(name, seen, REMOTE_REMEDY, unless=remote)

    fix = f"Look at the pendant; in Local a run does not start. {REMOTE_REMEDY}"
    return warning(name, f"unknown: {pendant.remote_control_obstacle}", fix)


def check_unknown_serial_number(survey: Survey, expected: str | None) -> Finding:
    """Show why the serial number is unknown.

    Args:
        survey: The controller's answers on its ports, without a serial number.
        expected: The cell's serial number; None for any.
    """
    assert survey.pendant is not None
    seen = f"unknown: {survey.pendant.serial_number_obstacle}"
    if expected is not None:
        seen += f"; the cell file says {expected}"
    fix = "Compare it with the nameplate on the arm's base. --yes cannot confirm without it."
    return warning("serial number", seen, fix)


def check_kind(survey: Survey, arm: ArmDescription, *, ursim: bool) -> Finding:
    """Say what the controller is taken for, and refuse --backend ursim.

    Args:
        survey: The controller's answers on its ports.
        arm: Description of the controller's arm.
        ursim: Whether the backend is that of URSim.
    """
    kinematics = "nominal kinematics" if is_ursim(arm.checksum) else "it has its own calibration"
    seen = f"{survey.kind} ({kinematics})"
    if survey.kind != "emulator":
        seen = f"taken for a {seen}"
    fix = (
        "--backend ursim refuses PolyScope X, whose simulator cannot be recognized. Use --backend "
        "real, which asks before it moves."
    )
    return failure("arm or URSim", seen, fix, unless=not ursim)
