"""The page of the suite: which solver is the best for what, in plain words."""

from __future__ import annotations

import pytest

from simbridge.experiments.suite.answers import find_answers
from simbridge.experiments.suite.results import (
    AbsentSolver,
    CallFault,
    LimitShares,
    MotionResult,
    SuiteResults,
)
from simbridge.experiments.suite.solvers_page import solvers_page
from tests.experiments.suite.made_up_results import (
    OWN,
    RIVAL,
    make_results,
    motion_result,
    solver_facts,
)
from tests.report.pages import Page

pytestmark = pytest.mark.slow


@pytest.fixture
def results():
    return make_results()


def replace_result(results: SuiteResults, result: MotionResult) -> None:
    results.motion_results = [
        result if (old.motion, old.solver) == (result.motion, result.solver) else old
        for old in results.motion_results
    ]


def best_for(results: SuiteResults, purpose: str) -> str:
    return next(answer.best.solver for answer in find_answers(results) if answer.purpose == purpose)


def test_each_purpose_has_its_best_solver(results):
    assert best_for(results, "dense paths") == OWN
    assert best_for(results, "streams") == RIVAL
    assert best_for(results, "single poses") == OWN


def test_a_solver_beyond_the_velocity_limits_is_not_the_best_within_them(results):
    purpose = "paths within limits"
    assert best_for(results, purpose) == OWN
    shares = LimitShares(speed=2.1, acceleration=0.2, acceleration_rms=0.1, jerk=0.3)

    replace_result(results, motion_result("wrist_singularity", OWN, 0.0, shares=shares))

    assert best_for(results, purpose) == RIVAL


def test_a_better_rival_is_named(results):
    page = Page(solvers_page(results))

    assert "pink for streams" in page.text("headline")
    assert "Better than every solver of simbridge: pink for streams." in page.text("verdict")


def test_a_solver_with_faults_is_never_the_best(results):
    fault = CallFault(kind="not a number", count=3, first_call=7, message="NaN")
    replace_result(results, motion_result("square", OWN, 0.0, faults=[fault]))

    assert best_for(results, "dense paths") == RIVAL
    assert "3 × not a number" in Page(solvers_page(results)).text("summary")


def test_a_slow_solver_is_never_the_best(results):
    slow = motion_result("square", OWN, 0.0, too_slow=True, steps_done=12)
    replace_result(results, slow)

    assert best_for(results, "computing time") == RIVAL
    assert "too slow: 12 of 100 steps" in Page(solvers_page(results)).text("motions")


def test_exceeded_speed_stands_out(results):
    shares = LimitShares(speed=2.1, acceleration=0.2, acceleration_rms=0.1, jerk=0.3)
    replace_result(results, motion_result("wrist_singularity", OWN, 0.0, shares=shares))

    text = Page(solvers_page(results)).text("near")

    assert "speed × 2.1" in text


def test_the_two_kinds_of_solvers_have_a_table_each(results):
    page = Page(solvers_page(results))

    summary = page.text("summary")
    limited = summary.index("Solvers that keep velocity limits in their step")
    assert summary.index("Solvers that do not limit velocity") < summary.index(OWN) < limited
    assert limited < summary.index("pink")


def test_an_absent_solver_is_named_with_the_reason(results):
    results.absent = [AbsentSolver(name="mink", reason="pip install mink")]

    assert "mink takes no part: pip install mink" in Page(solvers_page(results)).text("verdict")


def test_names_are_text_and_nothing_is_loaded(results):
    hostile = "<script>alert(1)</script>"
    results.solvers[1] = solver_facts(hostile, "custom", "none")
    results.motion_results = [motion_result("square", hostile, 0.001)]
    results.pose_results = []

    page = solvers_page(results)

    assert hostile not in page
    assert "default-src 'none'" in page
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org", "")


def test_a_page_without_any_result_can_be_made(results):
    results.motion_results = []
    results.pose_results = []
    results.complete = False

    page = Page(solvers_page(results))

    assert "No solver has complete results yet." in page.text("headline")
    assert "not complete" in page.text("verdict")
