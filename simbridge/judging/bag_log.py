"""Reads a ROS bag with joint states or the state of a joint trajectory controller."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from simbridge.errors import InputFileError
from simbridge.judging import ros_definitions as ros
from simbridge.judging.bag_arms import check_namespaces, is_namespace, leave_out_other_arms
from simbridge.judging.bag_commands import read_forward_commands
from simbridge.judging.bag_contents import BOOL, FLOAT, INTEGER, BagContents, BagMessage, Rows
from simbridge.judging.bag_goals import read_goals, read_results
from simbridge.judging.bag_rows import JointRows, TopicSamples
from simbridge.judging.joint_names import find_arm_joints, find_prefixes
from simbridge.judging.log import (
    Clock,
    Commands,
    ControllerLog,
    LogSource,
    Signal,
    TrackedReference,
)
from simbridge.robot.pose import Array, Counts, compose
from simbridge.robot.robot import Robot
from simbridge.trajectory.bag_reader import open_bag
from simbridge.trajectory.bag_samples import NANOSECONDS_PER_SECOND
from simbridge.trajectory.trajectory import PENDANT_BASE
from simbridge.ur.tables import RuntimeState

# Words in the names of topics whose joint states were not measured: where the joints should be ...
SETPOINT_WORDS = ("setpoint", "desired", "reference", "goal")
# ... and what was sent.
COMMAND_WORDS = ("command", "commands", "cmd")
# ... and what the controller itself aimed at: an exported run has it.
TARGET_WORDS = ("target", "targets")
# The topic that every ROS driver publishes the measured joints on.
MEASURED_TOPIC = "/joint_states"
# The topic of UR's ROS 2 driver on which the speed scaling is in percent.
PERCENT_TOPIC = "/speed_scaling"
# Values above it are in percent; rounding aside, a fraction is at most 1.
MAX_FRACTION = 1.5
# Times from stamp to recording above which the stamps are not those of the recorder's clock, ns.
MAX_SAME_CLOCK_DELAY = NANOSECONDS_PER_SECOND
# The frame of the pendant's base in ROS; a prefix may precede it.
UR_BASE_FRAME = "base"
# The topics by which a bag is known that simbridge has exported from a run.
EXPORT_TOPICS = ("/reference/pose", "/attained/pose")


@dataclass
class _Reading:
    """The state of reading a bag.

    Attributes:
        path: The bag.
        contents: What it has.
        joints: Names of the arm's joints in it.
        start: Stamp of the first sample, ns.
        clock_lead: How far the recorder's clock is ahead of that of the stamps, ns.
        notes: Sentences about what was left out or assumed.
    """

    path: Path
    contents: BagContents
    joints: tuple[str, ...]
    start: int = 0
    clock_lead: int = 0
    notes: list[str] = field(default_factory=list)

    def seconds(self, stamps: Counts) -> Array:
        """Return stamps, ns, in s from the log's first sample."""
        return np.asarray((stamps - self.start) / NANOSECONDS_PER_SECOND, dtype=float)

    def rows_of_arm(self, rows: Rows) -> list[JointRows]:
        """Return the joint vectors that have all joints of the arm, most messages first."""
        complete = [item for item in rows.values() if set(self.joints) <= set(item.joint_names)]
        return sorted(complete, key=len, reverse=True)

    def samples(self, rows: JointRows | None) -> TopicSamples | None:
        """Return the vectors of the arm's joints; None where there are none."""
        if rows is None:
            return None
        samples = rows.samples(self.joints)
        self.notes += samples.notes
        return samples if len(samples.stamps) else None


