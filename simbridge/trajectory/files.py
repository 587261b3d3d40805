"""Trajectory files of every kind: text, motion capture, Parquet, npz, and ROS bags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from simbridge.errors import InputFileError
from simbridge.files.reading import MAX_SAMPLES_TEXT, read_text
from simbridge.quoting import quoted
from simbridge.trajectory.bag_joints import has_joints_to_read, joint_recording, joint_topics
from simbridge.trajectory.bag_reader import open_bag
from simbridge.trajectory.bag_tf import BagTransforms
from simbridge.trajectory.bag_topics import BagTopics
from simbridge.trajectory.bags import bag_recording
from simbridge.trajectory.base_frames import base_frame_flags, place_pendant_base
from simbridge.trajectory.read_options import Frame, ReadOptions
from simbridge.trajectory.recording import Recording, recording_of
from simbridge.trajectory.tables.array_files import ARRAY_SUFFIXES
from simbridge.trajectory.tables.array_table import read_array_table
from simbridge.trajectory.tables.choice import Choice
from simbridge.trajectory.tables.joint_columns import ArmJoints
from simbridge.trajectory.tables.text_table import parse_text
from simbridge.trajectory.trajectory import Trajectory

# What rosbags reads; a directory is a ROS 2 bag.
BAG_SUFFIXES = (".bag", ".db3", ".mcap")

# What is done with files of other kinds instead.
NOT_SAMPLES = "it describes an arm or a cell: --robot FILE or --cell FILE"
UNSUPPORTED = "unsupported: save CSV, Parquet or npz"
COMPRESSED = "it is compressed; decompress it first"
INSTEAD = {
    ".urdf": NOT_SAMPLES,
    ".xacro": NOT_SAMPLES,
    ".toml": NOT_SAMPLES,
    ".npy": UNSUPPORTED,
    ".mat": UNSUPPORTED,
    ".xlsx": UNSUPPORTED,
    ".json": UNSUPPORTED,
    ".h5": UNSUPPORTED,
    ".pkl": UNSUPPORTED,
    ".gz": COMPRESSED,
    ".zip": COMPRESSED,
    ".bz2": COMPRESSED,
    ".xz": COMPRESSED,
    ".zst": COMPRESSED,
}


def is_bag(path: str | Path) -> bool:
    """Return whether a path names a ROS bag, by its suffix or as a directory."""
    file = Path(path)
    return file.suffix.lower() in BAG_SUFFIXES or file.is_dir()


def read_recording(
    path: str | Path,
    reading: ReadOptions | None = None,
    arm: ArmJoints | None = None,
    *,
    bases: Sequence[str] = (),
) -> Recording:
    """Read a file of any format, with its poses in the file's own frame; gaps are left as they are.

    Args:
        path: The file, or the directory of a ROS 2 bag.
        reading: How the file is read.
        arm: The arm whose joint positions may be read instead of poses; None for poses only.
        bases: Names of the frames of the arm's base, unless the reading places the poses: base_link
            first, then UR's base frame for an arm that has it. The tf of a bag places the poses in
            one of them, if it can.

    Raises:
        InputFileError: As `read_trajectory`.
    """
    file = Path(path)
    reading = reading or ReadOptions()
    if reading.base_frame is not None:
        bases = (reading.base_frame.lstrip("/"),)
    elif reading.places:
        bases = ()

    if is_bag(file):
        if reading.columns is not None:
            raise InputFileError(file, "a bag has no columns; omit --columns")
        recording = _read_bag_recording(file, reading, arm, bases)
        return place_pendant_base(recording, bases)

    choice = replace(reading.choice, arm=arm, asks_for_joints=reading.column == "joints")

    if file.suffix.lower() in ARRAY_SUFFIXES:
        if reading.frames:
            raise InputFileError(file, "a table has no tf; omit --frames")
        table = read_array_table(file, choice, reading.rate, matrices_name=reading.topic)
        return recording_of(file, table, reading.rate, arm)

    if reading.frames:
        raise InputFileError(file, "a text file has no tf; omit --frames")
    return place_pendant_base(_read_text_recording(file, reading, choice), bases)


def _read_bag_recording(
    file: Path, reading: ReadOptions, arm: ArmJoints | None, bases: Sequence[str]
) -> Recording:
    """Read the poses, or the joint positions of an arm, in a bag."""
    with open_bag(file) as bag:
        if arm is not None and has_joints_to_read(bag, reading):
            motion = joint_recording(bag, arm, reading.topic, reading.rate)
            return Recording(motion, frame="")
        return bag_recording(bag, reading.topic, reading.frames, rate=reading.rate, bases=bases)


def _read_text_recording(file: Path, reading: ReadOptions, choice: Choice) -> Recording:
    """Read a text file; one of another kind is refused with what to do instead."""
    instead = INSTEAD.get(file.suffix.lower())
    try:
        text = read_text(file, MAX_SAMPLES_TEXT)
        table = parse_text(file, text, choice, rate=reading.rate, body=reading.topic)
    except InputFileError as error:
        # A table may have any name: then its fault is in a later line.
        is_table = (error.line or 1) > 1
        if instead is None or not file.is_file() or is_table:
            raise
        raise InputFileError(file, instead) from None
    return recording_of(file, table, reading.rate, choice.arm)


def read_bag(
    path: str | Path,
    topic: str | None = None,
    *,
    frames: Sequence[str] = (),
    rate: float | None = None,
) -> tuple[Trajectory, str]:
    """Read the poses in a ROS bag.

    Messages may be Pose, PoseWithCovariance or Transform, stamped or not, Odometry, Path, PoseArray
    or tf. Stamps are the messages' own; where they have none, or all are zero, the times of
    recording. They are kept in whole nanoseconds: the trajectory's `epoch_ns` is the first, and its
    times are the s since then, each the double nearest to its nanoseconds (seconds since 1970 as
    doubles would be rounded to 0.24 us). Messages out of order are sorted, repetitions and poses of
    nan left out, with a warning that says how many and where. Poses are taken as they are. Of a
    Path the last message is the motion, as it grows while it is published; a PoseArray is a motion
    if it is the only message of its topic, and needs the rate.

    Args:
        path: A .bag, .db3 or .mcap file, or the directory of a ROS 2 bag.
        topic: The topic; `/tf:child` (or `/tf:parent>child`) for one transform of a tf topic,
            `/poses:2` for one pose of each PoseArray. None: the only one with poses.
        frames: Parent and child instead of a topic: the transforms of tf between them are
            chained.
        rate: Samples per s of poses that have no stamps of their own.

    Returns:
        The trajectory, and the frame (`frame_id`) of its poses; "" if the messages leave it empty.

    Raises:
        InputFileError: The bag cannot be read, the topic is missing or ambiguous (the candidates
            are named), or a message, counted from 1, has a value that is not finite, another frame,
            or a second pose for its instant.
    """
    with open_bag(Path(path)) as bag:
        recording = bag_recording(bag, topic, frames, rate=rate)
    return recording.trajectory, recording.frame


def pose_topics(path: str | Path) -> list[str]:
    """Return the possible values of `topic` for a bag; of one that needs no choice, the one.

    Topics of joint positions follow those of poses.
    """
    with open_bag(Path(path)) as bag:
        topics = BagTopics(bag, BagTransforms(bag))
        meant = topics.meant
        return meant if len(meant) == 1 else [*topics.choices, *joint_topics(bag)]


def read_trajectory(
    path: str | Path,
    frame: Frame = "base_link",
    topic: str | None = None,
    *,
    columns: str | None = None,
    rate: float | None = None,
) -> Trajectory:
    """Read a file of poses: TUM, CSV, motion capture, Parquet, npz, or a ROS bag.

    In a text file each line is a sample: `t x y z qx qy qz qw` or `t x y z rx ry rz`, in s, m and
    unit quaternions or rotation vectors in rad. `#` begins a comment. A header, or a comment before
    the numbers, may name the columns, in any order and among others, and units (`x [mm]`, `t_ns`,
    `rx (deg)`); see docs/trajectories.md. Gaps are left.

    Args:
        path: A file (text in UTF-8), or the directory of a ROS 2 bag.
        frame: Frame of the poses: base_link (x forward, as in ROS) or base (as on the pendant).
        topic: Which topic of a bag; "/tf:child" names the moving frame of a tf topic, "/poses:2"
            one of a PoseArray. Of motion capture the rigid body, of an npz file the array.
        columns: Which columns of a table are used, and their units: "t[ns]=stamp,x=px".
        rate: Samples per second of a file without times.

    Returns:
        The trajectory, in base_link.

    Raises:
        InputFileError: The file cannot be read or is no trajectory; with line and column, or topic
            and message.
        UnknownName: The frame is neither.
    """
    reading = ReadOptions(frame, topic=topic, columns=columns, rate=rate)
    recording = read_recording(path, reading)
    if recording.is_in_pendant_base:
        return recording.trajectory.from_pendant_base()
    return reading.place(recording.trajectory)


def check_frame(path: str | Path, recording: Recording, reading: ReadOptions, base: str) -> None:
    """Refuse poses in a frame whose placement relative to the arm's base is unknown.

    Args:
        path: The file, for messages.
        recording: The recording as it was read.
        reading: How the recording's poses are placed.
        base: Name of the arm's base.
    """
    frame = unknown_frame(recording, reading, base)
    if not frame:
        return
    fault = f" ({recording.tf_fault})" if recording.tf_fault else ""
    flags = base_frame_flags(recording, base)
    candidates = (
        f"If one of its frames is the arm's base, add {' or '.join(flags)}; otherwise place"
    )
    pendant = (
        ("--frame base, if that is the pendant's base frame; otherwise ") if frame == "base" else ""
    )
    raise InputFileError(
        path,
        f"its poses are in the frame {quoted(frame)}, not in {reading.frame}{fault}. "
        f"{candidates if flags else 'Place'} it with {pendant}"
        "--transform x y z qx qy qz qw (0 0 0 0 0 0 1 if it is base_link by another name), or move "
        "the motion to the arm with --anchor start.",
        field="frame_id",
    )


def unknown_frame(recording: Recording, reading: ReadOptions, base: str) -> str:
    """Return the name of the poses' frame if nothing relates it to the arm's base; else "".

    Args:
        recording: A file, as it was read.
        reading: How the recording's poses are placed.
        base: Name of the arm's base.
    """
    frame = recording.frame.lstrip("/")
    known = {"", reading.frame, (reading.base_frame or "").lstrip("/")}
    if reading.frame == "base_link":
        known.add(base)
    is_placed = bool(reading.transform) or reading.anchor is not None
    return "" if is_placed or frame in known else frame
