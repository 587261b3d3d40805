"""Check that a run may use its controller, before anything moves.

Most checks are pure functions of the controller's facts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simbridge.backends.controller_model import chosen_model, wrong_model_remedy
from simbridge.backends.registers import REGISTERS
from simbridge.backends.servo_config import ServoConfig
from simbridge.backends.tool_comparison import (
    SAME_COG,
    SAME_MASS,
    mass_text,
    position_text,
    same_tcp,
    tcp_text,
)
from simbridge.robot.cell import Cell
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.text import join_words
from simbridge.ur import errors
from simbridge.ur.arm_state import FULL_SPEED, safety_stop
from simbridge.ur.controller_facts import ControllerFacts, StateFacts
from simbridge.ur.polyscope_x import remote_control_disabled
from simbridge.ur.survey import claimed_registers, read_controller
from simbridge.ur.tables import PROGRAM_RUNS, REST, RobotMode
from simbridge.ur.ursim_image import start_advice

# Two control periods that differ by less than this are equal, s.
SAME_PERIOD = 1e-9
# Why the simulator of PolyScope X is not driven as URSim.
URSIM_X_REASON = (
    "No document says how to tell the simulator of PolyScope X from a real arm, so it is not "
    "treated as URSim, which is powered on and moved without asking. Use --backend real, which "
    "asks for confirmation before it moves."
)


def identify_controller(
    host: str,
    robot: Robot,
    cell: Cell | None,
    *,
    period: float | None,
    ursim: bool,
    rest_port: int = REST,
) -> ControllerFacts:
    """Read the controller, check that it may be used for a run, and return its facts.

    Nothing is moved, powered or claimed.

    Args:
        host: The controller.
        robot: The arm that is to move.
        cell: The installation around it, if there is a file.
        period: The requested control period, s; None for the controller's.
        ursim: Whether it must be URSim.
        rest_port: The port of its Robot API, if it has PolyScope X.

    Raises:
        ControllerError: One of its subclasses: why it may not be used.
    """
    try:
        facts = read_controller(host, rest_port=rest_port)
    except errors.ConnectionLost as error:
        if not ursim:
            raise
        advice = start_advice(robot, host)
        raise errors.ConnectionLost(
            host, error.port, error.reason, advice, was_connected=error.was_connected
        ) from None

    check_identity(facts, robot, cell, ursim=ursim)
    check_period(facts, period)
    check_remote_control(facts)
    check_idle(facts)
    return facts


def check_registers(config: ServoConfig) -> None:
    """Check that no other client writes the registers of a link, which only one can have.

    Args:
        config: The controller, and how it is used.

    Raises:
        ConnectionLost: Port 30004 does not answer.
        RegistersInUse: Another client has claimed some of them.
        UnsupportedController: The controller does not have them.
    """
    inputs = REGISTERS[config.registers].inputs_of(config.link)
    occupied = claimed_registers(config.host, inputs)
    if occupied:
        raise errors.RegistersInUse(config.host, occupied)


# The right arm


def check_identity(facts: ControllerFacts, robot: Robot, cell: Cell | None, *, ursim: bool) -> None:
    """Check that this is the intended controller, for the arm and cell of the run.

    Args:
        facts: Facts of the controller.
        robot: The arm that is to move.
        cell: The installation around it, if there is a file.
        ursim: Whether the run expects URSim; `facts.ursim` is whether it is there.

    Raises:
        UnsupportedController: The controller has PolyScope X, and the run expects URSim.
        NotURSim: The controller is that of a real arm instead of URSim.
        ModelMismatch: The controller has another model, series or serial number.
    """
    if ursim and facts.state.is_polyscope_x:
        raise errors.UnsupportedController(facts.host, facts.state.version_text, URSIM_X_REASON)

    # URSim is recognized by the checksum of its kinematics, which the error shows.
    if ursim and not facts.ursim:
        raise errors.NotURSim(facts.host, facts.arm.checksum)

    models = facts.models
    if models and robot.ur_model not in models:
        remedy = wrong_model_remedy(robot, models)
        model = join_words(models, "or")
        raise errors.ModelMismatch(
            facts.host, "model", actual=model, expected=chosen_model(robot), remedy=remedy
        )

    # The series is known even where the model is not. An arm that is not UR's has no series, and
    # does not fit any controller.
    series = facts.state.series
    if series != robot.series:
        expected = robot.series or "a UR series"
        remedy = "Choose the robot with --robot (see `simbridge robots`)."
        raise errors.ModelMismatch(
            facts.host, "series", actual=series, expected=expected, remedy=remedy
        )

    # URSim has a serial number of its own, and may be used with the cell of any arm.
    if cell is None or cell.serial_number is None or ursim:
        return
    serial_number = facts.pendant.serial_number
    # PolyScope X may not report it: the operator compares it then (operator_confirmation.py).
    if serial_number is None and facts.state.is_polyscope_x:
        return
    if serial_number != cell.serial_number:
        actual = serial_number or "unknown"
        remedy = "This is not the arm of the cell file; check host and serial_number there."
        raise errors.ModelMismatch(
            facts.host, "serial number", actual=actual, expected=cell.serial_number, remedy=remedy
        )


def check_period(facts: ControllerFacts, period: float | None) -> None:
    """Check that a requested control period, s, is the controller's.

    Raises:
        ModelMismatch: Another period was requested.
    """
    actual = facts.state.period
    if period is not None and abs(period - actual) > SAME_PERIOD:
        remedy = "The period of a run on hardware is the controller's; leave --period out."
        raise errors.ModelMismatch(
            facts.host,
            "control period",
            actual=f"{actual:g} s",
            expected=f"{period:g} s",
            remedy=remedy,
        )


def check_unchanged(
    facts: ControllerFacts,
    planned_for: ControllerFacts,
    *,
    sets_tcp: bool = False,
    sets_payload: bool = False,
) -> None:
    """Check that the controller and its arm are those for which the plan was made.

    Args:
        facts: Facts of the controller as it is now.
        planned_for: Facts of the controller for which the plan was made.
        sets_tcp: Whether the run sets the TCP; `check_tool` then checks it after that.
        sets_payload: Whether the run sets the payload; `check_tool` then checks it after that.

    Raises:
        ArmChanged: The kinematics, the model, the software, the TCP, the payload or its centre of
            gravity differs.
    """
    # The quantities that must be equal, each with its name, actual value and planned value.
    comparisons: list[tuple[str, object, object]] = [
        ("calibration", _hexadecimal(facts.arm.checksum), _hexadecimal(planned_for.arm.checksum)),
        ("robot type", facts.arm.robot_type, planned_for.arm.robot_type),
        ("software", facts.state.version, planned_for.state.version),
    ]

    # A tool may differ by the rounding of the pendant: it is listed only if it differs by more.
    tcp = facts.arm.tcp_offset
    planned_tcp = planned_for.arm.tcp_offset
    if not sets_tcp and not same_tcp(tcp, planned_tcp):
        comparisons.append(("TCP", tcp_text(tcp), tcp_text(planned_tcp)))
    if not sets_payload:
        comparisons += _compare_payloads(facts.state, planned_for.state)

    remedy = "It has changed since it was first read. Start the run again."
    for quantity, actual, planned in comparisons:
        if actual != planned:
            raise errors.ArmChanged(
                facts.host, quantity, actual=actual, expected=planned, remedy=remedy
            )


def _hexadecimal(checksum: Sequence[int]) -> str:
    """Return the numbers of a checksum as text."""
    return " ".join(f"{part:08x}" for part in checksum)


def _compare_payloads(state: StateFacts, planned: StateFacts) -> list[tuple[str, str, str]]:
    """Return what differs between the payloads in two states: name, actual, and planned value."""
    if not _is_same(state.payload, planned.payload, SAME_MASS):
        return [("payload", mass_text(state.payload), mass_text(planned.payload))]

    # Without a mass, the centre of gravity has no effect.
    if state.payload and not _is_same(state.payload_cog, planned.payload_cog, SAME_COG):
        actual = position_text(state.payload_cog)
        return [("centre of gravity", actual, position_text(planned.payload_cog))]
    return []


def _is_same(
    value: float | Sequence[float] | None,
    expected: float | Sequence[float] | None,
    tolerance: float,
) -> bool:
    """Return whether two values are equal within a tolerance.

    A value that is unknown equals only one that is unknown, too.
    """
    if value is None or expected is None:
        return value is expected
    return np.allclose(value, expected, rtol=0.0, atol=tolerance)


def check_tool(
    facts: ControllerFacts,
    tcp: Sequence[float] | None,
    payload: float | None,
    payload_cog: Sequence[float] | None = None,
) -> None:
    """Check that the controller has the expected TCP and payload.

    A quantity is compared only if it is expected to have a value and the software reports it.

    Args:
        facts: Facts of the controller.
        tcp: Expected [x y z rx ry rz] in the flange, m and rad; None for any.
        payload: Expected mass, kg; None for any.
        payload_cog: Expected centre of gravity of the payload in the flange (3,), m; None for any.

    Raises:
        ModelMismatch: TCP, payload or centre of gravity differs.
    """
    actual_tcp = facts.arm.tcp_offset
    if tcp is not None and not same_tcp(actual_tcp, tcp):
        tcp_remedy = _tool_remedy(facts, "TCP")
        raise errors.ModelMismatch(
            facts.host,
            "TCP",
            actual=tcp_text(actual_tcp),
            expected=tcp_text(tcp),
            remedy=tcp_remedy,
        )

    payload_remedy = _tool_remedy(facts, "Payload")
    mass = facts.state.payload
    if payload is not None and mass is not None and abs(mass - payload) > SAME_MASS:
        raise errors.ModelMismatch(
            facts.host,
            "payload",
            actual=f"{mass:g} kg",
            expected=f"{payload:g} kg",
            remedy=payload_remedy,
        )

    # Without a mass, the centre of gravity has no effect.
    cog = facts.state.payload_cog
    if not payload or payload_cog is None or cog is None:
        return
    if not np.allclose(cog, payload_cog, rtol=0.0, atol=SAME_COG):
        raise errors.ModelMismatch(
            facts.host,
            "centre of gravity",
            actual=position_text(cog),
            expected=position_text(payload_cog),
            remedy=payload_remedy,
        )


def _tool_remedy(facts: ControllerFacts, page: str) -> str:
    """Return what to do about a tool that is not the expected one.

    Args:
        facts: Facts of the controller.
        page: The page of the installation at the pendant; that of PolyScope X is not known.
    """
    where = "" if facts.state.is_polyscope_x else f" (Installation > {page})"
    return f"Set it at the pendant{where}, or correct the run or its cell file."


# Ready to move


def check_remote_control(facts: ControllerFacts) -> None:
    """Raise `RemoteControlDisabled` unless the controller accepts programs from outside."""
    if facts.pendant.remote_control is False:
        raise remote_control_disabled(facts.host, facts.state.version)


def check_idle(facts: ControllerFacts) -> None:
    """Raise `ProgramRunning` if a program runs or is paused; it is left alone."""
    runtime_state = facts.state.runtime_state
    if runtime_state in PROGRAM_RUNS:
        raise errors.ProgramRunning(facts.host, runtime_state, facts.pendant.program)


def check_not_stopped(facts: ControllerFacts) -> None:
    """Raise the `ArmStopped` of an active stop, so that the arm is not powered on.

    A fault does not count: a controller reports a fault while it is booting.
    """
    state = facts.state
    stop = safety_stop(state.safety_mode, state.safety_status_bits)
    if stop is not None and stop is not errors.SafetyFault:
        raise stop(facts.host, *state.modes)


def check_ready(facts: ControllerFacts, *, follow_scaling: bool) -> None:
    """Check that the arm is powered, that no stop is active, and that the slider allows the run.

    Args:
        facts: Facts of the controller.
        follow_scaling: Whether the run follows the speed slider; otherwise it requires full speed.

    Raises:
        ArmStopped: One of its subclasses.
        SpeedScaled: The speed slider is not at 100 %, and the run requires full speed.
    """
    state = facts.state
    stop = safety_stop(state.safety_mode, state.safety_status_bits)
    if stop is not None:
        raise stop(facts.host, *state.modes)
    if state.robot_mode != RobotMode.RUNNING:
        raise errors.ArmNotReady(facts.host, *state.modes)

    if not follow_scaling and state.slider < FULL_SPEED:
        raise errors.SpeedScaled(facts.host, state.slider, moving=False)


# The way to the start


def check_turns(host: str, robot: Robot, begin: Array, goal: Array) -> None:
    """Check that no joint would have to be unwound on the way to a goal.

    Args:
        host: The controller, for the message.
        robot: The arm.
        begin: Joint positions (n,), rad.
        goal: Joint positions (n,), rad.

    Raises:
        FullTurn: A joint is more than half a turn away.
    """
    turns = begin - goal
    joint = int(np.argmax(np.abs(turns)))
    if abs(turns[joint]) > np.pi:
        raise errors.FullTurn(host, robot.joint_names[joint], float(turns[joint]))
