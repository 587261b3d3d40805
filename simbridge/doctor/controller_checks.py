"""Checks of a controller's state, and that its arm is the one that the run is for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simbridge.backends.controller_model import chosen_model, model_text, wrong_model_remedy
from simbridge.backends.link_choice import default_link
from simbridge.backends.operator_confirmation import mounting_text
from simbridge.backends.tool_comparison import SAME_COG, SAME_MASS, same_tcp, tcp_text
from simbridge.doctor import polyscope_x_checks
from simbridge.doctor.findings import Finding, failure, skipped, success, unknown, warning
from simbridge.planning.link_choices import LinkName, RegisterRange
from simbridge.quoting import quoted
from simbridge.robot.arm_models import describe_type, models_of_type
from simbridge.robot.cell import Cell
from simbridge.robot.robot import Robot
from simbridge.text import join_words, millimetres
from simbridge.ur import tables
from simbridge.ur.arm_state import FULL_SPEED, safety_stop
from simbridge.ur.controller_facts import Survey
from simbridge.ur.errors import ArmNotReady, ConnectionLost, RemoteControlDisabled
from simbridge.ur.primary import is_ursim
from simbridge.ur.ursim_image import start_advice

# Robot modes from which `power on` and `brake release` lead to running.
POWERABLE_MODES = (tables.RobotMode.POWER_OFF, tables.RobotMode.POWER_ON, tables.RobotMode.IDLE)


def check_port(survey: Survey, port: int, robot: Robot, *, ursim: bool) -> Finding:
    """Check that a port of the controller answers.

    Args:
        survey: The controller's answers on its ports.
        port: Number of the port.
        robot: The arm that is expected.
        ursim: Whether the backend is that of URSim.
    """
    if survey.is_polyscope_x:
        return polyscope_x_checks.check_port(survey, port)

    name = f"port {port}"
    error = survey.lost.get(port)
    if error is None:
        return success(name, f"{tables.PORT_NAMES[port]} answers")
    reason = error.reason if isinstance(error, ConnectionLost) else str(error)
    if ursim:
        advice = start_advice(robot, survey.host)
        fix = f"Is URSim running, with this port published? {advice}"
    else:
        fix = (
            f"Try: ping {survey.host}. Check the cable, the address (pendant: Settings > System > "
            "Network), and whether the service is allowed (Settings > Security > Services); on "
            "PolyScope X, Primary and RTDE are off on a new controller."
        )
    return failure(name, f"{tables.PORT_NAMES[port]}: {reason}", fix)


def check_realtime_port(
    survey: Survey, robot: Robot, link: LinkName | None, *, ursim: bool
) -> Finding:
    """Check the real-time port, which only ur_rtde needs.

    Args:
        survey: The answers of a controller that is not known to have PolyScope X.
        robot: The arm that is expected.
        link: The link that the run chooses; None for the default.
        ursim: Whether the backend is that of URSim.
    """
    finding = check_port(survey, tables.REALTIME, robot, ursim=ursim)
    if finding.status == "pass" or link == "ur_rtde":
        return finding
    if link == "rtde" or default_link(survey.version) == "rtde":
        return skipped(finding.check, f"{finding.seen}; only --link ur_rtde needs it")
    fix = f"Without it, a run uses --link rtde. {finding.fix}"
    return warning(finding.check, finding.seen, fix)


def check_software(survey: Survey) -> Finding:
    """Check that simbridge supports the version of the controller's software."""
    if survey.unsupported is not None:
        reported = survey.unsupported.version
        seen = f"PolyScope {reported}" if reported else "unknown"
        return failure("software", seen, survey.unsupported.reason)
    if survey.state is None:
        return unknown("software", tables.RTDE)

    state = survey.state
    version = ".".join(map(str, state.version))
    name = "PolyScope X" if state.is_polyscope_x else "PolyScope"
    seen = f"{name} {version}, {state.series}, {1.0 / state.period:.0f} Hz"

    # The dashboard's version may have more parts, as 5.12.4.1101 for 5.12.4. A dot ends both
    # texts, so that whole parts are compared: 5.12.4 is not the beginning of 5.12.41.
    dashboard = survey.pendant.version if survey.pendant is not None else ""
    if dashboard and not f"{dashboard}.".startswith(f"{version}."):
        fix = "The two should agree: restart the controller."
        return warning("software", f"{seen}; its dashboard says {dashboard}", fix)
    return success("software", seen)


def check_kind(survey: Survey, *, ursim: bool) -> Finding:
    """Check that the controller is URSim or a real arm, as chosen with --backend.

    An emulator stands for URSim or for a real arm, depending on its kinematics.
    """
    if survey.arm is None:
        return unknown("arm or URSim", tables.PRIMARY)

    if survey.is_polyscope_x:
        return polyscope_x_checks.check_kind(survey, survey.arm, ursim=ursim)

    is_emulated = survey.kind == "emulator"
    if is_ursim(survey.arm.checksum):
        model = ", as URSim's" if is_emulated else ""
        seen = f"{survey.kind} (kinematics checksum all ones{model})"
        fix = f"For {'the emulator' if is_emulated else 'URSim'} use --backend ursim."
        return warning("arm or URSim", seen, fix, unless=ursim)

    model = ", as a real arm" if is_emulated else ""
    seen = f"{survey.kind} (it has its own calibration{model})"
    fix = "It is not URSim, so --backend ursim refuses to move it. Use --backend real."
    return failure("arm or URSim", seen, fix, unless=not ursim)


