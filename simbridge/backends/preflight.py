"""What a run needs of its controller, checked before anything moves, and what it takes over from it.

The checks are pure functions of the controller's facts.
"""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from simbridge.backends.servo_config import ServoConfig
from simbridge.backends.tool_comparison import (
    SAME_COG,
    SAME_MASS,
    mass_text,
    position_text,
    same_tcp,
    tcp_text,
)
from simbridge.errors import InvalidParameter
from simbridge.planning.guard import ArmLimits
from simbridge.robot.calibration import calibrate
from simbridge.robot.calibration_difference import ros_difference
from simbridge.robot.cell import Cell
from simbridge.robot.parts import DhTable, RosCalibration
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.text import millimetres, milliradians
from simbridge.ur import errors
from simbridge.ur.arm_state import FULL_SPEED, safety_stop  # fmt: skip
from simbridge.ur.controller_facts import ControllerFacts, is_model
from simbridge.ur.survey import read_controller, registers_taken
from simbridge.ur.tables import DASHBOARD, PRIMARY, PROGRAM_RUNS, RTDE, RobotMode

if TYPE_CHECKING:  # loads the solvers
    from simbridge.planning.options import Options

# Two calibrations are the same arm's if no parameter differs by more than this.
SAME_ARM = 1e-6  # m and rad
# A file of ROS may be printed with few digits; two arms of one model differ by millimetres.
SAME_FLANGE = 2e-5  # m and rad


def controller_host(host: str | None, default: str | None) -> str:
    """Return the controller's address.

    Args:
        host: As the user gives it, if at all.
        default: The backend's, if it has one.

    Raises:
        InvalidParameter: It is not given, and there is no default.
    """
    if host is not None:
        return host
    if default is None:
        needed = "its address: --host 192.168.1.10, or host in the cell"
        raise InvalidParameter("host of the real arm", "not given", needed)
    return default


def identify_controller(
    host: str, robot: Robot, cell: Cell | None, *, period: float | None, ursim: bool
) -> ControllerFacts:
    """Read the controller and check that it may be used for a run; nothing is moved, powered or claimed.

    Args:
        period: The requested control period, s; None for the controller's.
        ursim: Whether it must be URSim.

    Raises:
        ControllerError: One of its subclasses: why it may not be used.
    """
    try:
        facts = read_controller(host)
    except errors.ConnectionLost as error:
        if not ursim:
            raise
        hint = f"URSim is started with: {docker_command(robot, host)}"
        raise errors.ConnectionLost(host, error.port, error.reason, hint) from None
    check_identity(facts, robot, cell, ursim=ursim)
    check_period(facts, period)
    check_remote_control(facts)
    check_idle(facts)
    taken = registers_taken(host)
    if taken:
        raise errors.RegistersInUse(host, taken)
    return facts


def with_calibration(
    robot: Robot,
    facts: ControllerFacts,
    *,
    chooses_kinematics: bool,
    replaces_calibration: bool,
) -> Robot:
    """Return the arm with its controller's joint limits, and mostly with its kinematics.

    Args:
        robot: The arm as it was chosen.
        facts: The controller's.
        chooses_kinematics: Whether the user chose the arm's kinematics; they are kept.
        replaces_calibration: Whether nominal kinematics may replace a cell's calibration, about
            which the options warn themselves.

    Raises:
        ModelMismatch: The given calibration belongs to another arm than the one behind the controller.
    """
    if not chooses_kinematics:
        arm = calibrate(robot, facts.arm.kinematics)
    else:
        arm = robot
        if robot.calibration is not None and not facts.ursim:
            _check_calibration(robot.calibration, facts)
        elif (
            robot.calibration is None
            and not replaces_calibration
            and calibrate(robot, facts.arm.kinematics) is not robot
        ):
            warnings.warn(
                "The plan uses nominal kinematics, and the arm is calibrated: the tool will be off by millimetres, "
                "which the tracking error does not show. `simbridge doctor` reports by how much.",
                stacklevel=2,
            )
    if facts.arm.limits is None:
        warnings.warn(
            "The controller does not report joint limits; those of the model are used.",
            stacklevel=2,
        )
        return arm
    return arm.with_limits(facts.arm.limits)


def _check_calibration(given: DhTable | RosCalibration, facts: ControllerFacts) -> None:
    reported = facts.arm.kinematics
    if isinstance(given, RosCalibration):
        distance, angle = ros_difference(given, reported)
        same = max(distance, angle) <= SAME_FLANGE
        found = f"different (by up to {millimetres(distance)} mm and {milliradians(angle)} mrad at the flange)"
        expected = f"that of the given file ({given.hash or 'which has no hash'})"
    else:
        difference = max(
            float(np.abs(np.subtract(getattr(given, row), getattr(reported, row))).max())
            for row in ("theta", "a", "d", "alpha")
        )
        same = difference <= SAME_ARM
        found, expected = f"different (a parameter by {difference:.2g})", "the given one"
    if not same:
        remedy = "The file belongs to another arm, or is older than the arm's last calibration; leave it out."
        raise errors.ModelMismatch(facts.host, "calibration", found, expected, remedy)


