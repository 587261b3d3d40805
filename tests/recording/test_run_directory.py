"""A run directory: never overwritten, read back as written, naming missing or broken files."""

from __future__ import annotations

import json
import os
import shutil
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from simbridge.errors import LogReadError, NotARun, OutputError
from simbridge.ik.forward_dynamics import ForwardDynamics
from simbridge.planning.plan import Plan
from simbridge.planning.planner import make_plan
from simbridge.planning.scenario import Scenario, load_scenario
from simbridge.recording.run_directory import RunDirectory
from simbridge.recording.settings_file import read_record
from simbridge.robot import load_robot
from tests.memory import takes_at_most
from tests.records import made_up_tables

ROBOT = load_robot("ur10")
PLAN_ARRAYS = ("trajectory_times", "solution", "setpoints", "limited", "targets", "times")


@pytest.fixture(scope="module")
def plan(line):
    plan, _ = make_plan(ROBOT, load_scenario(line, ROBOT), ForwardDynamics(ROBOT))
    return plan


@pytest.fixture
def copy(line_run, tmp_path):
    """A finished run to be damaged."""
    return RunDirectory(shutil.copytree(line_run, tmp_path / "copy"))


def test_runs_of_a_second_get_different_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    paths = [RunDirectory.create(None, "mine").path for _ in range(4)]

    assert len(set(paths)) == 4
    for path in paths:
        assert path.is_dir()
        assert path.parent.name == "runs"
        assert "mine" in path.name


def test_a_named_directory_gets_its_parents(tmp_path):
    directory = RunDirectory.create(tmp_path / "a" / "b", "mine")

    assert directory.path == tmp_path / "a" / "b"
    assert directory.path.is_dir()


def refuse_to_create(out):
    """Check that a path that exists is refused."""
    with pytest.raises(OutputError, match=r"already exists.*--out") as raised:
        RunDirectory.create(out, "mine")
    assert raised.value.path == out
    assert isinstance(raised.value, OSError)


def test_an_existing_directory_is_never_overwritten(tmp_path):
    out = tmp_path / "out"
    out.mkdir()

    refuse_to_create(out)


def test_an_existing_file_is_never_overwritten(tmp_path):
    out = tmp_path / "out"
    out.write_text("mine")

    refuse_to_create(out)
    assert out.read_text() == "mine"


@pytest.mark.parametrize("out", ["file/below", "/proc/below", "x" * 300])
def test_an_impossible_directory_is_refused(tmp_path, monkeypatch, out):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("mine")

    with pytest.raises(OutputError, match="choose another with --out"):
        RunDirectory.create(out, "mine")


def test_a_plan_is_read_back_bit_for_bit(plan, tmp_path):
    directory = RunDirectory.create(tmp_path / "run", "mine")

    directory.write_plan(plan.as_arrays())

    again = directory.plan(Plan.from_arrays)
    for name in PLAN_ARRAYS:
        assert getattr(again, name).tobytes() == getattr(plan, name).tobytes(), name
    assert again.trajectory.poses.tobytes() == plan.trajectory.poses.tobytes()
    assert again.trajectory.times.tobytes() == plan.trajectory.times.tobytes()
    assert again.trajectory.source == plan.trajectory.source
    assert again.checksum == plan.checksum
    assert again.period == plan.period
    assert again.hold == plan.hold


def test_a_plan_keeps_its_hold(line, tmp_path):
    trajectory = load_scenario(line, ROBOT).trajectory
    scenario = Scenario(trajectory, hold="zero-order", on_limits="limit")
    held_plan, _ = make_plan(ROBOT, scenario, ForwardDynamics(ROBOT))
    directory = RunDirectory.create(tmp_path / "run", "mine")

    directory.write_plan(held_plan.as_arrays())

    assert directory.plan(Plan.from_arrays).hold == "zero-order"


