"""The writer of a log: the bytes of the file, its chunks and index, and failing disks."""

from __future__ import annotations

import errno
import io
import json
import os
import signal
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from mcap.reader import make_reader
from mcap.records import Chunk, DataEnd, MessageIndex
from mcap.stream_reader import StreamReader
from rosbags.highlevel import AnyReader

from simbridge.errors import InvalidParameter, LogWriteError, SimbridgeError
from simbridge.recording.log_reader import read_log
from simbridge.recording.log_writer import LogWriter
from simbridge.recording.samples import Sample
from tests.patience import PATIENCE
from tests.recording.conftest import JOINT_FIELDS, JOINTS, PERIOD, TOPICS

# The field of a sample in each column of joints, by topic and attribute of its messages.
JOINT_COLUMNS = {
    ("/joint_states", "position"): "position",
    ("/joint_states", "velocity"): "velocity",
    ("/joint_states", "effort"): "effort",
    ("/setpoint", "position"): "setpoint",
    ("/command", "position"): "command",
    ("/solution", "position"): "solution",
    ("/controller_target", "position"): "controller_target",
    ("/controller_target", "velocity"): "controller_target_velocity",
    ("/controller_target_acceleration", "acceleration"): "controller_target_acceleration",
}
STATUS_FIELDS = [
    field.name for field in fields(Sample) if field.name not in (*JOINT_FIELDS, "target")
]


@pytest.fixture(scope="module")
def rosbags_messages(finished):
    """The messages of each topic with their log times, as rosbags reads them."""
    path, _ = finished
    messages = {topic: [] for topic in TOPICS}
    with AnyReader([path]) as reader:
        for connection, time, data in reader.messages():
            message = reader.deserialize(data, connection.msgtype)
            messages[connection.topic].append((time, message))
    return messages


def assert_column(messages, attribute, samples, field):
    """An attribute of all messages holds a field of the samples bit for bit."""
    numbers = np.array([getattr(message, attribute) for _, message in messages])
    expected = np.array([getattr(sample, field) for sample in samples])
    assert numbers.tobytes() == expected.tobytes()


def times_of(path, topic):
    """The log times of a topic's messages, ns, as MCAP's own reader has them."""
    with path.open("rb") as file:
        messages = make_reader(file, validate_crcs=True).iter_messages(topics=topic)
        return [message.log_time for _, _, message in messages]


def test_a_log_replaces_an_older_one(run_of, write_log, assert_same, tmp_path):
    path = write_log(tmp_path / "log.mcap", run_of(50))

    write_log(path, run_of(3))

    assert_same(read_log(path), run_of(3))


@pytest.mark.slow
@pytest.mark.parametrize(("topic", "attribute"), JOINT_COLUMNS)
def test_rosbags_reads_the_same_joints(finished, rosbags_messages, topic, attribute):
    _, samples = finished
    messages = rosbags_messages[topic]

    assert_column(messages, attribute, samples, JOINT_COLUMNS[topic, attribute])
    for _, message in messages:
        assert message.name == list(JOINTS)


@pytest.mark.parametrize("topic", ["/setpoint", "/command", "/solution"])
def test_positions_alone_have_no_velocities(rosbags_messages, topic):
    for _, message in rosbags_messages[topic]:
        assert len(message.velocity) == 0
        assert len(message.effort) == 0


@pytest.mark.parametrize("name", STATUS_FIELDS)
def test_rosbags_reads_the_same_status(finished, rosbags_messages, name):
    _, samples = finished

    assert_column(rosbags_messages["/status"], name, samples, name)


def test_rosbags_reads_the_same_targets(finished, rosbags_messages):
    _, samples = finished

    targets = []
    for _, message in rosbags_messages["/target"]:
        p = message.pose.position
        q = message.pose.orientation
        targets.append([p.x, p.y, p.z, q.x, q.y, q.z, q.w])

    expected = np.array([sample.target for sample in samples])
    assert np.array(targets).tobytes() == expected.tobytes()


