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

# Words in the name of a topic whose joint states say where the joints should be.
SETPOINT_WORDS = ("setpoint", "desired", "reference", "goal")
# Words in the name of a topic whose joint states were sent to the controller as commands.
COMMAND_WORDS = ("command", "commands", "cmd")
# Words in the name of a topic whose joint states are the controller's own targets, as in the bag
# of an exported run.
TARGET_WORDS = ("target", "targets")
# The topic on which every ROS driver publishes the measured joints.
MEASURED_TOPIC = "/joint_states"
# The topic on which UR's ROS 2 driver publishes the speed scaling in percent.
PERCENT_TOPIC = "/speed_scaling"
# Largest speed scaling that is a fraction of full speed; a larger one is in percent.
MAX_FRACTION = 1.5
# Longest time from stamp to recording, ns, for which both are by the recorder's clock.
MAX_SAME_CLOCK_DELAY = NANOSECONDS_PER_SECOND
# The name of the pendant's base frame in ROS; a prefix may precede it.
UR_BASE_FRAME = "base"
# The topics that identify a bag which simbridge exported from a run.
EXPORT_TOPICS = ("/reference/pose", "/attained/pose")


@dataclass
class _Reading:
    """A bag while it is being read: what all the functions below need.

    Attributes:
        path: File or directory of the bag.
        contents: Messages of the bag.
        joints: Names of the arm's joints in the bag, from the base.
        start: Stamp of the log's first sample, ns.
        clock_lead: How far the recorder's clock is ahead of the clock of the stamps, ns.
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
        """Return the joint vectors of topics with all joints of the arm, most messages first."""
        complete = [item for item in rows.values() if set(self.joints) <= set(item.joint_names)]
        return sorted(complete, key=len, reverse=True)

    def samples(self, rows: JointRows | None) -> TopicSamples | None:
        """Return the vectors of the arm's joints in order of time; None if there are none."""
        if rows is None:
            return None
        samples = rows.samples(self.joints)
        self.notes += samples.notes
        return samples if len(samples.stamps) else None


def read_bag_log(path: Path, robot: Robot | None, prefix: str | None) -> ControllerLog:
    """Return the log of one arm in a bag.

    Args:
        path: File or directory of the bag.
        robot: The arm that the user named; None to find it by the names of its joints.
        prefix: Prefix of the names of the arm's joints, or of its topics (`/left`); None for a
            bag with one arm.

    Raises:
        InputFileError: The bag cannot be read, or has no motion of an arm's joints.
    """
    # A prefix of topics is a namespace: only topics in it are read.
    namespace = ""
    joint_prefix = prefix
    if prefix is not None and is_namespace(prefix):
        namespace = f"{prefix.rstrip('/')}/"
        joint_prefix = None

    with open_bag(path, ros.DEFINITIONS) as bag:
        contents = BagContents(bag, namespace)
        topics = [connection.topic for connection in bag.connections]
    # Each of these tables has pairs of a topic and its joint names as keys.
    joint_topics = (*contents.controllers, *contents.feedback, *contents.joints)
    if not joint_topics:
        reason = (
            "it has neither joint states nor the state of a joint trajectory controller; "
            f"its topics: {', '.join(sorted(set(topics))) or 'none'}"
        )
        raise InputFileError(path, reason, field="topics")

    # Choose the arm's joints.
    joint_lists = [joint_names for _, joint_names in joint_topics]
    joints = find_arm_joints(str(path), joint_lists, robot, joint_prefix)

    # Of several arms in a bag, read one. If only namespaces tell them apart, refuse the bag.
    check_namespaces(str(path), contents, joints)
    reading = _Reading(path, contents, joints)

    # If their joint names do, leave out the messages of the others. `find_arm_joints` has refused
    # a bag with several such arms of which the user has chosen none.
    prefixes = find_prefixes(joint_lists, robot)
    if len(prefixes) > 1 and joint_prefix is not None:
        reading.notes += leave_out_other_arms(contents, joint_prefix, prefixes)

    measured = reading.samples(_choose_measured(reading))
    controller = reading.samples(_choose_controller(reading))
    return _assemble(reading, measured, controller)


