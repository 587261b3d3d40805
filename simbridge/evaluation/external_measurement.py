"""A run measured by an outside witness: a laser tracker or motion capture, recorded in a file of its own.

The recording's clock and frame are fitted to what the arm itself measured (`metrics/alignment.py`), and its error
against the reference stands beside the self-reported one, over the same samples. What was fitted is reported with it:
it takes out whatever is constant, offset, rotation and delay, so that the arm's absolute accuracy stays unknown.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.table import Table

from simbridge.errors import InvalidParameter, SimbridgeError
from simbridge.evaluation.evaluation import Evaluation
from simbridge.evaluation.metrics.alignment import Alignment, align
from simbridge.evaluation.metrics.delays import delay_compensated
from simbridge.evaluation.metrics.pose_errors import PoseError, Statistics
from simbridge.evaluation.metrics.summary import POSE_PARTS, compensated_statistics, part_delays, path_summary
from simbridge.recording.run_directory import RunDirectory, is_of_repeats
from simbridge.robot import pose
from simbridge.robot.pose import Array
from simbridge.text import counted, degrees, millimetres

if TYPE_CHECKING:
    from simbridge.trajectory.trajectory import Trajectory


@dataclass(frozen=True)
class Witness:
    """An outside recording, brought onto a run. All arrays over the K recorded samples within the run.

    Attributes:
        alignment: What was estimated.
        times: Instants (K,) of the run's clock, s.
        own: What the arm itself measured at these instants (K, 7).
        seen: What the witness saw (K, 7), in base_link at the TCP. Orientations are the arm's own without `turning`.
        turning: Mean rotation (4,) from the recorded body to the TCP, taken out as well; None if no orientation was
            recorded (all of them are the same).
        epoch_ns: From where on the recording's clock its times count, which the alignment's offset leaves out.
    """

    alignment: Alignment
    times: Array
    own: Array
    seen: Array
    turning: Array | None
    epoch_ns: int = 0

    @property
    def time_offset_ns(self) -> int:
        """By how much the recording's clock is ahead of the run's, in whole ns: seconds since 1970 need every digit."""
        return self.epoch_ns + round(self.alignment.offset * 1e9)


def witnessed(evaluation: Evaluation, recording: Trajectory, *, find_marker: bool = False) -> Witness:
    """Bring an outside recording onto a run.

    Args:
        evaluation: The run.
        recording: What the witness recorded, in its own frame and on its own clock.
        find_marker: Whether it looks at a point beside the TCP, to be found.

    Raises:
        UnusableSamples: The two cannot be aligned; says why.
    """
    stamp, attained = evaluation.log.stamp, evaluation.attained
    found = align(stamp, attained, recording.times, recording.poses[:, :3], find_marker=find_marker)
    return brought_on(evaluation, recording, found)


def brought_on(evaluation: Evaluation, recording: Trajectory, found: Alignment) -> Witness:
    """An outside recording on a run's clock and in its frame, as an alignment has them."""
    stamp, attained = evaluation.log.stamp, evaluation.attained
    at = recording.times - found.offset
    inside = (at >= stamp[0]) & (at <= stamp[-1])
    times = at[inside]
    own = pose.interpolate(stamp, attained, times)
    seen = pose.compose(found.transform, recording.poses[inside])
    turning = None
    if np.ptp(recording.poses[:, 3:], axis=0).max() > 0.0:
        turning = _mean_rotation(pose.multiply(pose.conjugate(seen[:, 3:]), own[:, 3:]))
    rotations = own[:, 3:] if turning is None else pose.multiply(seen[:, 3:], turning)
    positions = seen[:, :3] - pose.rotate(rotations, np.broadcast_to(found.marker, (len(seen), 3)))
    seen = np.concatenate([positions, rotations], axis=1)
    return Witness(found, times, own, seen, turning, recording.epoch_ns)


def _mean_rotation(quaternions: Array) -> Array:
    """The rotation with the least sum of squared chords: F. L. Markley et al., Averaging quaternions, 2007."""
    return np.asarray(np.linalg.eigh(quaternions.T @ quaternions)[1][:, -1])


def comparison(evaluation: Evaluation, witness: Witness) -> dict[str, Any]:
    """What `simbridge evaluate --json` prints and evaluation.json holds, in SI units.

    Each error is `{self_reported, witness}` over the same samples. `delay_compensated` is without the delays of the
    run's own summary, as `tracking_summary` has it. `witness_minus_self` is what the arm does not see of itself: the
    witness against the arm's own measurement, after alignment.
    """
    found, tracking = witness.alignment, evaluation.tracking
    views = {"self_reported": witness.own, "witness": witness.seen}
    reference = evaluation.reference_at(witness.times)
    errors = {name: PoseError.between(reference, poses) for name, poses in views.items()}
    late = {part: part_delays(tracking, part).total for part in POSE_PARTS}

    def told(error: dict[str, Statistics], name: str) -> dict[str, Any]:
        return error if name == "self_reported" or witness.turning is not None else {**error, "rotation_rad": None}

    def without_delay(name: str) -> dict[str, Statistics]:
        return compensated_statistics(
            {
                part: delay_compensated(
                    witness.times, evaluation.reference_at, views[name], late[part], part, before=errors[name]
                )
                for part in POSE_PARTS
            }
        )

    contours = {
        name: path_summary(evaluation.contour_of(witness.times, poses[:, :3]))["contour_error"]
        for name, poses in views.items()
    }
    return {
        "samples": len(witness.times),
        "time_offset_s": witness.time_offset_ns / 1e9,
        "time_offset_ns": witness.time_offset_ns,
        "transform": found.transform.tolist(),
        "marker_m": found.marker.tolist(),
        "mean_rotation": None if witness.turning is None else witness.turning.tolist(),
        "tracking_error": {name: told(error.statistics(), name) for name, error in errors.items()},
        **{key: tracking[key] for key in ("delay_of", "delay_s", "rotation_delay_s")},
        "delay_compensated": None
        if tracking["delay_compensated"] is None
        else {name: told(without_delay(name), name) for name in views},
        "contour_error": contours,
        "witness_minus_self": told(PoseError.between(witness.seen, witness.own).statistics(), "witness"),
    }


