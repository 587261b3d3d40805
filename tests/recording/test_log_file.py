"""A log after a kill, a cut, damage, rewriting by other tools, or on a full disk."""

from __future__ import annotations

import errno
import io
import json
import os
import signal
import struct
import subprocess
import sys
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcap.reader import make_reader
from mcap.records import Channel, Chunk, Message, Metadata, Schema
from mcap.stream_reader import StreamReader, get_chunk_data_stream
from mcap.writer import CompressionType, Writer

from simbridge.errors import LogReadError, LogWriteError, SimbridgeError
from simbridge.files import decompression as compressed
from simbridge.recording.log_reader import read_log
from simbridge.recording.log_writer import LogWriter
from tests.memory import takes_at_most

JOINTS = (
    "shoulder_pan_joint",
    "shoulder_lift_joint",
    "elbow_joint",
    "wrist_1_joint",
    "wrist_2_joint",
    "wrist_3_joint",
)
TOPICS = [
    "/joint_states",
    "/setpoint",
    "/command",
    "/solution",
    "/controller_target",
    "/controller_target_acceleration",
    "/target",
    "/status",
]
PERIOD = 0.008
FOREIGN = b'{"of": "another topic"}'


# Cut off, damaged, rewritten


def chunks_of(path):
    with path.open("rb") as file:
        return make_reader(file).get_summary().chunk_indexes


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_file_cut_off_anywhere_gives_all_samples_before_the_cut(
    assert_same, finished, tmp_path, data
):
    path, samples = finished
    content = path.read_bytes()
    cut = data.draw(st.integers(0, len(content) - 1))
    (tmp_path / "cut.mcap").write_bytes(content[:cut])

    try:
        columns = read_log(tmp_path / "cut.mcap")
    except LogReadError as error:
        assert cut < chunks_of(path)[0].chunk_start_offset
        assert error.path == tmp_path / "cut.mcap"
    else:
        whole = sum(
            chunk.chunk_start_offset + chunk.chunk_length <= cut for chunk in chunks_of(path)
        )
        assert_same(columns, samples[: 31 * whole])
        assert columns.metadata == {"robot": "ur10"}


