"""Which solver is the best for what, from the results of the suite."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from simbridge.experiments.suite.results import MotionResult, SuiteResults
from simbridge.experiments.suite.summary import ideal_error, summarize_solver
from simbridge.text import join_words, millimetres, significant

# Errors up to this count as exact, m: solvers within it are told apart by their time.
EXACT_ERROR = 1e-6
# How the motions past singularities are named.
SINGULARITY = "_singularity"


@dataclass(frozen=True)
class Candidate:
    """A solver that can be the best for a purpose.

    Attributes:
        solver: Its name.
        is_rival: Whether it belongs to another library.
        rank: What is compared, in order; the smallest is the best.
        figure: The figure, in words.
    """

    solver: str
    is_rival: bool
    rank: tuple[float, ...]
    figure: str

    @property
    def text(self) -> str:
        """The solver and its figure."""
        return f"{self.solver} ({self.figure})"


@dataclass(frozen=True)
class Answer:
    """Which solver is the best for a purpose.

    Attributes:
        purpose: What it is for, after "best for".
        criterion: What decides, in words.
        best: The best of all solvers.
        others: The best of the rivals where the best solver is one of simbridge or of the user,
            else the best of those; None where there is none.
    """

    purpose: str
    criterion: str
    best: Candidate
    others: Candidate | None


def find_answers(results: SuiteResults) -> list[Answer]:
    """Return the best solver for each purpose for which there are results.

    A solver that failed in a call, or was too slow for a motion, takes no part.
    """
    purposes: list[tuple[str, str, Callable[[SuiteResults, str], Ranked | None]]] = [
        ("dense paths", "smallest median of the RMS errors; within 1 µm the fastest", _path_rank),
        ("streams", "smallest median of the RMS errors to the ideal motion", _stream_rank),
        ("smooth streams", "smallest median of the RMS joint accelerations", _smoothness_rank),
        ("singularities", "lowest peak of joint speed, as a share of its limit", _calm_rank),
        ("single poses", "most solved within the budget; of equals the fastest", _pose_rank),
        ("computing time", "lowest median time per call", _time_rank),
    ]
    answers = []
    for purpose, criterion, rank in purposes:
        candidates = _candidates(results, rank)
        if not candidates:
            continue
        best = min(candidates, key=lambda candidate: candidate.rank)
        others = [candidate for candidate in candidates if candidate.is_rival != best.is_rival]
        answers.append(
            Answer(
                purpose=purpose,
                criterion=criterion,
                best=best,
                others=min(others, key=lambda candidate: candidate.rank, default=None),
            )
        )
    return answers


def headline(answers: Sequence[Answer]) -> str:
    """Return the answers in a sentence, and one on the rivals."""
    if not answers:
        return "No solver has complete results yet."
    by_solver: dict[str, list[str]] = {}
    for answer in answers:
        by_solver.setdefault(answer.best.solver, []).append(answer.purpose)
    bests = [f"{solver} for {join_words(purposes)}" for solver, purposes in by_solver.items()]
    return f"Best here: {'; '.join(bests)}."


def about_rivals(answers: Sequence[Answer]) -> str:
    """Return for what a rival is better than every solver of simbridge; "" without rivals."""
    compared = [answer for answer in answers if answer.others is not None]
    if not compared:
        return ""
    lost = [answer for answer in compared if answer.best.is_rival]
    if not lost:
        return "No solver of another library is better than the best of simbridge at any of these."
    wins = [f"{answer.best.solver} for {answer.purpose}" for answer in lost]
    return f"Better than every solver of simbridge: {join_words(wins)}."


# What is compared of a solver, in order, and the figure in words.
Ranked = tuple[tuple[float, ...], str]


def _candidates(
    results: SuiteResults, rank: Callable[[SuiteResults, str], Ranked | None]
) -> list[Candidate]:
    """Return the solvers without faults that have what is compared."""
    candidates = []
    for solver in results.solvers:
        summary = summarize_solver(results, solver.name)
        if summary.faults or summary.slow:
            continue
        ranked = rank(results, solver.name)
        if ranked is not None:
            candidates.append(Candidate(solver.name, solver.origin == "rival", *ranked))
    return candidates


def _path_rank(results: SuiteResults, solver: str) -> Ranked | None:
    summary = summarize_solver(results, solver)
    error = summary.tracking_error_m
    if error is None:
        return None
    time = summary.median_time_s or 0.0
    if error <= EXACT_ERROR:
        return (0.0, time), f"exact, {_microseconds(time)}"
    return (error, time), f"{millimetres(error)} mm"


def _stream_rank(results: SuiteResults, solver: str) -> Ranked | None:
    error = summarize_solver(results, solver).stream_error_m
    return None if error is None else ((error,), f"{millimetres(error)} mm")


def _smoothness_rank(results: SuiteResults, solver: str) -> Ranked | None:
    acceleration = stream_acceleration(results, solver)
    if acceleration is None:
        return None
    return (acceleration,), f"{significant(acceleration, decimals=3)} of the limit"


def _calm_rank(results: SuiteResults, solver: str) -> Ranked | None:
    shares = [
        result.shares.speed
        for result in results.motion_results
        if result.solver == solver and SINGULARITY in result.motion and result.shares
    ]
    if not shares:
        return None
    return (max(shares),), f"{significant(max(shares))} times the limit"


def _pose_rank(results: SuiteResults, solver: str) -> Ranked | None:
    solved = summarize_solver(results, solver).solved
    if solved is None:
        return None
    times = [
        result.median_time_s
        for result in results.pose_results
        if result.solver == solver and result.median_time_s is not None
    ]
    time = float(np.median(times)) if times else np.inf
    return (-solved, time), f"{100.0 * solved:.3g} %, {_microseconds(time)}"


def _time_rank(results: SuiteResults, solver: str) -> Ranked | None:
    time = summarize_solver(results, solver).median_time_s
    return None if time is None else ((time,), _microseconds(time))


def stream_acceleration(results: SuiteResults, solver: str) -> float | None:
    """Return the median over the streams of the RMS joint acceleration, as a share of the limit."""
    values = [
        result.shares.acceleration_rms
        for result in stream_results(results, solver)
        if result.shares is not None
    ]
    return float(np.median(values)) if values else None


def stream_error(results: SuiteResults, solver: str) -> float | None:
    """Return the median over the streams of the RMS error to the ideal motion, m."""
    errors = [ideal_error(result) for result in stream_results(results, solver)]
    return float(np.median(errors)) if errors else None


def stream_results(results: SuiteResults, solver: str) -> list[MotionResult]:
    """Return the results of a solver on the streams."""
    streams = {motion.name for motion in results.motions if motion.group == "stream"}
    return [
        result
        for result in results.motion_results
        if result.solver == solver and result.motion in streams
    ]


def _microseconds(seconds: float) -> str:
    """Return a time as text, µs."""
    return f"{significant(1e6 * seconds, decimals=1)} µs"