def read_bag_log(path: Path, robot: Robot | None, prefix: str | None) -> ControllerLog:
    """Read a bag.

    Args:
        path: Its file or directory.
        robot: The arm that the user named; None to find it by the names of its joints.
        prefix: What the names of its joints, or of its topics (`/left`), begin with; None where
            the bag has one arm.

    Raises:
        InputFileError: It cannot be read, or has no motion of an arm's joints.
    """
    with open_bag(path, ros.DEFINITIONS) as bag:
        namespace = f"{(prefix or '').rstrip('/')}/" if is_namespace(prefix) else ""
        contents = BagContents(bag, namespace)
        topics = [connection.topic for connection in bag.connections]
    joint_topics = (*contents.controllers, *contents.feedback, *contents.joints)
    if not joint_topics:
        reason = (
            "it has neither joint states nor the state of a joint trajectory controller; "
            f"its topics: {', '.join(sorted(set(topics))) or 'none'}"
        )
        raise InputFileError(path, reason, field="topics")

    names = [joint_names for _, joint_names in joint_topics]
    joint_prefix = None if is_namespace(prefix) else prefix
    joints = find_arm_joints(str(path), names, robot, joint_prefix)
    check_namespaces(str(path), contents, joints)
    reading = _Reading(path, contents, joints)
    prefixes = find_prefixes(names, robot)
    if len(prefixes) > 1 and joint_prefix is not None:
        reading.notes += leave_out_other_arms(contents, joint_prefix, prefixes)
    measured = reading.samples(_choose_measured(reading))
    controller = reading.samples(_choose_controller(reading))
    return _assemble(reading, measured, controller)


def _choose_measured(reading: _Reading) -> JointRows | None:
    """Return the measured joints: of /joint_states, or of the topic with the most messages."""
    candidates = [
        rows
        for rows in reading.rows_of_arm(reading.contents.joints)
        if not _has_word(rows.topic, (*SETPOINT_WORDS, *COMMAND_WORDS, *TARGET_WORDS))
    ]
    candidates.sort(key=lambda rows: rows.topic != MEASURED_TOPIC)
    _note_others(reading, "joint states", candidates)
    return candidates[0] if candidates else None


def _choose_controller(reading: _Reading) -> JointRows | None:
    """Return the state of the trajectory controller with the most messages, else the feedback."""
    states = reading.rows_of_arm(reading.contents.controllers)
    _note_others(reading, "states of trajectory controllers", states)
    feedback = reading.rows_of_arm(reading.contents.feedback)
    return next(iter((*states, *feedback)), None)


def _choose_joints(reading: _Reading, words: Sequence[str]) -> TopicSamples | None:
    """Return the joint positions of the topic with one of some words in its name."""
    candidates = [
        rows
        for rows in reading.rows_of_arm(reading.contents.joints)
        if _has_word(rows.topic, words)
    ]
    _note_others(reading, f"joint positions ({words[0]})", candidates)
    return reading.samples(next(iter(candidates), None))


def _has_word(topic: str, words: Iterable[str]) -> bool:
    """Return whether a topic's name has one of some words."""
    parts = topic.replace("/", "_").split("_")
    return any(word in parts for word in words)


def _note_others(reading: _Reading, noun: str, candidates: Sequence[JointRows]) -> None:
    """Note the topics that were not chosen."""
    others = [rows.topic for rows in candidates[1:] if rows.topic != candidates[0].topic]
    if others:
        reading.notes.append(
            f"{noun}: {candidates[0].topic} was read, not {', '.join(dict.fromkeys(others))}"
        )


def _assemble(
    reading: _Reading, measured: TopicSamples | None, controller: TopicSamples | None
) -> ControllerLog:
    """Return the log: the measured joints, and beside them what else the bag has."""
    # The joints whose stamps are the rows of the log.
    base = measured or controller
    if base is None or len(base.stamps) < 2:
        reason = "it has fewer than two samples of the arm's joints"
        raise InputFileError(reading.path, reason, field="joint states")
    reading.start = int(base.stamps[0])
    reading.clock_lead = _find_clock_lead(reading, base)

    contents = reading.contents
    columns = _read_targets(reading, base)
    if measured is not None:
        columns["actual_q"] = measured.vectors["position"]
        if "velocity" in measured.vectors:
            columns["actual_qd"] = measured.vectors["velocity"]
    elif controller is not None and "feedback" in controller.vectors:
        columns["actual_q"] = controller.vectors["feedback"]

    setpoints = _choose_joints(reading, SETPOINT_WORDS)
    commands = _read_commands(reading, _choose_joints(reading, COMMAND_WORDS))
    positions, velocities = _read_forward_commands(reading, measured)
    source = _find_source(reading)
    return ControllerLog(
        name=str(reading.path),
        source=source,
        clock=Clock.CONTROLLER if source is LogSource.EXPORT else Clock.HOST,
        start=reading.start / NANOSECONDS_PER_SECOND,
        times=reading.seconds(base.stamps),
        joint_names=reading.joints,
        columns=columns,
        setpoints=_read_positions(reading, setpoints),
        reference_poses=_read_poses(reading, "/reference/pose"),
        attained_poses=_read_poses(reading, "/attained/pose", "/tcp_pose_broadcaster/pose"),
        position_commands=commands or positions,
        speed_commands=velocities,
        reference=_read_reference(reading, controller),
        goals=read_goals(
            contents, reading.joints, start=reading.start, clock_lead=reading.clock_lead
        ),
        results=read_results(contents, start=reading.start, clock_lead=reading.clock_lead),
        speed_scaling=_read_speed_scaling(reading),
        robot_mode=_read_mode(reading, ros.ROBOT_MODE, "/robot_mode"),
        safety_mode=_read_mode(reading, ros.SAFETY_MODE, "/safety_mode"),
        program_state=_read_program_state(reading),
        # Last: each reader above adds its notes.
        notes=tuple(reading.notes),
    )