def test_metadata_and_joints_are_in_the_file_before_the_first_sample(tmp_path):
    with LogWriter(
        tmp_path / "log.mcap", joint_names=JOINTS, period=PERIOD, metadata={"robot": "ur10"}
    ):
        columns = read_log(tmp_path / "log.mcap")

    assert (columns.joint_names, columns.metadata) == (JOINTS, {"robot": "ur10"})
    assert len(columns.stamp) == 0


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_damaged_byte_gives_a_shorter_log_or_a_log_read_error(finished, tmp_path, data):
    content = bytearray(finished[0].read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    (tmp_path / "damaged.mcap").write_bytes(content)

    try:
        columns = read_log(tmp_path / "damaged.mcap")
    except LogReadError:
        return
    assert len(columns.stamp) <= len(finished[1])


def test_damage_in_a_chunk_ends_the_log_before_that_chunk(assert_same, finished, tmp_path):
    path, samples = finished
    content = bytearray(path.read_bytes())
    chunk = chunks_of(path)[2]
    content[chunk.chunk_start_offset + chunk.chunk_length - 100] ^= 0x10
    (tmp_path / "damaged.mcap").write_bytes(content)

    columns = read_log(tmp_path / "damaged.mcap")

    assert_same(columns, samples[:62])
    assert not columns.complete


def rewrite(source, path, keep=lambda topic, number: True, layout=None, **options):
    """Copies a log record by record as other tools do; `keep` selects messages of a topic."""
    changes = {"simbridge/layout": layout or {}}
    with source.open("rb") as file, path.open("wb") as output:
        writer = Writer(output, **options)
        writer.start(profile="ros2")
        writer.register_channel("/other", "json", 0)
        schemas, channels, seen = {0: 0}, {}, dict.fromkeys(TOPICS, -1)
        for record in StreamReader(file).records:
            match record:
                case Metadata():
                    writer.add_metadata(record.name, record.metadata | changes.get(record.name, {}))
                case Schema() if record.id not in schemas:
                    schemas[record.id] = writer.register_schema(
                        record.name, record.encoding, record.data
                    )
                case Channel() if record.id not in channels:
                    number = writer.register_channel(
                        record.topic, record.message_encoding, schemas[record.schema_id]
                    )
                    channels[record.id] = (number, record.topic)
                case Message():
                    number, topic = channels[record.channel_id]
                    seen[topic] += 1
                    if keep(topic, seen[topic]):
                        writer.add_message(1, record.log_time, FOREIGN, record.log_time)
                        writer.add_message(number, record.log_time, record.data, record.log_time)
        writer.finish()
    return path


@pytest.mark.parametrize(
    "options", [{"compression": CompressionType.ZSTD}, {"use_chunking": False}]
)
def test_a_log_rewritten_by_other_tools_among_other_topics_is_read(
    assert_same, finished, tmp_path, options
):
    assert_same(read_log(rewrite(finished[0], tmp_path / "rewritten.mcap", **options)), finished[1])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_of_a_log_without_chunks_only_the_sample_at_the_cut_is_lost(
    assert_same, finished, tmp_path, data
):
    samples = finished[1]
    content = rewrite(finished[0], tmp_path / "rewritten.mcap", use_chunking=False).read_bytes()
    # Before the first sample are names and definitions; after the last one, the index.
    first, last = content.index(FOREIGN), content.rindex(FOREIGN)
    cut = data.draw(st.integers(first, last))
    (tmp_path / "cut.mcap").write_bytes(content[:cut])

    columns = read_log(tmp_path / "cut.mcap")

    # The foreign message before each of ours counts the messages before the cut.
    begun = content.count(FOREIGN, 0, cut)
    assert len(columns.stamp) in {begun // len(TOPICS), max(0, begun - 1) // len(TOPICS)}
    assert_same(columns, samples[: len(columns.stamp)])


@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.parametrize("missing", [0, 50, 99])
def test_a_sample_that_lacks_a_message_is_dropped_alone(
    assert_same, finished, tmp_path, topic, missing
):
    path, samples = finished

    # All messages of a sample from one topic on are missing, as if writing had been interrupted there.
    def keep(name, number):
        return number != missing or TOPICS.index(name) < TOPICS.index(topic)

    columns = read_log(rewrite(path, tmp_path / "rewritten.mcap", keep))
    assert_same(columns, samples[:missing] + samples[missing + 1 :])


@pytest.mark.parametrize("names", [["a", "b"], [name.replace("wrist", "ankle") for name in JOINTS]])
def test_a_log_with_other_joints_than_declared_is_refused(finished, tmp_path, names):
    path = rewrite(
        finished[0], tmp_path / "rewritten.mcap", layout={"joint_names": json.dumps(names)}
    )

    with pytest.raises(LogReadError, match="messages"):
        read_log(path)


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
    log.write(Sample(k, 0.008 * k, 0.0, np.zeros(7), *joints, 1.0, 7, 1, 2, False, time.monotonic()))
    print(k, flush=True)
"""


def test_after_kill_9_all_but_the_last_half_second_is_there(tmp_path):
    path = tmp_path / "log.mcap"
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True
    )
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


# Full disks


class SmallDisk(io.RawIOBase):
    """A file on a disk with room for `room` bytes: takes what still fits, then reports that the disk is full.

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
            return (
                SmallDisk(path, room, lost_at_the_end)
                if mode == "wb"
                else opened(path, mode, buffering)
            )

        monkeypatch.setattr(Path, "open", open_small)

    return install


def test_a_full_disk_is_reported_and_stored_samples_are_readable(
    run_of, assert_same, small_disk, tmp_path
):
    path, samples = tmp_path / "log.mcap", run_of(300)
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
    assert (error.path, error.bytes_written, error.reason, error.errno) == (
        path,
        20_000,
        errno.ENOSPC,
        errno.ENOSPC,
    )
    assert str(path) in str(error)
    assert "No space left" in str(error)
    assert path.stat().st_size == 20_000
    columns = read_log(path)
    kept = len(columns.stamp)
    # Full by the first chunk that did not fit.
    assert kept > 0
    assert kept % 31 == 0
    assert_same(columns, samples[:kept])


def test_a_disk_that_is_full_at_the_end_is_reported_by_close(
    run_of, write_log, assert_same, small_disk, tmp_path
):
    path, samples = tmp_path / "log.mcap", run_of(31)
    small_disk(write_log(tmp_path / "whole.mcap", samples).stat().st_size - 1)
    log = LogWriter(path, joint_names=JOINTS, period=PERIOD)
    for sample in samples:
        log.write(sample)

    with pytest.raises(LogWriteError):
        log.close()
    log.close()

    assert_same(read_log(path), samples)


def test_a_disk_that_fails_at_the_end_is_reported_by_close(
    run_of, assert_same, small_disk, tmp_path
):
    samples = run_of(40)
    small_disk(10**9, lost_at_the_end=True)
    log = LogWriter(tmp_path / "log.mcap", joint_names=JOINTS, period=PERIOD)
    for sample in samples:
        log.write(sample)

    with pytest.raises(LogWriteError, match="EIO"):
        log.close()
    log.close()

    assert_same(read_log(tmp_path / "log.mcap"), samples)


def test_after_a_full_disk_a_failing_close_is_silent(run_of, small_disk, tmp_path):
    small_disk(20_000, lost_at_the_end=True)
    log = LogWriter(tmp_path / "log.mcap", joint_names=JOINTS, period=PERIOD)

    with pytest.raises(LogWriteError, match="ENOSPC"):
        for sample in run_of(300):
            log.write(sample)
    log.close()


def test_a_full_disk_does_not_hide_the_error_that_ended_the_run(run_of, small_disk, tmp_path):
    samples = run_of(5)
    small_disk(3000)
    log = LogWriter(tmp_path / "log.mcap", joint_names=JOINTS, period=PERIOD)

    with pytest.raises(KeyboardInterrupt), log:
        for sample in samples:
            log.write(sample)
        raise KeyboardInterrupt

    log = LogWriter(tmp_path / "log.mcap", joint_names=JOINTS, period=PERIOD)
    with pytest.raises(LogWriteError), log:
        for sample in samples:
            log.write(sample)


def test_a_full_file_system_is_reported_when_the_log_is_opened():
    with pytest.raises(LogWriteError) as raised:
        LogWriter("/dev/full", joint_names=JOINTS, period=PERIOD)

    assert (raised.value.bytes_written, raised.value.reason) == (0, errno.ENOSPC)
    links = [link for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    assert Path("/dev/full") not in [link.readlink() for link in links]


def test_a_missing_folder_is_reported_when_the_log_is_opened(tmp_path):
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


def test_a_file_size_limit_ends_the_log_but_not_the_process(tmp_path):
    path = tmp_path / "log.mcap"
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    written, reason, last = json.loads(done.stdout)
    assert (written, reason) == (30_000, errno.EFBIG)
    columns = read_log(path)
    # All but the chunk that did not fit.
    assert columns.index.tolist() == list(range(last + 1 - 31))


# Made to fill memory


@pytest.mark.parametrize("content", ["zeros", "samples", "messages"])
def test_a_log_that_is_much_larger_decompressed_is_refused_within_bounded_memory(
    finished, tmp_path, monkeypatch, content
):
    source = finished[0].read_bytes()
    with finished[0].open("rb") as file:
        chunk = next(
            r for r in StreamReader(file, emit_chunks=True).records if isinstance(r, Chunk)
        )
    piece = {
        "zeros": struct.pack("<BQ", 0x90, 1 << 16) + bytes(1 << 16),
        "samples": get_chunk_data_stream(chunk)[0].read(1 << 30),
        # Among other messages than ours each is an object.
        "messages": struct.pack("<BQHIQQ", 5, 22, 9, 0, 0, 0),
    }[content]
    total = piece * ((1 << 20) // len(piece))
    data = zstandard.compress(total)
    head = struct.pack("<QQQII", 0, 1, len(total), 0, 4) + b"zstd" + struct.pack("<Q", len(data))
    bomb = source[: chunks_of(finished[0])[-1].chunk_start_offset]
    (tmp_path / "bomb.mcap").write_bytes(
        bomb + (struct.pack("<BQ", 6, len(head) + len(data)) + head + data) * 64
    )

    monkeypatch.setattr(compressed, "expansion", lambda size: 4 << 20)
    with (
        takes_at_most(20),
        pytest.raises(LogReadError, match="cannot be read as a log: it holds more than"),
    ):
        read_log(tmp_path / "bomb.mcap")
