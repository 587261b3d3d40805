"""Two or more runs of one scenario laid over each other: simulation and robot, one solver and another.

Runs are compared by the time on their trajectory: it is the same for all of them, whatever their periods, and wherever
a controller made one of them wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from simbridge.errors import InvalidParameter, SimbridgeError, UnusableSamples
from simbridge.evaluation.evaluation import Evaluation
from simbridge.evaluation.metrics.delays import delay, sampled
from simbridge.evaluation.metrics.pose_errors import PoseError, statistics
from simbridge.recording.run_directory import RunDirectory
from simbridge.robot import pose
from simbridge.robot.pose import Array
from simbridge.text import millimetres, plain

if TYPE_CHECKING:
    from simbridge.evaluation.repeats import IsoFigures

# Paths, in m and as components of quaternions, that agree so well are one path.
SAME = 1e-6
# Of each summary, what is compared.
_COMPARED = (
    *(f"{part}_error" for part in ("tracking", "sampling", "solver", "limiter", "plant", "contour")),
    *("delay_compensated", "delay_of", "delay_s", "solver_delay_s", "plant_delay_s"),
    *("rotation_delay_s", "solver_rotation_delay_s", "plant_rotation_delay_s"),
    *("along_path_lag", "near_singularity", "absolute_pose_error", "relative_pose_error"),
)


@dataclass(frozen=True, eq=False)
class Compared:
    """One of the runs.

    Attributes:
        name: As the reader is told it; no two runs have the same.
        evaluation: The run.
        summary: Its numbers.
    """

    name: str
    evaluation: Evaluation
    summary: dict[str, Any]

    @cached_property
    def moving(self) -> tuple[Array, Array]:
        """Times (K,) on the trajectory, strictly increasing, and the poses (K, 7) attained then."""
        times = self.evaluation.log.plan_time
        kept = np.concatenate([[True], times[1:] > np.maximum.accumulate(times)[:-1]])
        return times[kept], self.evaluation.attained[kept]


@dataclass(frozen=True, eq=False)
class Comparison:
    """Runs of one scenario.

    Attributes:
        runs: In the order in which they were given.
        warnings: In what they are not alike, as sentences.
    """

    runs: tuple[Compared, ...]
    warnings: tuple[str, ...]

    @cached_property
    def apart(self) -> list[tuple[Array, PoseError] | None]:
        """How far each run's tool is from that of the first run, at one and the same time on the trajectory.

        Times (K,) of the run with the fewer samples, and the first run minus this one; None for the first run and for
        one that has no time in common with it.
        """
        return [None, *(_apart(self.runs[0], run) for run in self.runs[1:])]

    @cached_property
    def behind(self) -> list[float | None]:
        """By how many seconds each run is behind the first one."""
        found: list[float | None] = [None]
        for run in self.runs[1:]:
            (times, poses), (t, attained) = self.runs[0].moving, run.moving
            inside = (t >= times[0]) & (t <= times[-1])
            found.append(delay(t[inside], sampled(times, poses), attained[inside]) if inside.sum() > 1 else None)
        return found

    def as_dict(self) -> dict[str, Any]:
        """What `simbridge compare --json` prints (SI units)."""
        runs = []
        for run, apart, behind in zip(self.runs, self.apart, self.behind, strict=True):
            facts = {key: run.summary[key] for key in ("robot", "solver", "backend", "period_s", "samples", "outcome")}
            facts |= {key: run.summary[key] for key in _COMPARED}
            facts["from_the_first"] = None
            if apart is not None:
                facts["from_the_first"] = {
                    "position_m": statistics(apart[1].distance),
                    "rotation_rad": statistics(apart[1].angle),
                    "delay_s": behind,
                }
            runs.append({"run": str(run.evaluation.directory.path), "name": run.name, **facts})
        return {"scenario": self.runs[0].summary["scenario"], "warnings": list(self.warnings), "runs": runs}


def _apart(first: Compared, other: Compared) -> tuple[Array, PoseError] | None:
    (times, poses), (t, attained) = first.moving, other.moving
    fewer = times if len(times) <= len(t) else t
    fewer = fewer[(fewer >= max(times[0], t[0])) & (fewer <= min(times[-1], t[-1]))]
    if len(fewer) == 0:
        return None
    return fewer, PoseError.between(pose.interpolate(times, poses, fewer), pose.interpolate(t, attained, fewer))


def compared(paths: Sequence[Path]) -> Comparison:
    """Read runs that are to be compared.

    Args:
        paths: Run directories; one made by --repeat stands for its runs.

    Raises:
        InvalidParameter: Fewer than two runs, or runs of different scenarios.
        NotARun, LogReadError: A part of one is missing or broken.
        SimbridgeError: One has no sample.
    """
    found = [run for path in paths for run in _runs_of(path)]
    if len(found) < 2:
        raise InvalidParameter("number of runs to compare", len(found), "at least 2")
    names = [path.name for path in found]
    if len(set(names)) < len(names):
        names = [str(path) for path in found]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidParameter("runs to compare", twice, "different: this one is given twice")
    runs = tuple(_read(name, path) for name, path in zip(names, found, strict=True))
    return Comparison(runs, tuple(w for run in runs[1:] for w in _differences(runs[0], run)))


def _runs_of(path: Path) -> list[Path]:
    """The run itself, or those that --repeat put into it."""
    if (path / "settings.toml").is_file() or not path.is_dir():
        return [path]
    inside = sorted(child for child in path.iterdir() if (child / "settings.toml").is_file())
    return inside or [path]


def _read(name: str, path: Path) -> Compared:
    evaluation = Evaluation.of(RunDirectory.open(path))
    if len(evaluation.log.stamp) == 0:
        raise SimbridgeError(f"{path} holds no sample: the run ended before the arm had reached the start of its plan.")
    return Compared(name, evaluation, evaluation.summary(evaluation.outcome))


def _differences(first: Compared, other: Compared) -> list[str]:
    """In what two runs are not alike, as sentences.

    Raises:
        InvalidParameter: They are runs of different scenarios.
    """
    one, two = first.evaluation, other.evaluation
    names = (first.summary["scenario"], other.summary["scenario"])
    found = []
    why = _other_path(one, two)
    if why is not None and names[0] != names[1]:
        runs = f"{first.name} ({names[0]}) and {other.name} ({names[1]})"
        raise InvalidParameter("runs to compare", runs, f"of one scenario: {why}")
    if why is not None:
        found.append(f"{first.name} and {other.name} have one scenario's name, but {why}.")
    for run in (first, other):
        if run.summary["outcome"] != "completed":
            found.append(f"{run.name} did not complete: {run.summary['outcome']}.")
    return found


def _other_path(one: Evaluation, two: Evaluation) -> str | None:
    """Why two trajectories are not the same; None when they are."""
    first, second = one.plan.trajectory, two.plan.trajectory
    if abs(first.duration - second.duration) > SAME:
        return f"one takes {plain(round(first.duration, 6))} s and the other {plain(round(second.duration, 6))} s"
    times = np.union1d(first.elapsed, second.elapsed)
    times = times[(times <= first.elapsed[-1]) & (times <= second.elapsed[-1])]
    a, b = first.reference(times), second.reference(times)
    off = PoseError.between(a, b)
    if off.distance.max() > SAME:
        return f"their paths are up to {millimetres(float(off.distance.max()))} mm apart"
    if off.angle.max() > SAME:
        return f"their orientations are up to {plain(round(float(np.degrees(off.angle.max())), 4))} degrees apart"
    return None


def repeats_of_one(comparison: Comparison) -> bool:
    """Whether the runs are cycles of one motion on one arm, so that ISO 9283-style figures mean something."""
    kinds = {tuple(run.summary[key] for key in ("robot", "solver", "backend", "period_s")) for run in comparison.runs}
    return len(kinds) == 1 and not comparison.warnings


def cycles_of(comparison: Comparison) -> IsoFigures | None:
    """ISO 9283-style figures when the runs are cycles of one motion on one arm; none otherwise."""
    from simbridge.evaluation.repeats import iso_figures

    if not repeats_of_one(comparison):
        return None
    try:
        return iso_figures(run.evaluation for run in comparison.runs)
    except UnusableSamples:
        return None
