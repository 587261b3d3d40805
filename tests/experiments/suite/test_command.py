"""`simbridge experiment solvers`: faults are named, results are kept, the worse ones stand out."""

from __future__ import annotations

import csv
import json
import sys

import pytest

from simbridge.cli.json_schemas import make_schema
from simbridge.experiments.suite import command, suite, time_limit
from simbridge.experiments.suite.tables import TITLES
from tests.experiments.suite.conftest import SOLVERS, make_short_motions, read
from tests.json_schema import faults
from tests.program import answer_to

pytestmark = pytest.mark.slow

MOTIONS = ["loop", "held"]
# A solver that drifts solves no pose, from however many postures it starts.
LOOP_ALONE = ("--motion", "loop")


@pytest.fixture(scope="module", autouse=True)
def without_page():
    """Comparisons without their page, which takes a third of their time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command, "write_page", lambda *_: None)
        yield


@pytest.fixture(scope="module")
def with_exceptions(without_page, tmp_path_factory):
    """What comparing an exact solver with one that raises prints, and its directory."""
    out = tmp_path_factory.mktemp("suite") / "out"
    solvers = [f"{SOLVERS}:{name}" for name in ("exact", "raises")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(suite, "make_motions", make_short_motions)
        answer = answer_to("experiment", "solvers", "--solver", *solvers, "--out", out)
    assert answer.status == 0
    return answer.out, out


def faults_of(printed, name):
    """The faults of a solver in the terminal, of all motions."""
    return [line for line in printed.splitlines() if f":{name}: " in line]


def result_of(results, name, motion="loop"):
    rows = results["motion_results"]
    return next(
        row for row in rows if row["solver"].endswith(f":{name}") and row["motion"] == motion
    )


def test_an_exact_solver_has_no_faults(compare):
    answer, results = compare("exact")

    assert answer.status == 0, answer.message
    assert results["complete"]
    result = result_of(results, "exact")
    assert result["faults"] == []
    assert result["error"]["max_m"] < 1e-9
    assert result["flips"] == 0
    assert result["drift_rad"] < 1e-9
    assert results["pose_results"][0]["solved"] == 1.0


@pytest.mark.shares_setup
def test_exceptions_are_counted(with_exceptions):
    printed, directory = with_exceptions

    [fault] = result_of(read(directory), "raises")["faults"]
    assert (fault["kind"], fault["count"]) == ("ArithmeticError", 3)
    assert "no solution at call 20" in fault["message"]
    assert any("ArithmeticError" in line for line in faults_of(printed, "raises"))


def test_answers_that_are_no_numbers_are_counted(compare):
    answer, results = compare("exact", "not_a_number")

    [fault] = result_of(results, "not_a_number")["faults"]
    assert (fault["kind"], fault["count"]) == ("not a number", 6)
    assert any("not a number" in line for line in faults_of(answer.out, "not_a_number"))


def test_a_slow_solver_has_its_steps(compare):
    answer, results = compare("exact", "slow", flags=("--motion-time", "0.1"))

    result = result_of(results, "slow")
    assert result["too_slow"]
    assert 0 < result["steps_done"] < result["steps"]
    assert any("too slow" in line for line in faults_of(answer.out, "slow"))
    assert not result_of(results, "exact")["too_slow"]


def test_a_call_without_end_is_interrupted(compare, monkeypatch):
    monkeypatch.setattr(time_limit, "GRACE_S", 0.1)

    answer, results = compare("exact", "hangs", flags=("--motion-time", "0.2"))

    assert answer.status == 0, answer.message
    result = result_of(results, "hangs")
    assert result["too_slow"]
    assert [fault["kind"] for fault in result["faults"]] == ["CallTimeout"]


def test_jumps_are_flips(compare):
    answer, results = compare("exact", "jumps")

    assert result_of(results, "jumps")["flips"] == 3
    assert result_of(results, "jumps")["error"]["max_m"] < 1e-9
    assert "3 flips" in answer.out


def test_drift_is_named(compare):
    answer, results = compare("exact", "drifts", flags=LOOP_ALONE)

    assert result_of(results, "drifts")["drift_rad"] > 0.05
    assert any("drift" in line for line in faults_of(answer.out, "drifts"))


def test_a_function_declares_its_limits(compare):
    answer, results = compare("exact", flags=("--solver-limits", "enforced"))

    assert results["solvers"][0]["velocity_limits"] == "enforced"
    assert TITLES["enforced"] in answer.out
    assert TITLES["none"] not in answer.out


def test_limits_of_no_function_are_refused(cli, short_suite, tmp_path):
    chosen = ("--solver", "closed-form", "--solver-limits", "enforced")
    answer = cli("experiment", "solvers", *chosen, "--out", tmp_path / "out")

    assert answer.status == 2
    assert "solver-limits" in answer.message


def test_an_interrupted_suite_goes_on(compare):
    answer, first = compare("exact", "interrupts")
    assert answer.status == 130
    assert [row["motion"] for row in first["motion_results"]] == ["loop", "loop"]
    assert not first["complete"]

    answer, results = compare("exact", "interrupts")

    assert answer.status == 0, answer.message
    assert results["complete"]
    assert results["motion_results"][:2] == first["motion_results"]
    assert {row["motion"] for row in results["motion_results"]} == set(MOTIONS)


def test_other_settings_do_not_go_on(compare):
    compare("exact", flags=("--seed", "1"))

    answer, _ = compare("exact", flags=("--seed", "2"))

    assert answer.status == 2
    assert "results.json" in answer.message


def test_what_got_worse_is_named(compare, tmp_path):
    _, results = compare("exact", "drifts", flags=LOOP_ALONE)
    baseline = tmp_path / "baseline.json"
    result_of(results, "drifts")["drift_rad"] = 0.0
    baseline.write_text(json.dumps(results))

    flags = ("--baseline", baseline, *LOOP_ALONE)
    answer, _ = compare("exact", "drifts", flags=flags, out="again")

    assert answer.status == 1
    [worse] = [line for line in answer.out.splitlines() if "drift from" in line]
    assert "drifts on loop" in worse


def test_the_same_results_are_not_worse(compare, tmp_path):
    compare("exact")

    flags = ("--baseline", tmp_path / "out" / "results.json")
    answer, _ = compare("exact", flags=flags)

    assert answer.status == 0
    assert "Nothing is worse" in answer.out


def test_a_baseline_of_another_arm_is_refused(compare, tmp_path):
    compare("exact", flags=("--robot", "ur5e"), out="ur5e")

    flags = ("--baseline", tmp_path / "ur5e" / "results.json")
    answer, results = compare("exact", flags=flags)

    assert answer.status == 2
    assert "ur5e" in answer.message
    assert results is None


def test_an_absent_rival_has_its_command(compare, monkeypatch):
    monkeypatch.setitem(sys.modules, "mink", None)

    answer, results = compare("exact", flags=("--rivals", "mink"))

    assert answer.status == 0, answer.message
    assert results["absent"][0]["name"] == "mink"
    assert 'pip install "simbridge[rivals]"' in answer.out


def test_an_unknown_rival_is_refused(compare):
    answer, results = compare("exact", flags=("--rivals", "pinkk"))

    assert answer.status == 2
    assert "pink" in answer.message
    assert results is None


def test_an_unknown_scenario_is_refused(compare):
    answer, results = compare("exact", flags=("--scenario", "squar_tracking"))

    assert answer.status == 2
    assert "square_tracking" in answer.message
    assert results is None


@pytest.mark.shares_setup
def test_results_fit_their_schema(with_exceptions):
    _, directory = with_exceptions

    schema = make_schema("solvers_results")
    assert faults(read(directory), schema, schema) == []


def test_json_is_the_results_file(compare):
    answer, results = compare("exact", flags=("--json",))

    printed = json.loads(answer.out)
    assert printed.pop("directory")
    assert printed == results


@pytest.mark.shares_setup
def test_the_table_has_the_same_figures(with_exceptions):
    _, directory = with_exceptions
    results = read(directory)

    with (directory / "results.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(results["motion_results"]) + len(results["pose_results"])
    assert float(rows[0]["error_rms_m"]) == results["motion_results"][0]["error"]["rms_m"]
    assert rows[1]["faults"] == "3 × ArithmeticError"


def test_solvers_with_a_jacobian_may_have_both(cli, short_suite, tmp_path):
    chosen = ("--solver", "damped-least-squares", "closed-form")
    kinds = ("--jacobian", "exact", "difference")
    answer = cli("experiment", "solvers", *chosen, *kinds, "--out", tmp_path / "out", "--json")

    names = [solver["name"] for solver in json.loads(answer.out)["solvers"]]
    expected = ["damped-least-squares", "damped-least-squares, difference", "closed-form"]
    assert names == expected


def test_a_scenario_is_one_more_motion(compare):
    flags = ("--scenario", "step", "--motion", "step")

    _, results = compare("exact", flags=flags)

    assert [row["motion"] for row in results["motion_results"]] == ["step"]
