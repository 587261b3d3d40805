"""What the servo process is told once, as it starts."""

from __future__ import annotations

from typing import Any

import msgspec


class ServoConfig(msgspec.Struct):
    """The first line on the servo process's standard input; SI units.

    Attributes:
        host: The controller.
        period: Control period.
        limits: Of the arm.
        lookahead, gain: Of servoJ.
        tcp: x y z rx ry rz of the TCP in tool0, to be set on the controller; None to leave it.
        payload: Mass, to be set on the controller; None to leave it.
        payload_cog: Its centre of gravity in tool0.
        follow_scaling: Follow the controller's speed scaling; otherwise refuse it.
        priority: Of the real-time scheduler; 0 for the ordinary one.
    """

    host: str
    period: float
    limits: dict[str, Any]
    lookahead: float
    gain: float
    tcp: list[float] | None = None
    payload: float | None = None
    payload_cog: list[float] | None = None
    follow_scaling: bool = True
    priority: int = 0