def _choose_measured(reading: _Reading) -> JointRows | None:
    """Return the measured joints: of /joint_states, or of the topic with the most messages."""
    other_words = (*SETPOINT_WORDS, *COMMAND_WORDS, *TARGET_WORDS)
    candidates = [
        rows
        for rows in reading.rows_of_arm(reading.contents.joints)
        if not _has_word(rows.topic, other_words)
    ]
    # False sorts before True: the drivers' usual topic comes first.
    candidates.sort(key=lambda rows: rows.topic != MEASURED_TOPIC)
    _note_others(reading, "joint states", candidates)
    return candidates[0] if candidates else None


def _choose_controller(reading: _Reading) -> JointRows | None:
    """Return the state of the trajectory controller with the most messages, else the feedback."""
    states = reading.rows_of_arm(reading.contents.controllers)
    _note_others(reading, "states of trajectory controllers", states)
    candidates = [*states, *reading.rows_of_arm(reading.contents.feedback)]
    return candidates[0] if candidates else None


def _choose_joints(reading: _Reading, words: Sequence[str]) -> TopicSamples | None:
    """Return the joint states of a topic whose name contains one of some words; None without any.

    Of several such topics it is the one with the most messages.
    """
    candidates = [
        rows
        for rows in reading.rows_of_arm(reading.contents.joints)
        if _has_word(rows.topic, words)
    ]
    _note_others(reading, f"joint positions ({words[0]})", candidates)
    return reading.samples(candidates[0] if candidates else None)


def _has_word(topic: str, words: Iterable[str]) -> bool:
    """Return whether a topic's name contains one of some words."""
    words_in_name = topic.replace("/", "_").split("_")
    return any(word in words_in_name for word in words)


def _note_others(reading: _Reading, noun: str, candidates: Sequence[JointRows]) -> None:
    """Note which topics were not chosen.

    Args:
        reading: The bag, which gets the note.
        noun: Kind of what the topics have.
        candidates: Joint vectors of the topics, of which the first was chosen.
    """
    others = [rows.topic for rows in candidates[1:] if rows.topic != candidates[0].topic]
    if others:
        reading.notes.append(
            f"{noun}: {candidates[0].topic} was read, not {', '.join(dict.fromkeys(others))}"
        )


def _assemble(
    reading: _Reading, measured: TopicSamples | None, controller: TopicSamples | None
) -> ControllerLog:
    """Return the log: the measured joints row by row, and everything else with times of its own.

    Args:
        reading: The bag.
        measured: Measured joints; None if the bag has none.
        controller: State of a trajectory controller; None if the bag has none.

    Raises:
        InputFileError: There are fewer than two samples.
    """
    # The stamps of the measured joints, else those of the controller's state, are the log's rows.
    row_samples = measured or controller
    if row_samples is None or len(row_samples.stamps) < 2:
        reason = "it has fewer than two samples of the arm's joints"
        raise InputFileError(reading.path, reason, field="joint states")
    reading.start = int(row_samples.stamps[0])
    reading.clock_lead = _find_clock_lead(reading, row_samples)

    # Targets and measured joints, a value for each row.
    columns = _read_targets(reading, row_samples)
    if measured is not None:
        columns["actual_q"] = measured.vectors["position"]
        if "velocity" in measured.vectors:
            columns["actual_qd"] = measured.vectors["velocity"]
    elif controller is not None and "feedback" in controller.vectors:
        columns["actual_q"] = controller.vectors["feedback"]

    # What the joints should do, and what was sent to the controller.
    setpoints = _choose_joints(reading, SETPOINT_WORDS)
    commands = _read_commands(reading, _choose_joints(reading, COMMAND_WORDS))
    forward_positions, forward_velocities = _read_forward_commands(reading, measured)

    contents = reading.contents
    source = _find_source(reading)
    return ControllerLog(
        name=str(reading.path),
        source=source,
        clock=Clock.CONTROLLER if source is LogSource.EXPORT else Clock.HOST,
        start=reading.start / NANOSECONDS_PER_SECOND,
        times=reading.seconds(row_samples.stamps),
        joint_names=reading.joints,
        columns=columns,
        setpoints=_read_positions(reading, setpoints),
        reference_poses=_read_poses(reading, "/reference/pose"),
        attained_poses=_read_poses(reading, "/attained/pose", "/tcp_pose_broadcaster/pose"),
        position_commands=commands or forward_positions,
        speed_commands=forward_velocities,
        reference=_read_reference(reading, controller),
        goals=read_goals(
            contents, reading.joints, start=reading.start, clock_lead=reading.clock_lead
        ),
        results=read_results(contents, start=reading.start, clock_lead=reading.clock_lead),
        speed_scaling=_read_speed_scaling(reading),
        robot_mode=_read_mode(reading, ros.ROBOT_MODE, "/robot_mode"),
        safety_mode=_read_mode(reading, ros.SAFETY_MODE, "/safety_mode"),
        program_state=_read_program_state(reading),
        # The notes come last, since the functions above append to them.
        notes=tuple(reading.notes),
    )


