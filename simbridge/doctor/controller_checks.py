"""Checks of the controller's state, and that the arm behind it is the one that the run is for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin

from simbridge.backends.preflight import SAME_FLANGE, docker_command
from simbridge.backends.tool_watch import SAME_COG, SAME_MASS, same_tcp, tcp_text
from simbridge.backends.ursim_and_real import mounting_text
from simbridge.doctor.findings import Finding, failed, passed, unread, warned
from simbridge.errors import InvalidParameter
from simbridge.quoting import quoted
from simbridge.resources import robot_files
from simbridge.robot.calibration import calibrate, deviations
from simbridge.robot.calibration_difference import ros_difference
from simbridge.robot.cell import Cell
from simbridge.robot.kinematics import tool_frame
from simbridge.robot.parts import RosCalibration
from simbridge.robot.robot import Robot
from simbridge.text import degrees, millimetres, milliradians
from simbridge.ur import tables
from simbridge.ur.controller_facts import (
    FULL_SPEED,
    Survey,
    is_model,
    model_name,
    safety_stop,
    successors,
)
from simbridge.ur.errors import ArmNotReady, ConnectionLost, RemoteControlDisabled
from simbridge.ur.primary import is_ursim

# Robot modes from which `power on` and `brake release` lead to running.
_CAN_BE_POWERED_ON = (tables.RobotMode.POWER_OFF, tables.RobotMode.POWER_ON, tables.RobotMode.IDLE)


def check_port(survey: Survey, port: int, robot: Robot, *, ursim: bool) -> Finding:
    """Whether a port of the controller answers as expected."""
    name = f"port {port}"
    error = survey.lost.get(port)
    if error is None:
        return passed(name, f"{tables.PORT_NAMES[port]} answers")
    reason = error.reason if isinstance(error, ConnectionLost) else str(error)
    if ursim:
        fix = f"Is URSim running, with this port published? It is started with: {docker_command(robot, survey.host)}"
    else:
        fix = (
            f"Try: ping {survey.host}. Check the cable, the address (pendant: Settings > System > Network), and "
            f"whether the service is allowed (Settings > Security > Services)."
        )
    return failed(name, f"{tables.PORT_NAMES[port]}: {reason}", fix)


def check_software(survey: Survey) -> Finding:
    """Whether simbridge supports this version, and at which rate."""
    if survey.unsupported is not None:
        version = (
            f"PolyScope {survey.unsupported.version}" if survey.unsupported.version else "unknown"
        )
        return failed("software", version, survey.unsupported.reason)
    if survey.state is None:
        return unread("software", tables.RTDE)
    state = survey.state
    version = ".".join(map(str, state.version))
    seen = f"PolyScope {version}, {state.series}, {1.0 / state.period:.0f} Hz"
    dashboard = survey.dashboard.version if survey.dashboard is not None else ""
    if dashboard and not f"{dashboard}.".startswith(f"{version}."):
        fix = "The two should agree: restart the controller."
        return warned("software", f"{seen}; its dashboard says {dashboard}", fix)
    return passed("software", seen)


def check_kind(survey: Survey, *, ursim: bool) -> Finding:
    """Whether the controller is of the kind chosen with --backend: URSim, or a real arm."""
    if survey.arm is None:
        return unread("arm or URSim", tables.PRIMARY)
    if is_ursim(survey.arm.checksum):
        seen = "URSim (kinematics checksum all ones)"
        return warned("arm or URSim", seen, "For URSim use --backend ursim.", unless=ursim)
    fix = (
        "It is not URSim, so --backend ursim refuses to move it. For a real arm use --backend real."
    )
    return failed("arm or URSim", "a real arm (it has its own calibration)", fix, unless=not ursim)


def check_remote_control(survey: Survey) -> Finding:
    """Whether the controller accepts programs from outside."""
    if survey.dashboard is None:
        return unread("remote control", tables.DASHBOARD)
    remote = survey.dashboard.remote_control
    if remote is None:
        if survey.state is not None and survey.state.series == "CB3":
            return passed("remote control", "CB3 does not have this setting")
        return warned(
            "remote control",
            "not reported by the dashboard",
            "PolyScope 5.6 or later reports it. With older software check it at the top right of the pendant.",
        )
    seen = "on" if remote else "off: programs from outside are ignored"
    return failed("remote control", seen, RemoteControlDisabled.remedy, unless=remote)


def check_robot_mode(survey: Survey, *, ursim: bool) -> Finding:
    """Whether the arm has power and its brakes are released."""
    if survey.state is None:
        return unread("robot mode", tables.RTDE)
    mode = survey.state.robot_mode
    seen = tables.mode_label(mode, tables.RobotMode)
    if ursim and mode in _CAN_BE_POWERED_ON:
        return passed("robot mode", f"{seen}; a run powers URSim on")
    return failed("robot mode", seen, ArmNotReady.remedy, unless=mode == tables.RobotMode.RUNNING)


def check_safety_mode(survey: Survey) -> Finding:
    """Whether no stop is active."""
    if survey.state is None:
        return unread("safety mode", tables.RTDE)
    mode = survey.state.safety_mode
    seen, stop = tables.mode_label(mode, tables.SafetyMode), safety_stop(mode)
    if mode == tables.SafetyMode.REDUCED:
        return warned(
            "safety mode",
            seen,
            "The reduced limits of the safety configuration apply: a fast plan may end in a protective stop. Leave the "
            "trigger plane, or release the input that activates the reduced mode.",
        )
    return failed(
        "safety mode",
        seen,
        "" if stop is None else stop.remedy,
        unless=mode == tables.SafetyMode.NORMAL,
    )


def check_program(survey: Survey) -> Finding:
    """Whether no program runs; a run never stops one."""
    if survey.state is None:
        return unread("program", tables.RTDE)
    state = survey.state.runtime_state
    loaded = survey.dashboard.program if survey.dashboard is not None else ""
    seen = tables.mode_label(state, tables.RuntimeState) + (f", {loaded}" if loaded else "")
    fix = "A run never stops a program on the controller. Stop it at the pendant."
    return failed("program", seen, fix, unless=state not in tables.PROGRAM_RUNS)


def check_registers(taken: tuple[str, ...] | None) -> Finding:
    """Whether the registers that simbridge writes are free: those that are not, None if unknown."""
    if taken is None:
        return unread("registers", tables.RTDE)
    if not taken:
        return passed("registers", "free")
    more = f" and {len(taken) - 2} more" if len(taken) > 2 else ""
    return failed(
        "registers",
        f"held by another client: {', '.join(taken[:2])}{more}",
        "Stop the other program: a second simbridge, a ROS driver, or a fieldbus (EtherNet/IP, PROFINET) that is "
        "enabled in the installation.",
    )


def check_slider(survey: Survey) -> Finding:
    """Whether the speed slider allows the plan's speed."""
    if survey.state is None:
        return unread("speed slider", tables.RTDE)
    slider = survey.state.slider
    seen = f"{slider * 100.0:.0f} %"
    if slider <= 0.0:
        return failed("speed slider", seen, "Nothing would move. Move it to 100 % at the pendant.")
    fix = "Move it to 100 % at the pendant, or expect the run to take longer (--on-scaling stop refuses it)."
    return warned("speed slider", seen, fix, unless=slider >= FULL_SPEED)


