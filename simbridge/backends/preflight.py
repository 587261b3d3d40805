"""What must hold before a controller is given a control script; pure functions of what it says of itself."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import numpy as np

from simbridge.robot.cell import Cell
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.ur.errors import (
    ArmNotReady,
    ModelMismatch,
    NotURSim,
    ProgramRunning,
    RemoteControlDisabled,
    SafetyFault,
    SpeedScaled,
)
from simbridge.ur.facts import ControllerFacts, is_model
from simbridge.ur.stops import FULL_SPEED, PROGRAM_RUNS, safety_stop

# A TCP or payload counts as the same within rounding of what the pendant lets one enter.
SAME_LENGTH = 1e-4  # m
SAME_ANGLE = 1e-3  # rad
SAME_MASS = 0.005  # kg
SAME_COG = 1e-3  # m


def check_identity(facts: ControllerFacts, robot: Robot, cell: Cell | None, *, ursim: bool) -> None:
    """Whether this is the controller that is meant.

    Args:
        facts: What it says.
        robot: The arm of the run.
        cell: The cell of the run, if any.
        ursim: Whether it must be URSim.

    Raises:
        NotURSim: A real arm, where URSim was meant.
        ModelMismatch: Another model, series or serial number.
    """
    if ursim and not facts.ursim:
        raise NotURSim(facts.host, facts.arm.checksum)
    expected = robot.title
    if facts.model is not None and not is_model(facts.model, expected):
        remedy = f"Say --robot {facts.model.lower().replace(' ', '')} if that is the arm you mean."
        raise ModelMismatch(facts.host, "model", facts.model, expected, remedy)
    if facts.series != robot.series:
        remedy = "Choose the robot with --robot (see `simbridge robots`)."
        raise ModelMismatch(facts.host, "series", facts.series, robot.series or "a UR series", remedy)
    wanted = None if cell is None else cell.serial_number
    if wanted is not None and facts.serial_number != wanted and not ursim:
        remedy = "This is another arm than the cell file's; check host and serial_number there."
        raise ModelMismatch(facts.host, "serial number", facts.serial_number or "not told", wanted, remedy)


def check_period(facts: ControllerFacts, period: float | None) -> float:
    """The control period of the run, s: the controller's.

    Raises:
        ModelMismatch: Another one was asked for.
    """
    if period is not None and abs(period - facts.period) > 1e-9:
        remedy = "The period of a run on hardware is the controller's; leave --period out."
        raise ModelMismatch(facts.host, "control period", f"{facts.period:g} s", f"{period:g} s", remedy)
    return facts.period


def check_remote_control(facts: ControllerFacts) -> None:
    """Whether the controller takes programs from outside.

    Raises:
        RemoteControlDisabled: It does not.
    """
    if facts.dashboard.remote_control is False:
        raise RemoteControlDisabled(facts.host)


def check_idle(facts: ControllerFacts) -> None:
    """Whether no program runs, not even a paused one.

    Raises:
        ProgramRunning: One does; it is left alone.
    """
    if facts.state.runtime_state in PROGRAM_RUNS:
        raise ProgramRunning(facts.host, facts.state.runtime_state, facts.dashboard.program)


def check_not_stopped(facts: ControllerFacts) -> None:
    """Whether nobody and nothing holds the arm by a stop, so that it may be switched on.

    Raises:
        ArmStopped: One of its subclasses. None for a controller without a safety mode: it may still be booting.
    """
    state = facts.state
    stop = safety_stop(state.safety_mode)
    if stop is not None and stop is not SafetyFault:
        raise stop(facts.host, state.robot_mode, state.safety_mode, state.runtime_state)


def check_ready(facts: ControllerFacts, *, follow_scaling: bool) -> None:
    """Whether the arm is powered, free of stops, and at the speed it is meant to have.

    Raises:
        ArmStopped: One of its subclasses.
        SpeedScaled: The speed slider is not at 100 % and the run is to be at full speed.
    """
    state = facts.state
    stop = safety_stop(state.safety_mode) or (ArmNotReady if state.robot_mode != 7 else None)
    if stop is not None:
        raise stop(facts.host, state.robot_mode, state.safety_mode, state.runtime_state)
    if not follow_scaling and state.slider < FULL_SPEED:
        raise SpeedScaled(facts.host, state.slider)


def check_tool(
    facts: ControllerFacts,
    tcp: Sequence[float] | None,
    payload: float | None,
    payload_cog: Sequence[float] | None = None,
) -> None:
    """Whether TCP and payload on the controller are these; None is not compared, nor what the software does not tell.

    Args:
        facts: What the controller says.
        tcp: [x y z rx ry rz] in the flange, m and rad.
        payload: kg.
        payload_cog: Its centre of gravity in the flange (3,), m.

    Raises:
        ModelMismatch: They are not.
    """
    found = facts.arm.tcp_offset
    if tcp is not None and not same_tcp(found, tcp):
        remedy = "Set it at the pendant (Installation > TCP), or correct the run or its cell file."
        raise ModelMismatch(facts.host, "TCP", shown_tcp(found), shown_tcp(tcp), remedy)
    mass = facts.state.payload
    if payload is not None and mass is not None and abs(mass - payload) > SAME_MASS:
        remedy = "Set it at the pendant (Installation > Payload), or correct the run or its cell file."
        raise ModelMismatch(facts.host, "payload", f"{mass:g} kg", f"{payload:g} kg", remedy)
    cog = facts.state.payload_cog
    # Without a mass there is nothing that the controller would have to balance.
    if payload and payload_cog is not None and cog is not None and not np.allclose(cog, payload_cog, 0.0, SAME_COG):
        remedy = "Set it at the pendant (Installation > Payload), or correct the run or its cell file."
        raise ModelMismatch(facts.host, "centre of gravity", _shown_place(cog), _shown_place(payload_cog), remedy)


def same_tcp(found: Sequence[float] | Array, wanted: Sequence[float]) -> bool:
    """Whether two TCPs [x y z rx ry rz] are the same within what the pendant rounds to."""
    import pinocchio as pin

    one, other = np.asarray(found, dtype=float), np.asarray(wanted, dtype=float)
    turn = np.linalg.norm(pin.log3(pin.exp3(one[3:]).T @ pin.exp3(other[3:])))
    return bool(np.abs(one[:3] - other[:3]).max() <= SAME_LENGTH and turn <= SAME_ANGLE)


def shown_tcp(tcp: Sequence[float] | Array) -> str:
    """A TCP as people read it."""
    millimetres = " ".join(f"{value * 1e3:.1f}" for value in tcp[:3])
    return f"{millimetres} mm, {' '.join(f'{value:.4f}' for value in tcp[3:])} rad"


def _shown_place(place: Sequence[float]) -> str:
    return f"{' '.join(f'{value * 1e3:.1f}' for value in place)} mm"


def docker_command(robot: Robot, host: str = "127.0.0.1") -> str:
    """The command that starts URSim for an arm, to be reached from this computer alone.

    Args:
        robot: The arm.
        host: Where it is looked for. Anything but a loopback address is another computer, on which the ports must then
            be open to the network.
    """
    loopback = "127.0.0.1" if host == "localhost" else host
    where = f"{loopback}:" if loopback.startswith("127.") else ""
    image = "ursim_cb3" if robot.series == "CB3" else "ursim_e-series"
    words = ["docker", "run", "--rm", "-it", "-e", f"ROBOT_MODEL={robot.title.removesuffix('e').upper()}"]
    for port in ("5900", "6080", "29999", "30001-30004"):
        words += ["-p", f"{where}{port}:{port}"]
    return shlex.join([*words, f"universalrobots/{image}"])
