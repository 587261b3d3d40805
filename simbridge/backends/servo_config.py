"""The configuration of a servo process."""

from __future__ import annotations

from dataclasses import dataclass

from simbridge.planning.guard import ArmLimits
from simbridge.planning.link_choices import LinkName, RegisterRange
from simbridge.ur.tables import REST


@dataclass(frozen=True)
class ServoConfig:
    """A controller, and how the servo process uses it; the first line on its standard input.

    Attributes:
        host: The controller's address.
        period: Control period, s.
        limits: The arm's limits.
        link: Whose RTDE client sends the commands.
        registers: The half of the registers that carries them.
        lookahead: Lookahead time of servoJ, s.
        gain: Gain of servoJ, 1/s^2.
        feedforward: Whether a replay is the motion that the arm is to make, for which the servo law
            is inverted.
        follow_scaling: Whether to follow the controller's speed scaling; otherwise it is refused.
        wait_in_pause: Whether to wait while the program is paused at the pendant; otherwise the
            motion ends.
        tcp: TCP in tool0 (6,), x y z (m) rx ry rz (rotation vector, rad), configured on the
            controller; None leaves it.
        payload: Mass, kg, configured on the controller; None leaves it.
        payload_cog: Centre of gravity of the payload in tool0 (3,), m.
        priority: Real-time priority of the servo process; 0 for the default scheduler.
        rest_port: The port of the Robot API, if the controller has PolyScope X.
        number: The number of the session, which the control script carries.
        live: The file of the pickled `MotionSetup` of a live session; None for plans.
    """

    host: str
    period: float
    limits: ArmLimits
    link: LinkName
    registers: RegisterRange
    lookahead: float
    gain: float
    feedforward: bool
    follow_scaling: bool
    wait_in_pause: bool
    tcp: tuple[float, ...] | None
    payload: float | None
    payload_cog: tuple[float, ...] | None
    priority: int
    rest_port: int = REST
    number: int = 0
    live: str | None = None
