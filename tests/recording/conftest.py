"""Runs to log, and the comparison of a log with the samples that were written."""

from __future__ import annotations

import shutil
from dataclasses import fields

import numpy as np
import pytest

from simbridge.recording.log_writer import LogWriter
from simbridge.recording.samples import Sample

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


def _run_of(count, period=PERIOD, joints=6):
    """Samples of an arm that moves at random, with numbers that use every bit of a double."""
    rng = np.random.default_rng(7)
    samples = []
    for k in range(count):
        sample = Sample(
            index=k,
            stamp=k * period,
            plan_time=0.9 * k * period,
            target=rng.normal(size=7),
            **{name: rng.normal(size=joints) for name in JOINT_FIELDS},
            speed_scaling=rng.uniform(),
            robot_mode=7,
            safety_mode=1 + k % 3,
            runtime_state=2,
            limited=bool(k % 5 == 0),
            host_monotonic=1e5 + k * period + 1e-4 * rng.normal(),
        )
        samples.append(sample)
    return samples


def _write_log(path, samples, *, joint_names=JOINTS, period=PERIOD, **options):
    with LogWriter(path, joint_names=joint_names, period=period, **options) as log:
        for sample in samples:
            log.write(sample)
    return path


def _assert_same(columns, samples):
    """Every column holds the samples' numbers bit for bit."""
    for field in fields(Sample):
        column = getattr(columns, field.name)
        assert len(column) == len(samples), field.name
        if samples:
            numbers = [getattr(sample, field.name) for sample in samples]
            expected = np.array(numbers, dtype=column.dtype)
            assert column.shape == expected.shape, field.name
            assert column.tobytes() == expected.tobytes(), field.name


@pytest.fixture(scope="session")
def run_of():
    return _run_of


@pytest.fixture(scope="session")
def write_log():
    return _write_log


@pytest.fixture(scope="session")
def assert_same():
    return _assert_same


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A closed log of 100 samples in four chunks, and its samples."""
    samples = _run_of(100)
    path = tmp_path_factory.mktemp("log") / "log.mcap"
    _write_log(path, samples, metadata={"robot": "ur10"})
    return path, samples


@pytest.fixture(scope="module")
def exported_run(line_run, tmp_path_factory):
    """A finished run, into whose directory a file's tests export."""
    return shutil.copytree(line_run, tmp_path_factory.mktemp("export") / "line")