def test_a_summary_is_read_back_as_written(tmp_path):
    directory = RunDirectory.create(tmp_path / "run", "mine")

    directory.write_summary({"outcome": "completed", "samples": 3, "delay_s": None})

    assert directory.summary() == {"outcome": "completed", "samples": 3, "delay_s": None}


def test_a_summary_with_a_nan_is_refused(tmp_path):
    directory = RunDirectory.create(tmp_path / "run", "mine")

    with pytest.raises(ValueError, match="JSON"):
        directory.write_summary({"rms": float("nan")})


@pytest.mark.parametrize("path", ["nowhere", "file", "empty"])
def test_a_path_without_a_run_is_refused(tmp_path, path):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "empty").mkdir()

    with pytest.raises(NotARun, match="is not a run") as raised:
        RunDirectory.open(tmp_path / path)
    assert str(tmp_path / path) in str(raised.value)


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def damage(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)


def empty(path):
    path.write_bytes(b"")


def scribble(path):
    path.write_bytes(b"\xff\xfe = hello")


def remove(path):
    path.unlink()


def become_a_directory(path):
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("harm", [cut, damage, empty, scribble, remove, become_a_directory])
def test_a_broken_plan_is_named(copy, harm):
    harm(copy.plan_file)

    with pytest.raises(NotARun, match=r"plan\.npz") as raised:
        copy.plan(Plan.from_arrays)
    assert raised.value.missing == "plan.npz"


@pytest.mark.parametrize("harm", [empty, scribble, remove, become_a_directory])
def test_broken_settings_are_named(copy, harm):
    harm(copy.settings_file)

    with pytest.raises(NotARun, match=r"settings\.toml"):
        copy.settings()


@pytest.mark.parametrize("harm", [empty, scribble, remove, become_a_directory])
def test_a_broken_log_is_named(copy, harm):
    harm(copy.log_file)

    with pytest.raises((NotARun, LogReadError), match=r"log\.mcap"):
        copy.log()


@pytest.mark.parametrize("harm", [cut, empty, scribble, remove, become_a_directory])
def test_a_broken_summary_is_named(copy, harm):
    harm(copy.summary_file)

    with pytest.raises(NotARun, match=r"summary\.json"):
        copy.summary()


def with_nan(array):
    changed = array.astype(float)
    changed.flat[7] = np.nan
    return changed


def arrays_of(run):
    """The arrays of a run's plan, by name."""
    with np.load(run.plan_file) as arrays:
        return dict(arrays)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("setpoints", lambda a: a[:, :5]),
        ("setpoints", lambda a: a[:-1]),
        ("setpoints", lambda a: a[0]),
        ("setpoints", lambda a: a[:0]),
        ("setpoints", with_nan),
        ("setpoints", lambda a: a.astype(str)),
        ("solution", with_nan),
        ("trajectory_times", lambda a: a[1:]),
        ("limited", lambda a: a[1:]),
        ("trajectory_poses", lambda a: 2.0 * a),
        ("trajectory_stamps", lambda a: a[::-1]),
    ],
)
def test_inconsistent_plan_arrays_are_refused(copy, name, change):
    arrays = arrays_of(copy)
    arrays[name] = change(arrays[name])
    np.savez(copy.plan_file, **arrays)

    with pytest.raises(NotARun, match=r"plan\.npz"):
        copy.plan(Plan.from_arrays)


def test_a_missing_plan_array_is_named(copy):
    arrays = arrays_of(copy)
    del arrays["checksum"]
    np.savez(copy.plan_file, **arrays)

    with pytest.raises(NotARun, match="checksum"):
        copy.plan(Plan.from_arrays)


@pytest.mark.parametrize("name", ["settings.toml", "summary.json", "report.html", "plan.npz"])
def test_an_unwritable_file_is_named(plan, tmp_path, name):
    directory = RunDirectory.create(tmp_path / "run", "mine")
    record = read_record(made_up_tables())
    writers = {
        "settings.toml": lambda: directory.write_settings(record),
        "summary.json": lambda: directory.write_summary({}),
        "report.html": lambda: directory.write_report("page"),
        "plan.npz": lambda: directory.write_plan(plan.as_arrays()),
    }
    (directory.path / name).mkdir()

    with pytest.raises(OutputError, match=name):
        writers[name]()


