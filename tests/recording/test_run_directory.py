"""A run directory: never overwritten, read back as written, naming missing or broken files."""

from __future__ import annotations

import json
import os
import shutil
import struct
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tomli_w

from simbridge.errors import InvalidParameter, LogReadError, NotARun, OutputError
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
# Of each table, the fields that every run has and that are read back.
CHECKED_FIELDS = [
    *(("scenario", name) for name in ("name", "hold", "on_limits", "speed_scale")),
    *(("robot", name) for name in ("name", "title", "source", "joint_names", "tcp", "payload")),
    *(("robot", name) for name in ("home", "position_min", "position_max", "max_tool_speed")),
    *(("robot", name) for name in ("max_velocity", "max_effort")),
    *(("kinematics", name) for name in ("checksum", "placements", "prismatic", "source")),
    *(("solver", name) for name in ("name", "parameters")),
    *(("backend", name) for name in ("name", "period", "simulated_time", "effort_unit")),
]


@pytest.fixture(scope="module")
def plan(line):
    return make_plan(ROBOT, load_scenario(line, ROBOT), ForwardDynamics(ROBOT))[0]


@pytest.fixture
def copy(line_run, tmp_path):
    """A finished run to be damaged."""
    return RunDirectory(shutil.copytree(line_run, tmp_path / "copy"))


def test_runs_of_the_same_second_get_different_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = [RunDirectory.create(None, "mine").path for _ in range(4)]
    assert len(set(made)) == 4
    assert all(
        path.is_dir() and path.parent.name == "runs" and "mine" in path.name for path in made
    )


def test_a_named_directory_is_made_with_its_parents(tmp_path):
    assert RunDirectory.create(tmp_path / "a" / "b", "mine").path.is_dir()


@pytest.mark.parametrize("occupied", ["directory", "file"])
def test_an_existing_path_is_never_overwritten(tmp_path, occupied):
    out = tmp_path / "out"
    out.mkdir() if occupied == "directory" else out.write_text("mine")
    with pytest.raises(OutputError, match=r"exists already.*--out") as caught:
        RunDirectory.create(out, "mine")
    assert caught.value.path == out
    assert isinstance(caught.value, OSError)


@pytest.mark.parametrize("out", ["file/below", "/proc/below", "x" * 300])
def test_a_directory_that_cannot_be_made_is_refused(tmp_path, monkeypatch, out):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OutputError, match="choose another with --out"):
        RunDirectory.create(out, "mine")


def test_a_plan_is_read_back_bit_for_bit(plan, tmp_path):
    directory = RunDirectory.create(tmp_path / "run", "mine")
    directory.write_plan(plan.as_arrays())
    again = directory.plan(Plan.from_arrays)
    for name in ("trajectory_times", "solution", "setpoints", "limited", "targets", "times"):
        assert getattr(again, name).tobytes() == getattr(plan, name).tobytes(), name
    assert again.trajectory.poses.tobytes() == plan.trajectory.poses.tobytes()
    assert again.trajectory.times.tobytes() == plan.trajectory.times.tobytes()
    for name in ("checksum", "period", "hold"):
        assert getattr(again, name) == getattr(plan, name)
    assert again.trajectory.source == plan.trajectory.source


def test_a_held_plan_is_read_back_as_held(line, tmp_path):
    scenario = Scenario(load_scenario(line, ROBOT).trajectory, hold="zero-order", on_limits="limit")
    directory = RunDirectory.create(tmp_path / "run", "mine")
    directory.write_plan(make_plan(ROBOT, scenario, ForwardDynamics(ROBOT))[0].as_arrays())
    assert directory.plan(Plan.from_arrays).hold == "zero-order"


def test_settings_are_read_back_as_written(tmp_path):
    directory = RunDirectory.create(tmp_path / "run", "mine")
    tables = made_up_tables()
    tables["scenario"]["description"] = 'a "b" [c]'
    tables["robot"]["position_max"] = [0.1, 1e-300, float("inf")]
    record = read_record(tables)

    directory.write_settings(record)

    assert directory.settings() == record
    assert directory.settings_tables() == tables


def test_keys_added_by_hand_are_kept(tmp_path):
    directory = RunDirectory.create(tmp_path / "run", "mine")
    tables = made_up_tables()
    tables["robot"]["mine"] = 'a "b" [c]'

    directory.settings_file.write_text(tomli_w.dumps(tables))

    assert directory.settings() == read_record(made_up_tables())
    assert directory.settings_tables() == tables


@pytest.mark.parametrize(("table", "field"), CHECKED_FIELDS)
def test_a_field_of_another_type_is_named(tmp_path, table, field):
    directory = RunDirectory.create(tmp_path / "run", "mine")
    tables = made_up_tables()
    tables[table][field] = [["x"]]
    directory.settings_file.write_text(tomli_w.dumps(tables))

    with pytest.raises(NotARun, match=rf"its table \[{table}\].*\.{field}"):
        directory.settings()


@pytest.mark.parametrize(("table", "field"), CHECKED_FIELDS)
def test_a_missing_field_is_named(tmp_path, table, field):
    directory = RunDirectory.create(tmp_path / "run", "mine")
    tables = made_up_tables()
    del tables[table][field]
    directory.settings_file.write_text(tomli_w.dumps(tables))

    with pytest.raises(
        NotARun, match=rf"its table \[{table}\].*`{field}`|{table}.{field} is missing"
    ):
        directory.settings()


def test_a_summary_is_read_back_as_written(tmp_path):
    directory = RunDirectory.create(tmp_path / "run", "mine")

    directory.write_summary({"outcome": "completed", "samples": 3, "delay_s": None})

    assert directory.summary() == {"outcome": "completed", "samples": 3, "delay_s": None}