def resolve_options(facts: ControllerFacts, options: Options, tool_speed: float | None) -> Options:
    """The options with the controller's address and period, and a tool speed limit (m/s) if they give none."""
    speed = tool_speed if options.max_tool_speed is None else options.max_tool_speed
    return replace(options, host=facts.host, period=facts.state.period, max_tool_speed=speed)


def servo_config(host: str, robot: Robot, options: Options) -> ServoConfig:
    """How the controller is used; TCP and payload are configured on it only if the options give them."""
    cog = None
    if options.payload is not None:
        at = (robot.tcp.translation if robot.payload_cog is None else robot.payload_cog).tolist()
        cog = tuple(float(v) for v in at)
    return ServoConfig(
        host=host,
        period=robot.period if options.period is None else options.period,
        limits=ArmLimits.of(robot),
        lookahead=options.plant_model.lookahead,
        gain=options.plant_model.gain,
        feedforward=options.feedforward == "on",
        follow_scaling=options.on_scaling == "follow",
        wait_in_pause=options.on_pause == "wait",
        tcp=tuple(options.tcp) or None,
        payload=options.payload,
        payload_cog=cog,
        priority=options.realtime_priority,
    )


# The checks


def check_identity(facts: ControllerFacts, robot: Robot, cell: Cell | None, *, ursim: bool) -> None:
    """Check that this is the intended controller, for the arm and cell of the run.

    Raises:
        NotURSim: It is a real arm instead of URSim.
        ModelMismatch: It has another model, series or serial number.
    """
    if ursim and not facts.ursim:
        raise errors.NotURSim(facts.host, facts.arm.checksum)
    expected = robot.title
    if facts.model is not None and not is_model(facts.model, expected):
        remedy = f"Use --robot {facts.model.lower().replace(' ', '')} if that is the intended arm."
        raise errors.ModelMismatch(facts.host, "model", facts.model, expected, remedy)
    if facts.state.series != robot.series:
        remedy = "Choose the robot with --robot (see `simbridge robots`)."
        raise errors.ModelMismatch(
            facts.host, "series", facts.state.series, robot.series or "a UR series", remedy
        )
    wanted = None if cell is None else cell.serial_number
    if wanted is not None and facts.dashboard.serial_number != wanted and not ursim:
        remedy = "This is not the arm of the cell file; check host and serial_number there."
        raise errors.ModelMismatch(
            facts.host, "serial number", facts.dashboard.serial_number or "unknown", wanted, remedy
        )


def check_unchanged(
    facts: ControllerFacts,
    planned_for: ControllerFacts,
    *,
    sets_tcp: bool = False,
    sets_payload: bool = False,
) -> None:
    """Check that the controller and its arm are those for which the plan was made.

    A TCP or payload that the run sets is not compared here: see `check_tool`.

    Raises:
        ArmChanged: Its kinematics, model, software, TCP, or its payload and its centre of gravity are others.
    """
    now, then = facts.arm, planned_for.arm
    remedy = "It has changed since it was first read; start again."
    found, expected = (" ".join(f"{part:08x}" for part in arm.checksum) for arm in (now, then))
    compared: tuple[tuple[str, object, object], ...] = (
        ("calibration", found, expected),
        ("model", facts.model, planned_for.model),
        ("software", facts.state.version, planned_for.state.version),
    )
    if not sets_tcp and not same_tcp(now.tcp_offset, then.tcp_offset):
        compared += (("TCP", tcp_text(now.tcp_offset), tcp_text(then.tcp_offset)),)
    one, other = facts.state, planned_for.state
    if not sets_payload and not _same(one.payload, other.payload, SAME_MASS):
        compared += (("payload", mass_text(one.payload), mass_text(other.payload)),)
    # Without a mass, the centre of gravity has no effect.
    elif (
        not sets_payload and one.payload and not _same(one.payload_cog, other.payload_cog, SAME_COG)
    ):
        compared += (
            ("centre of gravity", position_text(one.payload_cog), position_text(other.payload_cog)),
        )
    for what, is_now, was in compared:
        if is_now != was:
            raise errors.ArmChanged(facts.host, what, is_now, was, remedy)


def check_turns(host: str, robot: Robot, begin: Array, goal: Array) -> None:
    """Check that no joint would have to be unwound on the way from `begin` (n,) to `goal` (n,), rad.

    Raises:
        FullTurn: One is more than half a turn away.
    """
    joint = int(np.argmax(np.abs(begin - goal)))
    if abs(begin[joint] - goal[joint]) > np.pi:
        raise errors.FullTurn(host, robot.joint_names[joint], float(begin[joint] - goal[joint]))


