"""The tool that a controller has configured, TCP and payload, and whether it is still the one of the motion.

Any client may change it during a motion, by a secondary program: then the tool is no longer where the plan put it, or
the controller's forces are those of another load. This module loads no pinocchio, which the servo process does without.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from simbridge.robot.pose import Array
from simbridge.text import fixed
from simbridge.ur.errors import ToolChanged
from simbridge.ur.rtde import Package

# TCP and payload are compared within the rounding of what can be entered at the pendant.
SAME_LENGTH = 1e-4  # m
SAME_ANGLE = 1e-3  # rad
SAME_MASS = 0.005  # kg
SAME_COG = 1e-3  # m
SAME_INERTIA = 1e-4  # kg m^2
# The RTDE outputs that describe the tool. Older versions have the first alone.
TOOL_FIELDS = ("tcp_offset", "payload", "payload_cog", "payload_inertia")
# How many changes of the payload are kept until they are asked for.
_MAX_CHANGES = 100


class Payload(NamedTuple):
    """A payload as a controller reports it; None for what its version does not.

    Attributes:
        mass: kg.
        cog: Centre of gravity in tool0 (3,), m.
        inertia: About that (6,), kg m^2.
    """

    mass: float | None
    cog: tuple[float, ...] | None
    inertia: tuple[float, ...] | None


class ToolWatch:
    """Compares the tool in each state with that at the begin.

    Args:
        host: The controller, for the message.
        tcp: TCP in tool0, x y z (m) rx ry rz (rotation vector, rad), that the control script sets; None if it sets
            none.
        payload: Mass that it sets, kg; None if it sets none.
        payload_cog: Its centre of gravity in tool0 (3,), m.
        before: The state right before the control script began; what the script does not set is to stay as it was
            there. None for the first state that is compared.

    Attributes:
        payload: The newest one.
        changes: The payloads that were set since, oldest first; whoever reads them removes them.
    """

    def __init__(
        self,
        host: str,
        *,
        tcp: Sequence[float] | None = None,
        payload: float | None = None,
        payload_cog: Sequence[float] | None = None,
        before: Package | None = None,
    ) -> None:
        self._host = host
        self._tcp = None if tcp is None else tuple(tcp)
        self._begin: Payload | None = None
        # What the control script sets shows itself a little after it has begun.
        self._awaits_tcp = tcp is not None
        self._awaited_payload: Payload | None = None
        if payload is not None:
            self._awaited_payload = Payload(
                payload, None if payload_cog is None else tuple(payload_cog), None
            )
        # The tool's variables as they were in the last state: they hardly ever change.
        self._last: tuple[object, ...] = ()
        self.payload = Payload(None, None, None)
        self.changes: deque[Payload] = deque(maxlen=_MAX_CHANGES)
        if before is not None:
            if tcp is None:
                self._tcp = before.get("tcp_offset")
            if payload is None:
                self._begin = self.payload = payload_of(before)

    @property
    def other_payload(self) -> bool:
        """Whether the newest payload is another than that at the begin."""
        return (
            self._begin is not None and _payload_difference(self.payload, self._begin) is not None
        )

    def follow(self, state: Package, *, payload_may_change: bool) -> None:
        """Compare the tool of the next state.

        Args:
            state: The state.
            payload_may_change: Whether another payload is only kept in `changes`.

        Raises:
            ToolChanged: The TCP is another one, or the payload is, which may not change.
        """
        variables = tuple(state.get(field) for field in TOOL_FIELDS)
        if variables == self._last:
            return
        self._last = variables
        self._follow_tcp(state.get("tcp_offset"))
        self._follow_payload(payload_of(state), payload_may_change=payload_may_change)

    def _follow_tcp(self, tcp: tuple[float, ...] | None) -> None:
        if tcp is None:
            return
        if self._tcp is None:
            self._tcp = tcp
        if same_tcp(tcp, self._tcp):
            self._awaits_tcp = False
        elif not self._awaits_tcp:
            raise ToolChanged(self._host, "TCP", tcp_text(tcp), tcp_text(self._tcp))

    def _follow_payload(self, payload: Payload, *, payload_may_change: bool) -> None:
        before = self.payload
        self.payload = payload
        if self._awaited_payload is not None:
            if _payload_difference(payload, self._awaited_payload) is not None:
                return
            # Its inertia is the controller's choice, and may follow a little later.
            self._begin = self._awaited_payload
            self._awaited_payload = None
            return
        if self._begin is None:
            self._begin = payload
            return

        difference = _payload_difference(payload, self._begin)
        if difference is not None and not payload_may_change:
            raise ToolChanged(self._host, *difference)
        if _payload_difference(payload, before) is not None:
            self.changes.append(payload)


def payload_of(state: Package) -> Payload:
    """The payload in a state."""
    return Payload(state.get("payload"), state.get("payload_cog"), state.get("payload_inertia"))


def same_tcp(one: Sequence[float] | Array, other: Sequence[float] | Array) -> bool:
    """Whether two TCPs [x y z rx ry rz] are equal within the pendant's rounding."""
    a = np.asarray(one, dtype=float)
    b = np.asarray(other, dtype=float)
    distance = float(np.abs(a[:3] - b[:3]).max())
    angle = _angle_between(a[3:], b[3:])
    return distance <= SAME_LENGTH and angle <= SAME_ANGLE


