"""The motion in an open ROS bag: poses of messages, or frames of tf chained.

`bag_reader.py` reads its bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simbridge.errors import InputFileError, InvalidTrajectory
from simbridge.trajectory.bag_poses import Poses, bare_name
from simbridge.trajectory.bag_reader import Bag
from simbridge.trajectory.bag_samples import NANOSECONDS_PER_SECOND, SortedSamples, sort_samples
from simbridge.trajectory.bag_tf import BagTransforms, chain_frames, place_in_base
from simbridge.trajectory.bag_topics import BagTopics
from simbridge.trajectory.dropped_rows import warn_of
from simbridge.trajectory.recording import Recording
from simbridge.trajectory.tables.joint_columns import ArmJoints
from simbridge.trajectory.trajectory import Trajectory, describe_reading


def bag_recording(
    bag: Bag,
    topic: str | None,
    frames: Sequence[str],
    *,
    rate: float | None = None,
    bases: Sequence[str] = (),
) -> Recording:
    """Return the motion in a bag.

    Args:
        bag: The bag.
        topic: Topic or frame of the poses: see `simbridge.trajectory.files.read_bag`.
        frames: Two frames of tf: see there.
        rate: Samples per s: see there.
        bases: Names of the frames of the arm's base. The bag's tf places the poses in the first
            one to which it relates them. Empty: they are left in their frame.
    """
    transforms = BagTransforms(bag)
    if frames:
        parent, child = map(bare_name, frames)
        name = f"tf from {parent} to {child}"
        source = name
        frame = parent
        samples = chain_frames(transforms, parent, child)
    else:
        topics = BagTopics(bag, transforms)
        poses = topics.read_only_topic() if topic is None else topics.read_chosen_topic(topic)
        name = poses.name
        source = f"topic {name}"
        frame = poses.frame
        _choose_times(poses, rate)
        if rate is None and not poses.has_stamps:
            source += ", times of recording"
        samples = sort_samples(bag.path, poses.samples)

    # The bag's own tf knows where the arm is.
    fault = ""
    is_placed = False
    if bases and frame and frame not in bases[:1]:
        base = _related_base(transforms, frame, bases)
        fault = "" if base == frame else transforms.fault_between(base, frame)
        is_placed = base != frame and not fault
        if is_placed:
            samples, moves = place_in_base(transforms, samples, frame=frame, base=base)
            source += (
                f", transformed from {frame} to {base} by {'moving' if moves else 'static'} tf"
            )
            frame = base

    motion = motion_of(bag, name, samples)
    motion = describe_reading(motion, source, "" if is_placed else frame)
    return Recording(
        motion,
        frame,
        is_placed_by_file=is_placed,
        tf_fault=fault,
        related_frames=tuple(transforms.connected_frames(frame)) if fault else (),
    )


def _related_base(transforms: BagTransforms, frame: str, bases: Sequence[str]) -> str:
    """Return the first frame of the arm's base that tf relates to a frame, or that it is.

    If there is none, it is the first of all. A frame with the name of UR's base frame that moves
    may be the base of a vehicle.
    """
    if transforms.find_path(bases[0], frame):
        return bases[0]
    for base in bases[1:]:
        if base == frame or transforms.is_static_between(base, frame):
            return base
    return bases[0]


def _choose_times(poses: Poses, rate: float | None) -> None:
    """Stamp poses evenly at a rate, or refuse a rate for poses that have stamps.

    Args:
        poses: The poses as they were recorded.
        rate: Samples per s; None for the stamps of the messages.
    """
    stamps = np.array(poses.stamps, dtype=np.int64)
    is_stampless = poses.one_message and bool((stamps == stamps[0]).all())
    if rate is not None and not is_stampless and poses.has_stamps:
        raise InputFileError(poses.path, f"the poses of {poses.name} have timestamps; omit --rate")
    if rate is None and is_stampless and len(stamps) > 1:
        poses_text = f"the {len(stamps)} poses of the one message of {poses.name}"
        reason = f"{poses_text} have no timestamps: add --rate HZ"
        raise InputFileError(poses.path, reason, field="stamp")
    if rate is not None:
        poses.put_at_rate(rate)


def motion_of(
    bag: Bag, name: str, samples: SortedSamples, arm: ArmJoints | None = None
) -> Trajectory:
    """Return samples as a trajectory; a warning says what was left out.

    Args:
        bag: The bag, for messages.
        name: Name of the topic, for messages.
        samples: The poses in the order of their times, or the joint positions.
        arm: The arm whose joint positions they are; None for poses.
    """
    warn_of(f"{bag.path}, {name}", samples.notes, stacklevel=4)
    joints = None if arm is None else samples.values
    poses = samples.values if arm is None else arm.tool_path(samples.values)
    seconds = (samples.stamps - samples.stamps[0]) / NANOSECONDS_PER_SECOND
    epoch_ns = int(samples.stamps[0])
    try:
        return Trajectory(seconds, poses, source=str(bag.path), epoch_ns=epoch_ns, joints=joints)
    except InvalidTrajectory as fault:
        location = ""
        if fault.sample is not None:
            location = f", {samples.unit} {samples.numbers[fault.sample]}"
        reason = f"{name}{location}: {fault.reason}"
        raise InputFileError(bag.path, reason, field=fault.field) from fault
