"""A run directory edited by hand.

Each command refuses it by the file and the field, and none ends as a bug.
"""

from __future__ import annotations

import copy
import json
import math
import os
import shutil

import msgspec
import pytest
import tomli_w

from simbridge.recording.settings_file import read_record
from tests.properties import variants

pytestmark = pytest.mark.shares_setup

WRONG_VALUES = [True, "text", -1.0, 0, 1e300, math.nan, [], {}, [[1.0]], {"a": 1}]
MISSING = object()


@pytest.fixture(scope="module")
def original(tmp_path_factory, run_without_page, line):
    """A run, made once; its pages are left out."""
    path = tmp_path_factory.mktemp("edited") / "run"
    assert run_without_page(line, "--out", path) == 0
    return path


@pytest.fixture
def edited(original, tmp_path):
    """Change a field of a copy of the run, named by its keys; returns the copy."""

    def change(file, keys, value):
        path = shutil.copytree(original, tmp_path / "run")
        target = path / file
        is_toml = file.endswith(".toml")
        content = (
            msgspec.toml.decode(target.read_text()) if is_toml else json.loads(target.read_text())
        )
        content = with_field(content, keys, value)
        target.write_text(tomli_w.dumps(content) if is_toml else json.dumps(content))
        return path

    return change


def with_field(content, keys, value):
    """Return a copy with another value of one field; it shares the fields beside that one."""
    changed = copy.copy(content)
    key, *inner = keys
    if inner:
        changed[key] = with_field(content[key], inner, value)
    elif value is MISSING:
        del changed[key]
    else:
        changed[key] = value
    return changed


def fields_of(content, keys=()):
    """The keys of every field, tables and the first elements of lists included."""
    if keys:
        yield keys
    pairs = []
    if isinstance(content, dict):
        pairs = content.items()
    elif isinstance(content, list):
        pairs = enumerate(content[:1])
    for key, value in pairs:
        yield from fields_of(value, (*keys, key))


EDITS = [
    ("summary.json", ["loop"], True),
    ("summary.json", ["ended_by"], 3),
    (
        "summary.json",
        ["ended_by"],
        {"cause": "boredom", "evidence": [], "at_s": None, "arm_at_rest": None},
    ),
    ("summary.json", ["samples"], "many"),
    ("settings.toml", ["backend", "period"], 0.0),
    ("settings.toml", ["backend", "period"], math.nan),
    ("settings.toml", ["backend", "servo_gain"], MISSING),
    ("settings.toml", ["backend", "simulated_time"], 1),
    ("settings.toml", ["scenario", "hold"], MISSING),
    ("settings.toml", ["robot", "joint_names"], []),
    ("settings.toml", ["robot", "home"], [0.0]),
    ("settings.toml", ["kinematics", "placements"], []),
    ("settings.toml", ["kinematics", "placements", 0, 0], 1e300),
    ("settings.toml", ["solver", "parameters"], 7),
    ("settings.toml", ["solver", "task"], ""),
    ("settings.toml", ["versions"], MISSING),
    ("settings.toml", ["shapes", "base_link", 0, "color"], [0.1, 0.2, 0.3, 0.4]),
    ("settings.toml", ["shapes", "base_link", 0, "color"], [2.0, 0.2, 0.3]),
    ("settings.toml", ["label"], 5),
    ("settings.toml", ["tolerance"], "1 mm"),
]


@pytest.mark.parametrize(("file", "keys", "value"), EDITS)
def test_report_refuses_an_edit_by_its_file(cli, edited, short_pages, file, keys, value):
    answer = cli("report", edited(file, keys, value))

    assert answer.status == 2
    assert file in answer.message
    assert [key for key in keys if isinstance(key, str)][-1] in answer.message


@pytest.mark.parametrize(
    "command", [["compare"], ["identify"], ["export", "--to", "csv"], ["run", "--plan"]]
)
def test_other_commands_refuse_it_too(cli, edited, original, line, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = edited("settings.toml", ["kinematics", "prismatic"], [1, 2])
    further_words = {"compare": [original], "run": [line]}

    answer = cli(*command, run, *further_words.get(command[0], []))

    assert answer.status == 2
    assert "settings.toml" in answer.message


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        (["solver", "parameters", "mine"], 1.0),
        (["solver", "parameters", "task"], [[1.0]]),
        (["scenario", "sampling"], {"mine": 1.0}),
        (["scenario", "sampling"], {"rate": "often"}),
    ],
)
def test_a_replay_refuses_unknown_settings(cli, edited, line, keys, value, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    answer = cli("run", line, "--plan", edited("settings.toml", keys, value))

    assert answer.status == 2
    assert f"settings.toml: its table [{'.'.join(keys[:2])}]" in answer.message


@pytest.mark.parametrize("value", [math.nan, 10**400])
def test_a_long_name_is_shortened_in_the_refusal(original, value):
    settings = msgspec.toml.decode((original / "settings.toml").read_text())
    settings["scenario"]["k" * 100_000] = value

    with pytest.raises(ValueError, match=r"scenario\.k") as refusal:
        read_record(settings)

    assert len(str(refusal.value)) < 1000


def test_a_list_of_runs_shows_it(cli, edited, tmp_path):
    edited("summary.json", ["tracking_error"], 5)

    answer = cli("runs", tmp_path)

    assert answer.status == 0


def test_no_list_waits_for_a_fifo(cli, original, tmp_path):
    run = shutil.copytree(original, tmp_path / "run")
    (run / "summary.json").unlink()
    os.mkfifo(run / "summary.json")

    answer = cli("runs", tmp_path)

    assert answer.status == 0
    assert "no summary" in answer.out


def test_what_is_only_shown_may_be_anything(cli, edited, short_pages):
    assert (
        cli("report", edited("settings.toml", ["robot", "notes"], {"mine": [1, "two"]})).status == 0
    )


# Missing, and one value of each type.
@pytest.mark.parametrize(
    "value",
    variants([MISSING, *WRONG_VALUES], MISSING, True, "text", -1.0, math.nan, [], {"a": 1}),
)
def test_every_field_is_checked_without_another_error(original, value):
    settings = msgspec.toml.decode((original / "settings.toml").read_text())

    for keys in fields_of(settings):
        try:
            read_record(with_field(settings, keys, value))
        except ValueError as refusal:
            named = [key for key in keys if isinstance(key, str)]
            assert any(name in str(refusal) for name in named), refusal