def _angle_between(one: Array, other: Array) -> float:
    """The angle between two rotations, rad, given as rotation vectors (3,): one may be written in several ways."""
    a = _quaternion(one)
    b = _quaternion(other)
    # Of the two quaternions of a rotation, the nearer one. A chord of the sphere is twice the sine of a quarter.
    chord = min(float(np.linalg.norm(a - b)), float(np.linalg.norm(a + b)))
    return 4.0 * float(np.arcsin(min(0.5 * chord, 1.0)))


def _quaternion(rotation: Array) -> Array:
    """The unit quaternion (4,), w first, of a rotation vector (3,), rad."""
    angle = float(np.linalg.norm(rotation))
    axis = rotation / angle if angle > 0.0 else rotation
    return np.concatenate([[np.cos(0.5 * angle)], np.sin(0.5 * angle) * axis])


def _payload_difference(one: Payload, other: Payload) -> tuple[str, str, str] | None:
    """The quantity that differs between two payloads, and both values as text; None if none that both report does."""
    if one.mass is not None and other.mass is not None and abs(one.mass - other.mass) > SAME_MASS:
        return "payload", mass_text(one.mass), mass_text(other.mass)
    # Without a mass, neither its place nor its inertia has an effect.
    if not one.mass:
        return None
    if (
        one.cog is not None
        and other.cog is not None
        and not np.allclose(one.cog, other.cog, 0.0, SAME_COG)
    ):
        return "centre of gravity", position_text(one.cog), position_text(other.cog)
    if one.inertia is None or other.inertia is None:
        return None
    if not np.allclose(one.inertia, other.inertia, 0.0, SAME_INERTIA):
        return "inertia", _inertia_text(one.inertia), _inertia_text(other.inertia)
    return None


def tcp_text(tcp: Sequence[float] | Array) -> str:
    """A TCP [x y z rx ry rz] in mm and rad, as text."""
    return f"{position_text(tcp[:3])}, {' '.join(fixed(value, 4) for value in tcp[3:])} rad"


def mass_text(mass: float | None) -> str:
    """A mass in kg, as text."""
    return "unknown" if mass is None else f"{mass:g} kg"


def position_text(position: Sequence[float] | Array | None) -> str:
    """A position (3,), m, as text."""
    return (
        "unknown"
        if position is None
        else f"{' '.join(fixed(value * 1e3, 1) for value in position)} mm"
    )


def _inertia_text(inertia: Sequence[float]) -> str:
    return f"{' '.join(fixed(value, 5) for value in inertia)} kg m^2"