def check_remote_control(survey: Survey) -> Finding:
    """Check that the controller accepts programs from outside."""
    if survey.is_polyscope_x:
        return polyscope_x_checks.check_remote(survey)
    if survey.pendant is None:
        return unknown("remote control", tables.DASHBOARD)
    remote = survey.pendant.remote_control
    if remote is None:
        if survey.state is not None and survey.state.series == "CB3":
            return skipped("remote control", "CB3 controllers do not have this setting")
        return warning(
            "remote control",
            "not reported by the dashboard",
            "PolyScope 5.6 or later reports it. With older software, check it at the top right of "
            "the pendant.",
        )
    seen = "on" if remote else "off: programs from outside the pendant are ignored"
    return failure("remote control", seen, RemoteControlDisabled.remedy, unless=remote)


def check_robot_mode(survey: Survey, *, ursim: bool) -> Finding:
    """Check that the arm has power and its brakes are released."""
    if survey.state is None:
        return unknown("robot mode", tables.RTDE)
    mode = survey.state.robot_mode
    seen = tables.mode_label(mode, tables.RobotMode)
    if ursim and mode in POWERABLE_MODES:
        return success("robot mode", f"{seen}; a run powers it on")
    return failure("robot mode", seen, ArmNotReady.remedy, unless=mode == tables.RobotMode.RUNNING)


def check_safety_mode(survey: Survey) -> Finding:
    """Check that no stop is active."""
    if survey.state is None:
        return unknown("safety mode", tables.RTDE)
    mode = survey.state.safety_mode
    seen = tables.mode_label(mode, tables.SafetyMode)
    if mode == tables.SafetyMode.REDUCED:
        return warning(
            "safety mode",
            seen,
            "The reduced limits of the safety configuration apply: a fast plan may end in a "
            "protective stop. Leave the trigger plane, or release the input that activates the "
            "reduced mode.",
        )

    stop = safety_stop(mode, survey.state.safety_status_bits)
    fix = "" if stop is None else stop.remedy
    return failure("safety mode", seen, fix, unless=stop is None)


def check_program(survey: Survey) -> Finding:
    """Check that no program runs; a run never stops one."""
    if survey.state is None:
        return unknown("program", tables.RTDE)
    state = survey.state.runtime_state
    loaded = survey.pendant.program if survey.pendant is not None else ""
    seen = tables.mode_label(state, tables.RuntimeState)
    if loaded:
        seen += f", {loaded}"
    fix = "A run never stops a program on the controller. Stop it at the pendant."
    return failure("program", seen, fix, unless=state not in tables.PROGRAM_RUNS)


def check_registers(occupied: tuple[str, ...], registers: RegisterRange) -> Finding:
    """Check that the registers that simbridge writes are free.

    Args:
        occupied: Registers that other clients hold.
        registers: The half of the registers that the run uses.
    """
    if not occupied:
        return success("registers", "free")
    more = f" and {len(occupied) - 2} more" if len(occupied) > 2 else ""
    other_half = "upper" if registers == "lower" else "lower"
    return failure(
        "registers",
        f"held by another client: {', '.join(occupied[:2])}{more}",
        "Stop the other program: a second simbridge, a ROS driver, or a fieldbus (EtherNet/IP, "
        f"PROFINET) that is enabled in the installation. Or run with --registers {other_half}.",
    )


def check_slider(survey: Survey) -> Finding:
    """Check that the speed slider allows the plan's speed."""
    if survey.state is None:
        return unknown("speed slider", tables.RTDE)
    slider = survey.state.slider
    seen = f"{slider * 100.0:.0f} %"
    if slider <= 0.0:
        return failure(
            "speed slider", seen, "At 0 %, nothing would move. Set it to 100 % at the pendant."
        )
    fix = (
        "Set it to 100 % at the pendant, or expect the run to take longer (--on-scaling stop "
        "refuses to run)."
    )
    return warning("speed slider", seen, fix, unless=slider >= FULL_SPEED)


