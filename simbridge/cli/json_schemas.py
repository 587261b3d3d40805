"""The types of what is printed with `--json` and of the files of results, and their JSON schemas.

    python -m simbridge.cli.json_schemas DIRECTORY

writes a schema for each (`make schemas` writes those of docs/schemas).
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from pathlib import Path
from typing import Any, TypedDict

import msgspec

from simbridge.cli.judge_command import JudgeOutput
from simbridge.evaluation.iso_figures import IsoFigures
from simbridge.evaluation.repeats_summary import RepeatsSummary
from simbridge.evaluation.summary import Summary
from simbridge.experiments.suite.results import SuiteResults
from simbridge.files.writing import write_file
from simbridge.identification.data import Identification
from simbridge.json_output import SCHEMA_VERSION
from simbridge.planning.inspection import TrajectoryFacts
from simbridge.running.run_setup import CheckFacts


class RunOutput(Summary):
    """Output of `simbridge run --json`: the run's directory and its summary."""

    run: str


class RepeatsOutput(RepeatsSummary):
    """Output of `simbridge run --repeat N --json`: the directory and the common summary."""

    run: str


class RobotFacts(TypedDict):
    """An arm that comes with simbridge.

    Attributes:
        robot: Its name for `--robot`.
        title: Its name for people.
        joints: Number of joints.
        controller: Series of its controller; "" for an arm that is not UR's.
        period_s: Control period, s.
        arm_length_m: Sum of the lengths of its links, m.
    """

    robot: str
    title: str
    joints: int
    controller: str
    period_s: float
    arm_length_m: float


class RobotsOutput(TypedDict):
    """Output of `simbridge robots --json`."""

    robots: list[RobotFacts]


class ScenarioFacts(TypedDict):
    """A scenario that comes with simbridge."""

    scenario: str
    description: str


class ScenariosOutput(TypedDict):
    """Output of `simbridge scenarios --json`."""

    scenarios: list[ScenarioFacts]


class ListedRunFacts(TypedDict):
    """A directory in the list of runs.

    Attributes:
        run: Its path.
        kind: "run", "repeats", "live" or "sweep".
        label: The user's label; "" without one.
        scenario: Name of the scenario.
        robot: Name of the arm.
        solver: Name of the solver.
        outcome: How it ended, in words.
        error_m: RMS tracking error, m; None where it is not known.
        begun: When it began (ISO 8601).
    """

    run: str
    kind: str
    label: str
    scenario: str
    robot: str
    solver: str
    outcome: str
    error_m: float | None
    begun: str


class RunsOutput(TypedDict):
    """Output of `simbridge runs --json`."""

    runs: list[ListedRunFacts]


class ExportOutput(TypedDict):
    """Output of `simbridge export --json`: the files that were written."""

    written: list[str]


class SettingDifference(TypedDict):
    """A setting in which compared runs differ, and its value in each of them."""

    setting: str
    values: list[Any]


class CompareOutput(TypedDict):
    """Output of `simbridge compare --json` for runs, each with the figures of its summary."""

    page: str
    scenario: str
    differences: list[SettingDifference]
    warnings: list[str]
    runs: list[dict[str, Any]]


class CompareSweepsOutput(TypedDict):
    """Output of `simbridge compare --json` for two sweeps: the points that both have."""

    page: str
    sweeps: list[str]
    points: list[dict[str, Any]]


class EvaluateOutput(TypedDict):
    """Output of `simbridge evaluate --json` for a run, and contents of its evaluation.json.

    Each error is `{self_reported, witness}`: the arm's sensors measured the first, the external
    device the second.
    """

    run: str
    attained: str
    samples: int
    time_offset_s: float
    time_offset_ns: int
    transform: list[float]
    marker_m: list[float]
    mean_rotation: list[float] | None
    tracking_error: dict[str, Any]
    delay_of: str | None
    delay_s: float | None
    rotation_delay_s: float | None
    delay_compensated: dict[str, Any] | None
    contour_error: dict[str, Any]
    witness_minus_self: dict[str, Any]


class EvaluateRepeatsOutput(TypedDict):
    """Output of `simbridge evaluate --json` for repeats: each run, and the ISO 9283 figures."""

    run: str
    attained: list[str]
    runs: list[dict[str, Any]]
    iso_9283_style: IsoFigures


class IdentifyOutput(Identification):
    """Output of `simbridge identify --json`: the recording, and what it shows of its arm."""

    recording: str


class SweepOutput(TypedDict):
    """Last line of the output of `simbridge sweep --json`.

    The lines before it are the points: the columns of results.csv, with their values.
    """

    directory: str
    points: int


