"""The page of the suite: which solver is the best for what, in plain words."""

from __future__ import annotations

from typing import Any

import pytest

from simbridge.experiments.suite.answers import find_answers
from simbridge.experiments.suite.page import solvers_page
from simbridge.experiments.suite.results import (
    AbsentSolver,
    ArmFacts,
    Budget,
    CallTimes,
    Fault,
    LimitShares,
    MotionFacts,
    MotionResult,
    PoseErrors,
    PoseSetFacts,
    PoseSetResult,
    SolverFacts,
    SuiteResults,
    WorstMoment,
)
from tests.report.pages import Page

OWN = "damped-least-squares"
RIVAL = "pink"
MOTIONS = {
    "square": "tracking",
    "wrist_singularity": "tracking",
    "stream_10_hz": "stream",
}


def motion_result(motion: str, solver: str, error: float, **changes: Any) -> MotionResult:
    is_stream = MOTIONS[motion] == "stream"
    errors = PoseErrors(rms_m=error, max_m=2.0 * error, rms_rad=0.0, max_rad=0.0)
    values: dict[str, Any] = {
        "motion": motion,
        "solver": solver,
        "steps": 100,
        "steps_done": 100,
        "too_slow": False,
        "faults": [],
        "error": errors,
        "reference_error": errors if is_stream else None,
        "lag_s": 0.0,
        "shares": LimitShares(speed=0.5, acceleration=0.2, acceleration_rms=0.1, jerk=0.3),
        "beyond_limits_rad": 0.0,
        "flips": 0,
        "chatter": None,
        "drift_rad": None,
        "times": CallTimes(median_s=1e-5, p99_s=2e-5, ratio=1.0, calls=300, passes=3),
        "worst": WorstMoment(
            time_s=0.5,
            times_s=[0.4, 0.5, 0.6],
            target_m=[[0.0, 0.0, 0.0], [0.1, 0.0, 0.0], [0.2, 0.1, 0.0]],
            tool_m=[[0.0, 0.0, 0.0], [0.1, error, 0.0], [0.2, 0.1, 0.0]],
        ),
    }
    return MotionResult(**(values | changes))


def pose_result(solver: str, solved: float, **changes: Any) -> PoseSetResult:
    values: dict[str, Any] = {
        "pose_set": "random_poses",
        "solver": solver,
        "poses": 10,
        "poses_done": 10,
        "too_slow": False,
        "faults": [],
        "solved": solved,
        "solved_at_once": solved,
        "median_calls": 5.0,
        "median_time_s": 1e-4,
        "p99_time_s": 1e-3,
        "median_error_m": 1e-9,
        "median_error_rad": 1e-9,
    }
    return PoseSetResult(**(values | changes))


def solver_facts(name: str, origin: str, velocity_limits: Any) -> SolverFacts:
    return SolverFacts(
        name=name,
        origin=origin,
        velocity_limits=velocity_limits,
        task="pose",
        settings={},
        versions={"pin-pink": "3.1"} if origin == "rival" else {},
    )


@pytest.fixture
def results():
    """Two solvers: the rival is better on the stream, and worse elsewhere."""
    motion_results = []
    for motion in MOTIONS:
        own_error, rival_error = (0.004, 0.002) if motion == "stream_10_hz" else (0.0, 0.001)
        motion_results.append(motion_result(motion, OWN, own_error))
        motion_results.append(motion_result(motion, RIVAL, rival_error))
    return SuiteResults(
        experiment="solvers",
        simbridge="0.1.0",
        python="3.11",
        processor="2 × a processor",
        parameters={},
        arm=ArmFacts(
            name="ur10",
            title="UR10",
            joints=6,
            period_s=0.008,
            task="pose",
            checksum="",
            speed_limits=[2.0] * 6,
            acceleration_limit=20.0,
            jerk_limit=10000.0,
        ),
        budget=Budget(
            motion_time_s=20.0,
            passes=3,
            pose_time_s=1.0,
            pose_calls=2500,
            pose_motion_s=20.0,
            tolerance_m=1e-3,
            tolerance_rad=2e-3,
        ),
        baseline=OWN,
        solvers=[
            solver_facts(OWN, "simbridge", "none"),
            solver_facts(RIVAL, "rival", "enforced"),
        ],
        absent=[],
        motions=[
            MotionFacts(
                name=name,
                group=group,
                description=f"About {name}.",
                steps=100,
                duration_s=0.8,
                loops=1,
                out_of_reach=0.0,
                jumps=False,
            )
            for name, group in MOTIONS.items()
        ],
        pose_sets=[
            PoseSetFacts(name="random_poses", description="Random.", poses=10, reachable=True)
        ],
        motion_results=motion_results,
        pose_results=[pose_result(OWN, 1.0), pose_result(RIVAL, 0.9)],
        notes=["A note."],
        complete=True,
    )


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


def test_a_better_rival_is_named(results):
    page = Page(solvers_page(results))

    assert "pink for streams" in page.text("headline")
    assert "Better than every solver of simbridge: pink for streams." in page.text("verdict")


def test_a_solver_with_faults_is_never_the_best(results):
    fault = Fault(kind="not a number", count=3, first_call=7, message="NaN")
    replace_result(results, motion_result("square", OWN, 0.0, faults=[fault]))

    assert best_for(results, "dense paths") == RIVAL
    assert "3 × not a number" in Page(solvers_page(results)).text("summary")


def test_a_slow_solver_is_never_the_best(results):
    slow = motion_result("square", OWN, 0.0, too_slow=True, steps_done=12)
    replace_result(results, slow)

    assert best_for(results, "computing time") == RIVAL
    assert "too slow: 12 of 100 steps" in Page(solvers_page(results)).text("motions")


def test_a_share_says_how_many_poses_were_attempted(results):
    slow = pose_result(OWN, 0.5, poses_done=4, too_slow=True)
    results.pose_results[0] = slow

    assert "too slow: 4 of 10 poses" in Page(solvers_page(results)).text("motions")


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