def check_period(facts: ControllerFacts, period: float | None) -> float:
    """The control period of the run, s, which is the controller's.

    Raises:
        ModelMismatch: Another period was requested.
    """
    if period is not None and abs(period - facts.state.period) > 1e-9:
        remedy = "The period of a run on hardware is the controller's; leave --period out."
        raise errors.ModelMismatch(
            facts.host, "control period", f"{facts.state.period:g} s", f"{period:g} s", remedy
        )
    return facts.state.period


def check_remote_control(facts: ControllerFacts) -> None:
    """Raise `RemoteControlDisabled` unless the controller accepts programs from outside."""
    if facts.dashboard.remote_control is False:
        raise errors.RemoteControlDisabled(facts.host)


def check_idle(facts: ControllerFacts) -> None:
    """Raise `ProgramRunning` if a program runs or is paused; it is left alone."""
    if facts.state.runtime_state in PROGRAM_RUNS:
        raise errors.ProgramRunning(facts.host, facts.state.runtime_state, facts.dashboard.program)


def check_not_stopped(facts: ControllerFacts) -> None:
    """Raise the `ArmStopped` of an active stop, so that the arm is not powered on; a fault is none, as a controller
    reports one while it is booting."""
    state = facts.state
    stop = safety_stop(state.safety_mode)
    if stop is not None and stop is not errors.SafetyFault:
        raise stop(facts.host, *state.modes)


def check_ready(facts: ControllerFacts, *, follow_scaling: bool) -> None:
    """Check that the arm is powered, that no stop is active, and that the speed slider allows the run.

    Raises:
        ArmStopped: One of its subclasses.
        SpeedScaled: The speed slider is not at 100 %, and the run requires full speed.
    """
    state = facts.state
    stop = safety_stop(state.safety_mode) or (
        errors.ArmNotReady if state.robot_mode != RobotMode.RUNNING else None
    )
    if stop is not None:
        raise stop(facts.host, *state.modes)
    if not follow_scaling and state.slider < FULL_SPEED:
        raise errors.SpeedScaled(facts.host, state.slider, moving=False)


def check_tool(
    facts: ControllerFacts,
    tcp: Sequence[float] | None,
    payload: float | None,
    payload_cog: Sequence[float] | None = None,
) -> None:
    """Check TCP and payload on the controller; None is not compared, nor is what the software does not report.

    Args:
        tcp: [x y z rx ry rz] in the flange, m and rad.
        payload: kg.
        payload_cog: Its centre of gravity in the flange (3,), m.

    Raises:
        ModelMismatch: One of them differs.
    """
    remedy = "Set it at the pendant (Installation > {}), or correct the run or its cell file."
    found, mass, cog = facts.arm.tcp_offset, facts.state.payload, facts.state.payload_cog
    if tcp is not None and not same_tcp(found, tcp):
        raise errors.ModelMismatch(
            facts.host, "TCP", tcp_text(found), tcp_text(tcp), remedy.format("TCP")
        )
    remedy = remedy.format("Payload")
    if payload is not None and mass is not None and abs(mass - payload) > SAME_MASS:
        raise errors.ModelMismatch(facts.host, "payload", f"{mass:g} kg", f"{payload:g} kg", remedy)
    # Without a mass, the centre of gravity has no effect.
    if (
        payload
        and payload_cog is not None
        and cog is not None
        and not np.allclose(cog, payload_cog, 0.0, SAME_COG)
    ):
        raise errors.ModelMismatch(
            facts.host, "centre of gravity", position_text(cog), position_text(payload_cog), remedy
        )


def _same(
    one: float | Sequence[float] | None, other: float | Sequence[float] | None, tolerance: float
) -> bool:
    """Whether two values are equal within a tolerance; an unknown one equals only an unknown one."""
    if one is None or other is None:
        return one is other
    return np.allclose(one, other, 0.0, tolerance)


def docker_command(robot: Robot, host: str = "127.0.0.1") -> str:
    """The command that starts URSim for an arm, reachable only from this computer.

    Args:
        host: The address it is expected at; one that is not loopback is another computer, whose ports must be open.
    """
    loopback = "127.0.0.1" if host == "localhost" else host
    where = f"{loopback}:" if loopback.startswith("127.") else ""
    image = "ursim_cb3" if robot.series == "CB3" else "ursim_e-series"
    words = [
        "docker",
        "run",
        "--rm",
        "-it",
        "-e",
        f"ROBOT_MODEL={robot.title.removesuffix('e').upper()}",
    ]
    for port in ("5900", "6080", DASHBOARD, f"{PRIMARY}-{RTDE}"):
        words += ["-p", f"{where}{port}:{port}"]
    return shlex.join([*words, f"universalrobots/{image}"])
