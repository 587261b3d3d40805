"""What a run takes over from its controller before it moves: identity, kinematics, limits and settings."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

from simbridge.backends import preflight
from simbridge.backends.servo_channel import ControllerSettings
from simbridge.errors import InvalidParameter
from simbridge.planning.options import Options
from simbridge.robot.calibration import calibrated, ros_difference
from simbridge.robot.cell import Cell
from simbridge.robot.parts import DhTable, RosCalibration
from simbridge.robot.robot import Robot
from simbridge.text import millimetres, milliradians
from simbridge.ur.controller import ControllerFacts, read_controller, registers_taken
from simbridge.ur.errors import ConnectionLost, ModelMismatch, RegistersInUse

# Two calibrations are the same arm's if no parameter differs by more than this.
SAME_ARM = 1e-6  # m and rad
# A file of ROS may be printed with few digits; two arms of one model differ by millimetres.
SAME_FLANGE = 2e-5  # m and rad


def controller_host(options: Options, default: str | None) -> str:
    """The controller's address.

    Raises:
        InvalidParameter: It is not given, and there is no default.
    """
    host = default if options.host is None else options.host
    if host is None:
        needed = "its address: --host 192.168.1.10, or host in the cell"
        raise InvalidParameter("host of the real arm", "not given", needed)
    return host


def identify_controller(
    host: str, robot: Robot, cell: Cell | None, *, period: float | None, ursim: bool
) -> ControllerFacts:
    """Read the controller and check that it may be used for a run; nothing is moved, powered or claimed.

    Args:
        host: Its address.
        robot: The arm of the run.
        cell: The cell of the run, if any.
        period: The requested control period, s; None for the controller's.
        ursim: Whether it must be URSim.

    Raises:
        ControllerError: One of its subclasses: why it may not be used.
    """
    try:
        facts = read_controller(host)
    except ConnectionLost as error:
        if not ursim:
            raise
        hint = f"URSim is started with: {preflight.docker_command(robot, host)}"
        raise ConnectionLost(host, error.port, error.reason, hint) from None
    preflight.check_identity(facts, robot, cell, ursim=ursim)
    preflight.check_period(facts, period)
    preflight.check_remote_control(facts)
    preflight.check_idle(facts)
    taken = registers_taken(host)
    if taken:
        raise RegistersInUse(host, taken)
    return facts


def with_calibration(robot: Robot, facts: ControllerFacts, options: Options) -> Robot:
    """The arm with its controller's joint limits, and with its kinematics unless the options choose others.

    Raises:
        ModelMismatch: The given calibration belongs to another arm than the one behind the controller.
    """
    if options.kinematics_source is None:
        arm = calibrated(robot, facts.arm.kinematics)
    else:
        arm = robot
        if robot.calibration is not None and not facts.ursim:
            _check_calibration(robot.calibration, facts)
        elif (
            robot.calibration is None
            # Options that set a cell's calibration aside warn about it themselves.
            and (options.cell is None or options.cell.calibration is None)
            and calibrated(robot, facts.arm.kinematics) is not robot
        ):
            warnings.warn(
                "The plan uses nominal kinematics, and the arm is calibrated: the tool will be off by millimetres, "
                "which the tracking error does not show. `simbridge doctor` reports by how much.",
                stacklevel=2,
            )
    if facts.arm.limits is None:
        warnings.warn("The controller does not report joint limits; those of the model are used.", stacklevel=2)
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
        raise ModelMismatch(facts.host, "calibration", found, expected, remedy)


def resolve_options(facts: ControllerFacts, options: Options, tool_speed: float | None) -> Options:
    """The options with the controller's address and period, and a tool speed limit (m/s) if they give none."""
    speed = tool_speed if options.max_tool_speed is None else options.max_tool_speed
    return replace(options, host=facts.host, period=facts.state.period, max_tool_speed=speed)


def controller_settings(robot: Robot, options: Options) -> ControllerSettings:
    """How the controller is used; TCP and payload are configured on it only if the options give them."""
    cog = None
    if options.payload is not None:
        at = (robot.tcp.translation if robot.payload_cog is None else robot.payload_cog).tolist()
        cog = tuple(float(v) for v in at)
    return ControllerSettings(
        lookahead=options.plant_model.lookahead,
        gain=options.plant_model.gain,
        feedforward=options.feedforward == "on",
        follow_scaling=options.on_scaling == "follow",
        wait_in_pause=options.on_pause == "wait",
        tcp=tuple(options.tcp) or None,
        payload=options.payload,
        payload_cog=cog,
        priority=options.realtime_priority,
        yes=options.yes,
    )
