"""The log of a run reads back bit for bit, by us and by other tools."""

from __future__ import annotations

import tempfile
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from mcap.reader import make_reader
from mcap.writer import Writer
from rosbags.highlevel import AnyReader

from simbridge.errors import InvalidParameter, LogReadError, SimbridgeError
from simbridge.files import mapped_arrays
from simbridge.recording import log_reader
from simbridge.recording.log_reader import read_log
from simbridge.recording.log_writer import LogWriter
from simbridge.recording.samples import Sample
from tests.properties import few_examples

JOINTS = (
    "shoulder_pan_joint",
    "shoulder_lift_joint",
    "elbow_joint",
    "wrist_1_joint",
    "wrist_2_joint",
    "wrist_3_joint",
)
JOINT_FIELDS = (
    "solution",
    "setpoint",
    "command",
    "position",
    "velocity",
    "effort",
    "controller_target",
    "controller_target_velocity",
    "controller_target_acceleration",
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


# What is written is read


@few_examples(40)
@given(st.data(), st.integers(1, 12))
def test_what_is_written_is_read_bit_for_bit(write_log, assert_same, data, joints):
    samples = data.draw(st.lists(samples_of(joints), max_size=4))
    names = [f"joint_{k}" for k in range(joints)]

    with tempfile.TemporaryDirectory() as folder:
        columns = read_log(
            write_log(Path(folder) / "log.mcap", samples, joint_names=names, period=0.1)
        )

    assert_same(columns, samples)
    assert columns.joint_names == tuple(names)
    assert columns.complete


def test_a_long_run_keeps_every_sample_in_order(run_of, write_log, assert_same, tmp_path):
    samples = run_of(5000, period=0.002)

    assert_same(read_log(write_log(tmp_path / "log.mcap", samples, period=0.002)), samples)


def test_a_log_whose_columns_are_mapped_reads_the_same_also_after_its_memory_was_released(
    run_of, write_log, assert_same, tmp_path, monkeypatch
):
    samples = run_of(1000)
    path = write_log(tmp_path / "log.mcap", samples)
    monkeypatch.setattr(mapped_arrays, "MIN_MAPPED_BYTES", 1000)
    monkeypatch.setattr(log_reader, "RELEASED", 100)
    found = read_log(path)
    assert_same(found, samples)
    found.arrays.release()
    assert_same(found, samples)


def test_names_frame_and_metadata_are_kept(write_log, tmp_path):
    names, facts = (
        ["a joint", 'with "quotes"', "Gelenk ä"],
        {"robot": "ur10", "note": "línea\nnueva", "empty": ""},
    )

    columns = read_log(
        write_log(tmp_path / "log.mcap", [], joint_names=names, frame_id="base", metadata=facts)
    )

    assert (columns.joint_names, columns.frame_id, columns.metadata) == (
        tuple(names),
        "base",
        facts,
    )


def test_a_log_without_samples_has_its_joints(write_log, tmp_path):
    columns = read_log(write_log(tmp_path / "log.mcap", []))

    assert columns.complete
    assert columns.stamp.shape == (0,)
    assert columns.target.shape == (0, 7)
    assert columns.position.shape == (0, 6)


def test_the_arrays_are_read_only(finished):
    columns = read_log(finished[0])

    for field in fields(Sample):
        with pytest.raises(ValueError, match="read-only"):
            getattr(columns, field.name)[0] = 0


def test_a_log_replaces_an_older_one(run_of, write_log, assert_same, tmp_path):
    path = write_log(tmp_path / "log.mcap", run_of(50))

    write_log(path, run_of(3))

    assert_same(read_log(path), run_of(3))


def test_a_log_can_be_read_while_it_is_written(run_of, assert_same, tmp_path):
    samples = run_of(40)
    with LogWriter(tmp_path / "log.mcap", joint_names=JOINTS, period=PERIOD) as log:
        for sample in samples:
            log.write(sample)
        columns = read_log(tmp_path / "log.mcap")

    # At most 31 periods of 8 ms fit into 0.25 s.
    assert_same(columns, samples[:31])
    assert not columns.complete


# Others can read it


def test_rosbags_reads_the_same_numbers_by_the_definitions_in_the_file(finished):
    path, samples = finished
    with AnyReader([path]) as reader:
        assert sorted(connection.topic for connection in reader.connections) == sorted(TOPICS)
        read = {topic: [] for topic in TOPICS}
        for connection, time, data in reader.messages():
            message = reader.deserialize(data, connection.msgtype)
            stamp = message.header.stamp
            assert time == stamp.sec * 10**9 + stamp.nanosec
            assert message.header.frame_id == "base_link"
            read[connection.topic].append(message)

    def assert_equal(topic, attribute, field):
        found = np.array([getattr(message, attribute) for message in read[topic]])
        assert found.tobytes() == np.array([getattr(sample, field) for sample in samples]).tobytes()

    for name in ("position", "velocity", "effort"):
        assert_equal("/joint_states", name, name)
    assert_equal("/controller_target", "velocity", "controller_target_velocity")
    assert_equal(
        "/controller_target_acceleration", "acceleration", "controller_target_acceleration"
    )
    assert_equal("/controller_target", "position", "controller_target")
    for name in ("setpoint", "command", "solution"):
        assert_equal(f"/{name}", "position", name)
        assert all(
            len(message.velocity) == len(message.effort) == 0 for message in read[f"/{name}"]
        )
    for topic in TOPICS[:6]:
        assert all(message.name == list(JOINTS) for message in read[topic])
    for field in fields(Sample):
        if field.name not in (*JOINT_FIELDS, "target"):
            assert_equal("/status", field.name, field.name)
    poses = [(message.pose.position, message.pose.orientation) for message in read["/target"]]
    found = np.array([[p.x, p.y, p.z, q.x, q.y, q.z, q.w] for p, q in poses])
    assert found.tobytes() == np.array([sample.target for sample in samples]).tobytes()


def test_the_file_declares_ros_2_messages_in_cdr(finished):
    path, samples = finished
    with path.open("rb") as file:
        reader = make_reader(file, validate_crcs=True)
        assert reader.get_header().profile == "ros2"
        summary = reader.get_summary()
        assert [
            record.metadata for record in reader.iter_metadata() if record.name == "simbridge"
        ] == [{"robot": "ur10"}]
        times = [
            (message.log_time, message.publish_time)
            for _, _, message in reader.iter_messages(topics="/status")
        ]
    assert times == [(round(sample.stamp * 1e9),) * 2 for sample in samples]
    assert [channel.topic for channel in summary.channels.values()] == TOPICS
    assert {channel.message_encoding for channel in summary.channels.values()} == {"cdr"}
    assert {schema.encoding for schema in summary.schemas.values()} == {"ros2msg"}
    assert set(summary.statistics.channel_message_counts.values()) == {len(samples)}


def test_stamps_of_whole_milliseconds_are_exact_for_other_tools(run_of, write_log, tmp_path):
    path = write_log(tmp_path / "log.mcap", run_of(3000, period=0.001), period=0.001)

    with path.open("rb") as file:
        times = [
            message.log_time for _, _, message in make_reader(file).iter_messages(topics="/target")
        ]
    assert times == [k * 10**6 for k in range(3000)]


@pytest.mark.parametrize(("period", "in_a_chunk"), [(0.002, 69), (0.008, 31), (0.01, 25), (0.3, 1)])
def test_a_chunk_holds_whole_samples_of_at_most_a_quarter_second(
    run_of, write_log, tmp_path, period, in_a_chunk
):
    path = write_log(tmp_path / "log.mcap", run_of(300, period), period=period)

    with path.open("rb") as file:
        chunks = make_reader(file).get_summary().chunk_indexes
    spans = [(chunk.message_end_time - chunk.message_start_time) * 1e-9 for chunk in chunks]
    assert max(spans) + period <= max(0.25, period) + 1e-9
    starts = [round(chunk.message_start_time * 1e-9 / period) for chunk in chunks]
    assert starts == list(range(0, 300, in_a_chunk))


def test_a_log_without_an_index_is_read_by_other_tools_from_its_beginning_and_is_smaller(
    run_of, write_log, assert_same, tmp_path
):
    samples = run_of(300, 0.002)
    plain = write_log(tmp_path / "plain.mcap", samples, period=0.002, indexed=False)
    indexed = write_log(tmp_path / "indexed.mcap", samples, period=0.002)

    with plain.open("rb") as file:
        times = [
            m.log_time
            for _, _, m in make_reader(file, validate_crcs=True).iter_messages(topics="/target")
        ]
    assert times == [round(sample.stamp * 1e9) for sample in samples]
    assert_same(read_log(plain), samples)
    # A time and an offset of 8 bytes each for every message.
    assert indexed.stat().st_size - plain.stat().st_size >= 300 * 6 * 16


def test_an_hour_at_500_hz_of_an_arms_numbers_is_less_than_800_mb(run_of, write_log, tmp_path):
    random = np.random.default_rng(3)

    def noisy(count):
        # An arm moves little in a quarter of a second, and all the lower digits are noise.
        return np.linspace(0.6, 1.8, count) + 1e-3 * random.standard_normal(count)

    samples = []
    for sample in run_of(2000, 0.002):
        joints = {name: noisy(6) for name in JOINT_FIELDS} | {"target": noisy(7)}
        joints["solution"] = joints["command"] = joints["setpoint"]
        usual = {
            "plan_time": sample.stamp,
            "speed_scaling": 1.0,
            "safety_mode": 1,
            "limited": False,
        }
        samples.append(replace(sample, **joints, **usual))
    path = write_log(tmp_path / "log.mcap", samples, period=0.002, indexed=False)

    assert path.stat().st_size / len(samples) * 3600 * 500 < 800e6


# What cannot be written


def test_a_sample_of_another_number_of_joints_is_refused_and_leaves_nothing_behind(
    run_of, assert_same, tmp_path
):
    samples = run_of(3)
    with LogWriter(tmp_path / "log.mcap", joint_names=JOINTS, period=PERIOD) as log:
        log.write(samples[0])
        with pytest.raises(ValueError, match=r"sample 0 .*6 items"):
            log.write(run_of(1, joints=5)[0])
        log.write(samples[1])

    assert_same(read_log(tmp_path / "log.mcap"), samples[:2])


@pytest.mark.parametrize("stamp", [-1e-9, float("nan"), float("inf"), 2.0**31])
def test_a_stamp_that_ros_cannot_hold_is_refused(run_of, tmp_path, stamp):
    sample = run_of(1, period=0.0)[0]
    values = {field.name: getattr(sample, field.name) for field in fields(Sample)} | {
        "stamp": stamp
    }
    with (
        LogWriter(tmp_path / "log.mcap", joint_names=JOINTS, period=PERIOD) as log,
        pytest.raises(InvalidParameter),
    ):
        log.write(Sample(**values))


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


# No log


@pytest.mark.parametrize("content", [b"", b"\x89MCAP0\r\n", b"time,x,y\n0,1,2\n", bytes(1000)])
def test_another_kind_of_file_is_refused(tmp_path, content):
    (tmp_path / "log.mcap").write_bytes(content)

    with pytest.raises(LogReadError, match="another kind of file") as raised:
        read_log(tmp_path / "log.mcap")
    assert isinstance(raised.value, SimbridgeError)
    assert isinstance(raised.value, ValueError)
    assert raised.value.path == tmp_path / "log.mcap"


def mcap_file(path, *metadata):
    with path.open("wb") as output:
        writer = Writer(output)
        writer.start()
        for name, facts in metadata:
            writer.add_metadata(name, facts)
        writer.finish()
    return path


def test_an_mcap_file_of_another_program_is_refused(tmp_path):
    with pytest.raises(LogReadError, match="another kind of file"):
        read_log(mcap_file(tmp_path / "log.mcap", ("calibration", {"camera": "left"})))


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


def test_a_read_error_is_raised_and_not_read_as_an_empty_file():
    # Nothing is mapped at the address 0.
    with pytest.raises(OSError, match="Input/output error"):
        read_log("/proc/self/mem")
