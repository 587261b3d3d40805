"""Which arms have a closed form, from the chain itself: not from its name, nor from the choice of its frames.

Two joint axes with parallel or crossing directions are joined by Rz(phi) Tz(d) Tx(a) Rx(alpha) Rz(psi) Tz(e). The turns
about and shifts along an axis belong as well to the joint that turns about it, so that any chain of the right structure
comes down to the few lengths of its Denavit-Hartenberg table, and offsets of the joint angles.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from simbridge.errors import NoClosedForm
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

# URDF files give right angles with nine or ten digits; the axes of real arms are off by far more than that.
PARALLEL = 1e-8
# Lengths and angles below this count as zero: their effect on a pose stays below the promised accuracy.
_ON_AXIS = 1e-10


@dataclass(frozen=True)
class Structure:
    """The parameters of an arm with a closed form. All arrays are contiguous, for compiled code.

    Attributes:
        task: The part of a target that it attains: "pose", or "position" (see `simbridge.ik.task`).
        lengths: m. A UR arm (4,): upper arm a2, forearm a3, d4 (all of the offset along the parallel axes) and d5.
            A planar arm (3,): its two links, and the height of the TCP over the base.
        joints: (3, n), rad: theta - q, the standard table's joint angles less the robot's; lower and upper limits.
        frames: (2, 4, 4): the base in base_link, z along the first axis, a UR arm's origin on the second; and the TCP
            in a UR arm's last joint, whose origin is on the axis of wrist 2 (on a planar arm: identity).
    """

    task: str
    lengths: Array
    joints: Array
    frames: Array


@dataclass(frozen=True)
class _Joining:
    """Rz(phi) Tz(d) Tx(a) Rx(alpha) Rz(psi) Tz(e), alpha being given."""

    phi: float
    d: float
    a: float
    psi: float
    e: float


def structure_of(robot: Robot) -> Structure:
    """The arm as a UR arm or as a planar arm of two links.

    Raises:
        NoClosedForm: It is neither.
    """
    if not np.any(robot.prismatic):
        if robot.n == 6:
            return _ur(robot)
        if robot.n == 2:
            return _planar(robot)
    kinds = "joints, of which some slide" if np.any(robot.prismatic) else "joints"
    raise NoClosedForm(robot.name, f"it has {robot.n} {kinds}")


def _ur(robot: Robot) -> Structure:
    """Standard DH with alpha = pi/2, 0, 0, pi/2, -pi/2; of the lengths only a2, a3, d1, d4, d5 and the last frame."""
    chain = robot.placements
    names = robot.joint_names
    pan = _crossing(chain[1], 1.0, robot, names[0:2])
    upper = _parallel(chain[2], robot, names[1:3])
    fore = _parallel(chain[3], robot, names[2:4])
    wrist = _crossing(chain[4], 1.0, robot, names[3:5])
    last = _crossing(chain[5], -1.0, robot, names[4:6])
    if min(upper.a, fore.a) < _ON_AXIS:
        raise NoClosedForm(robot.name, f"of the axes of {names[1]}, {names[2]} and {names[3]} two are one line")
    joinings = (pan, upper, fore, wrist, last)
    before = [0.0, *(j.psi for j in joinings)]
    after = [*(j.phi for j in joinings), 0.0]
    d4 = pan.e + upper.d + upper.e + fore.d + fore.e + wrist.d
    return Structure(
        task="pose",
        lengths=np.array([upper.a, fore.a, d4, wrist.e + last.d]),
        joints=np.array([np.add(before, after), robot.position_min, robot.position_max]),
        frames=np.array([chain[0] @ _shift(pan.d), _shift(last.e) @ chain[6]]),
    )


def _planar(robot: Robot) -> Structure:
    link = _parallel(robot.placements[1], robot, robot.joint_names)
    x, y, z = robot.placements[2, :3, 3]
    second = math.hypot(x, y)
    if min(link.a, second) < _ON_AXIS:
        raise NoClosedForm(robot.name, "one of its two links has no length")
    return Structure(
        task="position",
        lengths=np.array([link.a, second, link.d + link.e + z]),
        joints=np.array([[link.phi, link.psi + math.atan2(y, x)], robot.position_min, robot.position_max]),
        frames=np.array([robot.placements[0], np.eye(4)]),
    )


def _parallel(placement: Array, robot: Robot, names: tuple[str, ...]) -> _Joining:
    """alpha = 0: parallel axes that point the same way."""
    rotation, (x, y, z) = placement[:3, :3], placement[:3, 3]
    if math.hypot(rotation[0, 2], rotation[1, 2]) > PARALLEL or rotation[2, 2] < 0.0:
        raise NoClosedForm(robot.name, f"the axes of {names[0]} and {names[1]} are not parallel")
    phi = math.atan2(y, x)
    turn = math.atan2(rotation[1, 0], rotation[0, 0])
    return _Joining(phi=phi, d=float(z), a=math.hypot(x, y), psi=turn - phi, e=0.0)


def _crossing(placement: Array, direction: float, robot: Robot, names: tuple[str, ...]) -> _Joining:
    """alpha = direction pi/2 and a = 0: axes that meet at a right angle."""
    rotation, shift = placement[:3, :3], placement[:3, 3]
    x, y, cosine = direction * rotation[:, 2]
    if abs(cosine) > PARALLEL:
        raise NoClosedForm(robot.name, f"the axes of {names[0]} and {names[1]} are not at a right angle")
    phi = math.atan2(x, -y)
    common = np.array([math.cos(phi), math.sin(phi), 0.0])
    if abs(float(common @ shift)) > _ON_AXIS:
        raise NoClosedForm(robot.name, f"the axes of {names[0]} and {names[1]} do not meet")
    # The common normal is the x axis in between, from which psi turns to the next frame's.
    psi = math.atan2(-float(common @ rotation[:, 1]), float(common @ rotation[:, 0]))
    return _Joining(phi=phi, d=float(shift[2]), a=0.0, psi=psi, e=float(rotation[:, 2] @ shift))


def _shift(distance: float) -> Array:
    frame = np.eye(4)
    frame[2, 3] = distance
    return frame
