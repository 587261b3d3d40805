"""Frames of tf: the transforms on the path from one to another, and what they are at an instant."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from simbridge.robot import pose
from simbridge.robot.pose import Array, Counts, Flags
from simbridge.trajectory.gaps import GAP_PERIODS, LARGE_GAP_PERIODS, Fault, find_gaps
from simbridge.trajectory.trajectory import Trajectory

# A transform: the names of its parent frame and its child frame.
FrameNames = tuple[str, str]


class ChainStep(NamedTuple):
    """A transform on the path from one frame to another.

    Attributes:
        key: Frames of the transform.
        forward: Whether it is used from parent to child.
    """

    key: FrameNames
    forward: bool


@dataclass(frozen=True, eq=False)
class Transform:
    """The recorded poses of a frame in its parent.

    Attributes:
        stamps: Instants of the poses (T,), ns, increasing.
        motion: The poses at these instants.
        is_static: Whether it holds always, as those of /tf_static; else only from its first instant
            to its last.
    """

    stamps: Counts
    motion: Trajectory
    is_static: bool

    def elapsed(self, stamps: Counts) -> Array:
        """Return stamps (K,), ns, as s since the first of its own."""
        # Differences of whole ns: stamps since 1970 are longer than a double.
        return np.asarray((stamps - self.stamps[0]) / 1e9)


@dataclass(frozen=True, eq=False)
class TransformLookup:
    """A transform at instants.

    Attributes:
        poses: Poses (K, 7) of the child in the parent; without meaning where they are not known.
        is_before: Which instants (K,) are before its first sample.
        is_after: Which instants are after its last sample.
        is_in_large_gap: Which instants are in a gap of more than 10 of its periods.
        gaps: The shorter gaps with an instant in them, over which it is interpolated; their places
            are in s since the first instant.
    """

    poses: Array
    is_before: Flags
    is_after: Flags
    is_in_large_gap: Flags
    gaps: tuple[Fault, ...]

    @property
    def is_known(self) -> Flags:
        """At which instants (K,) the transform is known."""
        return ~(self.is_before | self.is_after | self.is_in_large_gap)


def look_up(transform: Transform, stamps: Counts) -> TransformLookup:
    """Look up a transform at given instants: interpolated, never extrapolated.

    Args:
        transform: The transform.
        stamps: The instants (K,), ns.
    """
    instants = transform.elapsed(stamps)
    poses = transform.motion.reference(instants)
    nowhere = np.zeros(len(stamps), dtype=bool)
    if transform.is_static:
        return TransformLookup(poses, nowhere, nowhere, nowhere, ())

    # For each instant, the sample before it; -1 for an instant before the first sample, or at a
    # sample, where nothing is interpolated.
    sample_before = np.searchsorted(transform.stamps, stamps, side="right") - 1
    is_of_sample = transform.stamps[np.maximum(sample_before, 0)] == stamps
    sample_before[is_of_sample] = -1

    # Nothing is known in long gaps. Shorter ones are interpolated, and noted if an instant is in
    # them.
    large_gaps = {gap.sample for gap in find_gaps(transform.motion, LARGE_GAP_PERIODS)}
    crossed_gaps = []
    used_samples = set(sample_before.tolist()) - large_gaps
    for gap in find_gaps(transform.motion, GAP_PERIODS):
        if gap.sample in used_samples:
            crossed_gaps.append(replace(gap, at=gap.at - float(instants[0])))

    return TransformLookup(
        poses,
        is_before=stamps < transform.stamps[0],
        is_after=stamps > transform.stamps[-1],
        is_in_large_gap=np.isin(sample_before, list(large_gaps)),
        gaps=tuple(crossed_gaps),
    )


def find_path(keys: Collection[FrameNames], parent: str, child: str) -> list[ChainStep] | None:
    """Return the transforms on the shortest path from one frame to another.

    Args:
        keys: Parent and child of each known transform.
        parent: The frame at which the path begins.
        child: The frame at which the path ends.

    Returns:
        The transforms; None if the frames are not connected.
    """
    # The frames that each frame is connected to, with the transform between them.
    neighbours: dict[str, list[tuple[str, ChainStep]]] = {}
    for key in keys:
        key_parent, key_child = key
        neighbours.setdefault(key_parent, []).append((key_child, ChainStep(key, True)))
        neighbours.setdefault(key_child, []).append((key_parent, ChainStep(key, False)))

    # The shortest path to each frame, by breadth-first search: the list of frames grows while the
    # loop goes through it.
    paths: dict[str, list[ChainStep]] = {parent: []}
    frames = [parent]
    for frame in frames:
        for neighbour, step in neighbours.get(frame, ()):
            if neighbour not in paths:
                paths[neighbour] = [*paths[frame], step]
                frames.append(neighbour)
    return paths.get(child)


def has_another_path(keys: Collection[FrameNames], path: list[ChainStep]) -> bool:
    """Return whether a path's ends are connected without one of its transforms, too.

    Then tf contradicts itself: in a tree of frames there is one path.
    """
    first = path[0]
    last = path[-1]
    begin = first.key[0] if first.forward else first.key[1]
    end = last.key[1] if last.forward else last.key[0]
    return any(find_path(set(keys) - {step.key}, begin, end) is not None for step in path)


def chain(transforms: Sequence[Array], directions: Sequence[bool]) -> Array:
    """Return the poses (K, 7) of the last frame of a path in the first.

    Args:
        transforms: Poses (K, 7) of each transform on the path, of the child in the parent.
        directions: Whether each is used from parent to child.
    """
    poses = np.tile(pose.IDENTITY, (len(transforms[0]), 1))
    for transform, forward in zip(transforms, directions, strict=True):
        poses = pose.compose(poses, transform if forward else pose.inverse(transform))
    return poses
