"""The frames of an arm's base, by the names that files give them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from simbridge.quoting import shell_quoted
from simbridge.trajectory.recording import Recording

# UR's own base frame in ROS, the one on the pendant: base_link turned by half a turn about z.
PENDANT_BASE_NAME = "base"
PENDANT_BASE_REMARK = "where base is UR's base frame, half a turn about z from base_link"
# What separates a prefix from the name of a frame: left_base_link, left/base_link.
PREFIX_ENDS = ("_", "/")


def place_pendant_base(recording: Recording, bases: Sequence[str]) -> Recording:
    """Mark poses in UR's base frame as such, if the arm has that frame.

    Args:
        recording: The recording as it was read.
        bases: Names of the frames of the arm's base; all but the first are turned from base_link.
    """
    # ROS 1 put a slash before the names of frames.
    frame = recording.frame.lstrip("/")
    if frame != PENDANT_BASE_NAME or frame not in bases[1:]:
        return recording
    motion = recording.trajectory
    motion = replace(motion, read_as=f"{motion.read_as}, {PENDANT_BASE_REMARK}")
    return recording._replace(
        trajectory=motion, frame="", is_in_pendant_base=True, is_placed_by_file=True
    )


def base_frame_flags(recording: Recording, base: str) -> tuple[str, ...]:
    """Return the flags that choose one of a file's frames as the arm's base, if one may be it.

    Args:
        recording: A file whose frame is unknown, as it was read.
        base: Name of the arm's base. A frame may have this name, or that of UR's base frame, behind
            a prefix.
    """
    names = sorted({recording.frame.lstrip("/"), *recording.related_frames})
    base_links = [name for name in names if _is_prefixed(name, base)]
    if base_links:
        return tuple(f"--base-frame {shell_quoted(name)}" for name in base_links)

    pendant_bases = [name for name in names if _is_prefixed(name, PENDANT_BASE_NAME)]
    if PENDANT_BASE_NAME in recording.related_frames:
        pendant_bases = [PENDANT_BASE_NAME]
    return tuple(f"--base-frame {shell_quoted(name)} --frame base" for name in pendant_bases)


def _is_prefixed(name: str, base: str) -> bool:
    """Return whether a name is that of a base, behind a prefix."""
    return name.endswith(tuple(end + base for end in PREFIX_ENDS))