def check_model(survey: Survey, robot: Robot) -> Finding:
    """Check that the controller's arm is of the model chosen with --robot."""
    if survey.arm is None:
        return unknown("model", tables.PRIMARY)
    if survey.state is None:
        return unknown("model", tables.RTDE)

    # A CB3 and an e-Series model may have the same type number; the software version then decides.
    # Two models of one series may, too, such as UR5e and UR7e: then both are possible.
    models = models_of_type(survey.arm.robot_type, survey.state.version[0])
    if not models:
        seen = describe_type(survey.arm.robot_type)
        return warning(
            "model",
            seen,
            f"Check yourself that it is a {chosen_model(robot)}, and see the calibration below.",
        )

    model = join_words(models, "or")
    if robot.ur_model not in models:
        fix = wrong_model_remedy(robot, models)
        return failure("model", f"{model}, not {chosen_model(robot)}", fix)

    if robot.series != survey.state.series:
        return failure(
            "model",
            f"{model} with PolyScope {survey.state.version[0]}, but {robot.name} has the series "
            f"{quoted(robot.series)}",
            "Correct the series in the robot's file, or choose another robot with --robot.",
        )
    text = model_text(survey.arm.robot_type, survey.state.version, robot)
    return success("model", text)


def check_serial_number(survey: Survey, expected: str | None) -> Finding:
    """Check that the controller's arm is the individual arm of the cell file.

    Args:
        survey: The controller's answers on its ports.
        expected: The cell's serial number; None for any.
    """
    reported = None if survey.pendant is None else survey.pendant.serial_number
    if survey.is_polyscope_x and reported is None:
        return polyscope_x_checks.check_unknown_serial_number(survey, expected)
    if survey.pendant is None:
        return unknown("serial number", tables.DASHBOARD)

    if expected is None:
        missing = "not reported by this software (before PolyScope 3.12 and 5.6)"
        return success("serial number", reported or missing)
    if reported is None:
        fix = "Compare it with the nameplate on the arm's base."
        return warning("serial number", f"not reported; the cell file says {expected}", fix)
    if reported == expected:
        return success("serial number", f"{reported}, as in the cell file")
    return failure(
        "serial number",
        f"{reported}, but the cell file says {expected}",
        "This is another arm: use its own cell file, or create one with --write-cell.",
    )


def check_mounting(cell: Cell) -> Finding:
    """Show the cell's mounting, which cannot be compared with the controller."""
    if cell.mounting is None:
        fix = "Add it: --yes requires it, and gravity compensation depends on it."
        return warning("mounting", "not in the cell file; floor mounting is assumed", fix)
    return warning(
        "mounting",
        f"{mounting_text(cell)} in the cell file; it cannot be read from the controller",
        "Compare it with the pendant (Installation > General > Mounting) and with the arm.",
    )


def check_tcp(survey: Survey, expected: tuple[float, ...] | None) -> Finding:
    """Check that the controller's TCP is that of the cell file.

    Args:
        survey: The controller's answers on its ports.
        expected: The cell's TCP in the flange: x y z, m, and rotation vector rx ry rz, rad; None
            for any.
    """
    if survey.arm is None:
        return unknown("TCP", tables.PRIMARY)

    tcp = survey.arm.tcp_offset
    if expected is None:
        return success("TCP", tcp_text(tcp))
    if same_tcp(tcp, expected):
        return success("TCP", f"{tcp_text(tcp)}, as in the cell file")
    return failure(
        "TCP",
        f"{tcp_text(tcp)}; the cell file says {tcp_text(expected)}",
        f"One of them is wrong: correct it at the pendant{_page(survey, 'TCP')} or in the cell "
        "file.",
    )


def check_payload(
    survey: Survey, expected: float | None, expected_cog: Sequence[float] | None = None
) -> Finding:
    """Check that the controller's payload is that of the cell file.

    Args:
        survey: The controller's answers on its ports.
        expected: The cell's payload, kg; None for any.
        expected_cog: Centre of gravity of the cell's payload in the flange (3,), m. It is compared
            where the controller and the cell give one.
    """
    if survey.state is None:
        return unknown("payload", tables.RTDE)
    payload = survey.state.payload
    if payload is None:
        return warning(
            "payload",
            "not reported by this software (before PolyScope 3.11 and 5.5)",
            "Check it at the pendant: Installation > General > Payload.",
        )
    cog = survey.state.payload_cog
    seen = _payload_text(payload, cog)
    if expected is None:
        return success("payload", seen)

    # Without a payload, or where one of them is unknown, there is nothing to compare.
    same_cog = True
    if payload and cog is not None and expected_cog is not None:
        same_cog = np.allclose(cog, expected_cog, rtol=0.0, atol=SAME_COG)
    if abs(payload - expected) <= SAME_MASS and same_cog:
        return success("payload", f"{seen}, as in the cell file")
    return failure(
        "payload",
        f"{seen}; the cell file says {_payload_text(expected, expected_cog)}",
        "A wrong payload leads to protective stops. Correct it at the pendant"
        f"{_page(survey, 'Payload')} or in the cell file.",
    )


def _page(survey: Survey, name: str) -> str:
    """Return where the pendant has a setting, in parentheses; "" on PolyScope X (not known)."""
    return "" if survey.is_polyscope_x else f" (Installation > General > {name})"


def _payload_text(mass: float, cog: Sequence[float] | None) -> str:
    """Return mass, kg, and centre of gravity (3,), m, as text; None if that is unknown."""
    text = f"{mass:.3g} kg"
    if mass and cog is not None:
        text += f" at {' '.join(millimetres(part) for part in cog)} mm"
    return text
