"""A run on URSim or a real arm, before it moves: who the controller is, and which arm the plan is made for."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

from simbridge.backends import preflight
from simbridge.backends.controller import PROFILES, ControllerSettings
from simbridge.errors import InvalidParameter
from simbridge.planning.options import Options
from simbridge.robot.calibration import calibrated
from simbridge.robot.parts import DhTable
from simbridge.robot.robot import Robot
from simbridge.ur.controller import read_controller, registers_taken
from simbridge.ur.errors import ConnectionLost, ModelMismatch, RegistersInUse
from simbridge.ur.facts import ControllerFacts

URSIM_HOST = "127.0.0.1"
# On a real arm the tool is not faster than this unless --max-tool-speed says so.
REAL_TOOL_SPEED = 0.25  # m/s
# A calibration with a parameter farther off than this is not the arm's.
SAME_ARM = 1e-6  # m and rad


def host_of(backend: str, options: Options) -> str:
    """The controller's address.

    Raises:
        InvalidParameter: A real arm, and nobody said where it is.
    """
    if options.host is not None:
        return options.host
    if backend == "ursim":
        return URSIM_HOST
    raise InvalidParameter("host of the real arm", "not given", "its address: --host 192.168.1.10, or host in the cell")


def meet(backend: str, robot: Robot, options: Options) -> ControllerFacts:
    """Read the controller and make sure that it may be used for this run; nothing is moved, switched or claimed.

    Raises:
        ControllerError: One of its subclasses says what is in the way.
    """
    host = host_of(backend, options)
    ursim = PROFILES[backend].ursim
    try:
        facts = read_controller(host)
    except ConnectionLost as error:
        if not ursim:
            raise
        hint = f"URSim is started with: {preflight.docker_command(robot, host)}"
        raise ConnectionLost(host, error.port, error.reason, hint) from None
    preflight.check_identity(facts, robot, options.cell, ursim=ursim)
    preflight.check_period(facts, options.period)
    preflight.check_remote_control(facts)
    preflight.check_idle(facts)
    taken = registers_taken(host)
    if taken:
        raise RegistersInUse(host, taken)
    return facts


def with_calibration(robot: Robot, facts: ControllerFacts, options: Options) -> Robot:
    """The arm with the kinematics and limits that its controller tells; other kinematics only when they were asked for.

    Raises:
        ModelMismatch: The calibration that was given is another arm's than the one behind the controller.
    """
    if options.kinematics_source is None:
        arm = calibrated(robot, facts.arm.kinematics)
    else:
        arm = robot
        if robot.calibration is not None and not facts.ursim:
            _check_calibration(robot.calibration, facts)
        elif (
            robot.calibration is None
            and not _told_already(options)
            and calibrated(robot, facts.arm.kinematics) is not robot
        ):
            warnings.warn(
                "The plan is made with nominal kinematics, and the controller has its arm's own: the tool will be off "
                "by millimetres, which the tracking error does not show. `simbridge doctor` tells by how much.",
                stacklevel=2,
            )
    if facts.arm.limits is None:
        warnings.warn("The controller tells no joint limits; those of the model are used.", stacklevel=2)
        return arm
    return arm.with_limits(facts.arm.limits)


def _told_already(options: Options) -> bool:
    """Whether the cell's calibration is set aside, of which the options give a note."""
    return options.cell is not None and options.cell.calibration is not None


def _check_calibration(given: DhTable, facts: ControllerFacts) -> None:
    told = facts.arm.kinematics
    off = max(
        float(np.abs(np.subtract(getattr(given, row), getattr(told, row))).max())
        for row in ("theta", "a", "d", "alpha")
    )
    if off > SAME_ARM:
        remedy = "The file is another arm's, or older than the arm's last calibration; leave it out to use its own."
        raise ModelMismatch(
            facts.host, "calibration", f"another (a parameter differs by {off:.2g})", "the given one", remedy
        )


def settled(backend: str, facts: ControllerFacts, options: Options) -> Options:
    """The options with what the backend and its controller decide."""
    speed = options.max_tool_speed
    if speed is None and not PROFILES[backend].ursim:
        speed = REAL_TOOL_SPEED
    return replace(options, host=facts.host, period=facts.period, max_tool_speed=speed)


def wishes(robot: Robot, options: Options) -> ControllerSettings:
    """How the controller is to be used, from the options; TCP and payload are set on it only when they were given."""
    cog = None
    if options.payload is not None:
        at = (robot.tcp.translation if robot.payload_cog is None else robot.payload_cog).tolist()
        cog = tuple(float(v) for v in at)
    return ControllerSettings(
        lookahead=options.servo_lookahead,
        gain=options.servo_gain,
        follow_scaling=options.on_scaling == "follow",
        tcp=tuple(options.tcp) or None,
        payload=options.payload,
        payload_cog=cog,
        priority=options.realtime_priority,
        yes=options.yes,
    )
