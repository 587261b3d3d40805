"""Frames of tf, chained from one to another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from simbridge.quoting import quoted, quoted_list
from simbridge.robot import pose
from simbridge.robot.pose import Array, Counts

# A transform: the names of its parent frame and its child frame.
FrameNames = tuple[str, str]
# Of each transform: stamps (T,) in ns, increasing, and the child's poses (T, 7) in the parent.
Edges = Mapping[FrameNames, tuple[Counts, Array]]


class ChainStep(NamedTuple):
    """A transform on the way from one frame to another.

    Attributes:
        key: Key of the transform.
        forward: Whether it is used from parent to child.
    """

    key: FrameNames
    forward: bool


def chain(edges: Edges, parent: str, child: str) -> tuple[Counts, Array]:
    """Return the poses of a frame in another.

    A transform with one sample is a constant, as those of /tf_static. The instants are those of the
    transform on the way with the most samples, as far as every other moving one is known; between
    samples these are interpolated.

    Args:
        edges: The transforms.
        parent: The frame that the poses are in.
        child: The frame whose poses they are.

    Returns:
        Stamps (K,), ns, and poses (K, 7).

    Raises:
        ValueError: The frames are not connected, or never all known; a sentence.
    """
    steps = _find_path(edges, parent, child)

    # The instants at which all transforms are known.
    moving = [edges[step.key] for step in steps if len(edges[step.key][0]) > 1]
    most_samples = max(moving, key=lambda edge: len(edge[0]), default=edges[steps[0].key])
    stamps, _ = most_samples
    begin = max((edge_stamps[0] for edge_stamps, _ in moving), default=stamps[0])
    end = min((edge_stamps[-1] for edge_stamps, _ in moving), default=stamps[-1])
    stamps = stamps[(stamps >= begin) & (stamps <= end)]
    if not len(stamps):
        frames = f"{quoted(parent)} and {quoted(child)}"
        raise ValueError(f"the transforms between {frames} are never known at the same time")

    poses = np.tile(pose.IDENTITY, (len(stamps), 1))
    for key, forward in steps:
        edge_stamps, edge_poses = edges[key]
        # Differences in s: stamps in ns since 1970 are longer than a double.
        edge_times = (edge_stamps - stamps[0]) / 1e9
        transform = pose.interpolate(edge_times, edge_poses, (stamps - stamps[0]) / 1e9)
        poses = pose.compose(poses, transform if forward else pose.inverse(transform))
    return stamps, poses


def _find_path(edges: Edges, parent: str, child: str) -> list[ChainStep]:
    """Find the transforms on the way from one frame to another."""
    # What each frame is connected to.
    neighbours: dict[str, list[tuple[str, ChainStep]]] = {}
    for key in edges:
        edge_parent, edge_child = key
        neighbours.setdefault(edge_parent, []).append((edge_child, ChainStep(key, True)))
        neighbours.setdefault(edge_child, []).append((edge_parent, ChainStep(key, False)))

    # The shortest path to each frame; the list grows while the loop goes through it.
    paths: dict[str, list[ChainStep]] = {parent: []}
    frames = [parent]
    for frame in frames:
        for neighbour, step in neighbours.get(frame, ()):
            if neighbour not in paths:
                paths[neighbour] = [*paths[frame], step]
                frames.append(neighbour)

    if child == parent or child not in paths:
        known = quoted_list(sorted(neighbours))
        raise ValueError(
            f"tf does not connect the frames {quoted(parent)} and {quoted(child)} (--frames); its "
            f"frames are {known}"
        )
    return paths[child]