@pytest.mark.parametrize("topic", TOPICS)
def test_headers_have_stamp_and_frame(rosbags_messages, topic):
    for time, message in rosbags_messages[topic]:
        stamp = message.header.stamp
        assert time == stamp.sec * 10**9 + stamp.nanosec
        assert message.header.frame_id == "base_link"


def test_the_file_declares_cdr_messages(finished):
    path, samples = finished

    with path.open("rb") as file:
        reader = make_reader(file, validate_crcs=True)
        header = reader.get_header()
        summary = reader.get_summary()

    channels = summary.channels.values()
    assert header.profile == "ros2"
    assert [channel.topic for channel in channels] == TOPICS
    assert {channel.message_encoding for channel in channels} == {"cdr"}
    assert {schema.encoding for schema in summary.schemas.values()} == {"ros2msg"}
    assert set(summary.statistics.channel_message_counts.values()) == {len(samples)}


def test_the_file_has_the_metadata(finished):
    path, _ = finished

    with path.open("rb") as file:
        records = list(make_reader(file, validate_crcs=True).iter_metadata())

    metadata = [record.metadata for record in records if record.name == "simbridge"]
    assert metadata == [{"robot": "ur10"}]


def test_messages_are_published_at_their_stamps(finished):
    path, samples = finished

    with path.open("rb") as file:
        messages = make_reader(file, validate_crcs=True).iter_messages(topics="/status")
        times = [(message.log_time, message.publish_time) for _, _, message in messages]

    stamps = [round(sample.stamp * 1e9) for sample in samples]
    assert times == [(stamp, stamp) for stamp in stamps]


def test_stamps_of_milliseconds_are_exact(run_of, write_log, tmp_path):
    path = write_log(tmp_path / "log.mcap", run_of(500, period=0.001), period=0.001)

    times = times_of(path, "/target")

    assert times == [k * 10**6 for k in range(500)]


@pytest.mark.slow
@pytest.mark.parametrize(("period", "in_a_chunk"), [(0.002, 69), (0.008, 31), (0.01, 25), (0.3, 1)])
def test_a_chunk_holds_whole_samples(run_of, write_log, tmp_path, period, in_a_chunk):
    path = write_log(tmp_path / "log.mcap", run_of(300, period), period=period)

    with path.open("rb") as file:
        chunks = make_reader(file).get_summary().chunk_indexes

    spans = [(chunk.message_end_time - chunk.message_start_time) * 1e-9 for chunk in chunks]
    assert max(spans) + period <= max(0.25, period) + 1e-9
    starts = [round(chunk.message_start_time * 1e-9 / period) for chunk in chunks]
    assert starts == list(range(0, 300, in_a_chunk))


@pytest.mark.slow
def test_a_log_without_index_is_smaller(run_of, write_log, assert_same, tmp_path):
    samples = run_of(300, 0.002)

    plain = write_log(tmp_path / "plain.mcap", samples, period=0.002, indexed=False)
    indexed = write_log(tmp_path / "indexed.mcap", samples, period=0.002)

    times = times_of(plain, "/target")
    assert times == [round(sample.stamp * 1e9) for sample in samples]
    assert_same(read_log(plain), samples)
    # A time and an offset of 8 bytes each for every message.
    assert indexed.stat().st_size - plain.stat().st_size >= 300 * 6 * 16


@pytest.mark.slow
def test_an_hour_takes_less_than_800_mb(run_of, write_log, tmp_path):
    random = np.random.default_rng(3)

    def noisy(count):
        # An arm moves little in a quarter of a second, and all the lower digits are noise.
        return np.linspace(0.6, 1.8, count) + 1e-3 * random.standard_normal(count)

    samples = []
    for sample in run_of(500, 0.002):
        joints = {name: noisy(6) for name in JOINT_FIELDS}
        # In most runs the limiter changes nothing, and nothing is fed forward.
        joints["solution"] = joints["setpoint"]
        joints["command"] = joints["setpoint"]
        usual_sample = replace(
            sample,
            **joints,
            target=noisy(7),
            plan_time=sample.stamp,
            speed_scaling=1.0,
            safety_mode=1,
            limited=False,
        )
        samples.append(usual_sample)

    path = write_log(tmp_path / "log.mcap", samples, period=0.002, indexed=False)

    sample_bytes = path.stat().st_size / len(samples)
    assert sample_bytes * 3600 * 500 < 800e6