def check_model(survey: Survey, robot: Robot) -> Finding:
    """Whether the controller's arm is of the model chosen with --robot."""
    if survey.arm is None:
        return unread("model", tables.PRIMARY)
    if survey.state is None:
        return unread("model", tables.RTDE)
    model = model_name(survey.arm.robot_type, survey.state.version[0])
    if model is None:
        return warned(
            "model",
            f"not reported by the controller (robot type {survey.arm.robot_type})",
            f"Check yourself that it is a {robot.title}, and look at the calibration below.",
        )
    known = model.lower().replace(" ", "")
    if not is_model(model, robot.title):
        remedy = (
            f"use --robot {known}"
            if known in robot_files()
            else "describe the arm in a file (robots/README.md)"
        )
        return failed(
            "model", f"{model}, not {robot.title}", f"If that is the intended arm, {remedy}."
        )
    if robot.series != survey.state.series:
        return failed(
            "model",
            f"{model} of the {survey.state.series}, but the series of {robot.name} is {quoted(robot.series)}",
            "Correct the series in the robot's file, or choose another robot with --robot.",
        )
    return passed("model", successors(model))


def check_serial_number(survey: Survey, expected: str | None) -> Finding:
    """Whether it is the individual arm of the cell file, which expects this serial number (None: any)."""
    if survey.dashboard is None:
        return unread("serial number", tables.DASHBOARD)
    found = survey.dashboard.serial_number
    if expected is None:
        return passed(
            "serial number",
            found or "not reported by this software (before PolyScope 3.12 and 5.6)",
        )
    if found is None:
        fix = "Compare it with the nameplate on the arm's base."
        return warned("serial number", f"not reported; the cell file says {expected}", fix)
    if found == expected:
        return passed("serial number", f"{found}, as in the cell file")
    return failed(
        "serial number",
        f"{found}, but the cell file says {expected}",
        "This is another arm: use its own cell file, or create one with --write-cell.",
    )


def check_mounting(cell: Cell) -> Finding:
    """The mounting in the cell file, which cannot be compared with the controller."""
    if cell.mounting is None:
        fix = "Add it: --yes requires it, and gravity depends on it."
        return warned("mounting", "not in the cell file: floor is assumed", fix)
    return warned(
        "mounting",
        f"{mounting_text(cell)} in the cell file; it cannot be read from the controller",
        "Compare it with the pendant (Installation > General > Mounting) and with the arm.",
    )


