"""`--json`: standard output is one JSON text and nothing else, whichever command prints it."""

from __future__ import annotations

import json
import shutil

import pytest

from simbridge.resources import robot_files, scenario_files

pytestmark = pytest.mark.usefixtures("without_pages")


def printed(answer):
    assert answer.status == 0, answer.err
    return json.loads(answer.out)


def test_robots_and_scenarios_are_listed_for_machines(cli):
    robots = printed(cli("robots", "--json"))["robots"]

    assert [robot["robot"] for robot in robots] == list(robot_files())
    assert all(robot["period_s"] > 0.0 and robot["arm_length_m"] > 0.0 for robot in robots)

    scenarios = printed(cli("scenarios", "--json"))["scenarios"]
    assert [scenario["scenario"] for scenario in scenarios] == list(scenario_files())
    assert all(scenario["description"] for scenario in scenarios)


@pytest.mark.parametrize("command", ["check", "inspect"])
def test_commands_before_a_run_print_json(command, cli, line):
    assert printed(cli(command, line, "--json"))


def test_exports_name_the_files_that_they_wrote(cli, line_run, tmp_path):
    run = shutil.copytree(line_run, tmp_path / "run")

    written = printed(cli("export", run, "--to", "tum", "--json"))["written"]

    assert written == [
        str(run / f"{name}.tum") for name in ("reference", "target", "setpoint", "attained")
    ]


def test_a_missed_tolerance_is_in_the_json_too(cli, line, tmp_path):
    answer = cli("run", line, "--out", tmp_path / "run", "--tolerance", "0", "0", "--json")

    assert answer.status == 1
    assert json.loads(answer.out)["passed"] is False