def _read_targets(reading: _Reading, row_samples: TopicSamples) -> dict[str, Array]:
    """Return the columns of the controller's own targets; none unless every row has a target."""
    targets = _choose_joints(reading, TARGET_WORDS)
    if targets is None:
        return {}
    if not np.array_equal(targets.stamps, row_samples.stamps):
        reading.notes.append(
            f"{targets.topic} was not read: its timestamps are not those of {row_samples.topic}"
        )
        return {}

    columns = {"target_q": targets.vectors["position"]}
    if "velocity" in targets.vectors:
        columns["target_qd"] = targets.vectors["velocity"]
    return columns


def _find_source(reading: _Reading) -> LogSource:
    """Return what a bag is: an exported run of simbridge, or a bag of ROS 1 or ROS 2."""
    if all(topic in reading.contents.poses for topic in EXPORT_TOPICS):
        return LogSource.EXPORT
    return LogSource.ROS1_BAG if reading.path.suffix == ".bag" else LogSource.ROS2_BAG


def _find_clock_lead(reading: _Reading, row_samples: TopicSamples) -> int:
    """Return how far the recorder's clock is ahead of the clock of the stamps, ns; 0 for one clock.

    The stamps of a simulation, for example, count from its start. The lead is the median time from
    stamp to recording; it places the messages that have no stamp.
    """
    rows = [
        *reading.contents.joints.values(),
        *reading.contents.controllers.values(),
        *reading.contents.feedback.values(),
    ]
    delay = next(item.recording_delay for item in rows if item.topic == row_samples.topic)
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
    """Return joint positions as commands, with the times at which they were sent.

    An exported run stamps a command with the instant for which it is meant, which is one period
    after it was sent.
    """
    positions = _read_positions(reading, samples)
    if positions is None:
        return None

    lead_s = 0.0
    if _find_source(reading) is LogSource.EXPORT:
        lead_s = float(np.median(np.diff(positions.times)))
    return Commands(positions.values, positions.times - lead_s)


def _read_forward_commands(
    reading: _Reading, measured: TopicSamples | None
) -> tuple[Commands | None, Commands | None]:
    """Return what was sent to forward command controllers: positions, rad, and velocities, rad/s.

    Args:
        reading: The bag.
        measured: Measured joints, which show the order of the joints; None if there are none.

    Returns:
        The positions and the velocities; None for what was not sent, or cannot be read.
    """
    positions = None
    velocities = None
    messages_by_topic = reading.contents.arrays
    # A later topic replaces an earlier one, so the topic with the most messages comes last.
    for topic, messages in sorted(messages_by_topic.items(), key=lambda item: len(item[1])):
        if measured is None:
            reading.notes.append(f"{topic} was not read: nothing shows the order of its joints")
            continue

        forwarded = read_forward_commands(
            topic,
            messages,
            joints=reading.joints,
            measured=measured,
            delay=reading.clock_lead,
        )
        # In place of commands there may be the reason why there are none.
        if isinstance(forwarded, str):
            reading.notes.append(f"{topic} was not read: {forwarded}")
            continue

        sent_at = reading.seconds(forwarded.recorded - reading.clock_lead)
        commands = Commands(forwarded.values, sent_at)
        if forwarded.is_velocity:
            velocities = commands
        else:
            positions = commands
    return positions, velocities


def _read_reference(reading: _Reading, controller: TopicSamples | None) -> TrackedReference | None:
    """Return the state of a trajectory controller; None if it is missing or incomplete.

    Args:
        reading: The bag, which gets a note on an incomplete state.
        controller: The messages of the controller's topic; None if the bag has none.
    """
    if controller is None:
        return None
    if "feedback" not in controller.vectors:
        reading.notes.append(f"{controller.topic} was not read: it lacks measured positions")
        return None

    # If the error was not published, it is the difference that the controller compares.
    vectors = controller.vectors
    q = vectors["reference"]
    actual_q = vectors["feedback"]
    error = vectors.get("error", q - actual_q)
    return TrackedReference(
        name=controller.topic,
        times=reading.seconds(controller.stamps),
        q=q,
        qd=vectors.get("reference_velocity"),
        actual_q=actual_q,
        error=error,
        output=vectors.get("output"),
    )