def test_a_summary_with_a_number_that_json_lacks_is_refused(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        RunDirectory.create(tmp_path / "run", "mine").write_summary({"rms": float("nan")})


@pytest.mark.parametrize("path", ["nowhere", "file", "empty"])
def test_a_directory_without_a_run_is_refused(tmp_path, path):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "empty").mkdir()
    with pytest.raises(NotARun, match="is not a run") as caught:
        RunDirectory.open(tmp_path / path)
    assert str(tmp_path / path) in str(caught.value)


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
    with pytest.raises(NotARun, match=r"plan\.npz") as caught:
        copy.plan(Plan.from_arrays)
    assert caught.value.missing == "plan.npz"


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
def test_a_plan_of_inconsistent_arrays_is_refused(copy, name, change):
    with np.load(copy.plan_file) as data:
        parts = dict(data)
    parts[name] = change(parts[name])
    np.savez(copy.plan_file, **parts)
    with pytest.raises(NotARun, match=r"plan\.npz"):
        copy.plan(Plan.from_arrays)


def test_a_plan_that_lacks_an_array_is_refused(copy):
    with np.load(copy.plan_file) as data:
        parts = {name: data[name] for name in data if name != "checksum"}
    np.savez(copy.plan_file, **parts)
    with pytest.raises(NotARun, match="checksum"):
        copy.plan(Plan.from_arrays)


def test_settings_that_lack_a_table_are_refused(copy):
    text = copy.settings_file.read_text()
    copy.settings_file.write_text(text.replace("[kinematics]", "[other]"))
    with pytest.raises(NotARun, match="kinematics"):
        copy.settings()


def test_a_plan_is_valid_for_its_own_kinematics_and_period_only(plan):
    plan.check_made_for(ROBOT.checksum, plan.period)
    with pytest.raises(InvalidParameter, match="robot and TCP"):
        plan.check_made_for(load_robot("ur10e").checksum, plan.period)
    with pytest.raises(InvalidParameter, match="period"):
        plan.check_made_for(ROBOT.checksum, 0.004)
    with pytest.raises(InvalidParameter, match="period"):
        replace(plan, period=float("nan")).check_made_for(ROBOT.checksum, 0.008)


@pytest.mark.parametrize("name", ["settings", "summary", "report", "plan"])
def test_a_file_that_cannot_be_written_is_named(plan, tmp_path, name):
    directory = RunDirectory.create(tmp_path / "run", "mine")
    getattr(directory, f"{name}_file").mkdir()
    record = read_record(made_up_tables())
    contents = {"settings": record, "summary": {}, "report": "page", "plan": plan.as_arrays()}
    content = contents[name]
    with pytest.raises(OutputError, match=getattr(directory, f"{name}_file").name):
        getattr(directory, f"write_{name}")(content)


def test_the_log_of_a_run_names_the_run(line_run):
    directory = RunDirectory.open(line_run)
    log, settings = directory.log(), directory.settings()
    assert log.complete
    assert log.metadata["scenario"] == settings.scenario.name == "line"
    assert log.metadata["robot"] == settings.robot.name == "ur10"
    assert log.joint_names == tuple(settings.robot.joint_names) == ROBOT.joint_names
    assert settings.kinematics.checksum == ROBOT.checksum
    assert json.loads((line_run / "summary.json").read_text()) == directory.summary()


def npy(shape: str, data: bytes = b"") -> bytes:
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


def members(run: RunDirectory) -> dict[str, bytes]:
    with zipfile.ZipFile(run.plan_file) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.mark.parametrize("shape", ["(1195000000,)", "(-1,)", "(2, -3)", "(9223372036854775807, 4)"])
def test_a_plan_that_claims_more_than_it_holds_is_refused_before_it_is_allocated(copy, shape):
    parts = members(copy)
    with zipfile.ZipFile(copy.plan_file, "w") as archive:
        for name in parts:
            archive.writestr(name, npy(shape))
    with (
        takes_at_most(10),
        pytest.raises(NotARun, match=r"plan\.npz: it cannot be read \(.* claims the shape"),
    ):
        copy.plan(Plan.from_arrays)


def test_a_compressed_plan_that_would_fill_memory_is_refused(copy):
    with zipfile.ZipFile(copy.plan_file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("times.npy", npy("(13107200,)", bytes(100 << 20)))
    with pytest.raises(NotARun, match="much larger than the file"):
        copy.plan(Plan.from_arrays)


class Pickled:
    def __reduce__(self):
        return (Path.write_text, (Path("executed"), ""))


def test_a_plan_with_pickled_arrays_is_refused(copy, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    parts = dict.fromkeys(name.removesuffix(".npy") for name in members(copy))
    np.savez(copy.plan_file, **{name: np.array([Pickled()], dtype=object) for name in parts})
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
def test_a_summary_that_is_no_object_is_refused(copy, content):
    copy.summary_file.write_text(content)
    with pytest.raises(NotARun, match=r"summary\.json"):
        copy.summary()
    copy.evaluation_file.write_text(content)
    with pytest.raises(NotARun, match=r"evaluation\.json"):
        copy.evaluation()


@pytest.mark.parametrize("name", ["settings.toml", "plan.npz", "log.mcap", "summary.json"])
def test_a_part_of_a_run_that_is_no_regular_file_is_refused(copy, name):
    (copy.path / name).unlink()
    os.mkfifo(copy.path / name)
    read = {"settings.toml": copy.settings, "log.mcap": copy.log, "summary.json": copy.summary}
    with pytest.raises((NotARun, LogReadError), match=name):
        read.get(name, lambda: copy.plan(Plan.from_arrays))()
