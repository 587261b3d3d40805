"""A plan that is refused before anything moves."""

from __future__ import annotations

from simbridge.errors.root import SimbridgeError


class PlanRefused(SimbridgeError, ValueError):
    """A plan, or an approach to it, that must not be executed. Nothing has moved.

    Attributes:
        sample: The control period at fault, counted from 0 (for targets out of reach: the trajectory's sample).
        time: Its time in s.
        value: What would happen, in SI units.
        limit: What is allowed, in SI units.
        joint: The joint's name, or None when no single joint is meant.
    """

    def __init__(
        self, message: str, *, sample: int, time: float, value: float, limit: float, joint: str | None = None
    ) -> None:
        self.sample = sample
        self.time = time
        self.value = value
        self.limit = limit
        self.joint = joint
        super().__init__(message)


class TargetOutOfReach(PlanRefused):
    """A target that no joint positions attain.

    Attributes:
        distance: How far the nearest posture found stays away, m.
        angle: And by how much it is turned, rad.
    """

    def __init__(self, message: str, *, sample: int, time: float, distance: float, angle: float) -> None:
        self.distance = distance
        self.angle = angle
        super().__init__(message, sample=sample, time=time, value=distance, limit=0.0)


class JointLimitExceeded(PlanRefused):
    """A setpoint outside of a joint's range (value and limit in rad)."""


class VelocityLimitExceeded(PlanRefused):
    """Two setpoints further apart than a joint can go in a period (value and limit in rad/s)."""


class VelocityJumpExceeded(PlanRefused):
    """A joint velocity that changes too much from one period to the next (value and limit in rad/s)."""


class ToolSpeedExceeded(PlanRefused):
    """A tool faster than allowed (value and limit in m/s)."""


class TorqueLimitExceeded(PlanRefused):
    """A posture that the arm cannot hold against gravity with the payload it is told of (value and limit in N m)."""


class FloorCollision(PlanRefused):
    """A link that would go through the floor (value: clearance in m, negative when inside).

    Attributes:
        link: The link.
    """

    def __init__(self, message: str, *, sample: int, time: float, clearance: float, link: str) -> None:
        self.link = link
        super().__init__(message, sample=sample, time=time, value=clearance, limit=0.0)


class KeepOutViolation(PlanRefused):
    """A link that would enter a box or pass a plane of the cell (value: clearance in m, negative when inside).

    Attributes:
        link: The link.
        zone: The name of the box or plane.
    """

    def __init__(self, message: str, *, sample: int, time: float, clearance: float, link: str, zone: str) -> None:
        self.link = link
        self.zone = zone
        super().__init__(message, sample=sample, time=time, value=clearance, limit=0.0)


class SelfCollision(PlanRefused):
    """Two links that would touch (value: their distance in m, negative when they overlap).

    Attributes:
        links: The two links.
    """

    def __init__(self, message: str, *, sample: int, time: float, distance: float, links: tuple[str, str]) -> None:
        self.links = links
        super().__init__(message, sample=sample, time=time, value=distance, limit=0.0)