def _choose_messages(reading: _Reading, kind: str, topic_end: str = "") -> list[BagMessage]:
    """Return the messages of one type from the topic with the most of them; none without any.

    Args:
        reading: The bag.
        kind: Type of the messages.
        topic_end: End of the topic's name; "" for any topic.
    """
    candidates = [
        messages
        for topic, messages in reading.contents.states.items()
        if messages and messages[0].kind == kind and topic.endswith(topic_end)
    ]
    return max(candidates, key=len, default=[])


def _read_mode(reading: _Reading, kind: str, topic_end: str) -> Signal | None:
    """Return a mode of the controller over time; None if it was not recorded.

    Args:
        reading: The bag.
        kind: Type of the messages in which UR's driver publishes the mode.
        topic_end: End of the topic on which an exported run has the mode as a plain number.
    """
    mode = _read_states(reading, kind, "mode")
    if mode is not None:
        return mode
    return _read_states(reading, INTEGER, "data", topic_end)


def _read_states(
    reading: _Reading, kind: str, field_name: str, topic_end: str = ""
) -> Signal | None:
    """Return a number in the messages of one type over time; None if there are none.

    Args:
        reading: The bag.
        kind: Type of the messages.
        field_name: Name of the field with the number.
        topic_end: End of the topic's name; "" for any topic.
    """
    messages = _choose_messages(reading, kind, topic_end)
    if not messages:
        return None
    recorded = np.array([message.recorded for message in messages], dtype=np.int64)
    values = [float(getattr(message.content, field_name)) for message in messages]
    return Signal(reading.seconds(recorded - reading.clock_lead), np.array(values))


def _read_speed_scaling(reading: _Reading) -> Signal | None:
    """Return the speed scaling over time, 0 to 1; None if it was not recorded.

    It is that of UR's ROS 1 or ROS 2 driver, else the one in a trajectory controller's state.
    """
    factor = _read_states(reading, ros.SPEED_SCALING, "factor")
    if factor is not None:
        return factor

    scaling = _read_states(reading, FLOAT, "data")
    if scaling is None:
        # Trajectory controllers of ROS 2 Kilted and later publish the factor in their state.
        return _read_states(reading, ros.STATE, "factor")

    topic = _choose_messages(reading, FLOAT)[0].topic
    is_percent = topic.endswith(PERCENT_TOPIC) or float(scaling.values.max()) > MAX_FRACTION
    return Signal(scaling.times, scaling.values / 100.0) if is_percent else scaling


def _read_program_state(reading: _Reading) -> Signal | None:
    """Return the state of the controller's program over time; None if it was not recorded.

    It is one of `RuntimeState`. A driver publishes only whether its program runs.
    """
    state = _read_states(reading, INTEGER, "data", "/runtime_state")
    if state is not None:
        return state

    running = _read_states(reading, BOOL, "data")
    if running is None:
        return None
    states = np.where(running.values > 0.0, RuntimeState.PLAYING, RuntimeState.STOPPED)
    return Signal(running.times, states.astype(float))


def _read_poses(reading: _Reading, *topics: str) -> Signal | None:
    """Return the poses of the TCP over time (K, 7), base_link to TCP; None if there are none.

    Args:
        reading: The bag.
        topics: Topics that may have the poses; the first one that was recorded is read.
    """
    recorded_topics = [topic for topic in topics if topic in reading.contents.poses]
    if not recorded_topics:
        return None

    messages = reading.contents.poses[recorded_topics[0]]
    if not messages:
        return None

    stamps = np.array([message.stamp(reading.clock_lead) for message in messages], dtype=np.int64)
    rows = []
    for message in messages:
        position = message.content.pose.position
        rotation = message.content.pose.orientation
        rows.append(
            (position.x, position.y, position.z, rotation.x, rotation.y, rotation.z, rotation.w)
        )
    poses = np.array(rows)

    # The pendant's base frame is turned against base_link.
    frame = messages[0].content.header.frame_id
    if frame == UR_BASE_FRAME or frame.endswith(f"_{UR_BASE_FRAME}"):
        poses = compose(PENDANT_BASE, poses)
    return Signal(reading.seconds(stamps), poses)
