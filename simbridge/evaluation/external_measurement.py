"""Runs measured externally: by a laser tracker or motion capture, recorded in a separate file.

The recording's clock and frame are fitted to what the arm itself measured (`metrics/alignment.py`). Its error against
the reference is given next to the self-reported one, over the same samples, together with what was fitted. The fit
removes whatever is constant, an offset, a rotation, a delay: the arm's absolute accuracy cannot be determined this way.

The clock is fitted for every run separately, the frame for all repeated runs together: a frame per run would remove the
differences between runs, which are what repeatability measures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from simbridge.errors import InvalidParameter, UnusableSamples
from simbridge.evaluation.evaluation import Evaluation
from simbridge.evaluation.iso_figures import iso_figures
from simbridge.evaluation.metrics.alignment import Alignment, align, find_cycles, rigid_fit
from simbridge.evaluation.metrics.path import path_summary
from simbridge.evaluation.metrics.samples import PoseError, PoseStatistics, interpolated
from simbridge.evaluation.metrics.tracking import (
    POSE_PARTS,
    compensated_statistics,
    delays_compensated,
    part_delays,
)
from simbridge.robot import pose
from simbridge.robot.pose import Array
from simbridge.trajectory.trajectory import Trajectory

# Time before and after a run that is cut out of a long recording with it, s.
MARGIN = 1.0
# Longest time without a sample that a recording of a repeated run may have, also at the ends of the run, s.
MAX_MISSING = 0.05
# What is fitted for all repeated runs together.
_SHARED = ("transform", "marker_m")


@dataclass(frozen=True)
class ExternalMeasurement:
    """An external recording on a run's clock and in its frame. All arrays over the K recorded samples within the run.

    Attributes:
        poses: Poses (K, 7) of the recording, in base_link at the TCP; without `mounting` their orientations are
            self-reported.
        mounting: Mean rotation (4,) from the recorded body to the TCP, which is removed as well; None if no orientation
            was recorded (all of them are equal).
    """

    alignment: Alignment  # what was estimated
    times: Array  # instants (K,) of the run's clock, s
    self_reported: Array  # poses (K, 7) that the arm itself measured at these instants
    poses: Array
    mounting: Array | None
    epoch_ns: int = 0  # origin of the recording's times on its clock, which the alignment's offset does not include

    @property
    def time_offset_ns(self) -> int:
        """Offset of the recording's clock from the run's, in whole ns: a double would round times since 1970."""
        return self.epoch_ns + round(self.alignment.offset * 1e9)

    def at(self, stamps: Array) -> Array:
        """Externally measured positions (T, 3) at stamps (T,) of the run, m."""
        return interpolated(stamps, self.times, self.poses[:, :3])


def measure_externally(
    run: Evaluation, recording: Trajectory, *, find_marker: bool = False
) -> ExternalMeasurement:
    """Align an external recording, in its own frame and on its own clock, with a run.

    `find_marker` estimates where on the tool the recorded point is; by default it is the TCP.

    Raises:
        UnusableSamples: The two cannot be aligned; the message says why.
    """
    found = align(
        run.log.stamp,
        run.attained,
        recording.times,
        recording.poses[:, :3],
        find_marker=find_marker,
    )
    return _aligned(run, recording, found)


def measure_repeats_externally(
    runs: Sequence[Evaluation], recordings: Sequence[Trajectory], *, find_marker: bool = False
) -> list[ExternalMeasurement]:
    """Align external recordings in one frame with runs of one plan: one of all runs, or one per run.

    Raises:
        InvalidParameter: Neither one recording nor one per run.
        UnusableSamples: A recording does not fit its run, has gaps, or does not contain all runs; the message says
            which.
    """
    if len(recordings) not in (1, len(runs)):
        raise InvalidParameter(
            "number of recordings (--attained)",
            len(recordings),
            f"1, of all runs, or {len(runs)}, one per run",
        )
    parts = _cut(runs, recordings[0]) if len(recordings) < len(runs) else list(recordings)
    found = [_align_complete(run, part, find_marker) for run, part in zip(runs, parts, strict=True)]
    rough = [_aligned(*each) for each in zip(runs, parts, found, strict=True)]
    recorded = np.concatenate([_recorded(*each) for each in zip(parts, found, rough, strict=True)])
    fit = rigid_fit(
        recorded, np.concatenate([each.self_reported for each in rough]), find_marker=find_marker
    )
    shared = [replace(alignment, transform=fit.transform, marker=fit.marker) for alignment in found]
    return [_aligned(*each) for each in zip(runs, parts, shared, strict=True)]


def _aligned(run: Evaluation, recording: Trajectory, found: Alignment) -> ExternalMeasurement:
    """A recording on a run's clock and in its frame, by an alignment."""
    stamp = run.log.stamp
    at = recording.times - found.offset
    inside = (at >= stamp[0]) & (at <= stamp[-1])
    times = at[inside]
    own = pose.interpolate(stamp, run.attained, times)
    seen = pose.compose(found.transform, recording.poses[inside])
    mounting = None
    if np.ptp(recording.poses[:, 3:], axis=0).max() > 0.0:
        mounting = pose.mean_rotation(pose.multiply(pose.conjugate(seen[:, 3:]), own[:, 3:]))
    rotations = own[:, 3:] if mounting is None else pose.multiply(seen[:, 3:], mounting)
    positions = seen[:, :3] - pose.rotate(rotations, np.broadcast_to(found.marker, (len(seen), 3)))
    poses = np.concatenate([positions, rotations], axis=1)
    return ExternalMeasurement(found, times, own, poses, mounting, recording.epoch_ns)