def test_log_and_settings_name_the_run(line_run):
    directory = RunDirectory.open(line_run)

    log = directory.log()
    settings = directory.settings()

    assert log.complete
    assert log.metadata["scenario"] == "line"
    assert log.metadata["robot"] == "ur10"
    assert log.joint_names == ROBOT.joint_names
    assert settings.scenario.name == "line"
    assert settings.robot.name == "ur10"
    assert tuple(settings.robot.joint_names) == ROBOT.joint_names
    assert settings.kinematics.checksum == ROBOT.checksum


def test_the_summary_is_that_of_the_file(line_run):
    content = json.loads((line_run / "summary.json").read_text())

    assert RunDirectory.open(line_run).summary() == content


def npy(shape: str, data: bytes = b"") -> bytes:
    """A file of one array, with a shape that its header claims."""
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    length = struct.pack("<H", len(header))
    return b"\x93NUMPY\x01\x00" + length + header.encode() + data


@pytest.mark.parametrize("shape", ["(1195000000,)", "(-1,)", "(2, -3)", "(9223372036854775807, 4)"])
def test_arrays_that_claim_too_much_are_not_allocated(copy, shape):
    names = list(arrays_of(copy))
    with zipfile.ZipFile(copy.plan_file, "w") as archive:
        for name in names:
            archive.writestr(f"{name}.npy", npy(shape))

    with (
        takes_at_most(10),
        pytest.raises(NotARun, match=r"plan\.npz: it cannot be read \(.* claims the shape"),
    ):
        copy.plan(Plan.from_arrays)


def test_a_decompression_bomb_is_refused(copy):
    with zipfile.ZipFile(copy.plan_file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("times.npy", npy("(2621440,)", bytes(20 << 20)))

    with pytest.raises(NotARun, match="much larger than the file"):
        copy.plan(Plan.from_arrays)


class Pickled:
    """An object that writes a file when it is unpickled."""

    def __reduce__(self):
        return (Path.write_text, (Path("executed"), ""))


def test_pickled_plan_arrays_are_refused(copy, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pickled = np.array([Pickled()], dtype=object)
    np.savez(copy.plan_file, **dict.fromkeys(arrays_of(copy), pickled))

    with pytest.raises(NotARun, match=r"plan\.npz"):
        copy.plan(Plan.from_arrays)
    assert not Path("executed").exists()


@pytest.mark.parametrize("content", [npy("(1195000000,)"), b"PK", b"\x80\x04K\x01."])
def test_a_plan_that_is_no_archive_is_refused(copy, content):
    copy.plan_file.write_bytes(content)

    with pytest.raises(NotARun, match=r"plan\.npz: it cannot be read"):
        copy.plan(Plan.from_arrays)


@pytest.mark.parametrize(
    "content", ["[]", "1", "[" * 100_000, '{"outcome": ' * 100_000, "NaN", "9" * 6_000, '"\\ud800"']
)
def test_json_that_is_no_object_is_refused(copy, content):
    copy.summary_file.write_text(content)
    copy.evaluation_file.write_text(content)

    with pytest.raises(NotARun, match=r"summary\.json"):
        copy.summary()
    with pytest.raises(NotARun, match=r"evaluation\.json"):
        copy.evaluation()


@pytest.mark.parametrize("name", ["settings.toml", "plan.npz", "log.mcap", "summary.json"])
def test_a_fifo_in_a_run_is_refused(copy, name):
    readers = {
        "settings.toml": copy.settings,
        "plan.npz": lambda: copy.plan(Plan.from_arrays),
        "log.mcap": copy.log,
        "summary.json": copy.summary,
    }
    (copy.path / name).unlink()
    os.mkfifo(copy.path / name)

    with pytest.raises((NotARun, LogReadError), match=name):
        readers[name]()