def evaluate(
    run: str, attained: Sequence[str], *, topic: str | None = None, find_marker: bool = False, as_json: bool = False
) -> int:
    """The command `simbridge evaluate`: measure a run against an outside recording; writes evaluation.json into it.

    Args:
        run: The run's directory, or that of repeats.
        attained: The recording's file; for repeats one of all of them, or one for each.
        topic: Of a bag: the topic with the poses.
        find_marker: See `witnessed`.
        as_json: Print what is written instead of tables.

    Returns:
        The exit status, 0.

    Raises:
        NotARun, InputFileError, UnusableSamples: The run or the file cannot be read, or the two do not fit.
        InvalidParameter: Another number of recordings than one is given, and it is no directory of repeats.
    """
    from simbridge.evaluation.external_repeats import evaluate_repeats
    from simbridge.trajectory.files import read_trajectory

    if is_of_repeats(Path(run)):
        return evaluate_repeats(run, attained, topic=topic, find_marker=find_marker, as_json=as_json)
    if len(attained) != 1:
        raise InvalidParameter("number of recordings (--attained)", len(attained), "1 for a run that is not repeated")
    evaluation = Evaluation.of(RunDirectory.open(Path(run)))
    if len(evaluation.log.stamp) == 0:
        raise SimbridgeError(f"{run} holds no sample: the run ended before the arm had reached the start of its plan.")
    witness = witnessed(evaluation, read_trajectory(attained[0], topic=topic), find_marker=find_marker)
    result = {"run": run, "attained": str(Path(attained[0]).resolve()), **comparison(evaluation, witness)}
    evaluation.directory.write_evaluation(result)
    if as_json:
        print(json.dumps(result, indent=2, allow_nan=False))
    else:
        show(result, evaluation.directory.evaluation_file, find_marker)
    return 0


def show(result: dict[str, Any], path: Path, find_marker: bool) -> None:
    """The two errors side by side, then what was estimated to compare them."""
    console = Console(highlight=False)
    outside = result["tracking_error"]["witness"]["position_m"]
    console.print(
        f"[bold]Seen from outside, the tool was off by {millimetres(outside['rms'])} mm RMS, "
        f"{millimetres(outside['max'])} mm at most[/bold]\n",
        soft_wrap=True,
    )
    console.print(_table(result))
    console.print(f"\nEstimated from {counted(result['samples'], 'sample')}, and taken out:")
    console.print(f"  clock   the recording's is ahead by {clock_ahead(result)} s", soft_wrap=True)
    show_frame(console, result, find_marker)
    console.print("A constant offset, rotation or delay of the arm cannot be told from these.")
    console.print(f"Written: {path}", soft_wrap=True, markup=False)


def clock_ahead(result: dict[str, Any]) -> str:
    """Seconds by which the recording's clock is ahead, to the microsecond also of seconds since 1970."""
    return f"{Decimal(result['time_offset_ns']).scaleb(-9):.6f}"


def show_frame(console: Console, result: dict[str, Any], find_marker: bool) -> None:
    """Where the recording's frame was found to be, and the marker if it was looked for."""
    turn = float(np.linalg.norm(pose.rotation_vectors(np.array(result["transform"][3:]))))
    shift = ", ".join(f"{value:.4f}" for value in result["transform"][:3])
    console.print(f"  frame   at ({shift}) m in base_link, turned by {degrees(turn)} degrees", soft_wrap=True)
    if find_marker:
        marker = ", ".join(f"{value * 1e3:.2f}" for value in result["marker_m"])
        console.print(f"  marker  at ({marker}) mm from the TCP")


def _table(result: dict[str, Any]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("error", no_wrap=True)
    for name in ("RMS mm", "p95 mm", "max mm", "RMS deg", "max deg"):
        table.add_column(name, justify="right", no_wrap=True)
    lines = {"tracking_error": "tracking", "delay_compensated": "delay removed", "contour_error": "contour"}
    for key, title in lines.items():
        for name, whose in (("self_reported", "self-reported"), ("witness", "witness")):
            if result[key] is not None:
                _add(table, f"{title}, {whose}", result[key][name], bold=name == "witness")
    _add(table, "witness minus self", result["witness_minus_self"], bold=False)
    return table


def _add(table: Table, title: str, error: dict[str, Any], *, bold: bool) -> None:
    position, rotation = error["position_m"], error.get("rotation_rad")
    table.add_row(
        title,
        *(millimetres(position[name]) for name in ("rms", "p95", "max")),
        *(degrees(None if rotation is None else rotation[name]) for name in ("rms", "max")),
        style="bold" if bold else None,
    )