def _cut(runs: Sequence[Evaluation], recording: Trajectory) -> list[Trajectory]:
    """The part of each run in a recording of all runs."""
    stamp = runs[0].log.stamp
    offsets = find_cycles(
        stamp, runs[0].attained[:, :3], recording.times, recording.poses[:, :3], len(runs)
    )
    parts = []
    for run, offset in zip(runs, offsets, strict=True):
        at = recording.times - offset
        kept = (at >= run.log.stamp[0] - MARGIN) & (at <= run.log.stamp[-1] + MARGIN)
        parts.append(replace(recording, times=recording.times[kept], poses=recording.poses[kept]))
    return parts


def _align_complete(run: Evaluation, recording: Trajectory, find_marker: bool) -> Alignment:
    """Align a recording that must cover the whole run, without a gap."""
    stamp, name = run.log.stamp, run.directory.path.name
    try:
        found = align(
            stamp, run.attained, recording.times, recording.poses[:, :3], find_marker=find_marker
        )
    except UnusableSamples as error:
        raise UnusableSamples(f"recording of run {name}", error.reason) from None
    at = recording.times - found.offset
    kept = np.concatenate([[stamp[0]], at[(at > stamp[0]) & (at < stamp[-1])], [stamp[-1]]])
    gap = int(np.argmax(np.diff(kept)))
    if kept[gap + 1] - kept[gap] > MAX_MISSING:
        raise UnusableSamples(
            f"recording of run {name}",
            f"it has no sample from {kept[gap]:.3f} to {kept[gap + 1]:.3f} s of the run; at most {MAX_MISSING:g} s may "
            "be missing.",
        )
    return found


def _recorded(recording: Trajectory, found: Alignment, measured: ExternalMeasurement) -> Array:
    """The recorded positions (K, 3) of the samples of a measurement, in the recording's frame."""
    first = int(np.searchsorted(recording.times - found.offset, measured.times[0]))
    return recording.poses[first : first + len(measured.times), :3]


def external_result(run: Evaluation, measured: ExternalMeasurement) -> dict[str, Any]:
    """What `simbridge evaluate --json` prints and evaluation.json holds, in SI units.

    Each error is `{self_reported, witness}` over the same samples; `witness` is the external measurement.
    `delay_compensated` is without the delays of the run's own summary (see `Tracking`). `witness_minus_self` is the
    external measurement against the self-reported one, after alignment: what the arm's own sensors do not show.
    """
    found, tracking = measured.alignment, run.tracking
    views = {"self_reported": measured.self_reported, "witness": measured.poses}
    reference = run.reference_at(measured.times)
    errors = {name: PoseError.between(reference, poses) for name, poses in views.items()}
    lags = {part: part_delays(tracking, part).total for part in POSE_PARTS}
    rest = {
        name: delays_compensated(measured.times, run.reference_at, poses, lags, before=errors[name])
        for name, poses in views.items()
    }

    def known(error: PoseStatistics, name: str) -> dict[str, Any]:
        """Without rotations if none were recorded."""
        without = name == "witness" and measured.mounting is None
        return {**error, "rotation_rad": None} if without else {**error}

    return {
        "samples": len(measured.times),
        "time_offset_s": measured.time_offset_ns / 1e9,
        "time_offset_ns": measured.time_offset_ns,
        "transform": found.transform.tolist(),
        "marker_m": found.marker.tolist(),
        "mean_rotation": None if measured.mounting is None else measured.mounting.tolist(),
        "tracking_error": {name: known(error.statistics(), name) for name, error in errors.items()},
        "delay_of": tracking["delay_of"],
        "delay_s": tracking["delay_s"],
        "rotation_delay_s": tracking["rotation_delay_s"],
        "delay_compensated": None
        if tracking["delay_compensated"] is None
        else {name: known(compensated_statistics(left), name) for name, left in rest.items()},
        "contour_error": {
            name: path_summary(run.contour_of(measured.times, poses[:, :3]))["contour_error"]
            for name, poses in views.items()
        },
        "witness_minus_self": known(
            PoseError.between(measured.poses, measured.self_reported).statistics(), "witness"
        ),
    }


def external_repeats_result(
    runs: Mapping[str, Evaluation], recordings: Sequence[Trajectory], *, find_marker: bool = False
) -> dict[str, Any]:
    """What `simbridge evaluate` finds of repeated runs: `external_result` of each, and external ISO 9283-style figures.

    The runs of one plan are those that completed, by name; the rest is as for `measure_repeats_externally`.
    """
    measured = measure_repeats_externally(list(runs.values()), recordings, find_marker=find_marker)
    pairs = list(zip(runs.values(), measured, strict=True))
    iso = iso_figures(runs.values(), [each.at(run.log.stamp) for run, each in pairs])
    results = [external_result(*pair) for pair in pairs]
    return {
        **{key: results[0][key] for key in _SHARED},
        "runs": [
            {"run": name, **{key: value for key, value in result.items() if key not in _SHARED}}
            for name, result in zip(runs, results, strict=True)
        ],
        "iso_9283_style": iso,
    }
