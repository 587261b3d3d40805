"""The reader of a log: whole files, cut off and damaged ones, and those of other programs."""

from __future__ import annotations

import json
import struct
import tempfile
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from mcap.reader import make_reader
from mcap.records import Channel, Chunk, Message, Metadata, Schema
from mcap.stream_reader import StreamReader, get_chunk_data_stream
from mcap.writer import CompressionType, Writer

from simbridge.errors import LogReadError, SimbridgeError
from simbridge.files import decompression as compressed
from simbridge.files import mapped_arrays
from simbridge.recording import log_reader
from simbridge.recording.log_reader import ChunkDecoder, read_log
from simbridge.recording.log_writer import LogWriter
from simbridge.recording.samples import Sample
from tests.memory import takes_at_most
from tests.properties import few_examples, variants
from tests.recording.conftest import JOINT_FIELDS, JOINTS, PERIOD, TOPICS

FLOATS = st.floats(allow_nan=True, allow_infinity=True)
MODES = st.integers(-(2**31), 2**31 - 1)


def vectors(count):
    return arrays(np.float64, count, elements=FLOATS)


def samples_of(joints):
    return st.builds(
        Sample,
        index=st.integers(-(2**63), 2**63 - 1),
        stamp=st.floats(0.0, 2.0**31 - 1.0),
        plan_time=FLOATS,
        target=vectors(7),
        **{name: vectors(joints) for name in JOINT_FIELDS},
        speed_scaling=FLOATS,
        robot_mode=MODES,
        safety_mode=MODES,
        runtime_state=MODES,
        limited=st.booleans(),
        host_monotonic=FLOATS,
    )


@pytest.mark.slow
@few_examples(20)
@given(st.data(), st.integers(1, 12))
def test_numbers_are_read_bit_for_bit(write_log, assert_same, data, joints):
    samples = data.draw(st.lists(samples_of(joints), max_size=4))
    names = [f"joint_{k}" for k in range(joints)]

    with tempfile.TemporaryDirectory() as folder:
        path = write_log(Path(folder) / "log.mcap", samples, joint_names=names, period=0.1)
        columns = read_log(path)

    assert_same(columns, samples)
    assert columns.joint_names == tuple(names)
    assert columns.complete


def test_a_long_run_keeps_its_order(run_of, write_log, assert_same, tmp_path, monkeypatch):
    monkeypatch.setattr(log_reader, "BLOCK", 100)
    samples = run_of(250, period=0.002)
    path = write_log(tmp_path / "log.mcap", samples, period=0.002)

    columns = read_log(path)

    assert_same(columns, samples)


@pytest.mark.slow
def test_mapped_columns_survive_release(run_of, write_log, assert_same, tmp_path, monkeypatch):
    samples = run_of(1000)
    path = write_log(tmp_path / "log.mcap", samples)
    monkeypatch.setattr(mapped_arrays, "MIN_MAPPED_BYTES", 1000)
    monkeypatch.setattr(log_reader, "RELEASED", 100)

    columns = read_log(path)
    assert_same(columns, samples)
    columns.arrays.release()

    assert_same(columns, samples)


def test_names_frame_and_metadata_are_kept(write_log, tmp_path):
    names = ["a joint", 'with "quotes"', "Gelenk ä"]
    facts = {"robot": "ur10", "note": "línea\nnueva", "empty": ""}

    path = tmp_path / "log.mcap"
    write_log(path, [], joint_names=names, frame_id="base", metadata=facts)

    columns = read_log(path)

    assert columns.joint_names == tuple(names)
    assert columns.frame_id == "base"
    assert columns.metadata == facts


def test_a_log_without_samples_has_its_joints(write_log, tmp_path):
    path = write_log(tmp_path / "log.mcap", [])

    columns = read_log(path)

    assert columns.complete
    assert columns.stamp.shape == (0,)
    assert columns.target.shape == (0, 7)
    assert columns.position.shape == (0, 6)


def test_the_arrays_are_read_only(finished):
    path, _ = finished

    columns = read_log(path)

    for field in fields(Sample):
        with pytest.raises(ValueError, match="read-only"):
            getattr(columns, field.name)[0] = 0


def test_an_open_log_can_be_read(run_of, assert_same, tmp_path):
    path = tmp_path / "log.mcap"
    samples = run_of(40)

    with LogWriter(path, joint_names=JOINTS, period=PERIOD) as log:
        for sample in samples:
            log.write(sample)
        columns = read_log(path)

    # At most 31 periods of 8 ms fit into 0.25 s.
    assert_same(columns, samples[:31])
    assert not columns.complete


@pytest.mark.parametrize("content", [b"", b"\x89MCAP0\r\n", b"time,x,y\n0,1,2\n", bytes(1000)])
def test_another_kind_of_file_is_refused(tmp_path, content):
    path = tmp_path / "log.mcap"
    path.write_bytes(content)

    with pytest.raises(LogReadError, match="another kind of file") as raised:
        read_log(path)
    assert isinstance(raised.value, SimbridgeError)
    assert isinstance(raised.value, ValueError)
    assert raised.value.path == path


