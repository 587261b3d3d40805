"""What programs read is versioned, and follows the JSON schemas in docs/schemas."""

from __future__ import annotations

import csv
import json
import shutil
import sys
from pathlib import Path

import pytest

from simbridge.cli.json_schemas import OUTPUTS, schema_text
from simbridge.experiments import convergence
from simbridge.experiments.outcome import Plot
from simbridge.json_output import SCHEMA_VERSION
from simbridge.running import repeating
from simbridge.sweeps import engine
from tests.json_schema import faults
from tests.sweeps.executors import InThisProcess

pytestmark = [pytest.mark.usefixtures("without_pages"), pytest.mark.slow]

SCHEMAS = Path(__file__).parents[2] / "docs" / "schemas"


def check(text, name):
    """Assert that a text is JSON by the schema of this name, without undeclared fields."""
    value = json.loads(text)
    schema = json.loads((SCHEMAS / f"{name}.json").read_text())

    assert faults(value, schema, schema) == []
    assert set(value) <= set(schema["properties"])
    return value


@pytest.mark.skipif(
    sys.version_info >= (3, 14),
    reason="msgspec 0.22 does not find fields that a TypedDict inherits on Python 3.14",
)
def test_the_schemas_in_the_docs_are_those_of_the_types():
    """`make schemas` writes them."""
    files = {path.stem: path.read_text() for path in SCHEMAS.glob("*.json")}

    assert files == {name: schema_text(name) for name in OUTPUTS}


def test_each_schema_is_listed():
    page = (SCHEMAS.parent / "json.md").read_text()

    assert [name for name in OUTPUTS if f"schemas/{name}.json" not in page] == []


def test_a_run_and_its_summary_follow_their_schemas(cli, line, tmp_path):
    run = tmp_path / "run"

    printed = check(cli("run", line, "--out", run, "--json").out, "run")
    summary = check((run / "summary.json").read_text(), "summary")

    assert printed == {**summary, "run": str(run)}
    assert summary["schema_version"] == SCHEMA_VERSION
    assert check(cli("export", run, "--to", "tum", "--json").out, "export")
    assert check(cli("runs", tmp_path, "--json").out, "runs")


def test_repeats_follow_their_schemas(cli, line, tmp_path, monkeypatch):
    monkeypatch.setattr(repeating, "write_repeats_page", lambda *_: None)

    answer = cli("run", line, "--repeat", 2, "--out", tmp_path / "both", "--json")

    check(answer.out, "run_repeats")
    check((tmp_path / "both" / "summary.json").read_text(), "repeats_summary")


@pytest.mark.parametrize("command", ["check", "inspect"])
def test_commands_before_a_run_follow_their_schemas(cli, line, command):
    check(cli(command, line, "--json").out, command)


@pytest.mark.parametrize("command", ["robots", "scenarios"])
def test_lists_follow_their_schemas(cli, command):
    check(cli(command, "--json").out, command)


def test_the_doctor_follows_its_schema(cli):
    value = check(cli("doctor", "--backend", "pybullet", "--json").out, "doctor")

    assert {"check", "status", "seen", "fix", "table"} == set(value["findings"][0])


def test_a_script_check_follows_its_schema(cli, tmp_path):
    (tmp_path / "a.script").write_text("movej([0,0,0,0,0,0])\nfoo()\n")

    check(cli("emulate", "--check", tmp_path / "a.script", "--json").out, "emulate_check")


def test_each_line_of_a_sweep_is_versioned(cli, line, tmp_path, monkeypatch):
    # In this process: starting others takes seconds.
    monkeypatch.setattr(engine.Cores, "open", lambda self: InThisProcess())
    answer = cli(
        "sweep", line, "--grid", "solver.kp=5,10", "--plan-only",
        "--out", tmp_path / "sweep", "--json",
    )  # fmt: skip
    *points, last = answer.out.splitlines()

    assert len(points) == 2
    assert {json.loads(point)["schema_version"] for point in points} == {SCHEMA_VERSION}
    with (tmp_path / "sweep" / "results.csv").open() as file:
        assert {row["schema_version"] for row in csv.DictReader(file)} == {str(SCHEMA_VERSION)}
    assert check(last, "sweep")["points"] == 2


def test_a_judged_log_follows_its_schema(cli, tmp_path):
    recording = SCHEMAS.parents[1] / "tests" / "data" / "ur3e_moves" / "moves.csv.gz"

    answer = cli("judge", recording, tmp_path / "none", "--path-tolerance", "0.0001", "--json")

    value = check(answer.out, "judge")
    assert len(value["logs"]) == len(value["failures"]) == 1
    assert value["logs"][0]["tolerances"]["violations"]


def test_a_comparison_follows_its_schema(cli, line, tmp_path, short_comparisons):
    cli("run", line, "--out", tmp_path / "one")
    shutil.copytree(tmp_path / "one", tmp_path / "two")

    answer = cli("compare", tmp_path / "one", tmp_path / "two", "--out", tmp_path, "--json")

    check(answer.out, "compare")


@pytest.mark.python_kernels
def test_an_experiment_follows_its_schema(cli, tmp_path, monkeypatch):
    monkeypatch.setattr(Plot, "save", lambda *_: None)
    # Figures of the paper are expected only with its number of iterations.
    iterations = 30
    monkeypatch.setattr(convergence, "PAPER_ITERATIONS", iterations)
    few = ("--iterations", iterations)
    answer = cli("experiment", "convergence", *few, "--out", tmp_path / "out", "--json")
    value = json.loads(answer.out)
    schema = json.loads((SCHEMAS / "experiment.json").read_text())
    results = json.loads((tmp_path / "out" / "results.json").read_text())

    assert faults(value, schema, schema) == []
    assert value["expected"]
    assert value == {**results, "directory": str(tmp_path / "out")}
