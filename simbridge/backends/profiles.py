"""What differs between URSim and a real arm, and what a run wishes of either."""

from __future__ import annotations

from dataclasses import dataclass

from simbridge.servo.servoj import GAIN, LOOKAHEAD


@dataclass(frozen=True)
class Profile:
    """What differs between URSim and a real arm.

    Attributes:
        name: "ursim" or "real".
        ursim: Whether the controller must be URSim, and may be switched on.
        approach_joint_speed: rad/s.
        approach_tool_speed: m/s.
    """

    name: str
    ursim: bool
    approach_joint_speed: float
    approach_tool_speed: float


PROFILES = {
    "ursim": Profile("ursim", True, approach_joint_speed=1.0, approach_tool_speed=0.4),
    "real": Profile("real", False, approach_joint_speed=0.25, approach_tool_speed=0.1),
}


@dataclass(frozen=True)
class ControllerSettings:
    """How the controller is to be used.

    Attributes:
        lookahead: Of servoJ, s.
        gain: Of servoJ, 1/s^2.
        follow_scaling: Follow the controller's speed scaling; otherwise refuse it.
        tcp: x y z rx ry rz of the TCP in tool0, set on the controller; None leaves it as it is.
        payload: kg, set on the controller; None leaves it as it is.
        payload_cog: Its centre of gravity in tool0, m.
        priority: Of the real-time scheduler for the servo process; 0 for the ordinary one.
        yes: Whether the cell file may answer in place of a person.
    """

    lookahead: float = LOOKAHEAD
    gain: float = GAIN
    follow_scaling: bool = True
    tcp: tuple[float, ...] | None = None
    payload: float | None = None
    payload_cog: tuple[float, ...] | None = None
    priority: int = 0
    yes: bool = False