def check_tcp(survey: Survey, expected: tuple[float, ...] | None) -> Finding:
    """Whether the controller's TCP is that of the cell file: x y z (m) rx ry rz (rad) in the flange (None: any)."""
    if survey.arm is None:
        return unread("TCP", tables.PRIMARY)
    found = survey.arm.tcp_offset
    if expected is None or same_tcp(found, expected):
        return passed(
            "TCP", tcp_text(found) + ("" if expected is None else ", as in the cell file")
        )
    return failed(
        "TCP",
        f"{tcp_text(found)}; the cell file says {tcp_text(expected)}",
        "One of them is not the mounted tool: correct it at the pendant (Installation > General > TCP) or in the cell "
        "file.",
    )


def check_payload(
    survey: Survey, expected: float | None, expected_cog: Sequence[float] | None = None
) -> Finding:
    """Whether the controller's payload is that of the cell file (None: any), kg.

    Its centre of gravity in the flange (3,), m, is compared where both give one.
    """
    if survey.state is None:
        return unread("payload", tables.RTDE)
    found = survey.state.payload
    if found is None:
        return warned(
            "payload",
            "not reported by this software (before PolyScope 3.11 and 5.5)",
            "Check it at the pendant: Installation > General > Payload.",
        )
    cog = survey.state.payload_cog
    seen = _payload_text(found, cog)
    if expected is None:
        return passed("payload", seen)
    same_cog = (
        not found
        or cog is None
        or expected_cog is None
        or np.allclose(cog, expected_cog, 0.0, SAME_COG)
    )
    if abs(found - expected) <= SAME_MASS and same_cog:
        return passed("payload", f"{seen}, as in the cell file")
    return failed(
        "payload",
        f"{seen}; the cell file says {_payload_text(expected, expected_cog)}",
        "A wrong payload leads to protective stops. Correct it at the pendant (Installation > General > Payload) or in "
        "the cell file.",
    )


def _payload_text(mass: float, cog: Sequence[float] | None) -> str:
    position = (
        "" if not mass or cog is None else f" at {' '.join(millimetres(part) for part in cog)} mm"
    )
    return f"{mass:.3g} kg{position}"


def check_calibration(survey: Survey, robot: Robot) -> Finding:
    """How far this arm's kinematics deviate from the robot file's, joint by joint and at the tool at home."""
    if survey.arm is None:
        return unread("calibration", tables.PRIMARY)
    kind = "nominal (URSim)" if is_ursim(survey.arm.checksum) else "calibrated"
    try:
        arm = calibrate(robot, survey.arm.kinematics)
    except InvalidParameter as error:
        fix = f"It must be {error.needed}: choose the right robot with --robot."
        return failed("calibration", f"{kind}: {error.value}", fix)
    distance, angle = tool_offset(robot, arm)
    seen = f"{kind}; at home the tool deviates from nominal by {millimetres(distance)} mm and {degrees(angle)} deg"
    if arm is robot:
        return passed("calibration", seen)
    rows = [
        (part.name, millimetres(part.distance), degrees(part.angle))
        for part in deviations(robot, arm)
    ]
    return Finding(
        "calibration", "pass", seen, table=(("deviation from nominal", "mm", "deg"), *rows)
    )


def check_calibration_file(survey: Survey, path: Path, checksum: tuple[int, ...]) -> Finding:
    """Whether the calibration file of the cell, with this checksum, is that of the controller's arm."""
    if survey.arm is None:
        return unread("calibration file", tables.PRIMARY)
    if survey.arm.checksum == checksum:
        return passed("calibration file", f"{path.name} is the controller's")
    return failed(
        "calibration file",
        f"{path.name} is not the controller's (another checksum)",
        "It belongs to another arm, or is older than the last calibration: let --write-cell write it again.",
    )


def check_ros_calibration_file(survey: Survey, path: Path, calibration: RosCalibration) -> Finding:
    """Whether the cell file's calibration, a file of ROS whose hash cannot be compared, is that of the arm."""
    if survey.arm is None:
        return unread("calibration file", tables.PRIMARY)
    distance, angle = ros_difference(calibration, survey.arm.kinematics)
    apart = f"{millimetres(distance)} mm and {milliradians(angle)} mrad at the flange"
    if max(distance, angle) <= SAME_FLANGE:
        return passed("calibration file", f"{path.name} is the controller's, within {apart}")
    return failed(
        "calibration file",
        f"{path.name} is not the controller's: up to {apart}",
        "It belongs to another arm, or is older than the last calibration: let ROS's ur_calibration write it again.",
    )


def tool_offset(robot: Robot, other: Robot) -> tuple[float, float]:
    """The distance, m, and angle, rad, between the flanges of two arms, both at the first one's home."""
    bare = (replace(arm, tcp=pin.SE3.Identity()) for arm in (robot, other))
    nominal, actual = (tool_frame(arm, robot.home) for arm in bare)
    difference = nominal.actInv(actual)
    return float(np.linalg.norm(difference.translation)), float(
        np.linalg.norm(pin.log3(difference.rotation))
    )
