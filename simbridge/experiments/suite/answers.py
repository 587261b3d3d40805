"""Finds the best solver for each purpose, from the results of the suite."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from simbridge.experiments.suite.results import MotionResult, SuiteResults
from simbridge.experiments.suite.summary import ideal_error
from simbridge.text import join_words, millimetres, significant

# Largest error that counts as exact, m.
EXACT_ERROR = 1e-6
# Largest relative difference of values that count as equal: then the fastest solver is the best.
EQUAL = 0.01
# Largest share of a joint's velocity limit that counts as kept: one limited to it may round up.
KEPT_SPEED = 1.001
# Part of the names of the motions past singularities.
SINGULARITY = "_singularity"


@dataclass(frozen=True)
class Candidate:
    """A solver that can be the best for a purpose.

    Attributes:
        solver: Name of the solver.
        is_rival: Whether the solver belongs to another library.
        value: Value that is compared; less is better.
        time_s: Median time per call, which decides among equals, s.
        figure: The value in words.
    """

    solver: str
    is_rival: bool
    value: float
    time_s: float
    figure: str

    @property
    def text(self) -> str:
        """The solver and its figure."""
        return f"{self.solver} ({self.figure})"


@dataclass(frozen=True)
class Answer:
    """The best solver for a purpose, and the best one of the other side.

    Attributes:
        purpose: The purpose, as words that follow "best for".
        criterion: The quantity that decides, in words.
        best: The best of all solvers.
        others: The best of the rivals if the best solver is not a rival; otherwise the best solver
            of simbridge or of the user. None if there is none.
    """

    purpose: str
    criterion: str
    best: Candidate
    others: Candidate | None


# The value of a solver that is compared, the time that decides among equals, s, and the value in
# words; None if the solver does not have such results.
Comparison: TypeAlias = "tuple[float, float, str] | None"


def find_answers(results: SuiteResults) -> list[Answer]:
    """Return the best solver for each purpose for which there are results.

    A solver that failed in a call that counts, or was too slow, takes no part.
    """
    # Name of each purpose, its criterion in words, and the function that compares.
    purposes: list[tuple[str, str, Callable[[SuiteResults, str], Comparison]]] = [
        ("dense paths", "smallest median of the RMS errors", _compare_paths),
        (
            "paths within limits",
            "the same, of solvers that keep the velocity limits",
            _compare_within_limits,
        ),
        ("streams", "smallest median of the RMS errors to the ideal motion", _compare_streams),
        (
            "smooth streams",
            "smallest median of the RMS joint accelerations, whatever the error",
            _compare_smoothness,
        ),
        ("calm at singularities", "lowest peak of joint speed, whatever the error", _compare_calm),
        ("single poses", "most solved within the budget", _compare_poses),
        ("computing time", "lowest median time per call", _compare_time),
    ]
    answers = []
    for purpose, criterion, compare in purposes:
        candidates = _list_candidates(results, compare)
        if not candidates:
            continue
        best = _find_best(candidates)
        other_side = [candidate for candidate in candidates if candidate.is_rival != best.is_rival]
        answers.append(
            Answer(
                purpose=purpose,
                criterion=criterion,
                best=best,
                others=_find_best(other_side) if other_side else None,
            )
        )
    return answers


def _list_candidates(
    results: SuiteResults, compare: Callable[[SuiteResults, str], Comparison]
) -> list[Candidate]:
    """Return the solvers that have results for a comparison."""
    candidates = []
    for solver in results.solvers:
        comparison = compare(results, solver.name)
        if comparison is not None:
            candidates.append(Candidate(solver.name, solver.origin == "rival", *comparison))
    return candidates


def _find_best(candidates: Sequence[Candidate]) -> Candidate:
    """Return the fastest of the candidates whose values are equal to the smallest."""
    smallest = min(candidate.value for candidate in candidates)
    equals = [candidate for candidate in candidates if candidate.value <= smallest * (1.0 + EQUAL)]
    return min(equals, key=lambda candidate: candidate.time_s)


def headline(answers: Sequence[Answer]) -> str:
    """Return a sentence that names the best solvers with their purposes."""
    if not answers:
        return "No solver has complete results yet."
    purposes_of: dict[str, list[str]] = {}
    for answer in answers:
        purposes_of.setdefault(answer.best.solver, []).append(answer.purpose)
    parts = [f"{solver} for {join_words(purposes)}" for solver, purposes in purposes_of.items()]
    return f"Best here: {'; '.join(parts)}."


def about_rivals(answers: Sequence[Answer]) -> str:
    """Return a sentence on where a rival is better than all of simbridge's; "" without rivals."""
    compared = [answer for answer in answers if answer.others is not None]
    if not compared:
        return ""
    lost = [answer for answer in compared if answer.best.is_rival]
    if not lost:
        return "No solver of another library is better than the best of simbridge at any of these."
    wins = [f"{answer.best.solver} for {answer.purpose}" for answer in lost]
    return f"Better than every solver of simbridge: {join_words(wins)}."


