"""The arm behind a closed form: its lengths, found in the chain itself.

Which arms have a closed form is found in the chain, not in the arm's name, nor in the choice of its
frames. Two joint axes with parallel or crossing directions are joined by
Rz(phi) Tz(d) Tx(a) Rx(alpha) Rz(psi) Tz(e). The turns about and shifts along an axis belong as well
to the joint that turns about it, so that any chain of the right structure comes down to the few
lengths of its Denavit-Hartenberg table, and offsets of the joint angles.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from simbridge.errors import NoClosedForm
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

# Sines, and cosines of right angles, up to this count as zero. URDF files give right angles with
# nine or ten digits; the axes of real arms are off by far more than that.
ZERO_SINE = 1e-8
# Lengths up to this count as zero, m: their effect on a pose stays below the promised accuracy.
ZERO_LENGTH = 1e-10


@dataclass(frozen=True)
class ClosedFormArm:
    """The parameters of an arm with a closed form. All arrays are contiguous, for compiled code.

    Attributes:
        task: The part of a target that it attains: "pose", or "position" (see `targets.py`).
        lengths: Lengths, m. A UR arm (4,): upper arm a2, forearm a3, d4 (all of the offset along
            the parallel axes) and d5. A planar arm (3,): its two links, and the height of the TCP
            over the base.
        joints: Rows (3, n), rad: the standard table's joint angles less the robot's, theta - q; and
            the lower and upper limits of the robot's.
        frames: Poses (2, 4, 4): the base in base_link, z along the first axis, a UR arm's origin on
            the second; and the TCP in a UR arm's last joint, whose origin is on the axis of wrist 2
            (on a planar arm: identity).
    """

    task: str
    lengths: Array
    joints: Array
    frames: Array


@dataclass(frozen=True)
class AxisTransform:
    """The transform from a joint axis to the next: Rz(phi) Tz(d) Tx(a) Rx(alpha) Rz(psi) Tz(e).

    alpha is known.

    Attributes:
        phi: Turn about the first axis, rad.
        d: Shift along the first axis, m.
        a: Distance between the axes, m.
        psi: Turn about the second axis, rad.
        e: Shift along the second axis, m.
    """

    phi: float
    d: float
    a: float
    psi: float
    e: float


def closed_form_arm(robot: Robot) -> ClosedFormArm:
    """Return the arm as a UR arm or as a planar arm of two links.

    Raises:
        NoClosedForm: It is neither.
    """
    has_slides = bool(np.any(robot.prismatic))
    if has_slides or robot.n not in (2, 6):
        some_slide = ", of which some slide" if has_slides else ""
        raise NoClosedForm(robot.name, f"it has {robot.n} joints{some_slide}")
    if robot.n == 6:
        return _ur_arm(robot)
    return _planar_arm(robot)


def _ur_arm(robot: Robot) -> ClosedFormArm:
    """Return the parameters of a UR arm.

    Its table is standard DH with alpha = pi/2, 0, 0, pi/2, -pi/2; of the lengths only a2, a3, d1,
    d4, d5 and the last frame are not zero.

    Raises:
        NoClosedForm: The arm's axes are not those of a UR arm.
    """
    chain = robot.placements
    names = robot.joint_names
    pan = _crossing_axes(chain[1], 1.0, robot.name, names[0:2])
    upper = _parallel_axes(chain[2], robot.name, names[1:3])
    fore = _parallel_axes(chain[3], robot.name, names[2:4])
    wrist = _crossing_axes(chain[4], 1.0, robot.name, names[3:5])
    last = _crossing_axes(chain[5], -1.0, robot.name, names[4:6])
    if min(upper.a, fore.a) < ZERO_LENGTH:
        reason = f"two of the axes of {names[1]}, {names[2]} and {names[3]} coincide"
        raise NoClosedForm(robot.name, reason)

    # A joint angle of the table exceeds the robot's by two constant turns about the same axis: one
    # in the transform before the joint, and one in the transform behind it.
    transforms = (pan, upper, fore, wrist, last)
    turns_before = [0.0, *(transform.psi for transform in transforms)]
    turns_behind = [*(transform.phi for transform in transforms), 0.0]
    d4 = pan.e + upper.d + upper.e + fore.d + fore.e + wrist.d
    offsets = np.add(turns_before, turns_behind)
    return ClosedFormArm(
        task="pose",
        lengths=np.array([upper.a, fore.a, d4, wrist.e + last.d]),
        joints=np.array([offsets, robot.position_min, robot.position_max]),
        frames=np.array([chain[0] @ _shift_z(pan.d), _shift_z(last.e) @ chain[6]]),
    )


def _planar_arm(robot: Robot) -> ClosedFormArm:
    """Return the parameters of a planar arm of two links, from the parameters of its axes.

    phi, d, a, alpha, psi and e join two axes: see the text of this module.

    Raises:
        NoClosedForm: The axes are not parallel, or a link has no length.
    """
    # The first link joins the two axes; the second goes from the second axis to the TCP.
    first = _parallel_axes(robot.placements[1], robot.name, robot.joint_names)
    x, y, z = robot.placements[2, :3, 3]
    second_length = math.hypot(x, y)
    if min(first.a, second_length) < ZERO_LENGTH:
        raise NoClosedForm(robot.name, "one of its two links has no length")

    # A joint angle of the table is measured from the direction of the previous link to that of the
    # joint's own link. It exceeds the robot's joint angle by this offset.
    offsets = [first.phi, first.psi + math.atan2(y, x)]
    return ClosedFormArm(
        task="position",
        lengths=np.array([first.a, second_length, first.d + first.e + z]),
        joints=np.array([offsets, robot.position_min, robot.position_max]),
        frames=np.array([robot.placements[0], np.eye(4)]),
    )


def _parallel_axes(placement: Array, arm: str, names: tuple[str, ...]) -> AxisTransform:
    """Return the transform of alpha = 0: parallel axes that point the same way.

    Args:
        placement: Placement of the second joint in the first (4, 4).
        arm: The arm's name, for a refusal.
        names: Names of both joints, for a refusal.

    Raises:
        NoClosedForm: The axes are not parallel.
    """
    rotation = placement[:3, :3]
    x, y, z = placement[:3, 3]
    if math.hypot(rotation[0, 2], rotation[1, 2]) > ZERO_SINE or rotation[2, 2] < 0.0:
        raise NoClosedForm(arm, f"the axes of {names[0]} and {names[1]} are not parallel")

    phi = math.atan2(y, x)
    turn = math.atan2(rotation[1, 0], rotation[0, 0])
    return AxisTransform(phi=phi, d=float(z), a=math.hypot(x, y), psi=turn - phi, e=0.0)


def _crossing_axes(
    placement: Array, direction: float, arm: str, names: tuple[str, ...]
) -> AxisTransform:
    """Return the transform of alpha = direction pi/2 and a = 0: axes that meet at a right angle.

    Args:
        placement: Placement of the second joint in the first (4, 4).
        direction: Sign of alpha, 1 or -1.
        arm: The arm's name, for a refusal.
        names: Names of both joints, for a refusal.

    Raises:
        NoClosedForm: The axes do not meet, or not at a right angle.
    """
    rotation = placement[:3, :3]
    shift = placement[:3, 3]
    # The second axis in the first joint's frame; its z component is the cosine of their angle.
    x, y, cosine = direction * rotation[:, 2]
    if abs(cosine) > ZERO_SINE:
        raise NoClosedForm(arm, f"the axes of {names[0]} and {names[1]} are not at a right angle")

    # The axes meet if nothing of the shift is along their common normal.
    phi = math.atan2(x, -y)
    normal = np.array([math.cos(phi), math.sin(phi), 0.0])
    if abs(float(normal @ shift)) > ZERO_LENGTH:
        raise NoClosedForm(arm, f"the axes of {names[0]} and {names[1]} do not meet")

    # About the second axis, psi is the angle from the common normal to the x axis of its joint.
    psi = math.atan2(-float(normal @ rotation[:, 1]), float(normal @ rotation[:, 0]))
    shift_along_second = float(rotation[:, 2] @ shift)
    return AxisTransform(phi=phi, d=float(shift[2]), a=0.0, psi=psi, e=shift_along_second)


def _shift_z(distance: float) -> Array:
    """Return the transform (4, 4) of a shift along z, m."""
    frame = np.eye(4)
    frame[2, 3] = distance
    return frame