def test_other_numbers_of_joints_are_refused(run_of, assert_same, tmp_path):
    samples = run_of(3)
    with LogWriter(tmp_path / "log.mcap", joint_names=JOINTS, period=PERIOD) as log:
        log.write(samples[0])
        with pytest.raises(ValueError, match=r"sample 0 .*6 items"):
            log.write(run_of(1, joints=5)[0])
        log.write(samples[1])

    assert_same(read_log(tmp_path / "log.mcap"), samples[:2])


@pytest.mark.parametrize("stamp", [-1e-9, float("nan"), float("inf"), 2.0**31])
def test_a_stamp_that_ros_cannot_hold_is_refused(run_of, tmp_path, stamp):
    sample = replace(run_of(1)[0], stamp=stamp)

    with (
        LogWriter(tmp_path / "log.mcap", joint_names=JOINTS, period=PERIOD) as log,
        pytest.raises(InvalidParameter),
    ):
        log.write(sample)


@pytest.mark.parametrize("period", [0.0, -0.008, float("nan")])
def test_an_invalid_period_is_refused(tmp_path, period):
    with pytest.raises(InvalidParameter, match="period"):
        LogWriter(tmp_path / "log.mcap", joint_names=JOINTS, period=period)


def test_a_log_needs_a_joint(tmp_path):
    with pytest.raises(InvalidParameter, match="joints"):
        LogWriter(tmp_path / "log.mcap", joint_names=[], period=PERIOD)


def test_nothing_is_written_after_the_end(run_of, tmp_path):
    log = LogWriter(tmp_path / "log.mcap", joint_names=JOINTS, period=PERIOD)
    log.close()
    log.close()

    with pytest.raises(ValueError, match="closed"):
        log.write(run_of(1)[0])


def test_metadata_precede_the_first_sample(tmp_path):
    path = tmp_path / "log.mcap"
    facts = {"robot": "ur10"}

    with LogWriter(path, joint_names=JOINTS, period=PERIOD, metadata=facts):
        columns = read_log(path)

    assert columns.joint_names == JOINTS
    assert columns.metadata == {"robot": "ur10"}
    assert len(columns.stamp) == 0


WRITER = """
import sys, time
import numpy as np
from simbridge.recording.log_writer import LogWriter
from simbridge.recording.samples import Sample
n = np.zeros(6)
log = LogWriter(sys.argv[1], joint_names=list("abcdef"), period=0.008, metadata={"robot": "ur10"})
start = time.monotonic()
for k in range(100000):
    time.sleep(max(0.0, start + 0.008 * k - time.monotonic()))
    joints = (n, n, n, n + k, n, n, n, n, n)
    pose = np.zeros(7)
    log.write(Sample(k, 0.008 * k, 0.0, pose, *joints, 1.0, 7, 1, 2, False, time.monotonic()))
    print(k, flush=True)
"""


@pytest.mark.slow
def test_kill_9_costs_half_a_second(tmp_path):
    path = tmp_path / "log.mcap"
    command = [sys.executable, "-c", WRITER, str(path)]

    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    with process:
        for line in process.stdout:
            if int(line) == 250:
                os.kill(process.pid, signal.SIGKILL)
        last = int(line)

    assert process.returncode == -signal.SIGKILL
    columns = read_log(path)
    assert not columns.complete
    assert columns.metadata == {"robot": "ur10"}
    kept = len(columns.index)
    assert kept * 0.008 >= last * 0.008 - 0.5
    assert columns.index.tolist() == list(range(kept))
    assert columns.stamp.tolist() == [0.008 * k for k in range(kept)]
    assert columns.position[:, 5].tolist() == list(range(kept))


