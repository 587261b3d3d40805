"""Poses as arrays, and the difference between two of them.

A pose is `[x y z qx qy qz qw]`: metres, and a unit quaternion with the scalar last. Every function
takes arrays of shape (..., 7) or (..., 4) and works on all leading axes at once. Rotations are
compared as "desired relative to attained", in the axes of the frame in which both poses are given
(base_link).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Counts = NDArray[np.int64]
Flags = NDArray[np.bool_]

# Long recordings go through so many poses at a time: what is computed on the way stays in the
# processor's cache.
BLOCK = 8192

# How far the norm of a unit quaternion may be off by rounding alone.
ROUNDING = 8 * float(np.finfo(float).eps)
IDENTITY = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
IDENTITY.setflags(write=False)


def read_only(values: ArrayLike) -> Array:
    """Return a read-only copy as an array of doubles."""
    array = np.array(values, dtype=float)
    array.setflags(write=False)
    return array


def normalize(quaternions: ArrayLike) -> Array:
    """Return unit quaternions (..., 4) in the directions of quaternions.

    Those as good as doubles get are kept bit for bit.
    """
    q = np.asarray(quaternions, dtype=float)
    norm = np.linalg.norm(q, axis=-1, keepdims=True)
    return np.where(np.abs(norm - 1.0) <= ROUNDING, q, q / norm)


def align_quaternion(pose: Array, like: Array) -> Array:
    """Return a pose (7,) with that of its two quaternions, q or -q, that is nearer to another's.

    Args:
        pose: The pose.
        like: The other pose (7,), such as the one before it.
    """
    if float(pose[3:] @ like[3:]) >= 0.0:
        return pose
    return np.concatenate([pose[:3], -pose[3:]])


def snap_right_angles(matrix: ArrayLike) -> Array:
    """Return a rotation matrix whose entries within 1e-9 of 0 and +-1 are exactly 0 and +-1.

    Angles of pi/2 and pi in a table are meant exactly, and a double cannot represent them.
    """
    entries = np.asarray(matrix, dtype=float)
    nearest = np.round(entries)
    return np.where(np.abs(entries - nearest) < 1e-9, nearest, entries)


def multiply(a: ArrayLike, b: ArrayLike) -> Array:
    """Return the Hamilton product a b of quaternions (..., 4).

    It is the rotation b, followed by the rotation a.
    """
    ax, ay, az, aw = np.moveaxis(np.asarray(a, dtype=float), -1, 0)
    bx, by, bz, bw = np.moveaxis(np.asarray(b, dtype=float), -1, 0)
    return np.stack(
        [
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
            aw * bw - ax * bx - ay * by - az * bz,
        ],
        axis=-1,
    )


def conjugate(quaternions: ArrayLike) -> Array:
    """Return the inverse rotations of unit quaternions (..., 4)."""
    return np.asarray(quaternions, dtype=float) * np.array([-1.0, -1.0, -1.0, 1.0])


def rotate(quaternions: ArrayLike, vectors: ArrayLike) -> Array:
    """Return vectors (..., 3), each turned by its unit quaternion (..., 4)."""
    q = np.asarray(quaternions, dtype=float)
    v = np.asarray(vectors, dtype=float)
    axis = q[..., :3]
    scalar = q[..., 3:]
    twice = 2.0 * np.cross(axis, v)
    return v + scalar * twice + np.cross(axis, twice)


def rotation_vectors(quaternions: ArrayLike) -> Array:
    """Return Rodrigues vectors (..., 3) in rad of unit quaternions (..., 4).

    The angle is at most pi.
    """
    q = np.asarray(quaternions, dtype=float)
    # A rotation has two quaternions: take the one with the smaller angle.
    q = np.where(q[..., 3:] < 0.0, -q, q)
    sine = np.linalg.norm(q[..., :3], axis=-1, keepdims=True)
    angle = 2.0 * np.arctan2(sine, q[..., 3:])
    # For a vanishing angle the limit of angle / sin(angle / 2) is 2.
    ratio = np.where(sine > 0.0, angle / np.where(sine > 0.0, sine, 1.0), 2.0)
    return q[..., :3] * ratio


def quaternions(vectors: ArrayLike) -> Array:
    """Return unit quaternions (..., 4) of Rodrigues vectors (..., 3) in rad."""
    v = np.asarray(vectors, dtype=float)
    angle = np.linalg.norm(v, axis=-1, keepdims=True)
    # np.sinc is sin(pi x) / (pi x): exact at zero.
    return np.concatenate([0.5 * v * np.sinc(angle / (2.0 * np.pi)), np.cos(0.5 * angle)], axis=-1)


def mean_rotation(quaternions: Array) -> Array:
    """Return the rotation (4,) with the least sum of squared chords to those of quaternions (T, 4).

    F. L. Markley et al., Averaging quaternions, 2007.
    """
    _, eigenvectors = np.linalg.eigh(quaternions.T @ quaternions)
    return np.asarray(eigenvectors[:, -1])


def error(desired: ArrayLike, attained: ArrayLike) -> tuple[Array, Array]:
    """Return desired minus attained poses (..., 7).

    Returns:
        The translation (..., 3) in m, and the rotation R_desired R_attained^T as Rodrigues vectors
        (..., 3) in rad.
    """
    d = np.asarray(desired, dtype=float)
    a = np.asarray(attained, dtype=float)
    if d.ndim == 2 and len(d) > BLOCK:
        translation = np.empty((len(d), 3))
        rotation = np.empty((len(d), 3))
        has_rows = a.ndim == 2 and len(a) == len(d)
        for block in _blocks(len(d)):
            translation[block], rotation[block] = error(d[block], a[block] if has_rows else a)
        return translation, rotation

    turn = multiply(d[..., 3:], conjugate(a[..., 3:]))
    return d[..., :3] - a[..., :3], rotation_vectors(turn)


def _blocks(count: int) -> Iterator[slice]:
    """Iterate over blocks of so many samples."""
    return (slice(k, k + BLOCK) for k in range(0, count, BLOCK))


def compose(a: ArrayLike, b: ArrayLike) -> Array:
    """Return the poses (..., 7) a b: b is expressed in a's frame.

    They are in the frame in which a is given.
    """
    a = np.asarray(a, dtype=float)
    b = np.asarray(b, dtype=float)
    positions = a[..., :3] + rotate(a[..., 3:], b[..., :3])
    rotations = multiply(a[..., 3:], b[..., 3:])
    return np.concatenate([positions, rotations], axis=-1)


def inverse(poses: ArrayLike) -> Array:
    """Return the inverse poses (..., 7): compose(inverse(p), p) is the identity."""
    p = np.asarray(poses, dtype=float)
    back = conjugate(p[..., 3:])
    return np.concatenate([-rotate(back, p[..., :3]), back], axis=-1)


def interpolate(times: ArrayLike, poses: ArrayLike, at: ArrayLike) -> Array:
    """Return poses at instants: positions linear, rotations by slerp along the shorter arc.

    Before and after all poses, the first or last holds.

    Args:
        times: Strictly increasing (T,), s.
        poses: Poses at these times (T, 7).
        at: The instants (K,), s.

    Returns:
        Poses (K, 7).
    """
    t = np.asarray(times, dtype=float)
    p = np.asarray(poses, dtype=float)
    instants = np.asarray(at, dtype=float)
    if len(instants) > BLOCK:
        result = np.empty((len(instants), 7))
        for block in _blocks(len(instants)):
            result[block] = interpolate(t, p, instants[block])
        return result

    clipped = np.clip(instants, t[0], t[-1])
    if len(t) == 1:
        return np.repeat(p, len(clipped), axis=0)

    # The poses around each instant, and how far it is from the first to the second.
    first = np.clip(np.searchsorted(t, clipped, side="right") - 1, 0, len(t) - 2)
    second = first + 1
    fraction = ((clipped - t[first]) / (t[second] - t[first]))[:, None]
    turn = rotation_vectors(multiply(p[second, 3:], conjugate(p[first, 3:])))
    rotations = multiply(quaternions(fraction * turn), p[first, 3:])
    positions = p[first, :3] + fraction * (p[second, :3] - p[first, :3])

    # The samples themselves come back to the last bit, whatever the arithmetic between them rounds.
    is_first = fraction[:, 0] == 0.0
    rotations[is_first] = p[first[is_first], 3:]
    is_second = fraction[:, 0] == 1.0
    rotations[is_second] = p[second[is_second], 3:]
    positions[is_second] = p[second[is_second], :3]
    return np.concatenate([positions, rotations], axis=1)