class FindingFacts(TypedDict):
    """A check of `simbridge doctor`.

    Attributes:
        check: Its name.
        status: "pass", "skip", "warn" or "fail".
        seen: The facts, in words.
        fix: What to do; "" if there is nothing to fix.
        table: Rows of text that belong to it, the first of them the heading.
    """

    check: str
    status: str
    seen: str
    fix: str
    table: list[list[str]]


class DoctorOutput(TypedDict):
    """Output of `simbridge doctor --json`."""

    checked: str
    passed: bool
    findings: list[FindingFacts]


class EmulateCheckOutput(TypedDict):
    """Output of `simbridge emulate --check --json`: the faults of each script."""

    files: dict[str, dict[str, Any]]


class ExperimentResults(TypedDict):
    """Contents of results.json of an experiment; each experiment adds its own data.

    Attributes:
        experiment: Its name.
        simbridge: Version of simbridge.
        parameters: Its parameters.
        figures: Its figures by name.
        expected: The figures that are known of a UR10, and whether they hold here.
    """

    experiment: str
    simbridge: str
    parameters: dict[str, Any]
    figures: dict[str, Any]
    expected: list[dict[str, Any]]


class ExperimentOutput(ExperimentResults):
    """Output of `simbridge experiment --json`: the directory and results.json."""

    directory: str


class SuiteOutput(SuiteResults, kw_only=True):
    """Output of `simbridge experiment solvers --json`: the directory and results.json."""

    directory: str


class BenchFigure(TypedDict):
    """A figure of `simbridge bench`, as text, and what it is compared to."""

    figure: str
    median: str
    compared_to: str
    its_value: str


class BenchOutput(TypedDict):
    """Output of `simbridge bench --json`."""

    figures: list[BenchFigure]


# Name of each schema -> the type of the object that it describes, without its schema_version.
OUTPUTS: dict[str, Any] = {
    "summary": Summary,
    "repeats_summary": RepeatsSummary,
    "experiment_results": ExperimentResults,
    "solvers_results": SuiteResults,
    "run": RunOutput,
    "run_repeats": RepeatsOutput,
    "check": CheckFacts,
    "inspect": TrajectoryFacts,
    "robots": RobotsOutput,
    "scenarios": ScenariosOutput,
    "runs": RunsOutput,
    "export": ExportOutput,
    "compare": CompareOutput,
    "compare_sweeps": CompareSweepsOutput,
    "evaluate": EvaluateOutput,
    "evaluate_repeats": EvaluateRepeatsOutput,
    "identify": IdentifyOutput,
    "judge": JudgeOutput,
    "sweep": SweepOutput,
    "doctor": DoctorOutput,
    "emulate_check": EmulateCheckOutput,
    "experiment": ExperimentOutput,
    "solvers": SuiteOutput,
    "bench": BenchOutput,
}


# Fields of a summary that also a run without a sample has, or one whose evaluation was interrupted.
ALWAYS_IN_A_SUMMARY = ["outcome", "ended_by"]


def make_schema(name: str) -> dict[str, Any]:
    """Return the JSON schema of an output, with its version."""
    _, components = msgspec.json.schema_components([OUTPUTS[name]], ref_template="#/$defs/{name}")
    for component in components.values():
        _describe_properties(component)

    schema = components.pop(OUTPUTS[name].__name__)
    required = ALWAYS_IN_A_SUMMARY if name == "summary" else schema.get("required", [])
    version = {"const": SCHEMA_VERSION, "description": "Version of this schema."}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "properties": {**schema["properties"], "schema_version": version},
        "required": sorted({"schema_version", *required}),
        "$defs": components,
    }


def _describe_properties(schema: dict[str, Any]) -> None:
    """Move what a docstring says of attributes to the properties of a schema."""
    text = inspect.cleandoc(schema.get("description", ""))
    head, _, attributes = text.partition("\n\nAttributes:\n")
    schema["description"] = head

    for entry in re.split(r"\n(?=    \w)", "\n" + attributes):
        name, _, meaning = entry.strip().partition(": ")
        if name in schema.get("properties", {}):
            described = {"description": " ".join(meaning.split())}
            schema["properties"][name] = described | schema["properties"][name]


def schema_text(name: str) -> str:
    """Return the text of the schema of an output."""
    return json.dumps(make_schema(name), indent=2) + "\n"


def main() -> int:
    """Write the schemas into the directory that is given; the exit status is 0."""
    directory = Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    for name in OUTPUTS:
        write_file(directory / f"{name}.json", schema_text(name).encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
