"""The tf of a bag: poses of frames in each other, at the instants at which they are known."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from simbridge.errors import InputFileError, InvalidTrajectory
from simbridge.quoting import quoted, quoted_list
from simbridge.robot import pose
from simbridge.robot.pose import Array, Counts, Flags
from simbridge.text import significant
from simbridge.trajectory.bag_poses import (
    MAX_POSES,
    TF_TYPES,
    Poses,
    bare_name,
    stamped_poses,
)
from simbridge.trajectory.bag_reader import Bag
from simbridge.trajectory.bag_samples import (
    NANOSECONDS_PER_SECOND,
    SAME_VALUE,
    SortedSamples,
    sort_samples,
)
from simbridge.trajectory.dropped_rows import DroppedRows, dropped_rows
from simbridge.trajectory.gaps import LARGE_GAP_PERIODS, named
from simbridge.trajectory.tf_chain import (
    ChainStep,
    FrameNames,
    Transform,
    TransformLookup,
    chain,
    find_path,
    has_another_path,
    look_up,
)
from simbridge.trajectory.trajectory import Trajectory

# Transforms on a topic of this name hold always; on others only from the first to the last.
STATIC_TOPIC = "tf_static"


class TfName(NamedTuple):
    """A transform on a topic."""

    topic: str
    parent: str
    child: str

    def __str__(self) -> str:
        """Return it as `--topic` names it."""
        return f"{self.topic}:{self.parent}>{self.child}"

    @property
    def is_static(self) -> bool:
        """True for a topic of static transforms, which hold at all times."""
        return self.topic.rpartition("/")[2] == STATIC_TOPIC


class BagTransforms:
    """The transforms of a bag; they are read when they are first needed.

    Args:
        bag: The bag.
    """

    def __init__(self, bag: Bag) -> None:
        self._bag = bag

    @property
    def path(self) -> Path:
        """The bag, for messages."""
        return self._bag.path

    @cached_property
    def recorded(self) -> dict[TfName, Poses]:
        """The poses of each transform, in the order of their messages."""
        recorded: dict[TfName, Poses] = {}
        count = 0
        for topic, number, recording_time, message in self._bag.messages(kinds=TF_TYPES):
            for stamped in stamped_poses(message):
                name = TfName(topic, bare_name(stamped.header.frame_id), stamped.child)
                if name not in recorded:
                    recorded[name] = Poses(self.path, str(name))
                recorded[name].add(number, recording_time, stamped)
                count += 1
                if count > MAX_POSES:
                    reason = f"it has more than {MAX_POSES:,} transforms; split the bag"
                    raise InputFileError(self.path, reason)
        return recorded

    @property
    def keys(self) -> set[FrameNames]:
        """The frames of each transform."""
        return {(name.parent, name.child) for name in self.recorded}

    @property
    def frames(self) -> list[str]:
        """All frames, sorted."""
        return sorted({frame for key in self.keys for frame in key})

    def connected_frames(self, frame: str) -> list[str]:
        """Return the frames that a frame is connected to, sorted."""
        return [name for name in self.frames if self.find_path(frame, name)]

    def find_path(self, parent: str, child: str) -> list[ChainStep] | None:
        """Return the transforms on the path from one frame to another; None without one."""
        return find_path(self.keys, parent, child)

    def is_static_between(self, parent: str, child: str) -> bool:
        """Return whether two frames are connected, by transforms that all hold always."""
        static_keys = {(name.parent, name.child) for name in self.recorded if name.is_static}
        path = self.find_path(parent, child) or []
        return bool(path) and all(step.key in static_keys for step in path)

    def fault_between(self, parent: str, child: str) -> str:
        """Return why tf does not relate two frames, as a clause; "" if it does."""
        if not self.keys:
            return "the bag has no tf"
        names = f"{quoted(parent)} and {quoted(child)}"
        path = self.find_path(parent, child)
        if not path:
            known = quoted_list(self.frames)
            return f"tf does not connect the frames {names}; its frames are {known}"
        if has_another_path(self.keys, path):
            return f"tf connects the frames {names} in more than one way"
        return ""

    def transform(self, key: FrameNames) -> tuple[Transform, tuple[str, ...]]:
        """Return a transform, and notes on the messages of it that were left out.

        Several topics may have parts of it; it is static if one of them is.

        Raises:
            InputFileError: One of its messages is not a pose, or two differ at one instant.
        """
        parent, child = key
        parts = [poses for name, poses in self.recorded.items() if name[1:] == key]
        is_static = any(name.is_static for name in self.recorded if name[1:] == key)
        poses = parts[0]
        if len(parts) > 1:
            poses = Poses(self.path, f"tf from {parent} to {child}")
            for part in parts:
                poses.extend(part)

        if is_static:
            samples = self._static_samples(poses)
        else:
            samples = sort_samples(self.path, poses.samples)
        elapsed = (samples.stamps - samples.stamps[0]) / NANOSECONDS_PER_SECOND
        try:
            motion = Trajectory(elapsed, samples.values, source=poses.name)
        except InvalidTrajectory as fault:
            reason = f"{poses.name}: {fault.reason}"
            raise InputFileError(self.path, reason, field=fault.field) from fault
        notes = tuple(f"{poses.name}: {note}" for note in samples.notes)
        return Transform(samples.stamps, motion, is_static), notes

    def _static_samples(self, poses: Poses) -> SortedSamples:
        """Return the one pose of a transform that holds always."""
        values = np.array(poses.values).reshape(-1, 7)
        differs = ~(np.abs(values - values[0]) <= SAME_VALUE).all(axis=1)
        if differs.any():
            first = int(np.flatnonzero(differs)[0])
            reason = (
                f"{poses.name} should be constant, but its message {poses.numbers[first]} has "
                f"another pose than message {poses.numbers[0]}"
            )
            raise InputFileError(self.path, reason, field="frame_id")
        numbers = np.array(poses.numbers[:1], dtype=np.int64)
        stamps = np.array(poses.stamps[:1], dtype=np.int64)
        return SortedSamples(stamps, values[:1], numbers, "message")


def chain_frames(transforms: BagTransforms, parent: str, child: str) -> SortedSamples:
    """Return the poses of a frame of tf in another.

    The instants are those of the moving transform on the path with the most samples. The other
    transforms are interpolated there; instants at which one of them is not known are left out.

    Args:
        transforms: The transforms of the bag.
        parent: The frame that the poses are in.
        child: The frame whose poses they are.

    Raises:
        InputFileError: The frames are not connected, or their transforms are known together at no
            instant.
    """
    if not transforms.keys:
        reason = "the bag has no tf, which --frames needs: choose a topic with --topic instead"
        raise InputFileError(transforms.path, reason, field="frame_id")
    fault = transforms.fault_between(parent, child)
    if fault:
        raise InputFileError(transforms.path, f"{fault} (--frames)", field="frame_id")
    steps = _recorded_steps(transforms, parent, child)

    # The transform that gives the instants.
    moving = [step.transform for step in steps if not step.transform.is_static]
    leading = max(moving, key=lambda transform: len(transform.stamps), default=steps[0].transform)
    numbers = np.arange(len(leading.stamps)) + 1
    instants = SortedSamples(leading.stamps, leading.motion.poses, numbers, "sample")
    placements, is_known, notes = _chain_at(transforms, instants, steps)
    return instants.pick(is_known, placements, notes)


class Placed(NamedTuple):
    """Poses that tf has placed.

    Attributes:
        samples: The poses, in the arm's base.
        moves: Whether a transform on the path moves.
    """

    samples: SortedSamples
    moves: bool


def place_in_base(
    transforms: BagTransforms, samples: SortedSamples, *, frame: str, base: str
) -> Placed:
    """Return poses in the arm's base, by the bag's tf at the instants of the poses.

    Poses at instants at which a transform is not known are left out.

    Args:
        transforms: The transforms of the bag; they connect the two frames.
        samples: The poses.
        frame: The frame that they are in.
        base: Name of the arm's base.

    Raises:
        InputFileError: No pose is at an instant at which the transforms are known.
    """
    steps = _recorded_steps(transforms, base, frame)
    placements, is_known, notes = _chain_at(transforms, samples, steps)
    poses = pose.compose(placements, samples.values)
    moves = any(not step.transform.is_static for step in steps)
    return Placed(samples.pick(is_known, poses, notes), moves)


class _RecordedStep(NamedTuple):
    """A transform on a path between two frames, and what was left out of it."""

    step: ChainStep
    transform: Transform
    notes: tuple[str, ...]


def _recorded_steps(transforms: BagTransforms, parent: str, child: str) -> list[_RecordedStep]:
    """Return the transforms on the path between two frames that are connected."""
    path = transforms.find_path(parent, child) or []
    return [_RecordedStep(step, *transforms.transform(step.key)) for step in path]


def _chain_at(
    transforms: BagTransforms, samples: SortedSamples, steps: Sequence[_RecordedStep]
) -> tuple[Array, Flags, list[DroppedRows | str]]:
    """Return the product of the transforms on a path at the instants of samples.

    Args:
        transforms: The transforms of the bag.
        samples: The samples.
        steps: The transforms on the path.

    Returns:
        Poses (T, 7), without meaning where a transform is not known; which instants have all
        transforms (T,); and the notes.

    Raises:
        InputFileError: No instant has all transforms.
    """
    lookups = [look_up(recorded.transform, samples.stamps) for recorded in steps]
    is_known = np.all([lookup.is_known for lookup in lookups], axis=0)
    if not is_known.any():
        raise InputFileError(transforms.path, _never_known(samples, steps), field="time")

    notes: list[DroppedRows | str] = []
    for recorded, lookup in zip(steps, lookups, strict=True):
        notes += recorded.notes
        notes += _lookup_notes(samples, recorded.step.key, lookup)
    directions = [recorded.step.forward for recorded in steps]
    return chain([lookup.poses for lookup in lookups], directions), is_known, notes


def _lookup_notes(
    samples: SortedSamples, key: FrameNames, lookup: TransformLookup
) -> list[DroppedRows | str]:
    """Return notes on the samples that have no transform, and on the gaps that are interpolated.

    Args:
        samples: The samples, which are placed by transforms.
        key: Parent and child of one transform.
        lookup: This transform at the instants of the samples.
    """
    name = "from {} to {}".format(*key)
    large_gaps = f"in gaps of more than {LARGE_GAP_PERIODS:g} periods of the transforms {name}"
    dropped = {
        f"before the first transform {name}": lookup.is_before,
        f"after the last transform {name}": lookup.is_after,
        large_gaps: lookup.is_in_large_gap,
    }

    notes: list[DroppedRows | str] = []
    for detail, is_dropped in dropped.items():
        numbers = np.sort(samples.numbers[is_dropped])
        notes += dropped_rows("pose", numbers, detail=detail, unit=samples.unit)
    if lookup.gaps:
        notes.append(f"the transforms {name} have {named(lookup.gaps, 'gap')}, interpolated")
    return notes


def _never_known(samples: SortedSamples, steps: Sequence[_RecordedStep]) -> str:
    """Return the reason that no sample is at an instant at which all transforms are known."""
    ranges = [f"the poses are at {_range(samples.stamps)}"]
    for recorded in steps:
        if not recorded.transform.is_static:
            name = "from {} to {}".format(*recorded.step.key)
            ranges.append(f"the transforms {name} at {_range(recorded.transform.stamps)}")
    return f"{', '.join(ranges)}: they do not overlap in time"


def _range(stamps: Counts) -> str:
    """Return the first and the last of stamps (T,), ns, in s."""
    first, last = (significant(stamp / NANOSECONDS_PER_SECOND, 13) for stamp in stamps[[0, -1]])
    return f"{first} s" if first == last else f"{first} to {last} s"
