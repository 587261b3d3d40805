"""settings.toml: read back as written, and refused with the name of what is wrong."""

from __future__ import annotations

import pytest
import tomli_w

from simbridge.errors import NotARun
from simbridge.recording.run_directory import RunDirectory
from simbridge.recording.settings_file import read_record
from tests.records import made_up_tables

# Of each table, the fields that every run has and that are read back.
READ_BACK = {
    "scenario": ("name", "hold", "on_limits", "speed_scale"),
    "robot": (
        "name",
        "title",
        "source",
        "joint_names",
        "tcp",
        "payload",
        "home",
        "position_min",
        "position_max",
        "max_tool_speed",
        "max_velocity",
        "max_effort",
    ),
    "kinematics": ("checksum", "placements", "prismatic", "source"),
    "solver": ("name", "parameters"),
    "backend": ("name", "period", "simulated_time", "effort_unit"),
}
CHECKED_FIELDS = [(table, field) for table, fields in READ_BACK.items() for field in fields]


@pytest.fixture
def directory(tmp_path):
    return RunDirectory.create(tmp_path / "run", "mine")


def test_settings_are_read_back_as_written(directory):
    tables = made_up_tables()
    tables["scenario"]["description"] = 'a "b" [c]'
    tables["robot"]["position_max"] = [0.1, 1e-300, float("inf")]
    record = read_record(tables)

    directory.write_settings(record)

    assert directory.settings() == record
    assert directory.settings_tables() == tables


def test_keys_added_by_hand_are_kept(directory):
    tables = made_up_tables()
    tables["robot"]["mine"] = 'a "b" [c]'

    directory.settings_file.write_text(tomli_w.dumps(tables))

    assert directory.settings() == read_record(made_up_tables())
    assert directory.settings_tables() == tables


@pytest.mark.slow
@pytest.mark.parametrize(("table", "field"), CHECKED_FIELDS)
def test_a_field_of_another_type_is_named(directory, table, field):
    tables = made_up_tables()
    tables[table][field] = [["x"]]
    directory.settings_file.write_text(tomli_w.dumps(tables))

    with pytest.raises(NotARun, match=rf"its table \[{table}\].*\.{field}"):
        directory.settings()


@pytest.mark.slow
@pytest.mark.parametrize(("table", "field"), CHECKED_FIELDS)
def test_a_missing_field_is_named(directory, table, field):
    tables = made_up_tables()
    del tables[table][field]
    directory.settings_file.write_text(tomli_w.dumps(tables))

    refusal = rf"its table \[{table}\].*`{field}`|{table}.{field} is missing"
    with pytest.raises(NotARun, match=refusal):
        directory.settings()


def test_a_missing_table_is_named(line_run, directory):
    text = (line_run / "settings.toml").read_text()
    directory.settings_file.write_text(text.replace("[kinematics]", "[other]"))

    with pytest.raises(NotARun, match="kinematics"):
        directory.settings()