def _compare_paths(results: SuiteResults, solver: str) -> Comparison:
    """Return the median over the paths of the RMS error, m."""
    paths = motion_results(results, solver, "tracking")
    if not _all_complete(paths):
        return None
    error = max(median(result.error.rms_m for result in paths), EXACT_ERROR)
    time = median(result.times.median_s for result in paths)
    size = "exact" if error == EXACT_ERROR else f"{millimetres(error)} mm"
    return error, time, f"{size}, {_microseconds(time)}"


def _compare_within_limits(results: SuiteResults, solver: str) -> Comparison:
    """Return what `_compare_paths` returns, of a solver that keeps the velocity limits there.

    A path whose target jumps does not count: to follow it at once, a joint has to exceed them.
    """
    jumping = {motion.name for motion in results.motions if motion.jumps}
    speeds = [
        result.shares.speed
        for result in motion_results(results, solver, "tracking")
        if result.shares is not None and result.motion not in jumping
    ]
    if not speeds or max(speeds) > KEPT_SPEED:
        return None
    return _compare_paths(results, solver)


def _compare_streams(results: SuiteResults, solver: str) -> Comparison:
    """Return the median over the streams of the RMS error to the ideal motion, m."""
    streams = motion_results(results, solver, "stream")
    if not _all_complete(streams):
        return None
    error = median(map(ideal_error, streams))
    return error, median(result.times.median_s for result in streams), f"{millimetres(error)} mm"


def _compare_smoothness(results: SuiteResults, solver: str) -> Comparison:
    """Return the median over the streams of the RMS joint acceleration, as a share of the limit."""
    streams = motion_results(results, solver, "stream")
    acceleration = stream_acceleration(results, solver)
    if not _all_complete(streams) or acceleration is None:
        return None
    error = millimetres(median(map(ideal_error, streams)))
    figure = f"{significant(acceleration)} × limit, {error} mm"
    return acceleration, median(result.times.median_s for result in streams), figure


def _compare_calm(results: SuiteResults, solver: str) -> Comparison:
    """Return the peak of joint speed past singularities, as a share of the limit."""
    paths = motion_results(results, solver, "tracking")
    lines = [result for result in paths if SINGULARITY in result.motion]
    shares = [result.shares.speed for result in lines if result.shares is not None]
    if not _all_complete(lines) or not shares:
        return None
    error = millimetres(max(result.error.rms_m for result in lines))
    figure = f"{significant(max(shares))} × limit, {error} mm"
    return max(shares), median(result.times.median_s for result in lines), figure


def _compare_poses(results: SuiteResults, solver: str) -> Comparison:
    """Return the share of reachable poses that were not solved."""
    reachable = {pose_set.name for pose_set in results.pose_sets if pose_set.reachable}
    sets = [
        result
        for result in results.pose_results
        if result.solver == solver and result.pose_set in reachable
    ]
    times = [result.median_time_s for result in sets if result.median_time_s is not None]
    if not times or any(result.faults for result in sets):
        return None
    pose_count = sum(result.poses for result in sets)
    solved = sum(result.solved * result.poses for result in sets) / pose_count
    time = median(times)
    return 1.0 - solved, time, f"{100.0 * solved:.3g} %, {_microseconds(time)}"


def _compare_time(results: SuiteResults, solver: str) -> Comparison:
    """Return the median over all motions of the median time per call, s."""
    solver_results = [result for result in results.motion_results if result.solver == solver]
    if not _all_complete(solver_results):
        return None
    time = median(result.times.median_s for result in solver_results)
    return time, time, _microseconds(time)


def _all_complete(results: Sequence[MotionResult]) -> bool:
    """Return whether there are results, and none of them has faults or was cut short."""
    return bool(results) and not any(result.faults or result.too_slow for result in results)


def motion_results(results: SuiteResults, solver: str, group: str) -> list[MotionResult]:
    """Return the results of a solver on the motions of a group, "tracking" or "stream"."""
    names = {motion.name for motion in results.motions if motion.group == group}
    return [
        result
        for result in results.motion_results
        if result.solver == solver and result.motion in names
    ]


def stream_acceleration(results: SuiteResults, solver: str) -> float | None:
    """Return the median over the streams of the RMS joint acceleration, as a share of the limit."""
    streams = motion_results(results, solver, "stream")
    values = [result.shares.acceleration_rms for result in streams if result.shares is not None]
    return median(values) if values else None


def stream_error(results: SuiteResults, solver: str) -> float | None:
    """Return the median over the streams of the RMS error to the ideal motion, m."""
    streams = motion_results(results, solver, "stream")
    return median(map(ideal_error, streams)) if streams else None


def median(values: Iterable[float]) -> float:
    """Return the median of one or more values."""
    return float(np.median(list(values)))


def _microseconds(seconds: float) -> str:
    """Return a time as text, µs."""
    return f"{significant(1e6 * seconds, decimals=1)} µs"