def _read_targets(reading: _Reading, base: TopicSamples) -> dict[str, Array]:
    """Return the controller's own targets, where there is one for each sample of the joints."""
    targets = _choose_joints(reading, TARGET_WORDS)
    if targets is None:
        return {}
    if not np.array_equal(targets.stamps, base.stamps):
        reading.notes.append(
            f"{targets.topic} was not read: its timestamps are not those of {base.topic}"
        )
        return {}
    columns = {"target_q": targets.vectors["position"]}
    if "velocity" in targets.vectors:
        columns["target_qd"] = targets.vectors["velocity"]
    return columns


def _find_source(reading: _Reading) -> LogSource:
    """Return whether a bag is an exported run, or of which version of ROS it is."""
    if all(topic in reading.contents.poses for topic in EXPORT_TOPICS):
        return LogSource.EXPORT
    return LogSource.ROS1_BAG if reading.path.suffix == ".bag" else LogSource.ROS2_BAG


def _find_clock_lead(reading: _Reading, base: TopicSamples) -> int:
    """Return how far the recorder's clock is ahead of the stamps where it is another clock, ns.

    Stamps of a simulation count from its start. Messages without stamps are placed by the median
    time from stamp to recording.
    """
    rows = [
        *reading.contents.joints.values(),
        *reading.contents.controllers.values(),
        *reading.contents.feedback.values(),
    ]
    delay = next(item.recording_delay for item in rows if item.topic == base.topic)
    if abs(delay) < MAX_SAME_CLOCK_DELAY:
        return 0
    seconds = delay / NANOSECONDS_PER_SECOND
    reading.notes.append(
        f"the stamps are not by the recorder's clock, which is {seconds:.6g} s ahead: messages "
        "without a stamp are placed to within the time it took to record them"
    )
    return delay


def _read_positions(reading: _Reading, samples: TopicSamples | None) -> Signal | None:
    """Return joint positions with their times."""
    if samples is None:
        return None
    return Signal(reading.seconds(samples.stamps), samples.vectors["position"])


def _read_commands(reading: _Reading, samples: TopicSamples | None) -> Commands | None:
    """Return joint positions as commands.

    In an exported run a command has the stamp for which it is meant, one period after it was sent.
    """
    positions = _read_positions(reading, samples)
    if positions is None:
        return None
    is_export = _find_source(reading) is LogSource.EXPORT
    period = float(np.median(np.diff(positions.times))) if is_export else 0.0
    return Commands(positions.values, positions.times - period)


def _read_forward_commands(
    reading: _Reading, measured: TopicSamples | None
) -> tuple[Commands | None, Commands | None]:
    """Return the positions, and the velocities, that forward command controllers were sent."""
    positions = None
    velocities = None
    topics = reading.contents.arrays
    for topic in sorted(topics, key=lambda topic: len(topics[topic])):
        if measured is None:
            reading.notes.append(f"{topic} was not read: nothing shows the order of its joints")
            continue
        sent = read_forward_commands(
            topic,
            topics[topic],
            joints=reading.joints,
            measured=measured,
            delay=reading.clock_lead,
        )
        if isinstance(sent, str):
            reading.notes.append(f"{topic} was not read: {sent}")
            continue
        # Of several topics the one with most messages is last.
        commands = Commands(sent.values, reading.seconds(sent.recorded - reading.clock_lead))
        if sent.is_velocity:
            velocities = commands
        else:
            positions = commands
    return positions, velocities