class SmallDisk(io.RawIOBase):
    """A file on a disk with room for `room` bytes: takes what fits, then reports a full disk.

    With `lost_at_the_end` its closing fails, as on a network disk that is gone.
    """

    def __init__(self, path, room, lost_at_the_end):
        self.lost_at_the_end = lost_at_the_end
        self.file = open(path, "wb", buffering=0)
        self.room = room

    def write(self, data):
        if not self.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        count = self.file.write(bytes(data)[: self.room])
        self.room -= count
        return count

    def close(self):
        self.file.close()
        if self.lost_at_the_end:
            raise OSError(errno.EIO, os.strerror(errno.EIO))


@pytest.fixture
def small_disk(monkeypatch):
    """Makes every file that a log opens for writing end after so many bytes."""
    opened = Path.open

    def install(room, lost_at_the_end=False):
        def open_small(path, mode="r", buffering=-1):
            if mode == "wb":
                return SmallDisk(path, room, lost_at_the_end)
            return opened(path, mode, buffering)

        monkeypatch.setattr(Path, "open", open_small)

    return install


def test_a_full_disk_leaves_stored_samples(run_of, assert_same, small_disk, tmp_path):
    path = tmp_path / "log.mcap"
    samples = run_of(300)
    small_disk(20_000)
    log = LogWriter(path, joint_names=JOINTS, period=PERIOD)

    with pytest.raises(LogWriteError) as raised:
        for sample in samples:
            log.write(sample)
    with pytest.raises(LogWriteError):
        log.write(samples[-1])
    log.close()

    error = raised.value
    assert isinstance(error, SimbridgeError)
    assert isinstance(error, OSError)
    assert error.path == path
    assert error.bytes_written == 20_000
    assert error.reason == errno.ENOSPC
    assert error.errno == errno.ENOSPC
    assert str(path) in str(error)
    assert "No space left" in str(error)
    assert path.stat().st_size == 20_000
    columns = read_log(path)
    kept = len(columns.stamp)
    # Full by the first chunk that did not fit.
    assert kept > 0
    assert kept % 31 == 0
    assert_same(columns, samples[:kept])


def test_close_reports_a_full_disk(run_of, write_log, assert_same, small_disk, tmp_path):
    path = tmp_path / "log.mcap"
    samples = run_of(31)
    small_disk(write_log(tmp_path / "whole.mcap", samples).stat().st_size - 1)
    log = LogWriter(path, joint_names=JOINTS, period=PERIOD)
    for sample in samples:
        log.write(sample)

    with pytest.raises(LogWriteError):
        log.close()
    log.close()

    assert_same(read_log(path), samples)


def test_close_reports_a_failing_disk(run_of, assert_same, small_disk, tmp_path):
    samples = run_of(40)
    small_disk(10**9, lost_at_the_end=True)
    log = LogWriter(tmp_path / "log.mcap", joint_names=JOINTS, period=PERIOD)
    for sample in samples:
        log.write(sample)

    with pytest.raises(LogWriteError, match="EIO"):
        log.close()
    log.close()

    assert_same(read_log(tmp_path / "log.mcap"), samples)


def test_close_is_silent_after_a_full_disk(run_of, small_disk, tmp_path):
    small_disk(20_000, lost_at_the_end=True)
    log = LogWriter(tmp_path / "log.mcap", joint_names=JOINTS, period=PERIOD)

    with pytest.raises(LogWriteError, match="ENOSPC"):
        for sample in run_of(300):
            log.write(sample)
    log.close()


def test_a_full_disk_hides_no_error(run_of, small_disk, tmp_path):
    small_disk(3000)
    log = LogWriter(tmp_path / "log.mcap", joint_names=JOINTS, period=PERIOD)

    with pytest.raises(KeyboardInterrupt), log:
        for sample in run_of(5):
            log.write(sample)
        raise KeyboardInterrupt


def test_leaving_a_log_reports_a_full_disk(run_of, small_disk, tmp_path):
    small_disk(3000)
    log = LogWriter(tmp_path / "log.mcap", joint_names=JOINTS, period=PERIOD)

    with pytest.raises(LogWriteError), log:
        for sample in run_of(5):
            log.write(sample)


