"""Transforms of tf chained: the poses of one frame in another, over the frames between them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from simbridge.robot import pose
from simbridge.robot.pose import Array, Counts

Edges = Mapping[tuple[str, str], tuple[Counts, Array]]
"""Of parent and child: stamps (T,) in ns, increasing, and the child's poses (T, 7) in the parent."""


def chain(edges: Edges, parent: str, child: str) -> tuple[Counts, Array]:
    """The poses of `child` in `parent`.

    A transform with one sample is a constant, as those of /tf_static. The instants are those of the transform on the
    way with the most samples, as far as every other moving one is known; between samples these are interpolated.

    Returns:
        Stamps (K,) in ns, and poses (K, 7).

    Raises:
        ValueError: There is no way between the frames, or no instant at which all of it is known; a sentence.
    """
    path = _path(edges, parent, child)
    moving = [edges[key] for key, _ in path if len(edges[key][0]) > 1]
    stamps = max(moving, key=lambda edge: len(edge[0]), default=edges[path[0][0]])[0]
    begin = max((edge[0][0] for edge in moving), default=stamps[0])
    end = min((edge[0][-1] for edge in moving), default=stamps[-1])
    stamps = stamps[(stamps >= begin) & (stamps <= end)]
    if not len(stamps):
        raise ValueError(f"the transforms between '{parent}' and '{child}' are never known at the same time")
    made = np.tile(pose.IDENTITY, (len(stamps), 1))
    for key, forward in path:
        own, poses = edges[key]
        # Differences in s: stamps in ns since 1970 are longer than a double.
        step = pose.interpolate((own - stamps[0]) / 1e9, poses, (stamps - stamps[0]) / 1e9)
        made = pose.compose(made, step if forward else pose.inverse(step))
    return stamps, made


def _path(edges: Edges, parent: str, child: str) -> list[tuple[tuple[str, str], bool]]:
    """The transforms on the way from one frame to another, each with whether it is used from parent to child."""
    neighbours: dict[str, list[tuple[str, tuple[str, str], bool]]] = {}
    for key in edges:
        neighbours.setdefault(key[0], []).append((key[1], key, True))
        neighbours.setdefault(key[1], []).append((key[0], key, False))
    ways: dict[str, list[tuple[tuple[str, str], bool]]] = {parent: []}
    waiting = [parent]
    for frame in waiting:
        for other, key, forward in neighbours.get(frame, ()):
            if other not in ways:
                ways[other] = [*ways[frame], (key, forward)]
                waiting.append(other)
    if child == parent or child not in ways:
        listed = ", ".join(sorted(neighbours))
        raise ValueError(f"tf does not connect the frames '{parent}' and '{child}' (--frames); its frames are {listed}")
    return ways[child]