def _read_reference(reading: _Reading, controller: TopicSamples | None) -> TrackedReference | None:
    """Return the state of a trajectory controller; None where there is no whole one."""
    if controller is None:
        return None
    if "feedback" not in controller.vectors:
        reading.notes.append(f"{controller.topic} was not read: it lacks measured positions")
        return None
    vectors = controller.vectors
    q = vectors["reference"]
    actual_q = vectors["feedback"]
    return TrackedReference(
        name=controller.topic,
        times=reading.seconds(controller.stamps),
        q=q,
        qd=vectors.get("reference_velocity"),
        actual_q=actual_q,
        error=vectors.get("error", q - actual_q),
        output=vectors.get("output"),
    )


def _messages(reading: _Reading, kind: str, topic: str = "") -> list[BagMessage]:
    """Return the messages of a type, of the topic with most of them.

    Args:
        reading: The bag.
        kind: The type.
        topic: How the name of the topic ends.
    """
    topics = [
        messages
        for name, messages in reading.contents.states.items()
        if messages and messages[0].kind == kind and name.endswith(topic)
    ]
    return max(topics, key=len, default=[])


def _read_mode(reading: _Reading, kind: str, topic: str) -> Signal | None:
    """Return a mode of the controller over time; None where it was not recorded.

    Args:
        reading: The bag.
        kind: The type of the messages of UR's driver.
        topic: The end of the topic on which an exported run has it, as a plain number.
    """
    mode = _read_states(reading, kind, "mode")
    return _read_states(reading, INTEGER, "data", topic) if mode is None else mode


def _read_states(reading: _Reading, kind: str, value: str, topic: str = "") -> Signal | None:
    """Return a value in the messages of a type over time; None where there are none.

    Args:
        reading: The bag.
        kind: The type.
        value: Name of the field with the value.
        topic: How the name of the topic ends.
    """
    messages = _messages(reading, kind, topic)
    if not messages:
        return None
    recorded = np.array([message.recorded for message in messages], dtype=np.int64)
    values = [float(getattr(message.content, value)) for message in messages]
    return Signal(reading.seconds(recorded - reading.clock_lead), np.array(values))


def _read_speed_scaling(reading: _Reading) -> Signal | None:
    """Return the speed scaling, 0 to 1, from the topic of either driver, else the controller's."""
    factor = _read_states(reading, ros.SPEED_SCALING, "factor")
    if factor is not None:
        return factor
    scaling = _read_states(reading, FLOAT, "data")
    if scaling is None:
        # What the trajectory controller was told; only newer ones publish it.
        return _read_states(reading, ros.STATE, "factor")
    topic = _messages(reading, FLOAT)[0].topic
    is_percent = topic.endswith(PERCENT_TOPIC) or float(scaling.values.max()) > MAX_FRACTION
    return Signal(scaling.times, scaling.values / 100.0) if is_percent else scaling


def _read_program_state(reading: _Reading) -> Signal | None:
    """Return the state of the controller's program, or whether it takes the driver's commands."""
    state = _read_states(reading, INTEGER, "data", "/runtime_state")
    if state is not None:
        return state
    running = _read_states(reading, BOOL, "data")
    if running is None:
        return None
    states = np.where(running.values > 0.0, RuntimeState.PLAYING, RuntimeState.STOPPED)
    return Signal(running.times, states.astype(float))


def _read_poses(reading: _Reading, *topics: str) -> Signal | None:
    """Return the poses of the TCP on one of some topics, base_link to TCP."""
    known = reading.contents.poses
    messages = next((known[topic] for topic in topics if topic in known), [])
    if not messages:
        return None
    stamps = np.array([message.stamp(reading.clock_lead) for message in messages], dtype=np.int64)
    rows = []
    for message in messages:
        position = message.content.pose.position
        turn = message.content.pose.orientation
        rows.append((position.x, position.y, position.z, turn.x, turn.y, turn.z, turn.w))
    poses = np.array(rows)
    frame = messages[0].content.header.frame_id
    if frame == UR_BASE_FRAME or frame.endswith(f"_{UR_BASE_FRAME}"):
        poses = compose(PENDANT_BASE, poses)
    return Signal(reading.seconds(stamps), poses)
