"""Finds all joint positions of a UR arm, or of a planar arm of two links, for a target.

The solutions are closed forms (Hawkins, Analytic inverse kinematics for the UR-5/UR-10, 2013).
Their joint angles are those of the arm's Denavit-Hartenberg table, the "table angles", which differ
from the robot's by constant offsets. Singularities of a solution are recorded as bits: WRIST, ELBOW
and SHOULDER. If rounding puts a pose that an arm has attained out of its reach, `rounding` helps.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from simbridge.ik.kernels.dense import write_target
from simbridge.ik.kernels.plane import FOLD, FREE, elbow, in_plane, wrist_3_angle
from simbridge.ik.kernels.rounding import (
    pan_within_rounding,
    reachable_turn,
    turn_within_rounding,
)
from simbridge.kernels.compile import Kernel, kernel
from simbridge.kernels.program import program_of
from simbridge.robot.pose import Array, Counts, Flags

# Bit of a singular wrist; the bit of a singular elbow is `plane.ELBOW`.
WRIST = 1
# Bit of a singular shoulder: the wrist is on the pan axis.
SHOULDER = 4
# Largest number of solutions of an arm.
MAX_BRANCHES = 8

# Distance out of reach up to which a target counts as reached, m; and angle beyond a limit up to
# which a joint is set to the limit, rad.
SLACK = 1e-11
# One turn of a joint, rad.
TURN = 2.0 * math.pi


@lru_cache(maxsize=2)
def compiled_search(name: str) -> Kernel:
    """Return the function `branches` or `follow`, compiled. Every arm uses the same."""
    return kernel(program_of(branches, follow), name, "closed-form solver")


class BranchBuffers(NamedTuple):
    """Arrays of the search for solutions.

    Attributes:
        out: Solutions (8, n), rad, nearest first.
        notes: Singularities of each solution (8,), as bits.
        q: Table angles of the current solution (n,), rad.
        goal: The goal: the target pose of the last joint's frame in the arm's base, as the upper
            rows of a transform (3, 4).
        bends: Two joint angles of each posture of the two links (2, 2), rad.
        transform: The target in base_link: position (3) and rotation matrix (9).
        turned: Target rotation of the last joint's frame in base_link (3, 3).
        unit: The target pose with a quaternion of unit length (7,).
        shift: Goal position from the arm's base, in axes of base_link (3,), m.
    """

    out: Array
    notes: Counts
    q: Array
    goal: Array
    bends: Array
    transform: Array
    turned: Array
    unit: Array
    shift: Array


def allocate_buffers(out: Array, notes: Counts) -> BranchBuffers:
    """Return buffers for a search.

    Args:
        out: Array for the solutions (8, n).
        notes: Array for their singularities (8,).
    """
    # In the order of the attributes: compiled code takes no keywords here.
    return BranchBuffers(
        out,
        notes,
        np.zeros(out.shape[1]),
        np.zeros((3, 4)),
        np.zeros((2, 2)),
        np.zeros(12),
        np.zeros((3, 3)),
        np.zeros(7),
        np.zeros(3),
    )


def accept(
    singularities: int, joints: Array, near: Array, count: int, buffers: BranchBuffers
) -> int:
    """Insert a solution into the sorted list of solutions, unless it violates joint limits.

    Args:
        singularities: Singularities of the solution, as bits.
        joints: Rows (3, n), rad: table angles minus the robot's joint positions, and the lower and
            upper limits of the robot's joints.
        near: Joint positions (n,), rad. Each joint is turned by whole turns to be nearest to them,
            and the solutions are sorted by their distance from them.
        count: Number of solutions in `buffers.out` so far.
        buffers: The buffers, with the solution's table angles in `buffers.q`.

    Returns:
        The number of solutions in `buffers.out` afterwards.
    """
    q = buffers.q
    out = buffers.out
    notes = buffers.notes
    n = near.shape[0]

    # Turn each joint by whole turns: near to `near`, and then into its limits if that is possible.
    square_distance = 0.0
    for i in range(n):
        angle = q[i] - joints[0, i]
        angle += TURN * np.rint((near[i] - angle) / TURN)
        low = joints[1, i]
        high = joints[2, i]
        if angle > high + SLACK:
            angle -= TURN * math.ceil((angle - high - SLACK) / TURN)
        elif angle < low - SLACK:
            angle += TURN * math.ceil((low - SLACK - angle) / TURN)
        if not low - SLACK <= angle <= high + SLACK:
            return count
        q[i] = min(max(angle, low), high)
        square_distance += (q[i] - near[i]) ** 2

    # Move the solutions that are farther away down by one row.
    row = count
    while row > 0:
        square_distance_above = 0.0
        for i in range(n):
            square_distance_above += (out[row - 1, i] - near[i]) ** 2
        if square_distance_above <= square_distance:
            break
        for i in range(n):
            out[row, i] = out[row - 1, i]
        notes[row] = notes[row - 1]
        row -= 1

    for i in range(n):
        out[row, i] = q[i]
    notes[row] = singularities
    return count + 1


# What `ur_branches` takes from elsewhere:
#
# - `in_plane` expresses the goal in the plane of the arm as eight numbers: (xx, xy, xz) is its x
#   axis and (yx, yy, yz) its y axis, zz is the z component of its z axis, and wx says how far ahead
#   its origin is, m.
# - FOLD is the distance up to which the wrist's positions on both sides of the pan axis differ by
#   rounding only.
# - `near[i] + joints[0, i]` is the table angle that joint i is to be near to. Pan, shoulder (that
#   angle is `first`) and wrist 3 take it where the goal leaves them free.


def ur_branches(
    lengths: Array,
    joints: Array,
    near: Array,
    slack: float,
    at_boundary: bool,
    buffers: BranchBuffers,
) -> int:
    """Find the solutions of a UR arm for the goal in `buffers.goal`.

    There are up to eight: the wrist to either side of the pan axis, the wrist flipped or not, and
    the elbow bent either way. The loops over these are one function, since passing the buffers on
    for each flip took a quarter of the time of a solution.

    Args:
        lengths: Lengths of the arm (4,), m: upper arm a2, forearm a3, d4 (the whole offset along
            the parallel axes) and d5.
        joints: Rows (3, n), rad: table angles minus the robot's joint positions, and the lower and
            upper limits of the robot's joints.
        near: Joint positions (6,), rad, that solutions are to be near to.
        slack: Distance by which the goal may be out of reach, m.
        at_boundary: Whether pan and wrist 3 may be turned within rounding to make the arm reach.
        buffers: The buffers; the solutions are in `buffers.out` afterwards.

    Returns:
        The number of solutions.
    """
    goal = buffers.goal
    q = buffers.q
    bends = buffers.bends
    a2 = lengths[0]
    a3 = lengths[1]
    d4 = lengths[2]
    d5 = lengths[3]
    px = goal[0, 3]
    py = goal[1, 3]
    pz = goal[2, 3]

    # In plan view, d4 and the distance of the wrist ahead of the pan axis are the legs of a right
    # triangle, and the wrist's distance from the axis is its hypotenuse.
    r = math.sqrt(px * px + py * py)
    if r < abs(d4) - slack:
        return 0
    ahead = math.sqrt(max(0.0, (r - abs(d4)) * (r + abs(d4))))
    pan_folds = ahead < FOLD

    solutions = 0
    for side in range(2):
        # If both sides coincide, one is enough. Rounding may put a stretched arm out of reach on
        # one of them, so the other one is tried if the first has no solution.
        if pan_folds and solutions > 0:
            break
        forward = ahead if side == 0 else -ahead
        exact_pan = pan_angle(px, py, d4, forward, near[0] + joints[0, 0])

        for flip in range(2):
            pan = pan_of_flip(lengths, goal, exact_pan, forward, flip, at_boundary)
            plane = in_plane(goal, pan)
            xx, xy, _, yx, yy, _, _, wx = plane
            wrist_2, wrist_3, is_wrist_free = wrist_angles(
                plane, pz, a2, a3, d5, flip, at_boundary, near[5] + joints[0, 5]
            )

            # The lean is the sum of the angles of shoulder, elbow and wrist 1. It follows from the
            # axis of wrist 2, (vx, vy), which lies in the plane for either flip.
            s6 = math.sin(wrist_3)
            c6 = math.cos(wrist_3)
            vx = -(s6 * xx + c6 * yx)
            vy = -(s6 * xy + c6 * yy)
            lean = math.atan2(vx, -vy)

            # Both postures of upper arm and forearm.
            first = near[1] + joints[0, 1]
            postures, singularities = elbow(wx - d5 * vx, pz - d5 * vy, a2, a3, first, slack, bends)
            singularities |= pan_and_wrist_singularities(pan_folds, is_wrist_free)
            for posture in range(postures):
                q[0] = pan
                q[1] = bends[posture, 0]
                q[2] = bends[posture, 1]
                q[3] = lean - q[1] - q[2]
                q[4] = wrist_2
                q[5] = wrist_3
                solutions = accept(singularities, joints, near, solutions, buffers)

            # The two flips of a singular wrist are one solution.
            if is_wrist_free:
                break
    return solutions


def pan_of_flip(
    lengths: Array, goal: Array, pan: float, forward: float, flip: int, at_boundary: bool
) -> float:
    """Return the angle of the pan for a flip of the wrist, rad.

    Args:
        lengths: Lengths of a UR arm (4,), m: upper arm a2, forearm a3, d4 and d5.
        goal: The goal (3, 4); see `BranchBuffers`.
        pan: The exact angle, rad.
        forward: Distance of the wrist ahead of the pan axis, m; negative on the other side.
        flip: Whether the wrist is flipped (1) or not (0).
        at_boundary: Whether the pan may be turned within rounding to make the arm reach.
    """
    if at_boundary:
        return pan_within_rounding(lengths, goal, pan, forward, flip)
    return pan


def pan_and_wrist_singularities(pan_folds: bool, is_wrist_free: bool) -> int:
    """Return the bits of the singularities of shoulder and wrist.

    Args:
        pan_folds: Whether the solutions on both sides of the pan axis coincide.
        is_wrist_free: Whether wrist 1 and wrist 3 turn about parallel axes.
    """
    shoulder = SHOULDER if pan_folds else 0
    wrist = WRIST if is_wrist_free else 0
    return shoulder | wrist


def pan_angle(px: float, py: float, d4: float, forward: float, near: float) -> float:
    """Return the angle of the pan, the first joint, rad.

    Args:
        px: x position of the wrist from the pan axis, m.
        py: y position of the wrist from the pan axis, m.
        d4: Offset of the wrist along the parallel axes, m.
        forward: Distance of the wrist ahead of the pan axis in the arm's plane, m; negative on the
            other side.
        near: The angle to choose if the wrist is on the axis and leaves it free, rad.
    """
    if math.sqrt(px * px + py * py) < FREE:
        return near
    return math.atan2(py, px) + math.atan2(d4, forward)


def wrist_angles(  # noqa: PLR0913 (compiled: plain arrays and numbers)
    plane: tuple[float, float, float, float, float, float, float, float],
    pz: float,
    a2: float,
    a3: float,
    d5: float,
    flip: int,
    at_boundary: bool,
    near: float,
) -> tuple[float, float, bool]:
    """Find the angles of wrist 2 and wrist 3 for a goal in the plane of the arm.

    Args:
        plane: The goal in the plane of the arm, as `in_plane` returns it for the pan.
        pz: Height of the goal, m.
        a2: Length of the upper arm, m.
        a3: Length of the forearm, m.
        d5: Offset of the wrist, m: see `ClosedFormArm`.
        flip: Whether the wrist is flipped (1) or not (0).
        at_boundary: Whether wrist 3 may be turned within rounding to make the arm reach.
        near: The angle of wrist 3 to choose if the wrist is singular and leaves it free, rad.

    Returns:
        Both angles, rad, and whether the wrist is singular.
    """
    xx, xy, xz, yx, yy, yz, zz, wx = plane
    sine = math.sqrt(xz * xz + yz * yz)

    # If the axes of wrist 1 and wrist 3 are parallel, only the sum of their angles is determined.
    is_wrist_free = sine < FREE
    if is_wrist_free:
        wrist_2 = 0.0 if zz > 0.0 else math.pi
        wrist_3 = near
    else:
        wrist_2 = math.atan2(sine if flip == 0 else -sine, zz)
        wrist_3 = wrist_3_angle(xz, yz, flip)

    # Turn wrist 3 so that the links reach, where that is free or within rounding.
    if is_wrist_free or at_boundary:
        s6 = math.sin(wrist_3)
        c6 = math.cos(wrist_3)
        offset_x = -d5 * (s6 * xx + c6 * yx)
        offset_y = -d5 * (s6 * xy + c6 * yy)
        turn = reachable_turn(wx, pz, offset_x, offset_y, a2, a3)
        wrist_3 -= math.copysign(1.0, zz) * turn_within_rounding(turn, sine)
    return wrist_2, wrist_3, is_wrist_free


def planar_branches(
    lengths: Array, joints: Array, near: Array, slack: float, buffers: BranchBuffers
) -> int:
    """Find the solutions of a planar arm for the position of the goal in `buffers.goal`.

    Args:
        lengths: Lengths of the arm (3,), m: the two links, and the height of the TCP over the base.
        joints: Rows (3, n), rad: table angles minus the robot's joint positions, and the lower and
            upper limits of the robot's joints.
        near: Joint positions (2,), rad, that solutions are to be near to.
        slack: Distance by which the goal may be out of reach, m.
        buffers: The buffers; the solutions are in `buffers.out` afterwards.

    Returns:
        The number of solutions.
    """
    # The arm moves in a plane: the goal must be at its height.
    goal = buffers.goal
    if abs(goal[2, 3] - lengths[2]) > slack:
        return 0

    # The postures of the two links, in table angles. If the elbow is singular, the first joint may
    # be free: then its table angle is the one to be near to.
    first = near[0] + joints[0, 0]
    postures, singularities = elbow(
        goal[0, 3], goal[1, 3], lengths[0], lengths[1], first, slack, buffers.bends
    )

    # Keep those within the joint limits.
    solutions = 0
    for posture in range(postures):
        buffers.q[0] = buffers.bends[posture, 0]
        buffers.q[1] = buffers.bends[posture, 1]
        solutions = accept(singularities, joints, near, solutions, buffers)
    return solutions


def find_goal(frames: Array, target: Array, buffers: BranchBuffers) -> bool:
    """Write the goal, base^-1 target tool^-1, into `buffers.goal`.

    Args:
        frames: Transforms (2, 4, 4): the arm's base in base_link, and the TCP in the frame of the
            arm's last joint.
        target: The target pose (7,); its quaternion need not be of unit length.
        buffers: The buffers of the search.

    Returns:
        Whether the target is a pose: its elements are finite, and its quaternion is not zero.
    """
    base = frames[0]
    tool = frames[1]
    transform = buffers.transform
    turned = buffers.turned
    unit = buffers.unit
    shift = buffers.shift
    goal = buffers.goal

    square = 0.0
    for i in range(3, 7):
        square += target[i] * target[i]
    if not 0.0 < square < np.inf:
        return False
    for i in range(3):
        unit[i] = target[i]
    for i in range(3, 7):
        unit[i] = target[i] / math.sqrt(square)
    write_target(unit, transform)

    # The target pose of the last joint's frame: its rotation, then its position. The target's
    # rotation matrix begins at index 3 of `transform`, row by row.
    for i in range(3):
        for j in range(3):
            k = 3 + 3 * i
            turned[i, j] = (
                transform[k] * tool[j, 0]
                + transform[k + 1] * tool[j, 1]
                + transform[k + 2] * tool[j, 2]
            )
    for i in range(3):
        offset = turned[i, 0] * tool[0, 3] + turned[i, 1] * tool[1, 3] + turned[i, 2] * tool[2, 3]
        shift[i] = target[i] - offset - base[i, 3]
        if not abs(shift[i]) < np.inf:
            return False

    # Express this pose in the arm's base.
    for i in range(3):
        for j in range(3):
            goal[i, j] = (
                base[0, i] * turned[0, j] + base[1, i] * turned[1, j] + base[2, i] * turned[2, j]
            )
        goal[i, 3] = base[0, i] * shift[0] + base[1, i] * shift[1] + base[2, i] * shift[2]
    return True


def find_branches(
    lengths: Array,
    joints: Array,
    frames: Array,
    target: Array,
    near: Array,
    slack: float,
    buffers: BranchBuffers,
) -> int:
    """Find all solutions for a target, nearest first, and write them to buffers.

    Args:
        lengths: Lengths of the arm, m: see `ClosedFormArm`.
        joints: Offsets and limits of the joints (3, n), rad: see `ClosedFormArm`.
        frames: Base and tool (2, 4, 4): see `ClosedFormArm`.
        target: The target pose (7,); its quaternion need not be of unit length.
        near: Joint positions (n,), rad, that solutions are to be near to.
        slack: Distance by which the target may be out of reach, m. With infinite slack the links
            point to a target out of reach.
        buffers: The buffers; the solutions are in `buffers.out` afterwards, and their singularities
            in `buffers.notes`.

    Returns:
        The number of solutions; -1 if the target or `near` is not finite, or the quaternion is
        zero.
    """
    n = near.shape[0]
    is_finite = find_goal(frames, target, buffers)
    for i in range(n):
        is_finite = is_finite and abs(near[i]) < np.inf
    if not is_finite:
        return -1

    # Callers read the singularities of the first solution even if there is none.
    buffers.notes[0] = 0
    if n == 2:
        return planar_branches(lengths, joints, near, slack, buffers)

    at_boundary = False
    solutions = ur_branches(lengths, joints, near, slack, at_boundary, buffers)
    if solutions > 0 or slack == np.inf:
        return solutions

    # Rounding may have put the target out of reach. Of the solutions within rounding only the
    # nearest one, the first, counts: the others may be the same one, turned within rounding.
    at_boundary = True
    solutions = ur_branches(lengths, joints, near, slack, at_boundary, buffers)
    return min(1, solutions)


def branches(  # noqa: PLR0913 (compiled: plain arrays and numbers)
    lengths: Array,
    joints: Array,
    frames: Array,
    target: Array,
    near: Array,
    slack: float,
    out: Array,
    notes: Counts,
) -> int:
    """Find all solutions for a target, nearest first.

    Args:
        lengths: Lengths of the arm, m: see `ClosedFormArm`.
        joints: Offsets and limits of the joints (3, n), rad: see `ClosedFormArm`.
        frames: Base and tool (2, 4, 4): see `ClosedFormArm`.
        target: The target pose (7,); its quaternion need not be of unit length.
        near: Joint positions (n,), rad, that solutions are to be near to.
        slack: Distance by which the target may be out of reach, m.
        out: Result: the solutions (8, n), rad.
        notes: Result: singularities of each solution (8,), as bits.

    Returns:
        The number of solutions; -1 if the target or `near` is not finite, or the quaternion is
        zero.
    """
    return find_branches(lengths, joints, frames, target, near, slack, allocate_buffers(out, notes))


def follow(  # noqa: PLR0913 (compiled: plain arrays and numbers)
    lengths: Array,
    joints: Array,
    frames: Array,
    targets: Array,
    q: Array,
    path: Array,
    attained: Flags,
    singularities: Counts,
) -> None:
    """Follow targets: of the solutions of each, take the one nearest to the previous solution.

    If a target is out of reach, the arm stretches or folds towards it as far as it can. If that is
    not possible either, the arm stays where it is.

    Args:
        lengths: Lengths of the arm, m: see `ClosedFormArm`.
        joints: Offsets and limits of the joints (3, n), rad: see `ClosedFormArm`.
        frames: Base and tool (2, 4, 4): see `ClosedFormArm`.
        targets: The target poses (T, 7).
        q: Joint positions before the first target (n,), rad; they become the last solution.
        path: Result: joint positions for each target (T, n), rad.
        attained: Result: whether each target is attained (T,).
        singularities: Result: singularities of each posture (T,), as bits.
    """
    n = q.shape[0]
    buffers = allocate_buffers(np.zeros((MAX_BRANCHES, n)), np.zeros(MAX_BRANCHES, np.int64))
    for t in range(targets.shape[0]):
        count = find_branches(lengths, joints, frames, targets[t], q, SLACK, buffers)
        attained[t] = count > 0
        if not attained[t]:
            # With infinite slack, every distance counts as within reach.
            count = find_branches(lengths, joints, frames, targets[t], q, np.inf, buffers)

        # The nearest solution comes first. Without any, the arm stays.
        singularities[t] = buffers.notes[0] if count > 0 else 0
        for i in range(n):
            if count > 0:
                q[i] = buffers.out[0, i]
            path[t, i] = q[i]
