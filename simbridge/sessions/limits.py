"""The limits of a live motion: those of its setpoints, and slowing down towards singularities and obstacles.

Each danger is a number that must not fall below a floor: a distance between two bodies, or the smallest singular value
of the Jacobian. A motion may take away at most the fraction period/TIME of what is left above the floor in each period.
So the arm comes to rest at the floor, and is free to leave: no threshold switches anything on or off. A motion along a
floor takes a little away now and then, by rounding and by the solver's error: near the floor, and less and less towards
it, every motion may take away a small share of its own size.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pinocchio as pin

from simbridge.planning.guard import allowed_distance
from simbridge.robot.collision import MARGIN, CollisionModel
from simbridge.robot.pose import Array
from simbridge.robot.postures import movable_directions
from simbridge.robot.robot import Robot
from simbridge.servo.feedforward import MAX_LEAD
from simbridge.servo.law import ServojLaw
from simbridge.sessions.causes import LiveCause

# Time constant of the approach to a floor, s: at least this, and so many times that of braking from full speed.
TIME, _OF_BRAKING = 0.15, 1.1
# The smallest singular value that is approached.
SINGULAR_FLOOR = 0.01
# Of a step's largest joint motion, rad, what it may take away, in m or of the singular value; and how far above the
# floor all of that.
_ALONG, _NEAR = 0.02, 1e-3
# A slow-down is named from this share of the speed downwards, and until it is above the second: the name must not
# flicker where the motion does not.
_NAMED, _UNNAMED = 0.98, 0.995
# What a number changes by without any approach, by rounding: an arm at a floor is free to move along it.
_NOISE = 1e-9
# After this time nothing is left of what a setpoint did, s.
_MEMORY = 20.0
# With lead: shares of the limits that are used.
_OF_LEAD, _OF_VELOCITY = 0.95, 0.98
# Share of the distance from the measured arm that is used.
_OF_DISTANCE = 0.97


class Margins(NamedTuple):
    """Limits of setpoints: velocity (n,), rad/s; acceleration, rad/s^2; tool speed, m/s."""

    velocity: Array
    acceleration: float
    tool_speed: float


def margins(
    robot: Robot, law: ServojLaw | None, tool_speed: float, phase: float, lead: bool
) -> Margins:
    """The limits of setpoints within which what the servo law makes of them keeps the arm's own limits.

    The law is None for an ideal servo; `tool_speed` is in m/s, `phase` as for `LiveMotion`, and with `lead` the inverse
    of the law is sent.
    """
    velocity, acceleration = robot.max_velocity, robot.max_acceleration
    if law is None:
        return Margins(velocity, acceleration, tool_speed)
    if lead:
        # A command leads by acceleration / gain + lookahead velocity: at most half of it for the first.
        most = _OF_LEAD * MAX_LEAD
        acceleration = min(acceleration, 0.5 * most * law.gain)
        most -= acceleration / law.gain
        return Margins(
            np.minimum(_OF_VELOCITY * velocity, most / law.lookahead), acceleration, tool_speed
        )
    # By linearity no setpoints within these limits make the arm exceed its own.
    gain = law.velocity_gain(phase).any
    acceleration /= gain
    return Margins(
        np.minimum(velocity / gain, _kept_up_with(law, acceleration)),
        acceleration,
        tool_speed / gain,
    )


def _kept_up_with(law: ServojLaw, acceleration: float) -> float:
    """The velocity, rad/s, from which setpoints may stop without leaving the arm so far behind that the guard refuses.

    The distance of the arm from its setpoints is their velocity times the lag, which the guard allows for, and a share
    of each acceleration so far. Where the sum of these shares is too large, it is a share of each velocity that counts.
    """
    behind = (
        1.0
        - law.follow(np.ones((1, 1)), previous=np.zeros(1), cycles=round(_MEMORY / law.cycle)).q[
            :, 0
        ]
    )
    of_acceleration = law.cycle**2 * float(np.abs(behind[::-1].cumsum()).sum())
    allowed = _OF_DISTANCE * float(allowed_distance(np.zeros(1), law.lookahead)[0])
    if acceleration * of_acceleration <= allowed:
        return np.inf
    return allowed / (law.cycle * float(np.abs(behind).sum()))


class Approach:
    """Limits how fast an arm approaches singularities and obstacles.

    Args:
        period: Control period, s.
        task: What the solver attains: "pose", "axis" or "position".
        braking: How long the fastest joint takes to brake, s.
    """

    def __init__(
        self, robot: Robot, collisions: CollisionModel, period: float, task: str, braking: float
    ) -> None:
        self._robot, self._collisions = robot, collisions
        self._share = period / max(TIME, _OF_BRAKING * braking)
        self._data, self._tcp = robot.model.createData(), robot.model.getFrameId("tcp")
        self._directions = min(movable_directions(robot.placements, robot.prismatic, task), robot.n)
        self._rows = {"pose": 6, "axis": 5, "position": 3}[task]
        self._at: Array | None = None
        self._found = np.empty(0)
        self._named: set[int] = set()

    @property
    def bodies(self) -> tuple[str, ...]:
        """The names that pairs of bodies have in causes."""
        return tuple(self._collisions.names(i) for i in range(self._collisions.pairs))

    def speed(
        self, q: Array, proposed: Array, *, cartesian: bool
    ) -> tuple[float, tuple[LiveCause, ...]]:
        """By which factor, 0 to 1, the step from q to the proposed joint positions (n,), rad, is to be shortened.

        Singularities count where the motion is cartesian, and not given in joints.
        """
        before, after = self._numbers(q), self._numbers(proposed)
        self._at, self._found = proposed, after
        floors = np.full(len(after), MARGIN)
        floors[-1] = SINGULAR_FLOOR
        above = np.maximum(before - floors, 0.0)
        along = _ALONG * float(np.abs(proposed - q).max()) * np.minimum(above / _NEAR, 1.0)
        lost, allowed = before - after, np.maximum(above - _NEAR, 0.0) * self._share + along
        if not cartesian:
            lost[-1] = 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            factors = np.where(lost > allowed + _NOISE, allowed / lost, 1.0)
        slow = np.flatnonzero(factors < _UNNAMED).tolist()
        self._named = {i for i in slow if factors[i] < _NAMED or i in self._named}
        causes = tuple(
            self._cause(i, float(before[i]), q)
            for i in sorted(self._named, key=lambda i: factors[i])
        )
        return float(factors.min()), causes

    def _numbers(self, q: Array) -> Array:
        """The distance of each pair, m, and last the smallest singular value."""
        if self._at is not None and np.array_equal(q, self._at):
            return self._found
        values = self._singular_values(q)[0]
        smallest = values[self._directions - 1] if self._directions else np.inf
        return np.append(self._collisions.distances(q), smallest)

    def _singular_values(self, q: Array) -> tuple[Array, Array]:
        frame = pin.ReferenceFrame.LOCAL
        jacobian = pin.computeFrameJacobian(self._robot.model, self._data, q, self._tcp, frame)[
            : self._rows
        ]
        _, values, directions = np.linalg.svd(jacobian)
        return values, directions

    def _cause(self, i: int, value: float, q: Array) -> LiveCause:
        if i < self._collisions.pairs:
            return LiveCause("obstacle", self._collisions.names(i), value)
        values, directions = self._singular_values(q)
        joint = int(np.argmax(np.abs(directions[min(self._directions, len(values)) - 1])))
        return LiveCause("singularity", self._robot.joint_names[joint], value)