def mcap_file(path, *metadata):
    """Write an MCAP file of nothing but records of metadata."""
    with path.open("wb") as output:
        writer = Writer(output)
        writer.start()
        for name, facts in metadata:
            writer.add_metadata(name, facts)
        writer.finish()
    return path


def test_a_foreign_mcap_file_is_refused(tmp_path):
    path = mcap_file(tmp_path / "log.mcap", ("calibration", {"camera": "left"}))

    with pytest.raises(LogReadError, match="another kind of file"):
        read_log(path)


@pytest.mark.parametrize(
    ("layout", "reason"),
    [
        ({"version": "3", "joint_names": "[]", "frame_id": "base_link"}, "layout 3"),
        ({"version": "2", "joint_names": "[1]", "frame_id": "base_link"}, "damaged"),
        ({"version": "2", "joint_names": "shoulder", "frame_id": "base_link"}, "damaged"),
        ({"version": "2", "frame_id": "base_link"}, "damaged"),
    ],
)
def test_an_unknown_layout_is_refused(tmp_path, layout, reason):
    path = mcap_file(tmp_path / "log.mcap", ("simbridge", {}), ("simbridge/layout", layout))

    with pytest.raises(LogReadError, match=reason):
        read_log(path)


def test_a_missing_log_raises_file_not_found(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_log(tmp_path / "log.mcap")


def test_a_read_error_is_raised():
    # Nothing is mapped at the address 0.
    with pytest.raises(OSError, match="Input/output error"):
        read_log("/proc/self/mem")


# The message on another topic that is written before each of ours.
FOREIGN = b'{"of": "another topic"}'


def chunks_of(path):
    """The index of a log's chunks."""
    with path.open("rb") as file:
        return make_reader(file).get_summary().chunk_indexes


@few_examples(20)
@given(st.data())
def test_a_cut_file_keeps_earlier_chunks(assert_same, finished, tmp_path_factory, data):
    path, samples = finished
    content = path.read_bytes()
    cut = data.draw(st.integers(0, len(content) - 1))
    cut_path = tmp_path_factory.getbasetemp() / "cut.mcap"
    cut_path.write_bytes(content[:cut])
    chunks = chunks_of(path)

    try:
        columns = read_log(cut_path)
    except LogReadError as error:
        assert cut < chunks[0].chunk_start_offset
        assert error.path == cut_path
    else:
        ends = [chunk.chunk_start_offset + chunk.chunk_length for chunk in chunks]
        whole = sum(end <= cut for end in ends)
        assert_same(columns, samples[: 31 * whole])
        assert columns.metadata == {"robot": "ur10"}


@few_examples(20)
@given(st.data())
def test_a_damaged_byte_shortens_the_log(finished, tmp_path_factory, data):
    source, samples = finished
    content = bytearray(source.read_bytes())
    damaged_byte = data.draw(st.integers(0, len(content) - 1))
    content[damaged_byte] ^= data.draw(st.integers(1, 255))
    path = tmp_path_factory.getbasetemp() / "damaged.mcap"
    path.write_bytes(content)

    try:
        columns = read_log(path)
    except LogReadError:
        return
    assert len(columns.stamp) <= len(samples)


def test_damage_ends_the_log_before_it(assert_same, finished, tmp_path):
    source, samples = finished
    content = bytearray(source.read_bytes())
    chunk = chunks_of(source)[2]
    content[chunk.chunk_start_offset + chunk.chunk_length - 100] ^= 0x10
    path = tmp_path / "damaged.mcap"
    path.write_bytes(content)

    columns = read_log(path)

    assert_same(columns, samples[:62])
    assert not columns.complete


def rewrite(source, path, keep=lambda topic, number: True, layout=None, **options):
    """Copy a log record by record as other tools do; return the copy's path.

    Args:
        source: The log.
        path: The copy.
        keep: Returns whether the message of a topic with a number, from 0, is copied.
        layout: Changes of the description of the layout.
        options: Of MCAP's writer.
    """
    changes = {"simbridge/layout": layout or {}}
    with source.open("rb") as file, path.open("wb") as output:
        writer = Writer(output, **options)
        writer.start(profile="ros2")
        writer.register_channel("/other", "json", 0)

        # The copy's identifiers by the log's; and how many messages of each topic came before.
        schemas = {0: 0}
        channels = {}
        seen = dict.fromkeys(TOPICS, -1)
        for record in StreamReader(file).records:
            match record:
                case Metadata():
                    metadata = record.metadata | changes.get(record.name, {})
                    writer.add_metadata(record.name, metadata)
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
def test_a_log_of_other_tools_is_read(assert_same, finished, tmp_path, options):
    source, samples = finished
    path = rewrite(source, tmp_path / "rewritten.mcap", **options)

    columns = read_log(path)

    assert_same(columns, samples)


@pytest.fixture(scope="module")
def unchunked(finished, tmp_path_factory):
    """The content of a log without chunks."""
    source, _ = finished
    path = tmp_path_factory.mktemp("unchunked") / "rewritten.mcap"
    return rewrite(source, path, use_chunking=False).read_bytes()


@pytest.mark.slow
@few_examples(15)
@given(st.data())
def test_a_cut_costs_one_unchunked_sample(assert_same, finished, unchunked, tmp_path_factory, data):
    _, samples = finished
    content = unchunked
    # Before the first sample are names and definitions; after the last one, the index.
    first = content.index(FOREIGN)
    last = content.rindex(FOREIGN)
    cut = data.draw(st.integers(first, last))
    path = tmp_path_factory.getbasetemp() / "cut.mcap"
    path.write_bytes(content[:cut])

    columns = read_log(path)

    # The foreign message before each of ours counts the messages before the cut, of which the last
    # one may be incomplete.
    begun = content.count(FOREIGN, 0, cut)
    complete = max(0, begun - 1)
    assert len(columns.stamp) in {begun // len(TOPICS), complete // len(TOPICS)}
    assert_same(columns, samples[: len(columns.stamp)])


@pytest.mark.slow
@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.parametrize("missing", variants([0, 50, 99], 0, 99))
def test_incomplete_samples_are_dropped_alone(assert_same, finished, tmp_path, topic, missing):
    source, samples = finished

    def keep(name, number):
        # All messages of a sample from one topic on are missing, as if writing had been
        # interrupted there.
        return number != missing or TOPICS.index(name) < TOPICS.index(topic)

    path = rewrite(source, tmp_path / "rewritten.mcap", keep)

    columns = read_log(path)

    assert_same(columns, samples[:missing] + samples[missing + 1 :])


@pytest.mark.parametrize("names", [["a", "b"], [name.replace("wrist", "ankle") for name in JOINTS]])
def test_undeclared_joints_are_refused(finished, tmp_path, names):
    source, _ = finished
    layout = {"joint_names": json.dumps(names)}
    path = rewrite(source, tmp_path / "rewritten.mcap", layout=layout)

    with pytest.raises(LogReadError, match="messages"):
        read_log(path)


def samples_in_a_chunk(path):
    """The content of a log's first chunk."""
    with path.open("rb") as file:
        for record in StreamReader(file, emit_chunks=True).records:
            if isinstance(record, Chunk):
                stream, _ = get_chunk_data_stream(record)
                return stream.read(1 << 30)
    raise AssertionError("the log has no chunk")


def compressed_chunk(content):
    """The record of a chunk whose content is compressed."""
    data = zstandard.compress(content)
    times_and_size = struct.pack("<QQQI", 0, 1, len(content), 0)
    compression = struct.pack("<I", 4) + b"zstd"
    body = times_and_size + compression + struct.pack("<Q", len(data)) + data
    return struct.pack("<BQ", 6, len(body)) + body


@pytest.mark.slow
@pytest.mark.parametrize("content", ["zeros", "samples", "messages"])
def test_a_decompression_bomb_is_refused(finished, tmp_path, monkeypatch, content):
    source, _ = finished
    pieces = {
        "zeros": struct.pack("<BQ", 0x90, 1 << 16) + bytes(1 << 16),
        "samples": samples_in_a_chunk(source),
        # A chunk with messages of other programs is read message by message: each is an object.
        "messages": struct.pack("<BQHIQQ", 5, 22, 9, 0, 0, 0),
    }
    piece = pieces[content]
    chunk = compressed_chunk(piece * ((1 << 19) // len(piece)))
    intact = source.read_bytes()[: chunks_of(source)[-1].chunk_start_offset]
    path = tmp_path / "bomb.mcap"
    # 32 MiB in all: more than the test may take, should they be decompressed before the refusal.
    path.write_bytes(intact + 64 * chunk)
    monkeypatch.setattr(compressed, "expansion", lambda size: 1 << 20)

    with (
        takes_at_most(20),
        pytest.raises(LogReadError, match="cannot be read as a log: it decompresses to more than"),
    ):
        read_log(path)


def test_chunks_are_decoded_whole(finished, monkeypatch, assert_same):
    path, samples = finished
    contents = []
    decode = ChunkDecoder.decode

    def decode_and_count(self, content):
        contents.append(content)
        return decode(self, content)

    monkeypatch.setattr(ChunkDecoder, "decode", decode_and_count)

    columns = read_log(path)

    # The first of the four chunks begins with the definitions.
    assert len(contents) == 3
    assert_same(columns, samples)


def test_messages_are_read_as_chunks_are(finished, monkeypatch, assert_same):
    path, samples = finished
    monkeypatch.setattr(ChunkDecoder, "decode", lambda self, content: None)

    columns = read_log(path)

    assert_same(columns, samples)