def test_opening_reports_a_full_disk():
    with pytest.raises(LogWriteError) as raised:
        LogWriter("/dev/full", joint_names=JOINTS, period=PERIOD)

    assert raised.value.bytes_written == 0
    assert raised.value.reason == errno.ENOSPC
    links = [link for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    assert Path("/dev/full") not in [link.readlink() for link in links]


def test_opening_reports_a_missing_folder(tmp_path):
    with pytest.raises(LogWriteError, match="No such file") as raised:
        LogWriter(tmp_path / "missing" / "log.mcap", joint_names=JOINTS, period=PERIOD)

    assert raised.value.reason == errno.ENOENT


LIMITED = """
import json, resource, sys
import numpy as np
from simbridge.errors import LogWriteError
from simbridge.recording.log_writer import LogWriter
from simbridge.recording.samples import Sample
from tests.memory import MIB, takes_at_most
resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))
n = np.random.default_rng(1).normal(size=6)
try:
    with LogWriter(sys.argv[1], joint_names=list("abcdef"), period=0.008) as log:
        for k in range(100000):
            joints = (n, n, n, n + k, n * k, n, n, n, n)
            log.write(Sample(k, 0.008 * k, 0.0, np.zeros(7), *joints, 1.0, 7, 1, 2, False, 0.0))
except LogWriteError as error:
    json.dump([error.bytes_written, error.reason, k], sys.stdout)
"""


@pytest.mark.slow
def test_a_file_size_limit_ends_the_log(tmp_path):
    path = tmp_path / "log.mcap"
    command = [sys.executable, "-c", LIMITED, str(path)]

    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True)

    written, reason, last = json.loads(ended.stdout)
    assert written == 30_000
    assert reason == errno.EFBIG
    columns = read_log(path)
    # All but the chunk that did not fit.
    assert columns.index.tolist() == list(range(last + 1 - 31))


@pytest.mark.parametrize("indexed", [True, False])
def test_the_statistics_count_what_was_written(indexed, run_of, write_log, tmp_path):
    samples = run_of(100)

    path = write_log(tmp_path / "log.mcap", samples, indexed=indexed)

    with path.open("rb") as file:
        summary = make_reader(file, validate_crcs=True).get_summary()
    statistics = summary.statistics
    assert statistics.message_count == 100 * len(TOPICS)
    assert statistics.chunk_count == 4
    assert statistics.schema_count == 4
    assert statistics.channel_count == len(TOPICS)
    assert statistics.metadata_count == 2
    assert statistics.message_start_time == round(samples[0].stamp * 1e9)
    assert statistics.message_end_time == round(samples[-1].stamp * 1e9)
    assert len(summary.chunk_indexes) == (4 if indexed else 0)


def test_every_message_is_where_the_index_points(finished):
    path, samples = finished

    with path.open("rb") as file:
        records = list(StreamReader(file, emit_chunks=True, validate_crcs=True).records)

    indexes = [record for record in records if isinstance(record, MessageIndex)]
    chunks = [record for record in records if isinstance(record, Chunk)]
    assert len(indexes) == len(TOPICS) * len(chunks)
    assert any(isinstance(record, DataEnd) for record in records)
    times = [time for index in indexes if index.channel_id == 1 for time, _ in index.records]
    assert times == [round(sample.stamp * 1e9) for sample in samples]
    # In a chunk the messages of a topic are evenly spaced.
    for index in indexes:
        offsets = np.array([offset for _, offset in index.records])
        assert len(np.unique(np.diff(offsets))) <= 1


def test_the_index_finds_a_time_span(finished):
    path, samples = finished
    begin = round(samples[40].stamp * 1e9)
    end = round(samples[70].stamp * 1e9)

    with path.open("rb") as file:
        messages = make_reader(file).iter_messages("/target", starting_at=begin, ending_before=end)
        times = [message.log_time for _, _, message in messages]

    assert times == [round(sample.stamp * 1e9) for sample in samples[40:70]]
