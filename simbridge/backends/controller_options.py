"""Determine how a run uses its controller, from the options and from what it reports."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from simbridge.backends.link_choice import choose_link, default_link
from simbridge.backends.servo_config import ServoConfig
from simbridge.errors import InvalidParameter
from simbridge.planning.guard import ArmLimits
from simbridge.robot.robot import Robot
from simbridge.ur.controller_facts import ControllerFacts
from simbridge.ur.tables import REST

if TYPE_CHECKING:  # loads the solvers
    from simbridge.planning.options import Options


def controller_host(host: str | None, default: str | None) -> str:
    """Return the controller's address.

    Args:
        host: The address that the user gives; None without one.
        default: The backend's address; None if it has none.

    Raises:
        InvalidParameter: No address is given, and there is no default.
    """
    if host is not None:
        return host
    if default is None:
        needed = "its address: --host 192.168.1.10, or host in the cell"
        raise InvalidParameter("host of the real arm", "none", needed)
    return default


def resolve_options(facts: ControllerFacts, options: Options, tool_speed: float | None) -> Options:
    """Return the options with what is known once the controller was read: its link, for one.

    Args:
        facts: Facts of the controller, whose address and control period hold.
        options: The options as the user gives them.
        tool_speed: The backend's limit of the tool's speed, m/s, which holds if the options give
            none; None for the robot's.

    Raises:
        MissingPackage, UnsupportedController, ConnectionLost: The link that the options give is not
            possible.
    """
    max_tool_speed = options.max_tool_speed
    if max_tool_speed is None:
        max_tool_speed = tool_speed
    return replace(
        options,
        host=facts.host,
        period=facts.state.period,
        max_tool_speed=max_tool_speed,
        link=choose_link(facts, options.link),
    )


def servo_config(host: str, robot: Robot, options: Options) -> ServoConfig:
    """Return the configuration of the servo process.

    TCP and payload are configured on the controller only if the options give them.
    """
    payload_cog = None
    if options.payload is not None:
        # Without a centre of gravity the payload is taken to be at the TCP.
        cog = robot.tcp.translation if robot.payload_cog is None else robot.payload_cog
        payload_cog = tuple(float(value) for value in cog.tolist())

    return ServoConfig(
        host=host,
        period=robot.period if options.period is None else options.period,
        limits=ArmLimits.of(robot),
        link=options.link or default_link(),
        registers=options.registers,
        lookahead=options.plant_model.lookahead,
        gain=options.plant_model.gain,
        feedforward=options.feedforward == "on",
        follow_scaling=options.on_scaling == "follow",
        wait_in_pause=options.on_pause == "wait",
        tcp=tuple(options.tcp) or None,
        payload=options.payload,
        payload_cog=payload_cog,
        priority=options.realtime_priority,
        rest_port=options.rest_port or REST,
    )
