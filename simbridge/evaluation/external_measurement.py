"""Runs measured externally: by a laser tracker or motion capture, recorded in a separate file.

The recording's clock and frame are fitted to what the arm itself measured (`metrics/alignment.py`).
Its error against the reference is stated next to the self-reported one, over the same samples,
together with what was fitted. The fit removes whatever is constant, an offset, a rotation, a delay:
the arm's absolute accuracy cannot be determined this way.

The clock is fitted for every run separately, the frame for all repeated runs together: a frame per
run would remove the differences between runs, which are what repeatability measures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simbridge.errors import InvalidParameter, UnusableSamples
from simbridge.evaluation.evaluation import Evaluation
from simbridge.evaluation.iso_figures import iso_figures
from simbridge.evaluation.metrics.alignment import Alignment, align, find_cycles, rigid_fit
from simbridge.evaluation.metrics.path import path_summary
from simbridge.evaluation.metrics.samples import PoseError, PoseStatistics, interpolate_rows
from simbridge.evaluation.metrics.tracking import (
    POSE_PARTS,
    compensate_delays,
    part_delays,
    summarize_compensated,
)
from simbridge.robot import pose
from simbridge.robot.pose import Array
from simbridge.trajectory.trajectory import Trajectory

# Time before and after a run that is cut out of a long recording with it, s.
MARGIN_S = 1.0
# Longest time without a sample that a recording of a repeated run may have, also at the ends of the
# run, s.
MAX_GAP_S = 0.05
# The keys of a result that all repeated runs have in common.
COMMON_KEYS = ("transform", "marker_m")


@dataclass(frozen=True)
class ExternalMeasurement:
    """An external recording on a run's clock and in its frame, over K samples within the run.

    Attributes:
        alignment: What was estimated.
        times: Instants (K,) of the run's clock, s.
        self_reported: Poses (K, 7) that the arm itself measured at these instants.
        poses: Poses (K, 7) of the recording, in base_link at the TCP; without `mounting` their
            orientations are self-reported.
        mounting: Mean rotation (4,) from the recorded body to the TCP, which is removed as well;
            None if no orientation was recorded (all of them are equal).
        epoch_ns: Origin of the recording's times on its clock, which the alignment's offset does
            not include, ns.
    """

    alignment: Alignment
    times: Array
    self_reported: Array
    poses: Array
    mounting: Array | None
    epoch_ns: int = 0

    @property
    def time_offset_ns(self) -> int:
        """Offset of the recording's clock from the run's, in whole ns.

        A double would round times since 1970.
        """
        return self.epoch_ns + round(self.alignment.offset * 1e9)

    def at(self, stamps: Array) -> Array:
        """Return externally measured positions (T, 3) at stamps (T,) of the run, m."""
        return interpolate_rows(stamps, self.times, self.poses[:, :3])


@dataclass(frozen=True)
class RecordedRun:
    """A run, its recording, and the alignment of both.

    Attributes:
        run: What the arm itself measured.
        recording: An external recording of the run, in its own frame and on its own clock.
        alignment: Clock offset, frame and marker of the recording.
    """

    run: Evaluation
    recording: Trajectory
    alignment: Alignment

    @property
    def _times(self) -> Array:
        """Instants (U,) of the recording by the run's clock, s."""
        return self.recording.times - self.alignment.offset

    @property
    def _is_inside(self) -> NDArray[np.bool_]:
        """Mask (U,) of the recording's samples within the run."""
        stamps = self.run.log.stamp
        times = self._times
        return (times >= stamps[0]) & (times <= stamps[-1])

    def recorded_positions(self) -> Array:
        """Return the recorded positions (K, 3) within the run, in the recording's frame, m."""
        return self.recording.poses[self._is_inside, :3]

    def measurement(self) -> ExternalMeasurement:
        """Bring the recording onto the run's clock and into its frame."""
        is_inside = self._is_inside
        times = self._times[is_inside]
        self_reported = pose.interpolate(self.run.log.stamp, self.run.attained, times)
        recorded = pose.compose(self.alignment.transform, self.recording.poses[is_inside])

        # The orientation of the tool is that of the recorded body, turned by the body's mounting on
        # the tool. A recording of positions alone has one orientation throughout: then the
        # self-reported one is used.
        mounting = None
        rotations = self_reported[:, 3:]
        if np.ptp(self.recording.poses[:, 3:], axis=0).max() > 0.0:
            body_to_tool = pose.multiply(pose.conjugate(recorded[:, 3:]), rotations)
            mounting = pose.mean_rotation(body_to_tool)
            rotations = pose.multiply(recorded[:, 3:], mounting)

        # The position of the TCP is that of the recorded point, less the marker's offset in the
        # tool.
        marker = np.broadcast_to(self.alignment.marker, (len(recorded), 3))
        positions = recorded[:, :3] - pose.rotate(rotations, marker)

        return ExternalMeasurement(
            alignment=self.alignment,
            times=times,
            self_reported=self_reported,
            poses=np.concatenate([positions, rotations], axis=1),
            mounting=mounting,
            epoch_ns=self.recording.epoch_ns,
        )


def measure_externally(
    run: Evaluation, recording: Trajectory, *, find_marker: bool = False
) -> ExternalMeasurement:
    """Align an external recording, in its own frame and on its own clock, with a run.

    Args:
        run: What the arm itself measured.
        recording: An external recording of the same motion.
        find_marker: Estimate where on the tool the recorded point is; by default it is the TCP.

    Raises:
        UnusableSamples: The two cannot be aligned; the message says why.
    """
    alignment = _align(run, recording, find_marker=find_marker)
    return RecordedRun(run, recording, alignment).measurement()


def _align(run: Evaluation, recording: Trajectory, *, find_marker: bool) -> Alignment:
    """Fit clock, frame and marker of a recording to what the arm itself measured."""
    return align(
        run.log.stamp,
        run.attained,
        recording.times,
        recorded=recording.poses[:, :3],
        find_marker=find_marker,
    )


def measure_repeats_externally(
    runs: Sequence[Evaluation], recordings: Sequence[Trajectory], *, find_marker: bool = False
) -> list[ExternalMeasurement]:
    """Align external recordings in one frame with runs of one plan.

    Args:
        runs: What the arm itself measured.
        recordings: One recording of all runs, or one per run.
        find_marker: Estimate where on the tool the recorded point is; by default it is the TCP.

    Raises:
        InvalidParameter: There is neither one recording nor one for each run.
        UnusableSamples: A recording does not fit its run, has gaps, or does not contain all runs;
            the message says which.
    """
    if len(recordings) not in (1, len(runs)):
        raise InvalidParameter(
            "number of recordings (--attained)",
            len(recordings),
            f"1, of all runs, or {len(runs)}, one per run",
        )
    if len(recordings) < len(runs):
        recordings = _cut_runs(runs, recordings[0])

    # Each run by itself: its clock.
    recorded_runs = []
    for run, recording in zip(runs, recordings, strict=True):
        alignment = _align_complete(run, recording, find_marker=find_marker)
        recorded_runs.append(RecordedRun(run, recording, alignment))

    # All runs together: their frame and marker.
    attained = [recorded_run.measurement().self_reported for recorded_run in recorded_runs]
    recorded = [recorded_run.recorded_positions() for recorded_run in recorded_runs]
    fit = rigid_fit(np.concatenate(recorded), np.concatenate(attained), find_marker=find_marker)

    measurements = []
    for recorded_run in recorded_runs:
        alignment = replace(recorded_run.alignment, transform=fit.transform, marker=fit.marker)
        measurements.append(replace(recorded_run, alignment=alignment).measurement())
    return measurements


def _cut_runs(runs: Sequence[Evaluation], recording: Trajectory) -> list[Trajectory]:
    """Return the part of each run in a recording of all runs."""
    # All runs repeat one motion: the recording is searched for that of the first run, as often as
    # there are runs. The stamps of every run count from its own beginning, so that the offset of a
    # repetition is that of its run's clock.
    first = runs[0]
    offsets = find_cycles(
        first.log.stamp,
        first.attained[:, :3],
        recording.times,
        recorded=recording.poses[:, :3],
        count=len(runs),
    )

    parts = []
    for run, offset in zip(runs, offsets, strict=True):
        times = recording.times - offset
        begin = run.log.stamp[0] - MARGIN_S
        end = run.log.stamp[-1] + MARGIN_S
        belongs = (times >= begin) & (times <= end)
        part = replace(recording, times=recording.times[belongs], poses=recording.poses[belongs])
        parts.append(part)
    return parts


def _align_complete(run: Evaluation, recording: Trajectory, *, find_marker: bool) -> Alignment:
    """Align a recording that must cover the whole run, without a gap.

    Raises:
        UnusableSamples: The recording does not fit, or has a gap; the message names the run.
    """
    name = f"recording of run {run.directory.path.name}"
    try:
        alignment = _align(run, recording, find_marker=find_marker)
    except UnusableSamples as error:
        raise UnusableSamples(name, error.reason) from None

    begin = run.log.stamp[0]
    end = run.log.stamp[-1]
    times = recording.times - alignment.offset
    inner_times = times[(times > begin) & (times < end)]
    edges = np.concatenate([[begin], inner_times, [end]])
    longest = int(np.argmax(np.diff(edges)))
    gap_begin = edges[longest]
    gap_end = edges[longest + 1]
    if gap_end - gap_begin > MAX_GAP_S:
        raise UnusableSamples(
            name,
            f"it has no sample from {gap_begin:.3f} to {gap_end:.3f} s of the run; at most "
            f"{MAX_GAP_S:g} s may be missing.",
        )
    return alignment


def external_result(run: Evaluation, measured: ExternalMeasurement) -> dict[str, Any]:
    """Return what `simbridge evaluate --json` prints and evaluation.json holds, in SI units.

    Each error is `{self_reported, witness}` over the same samples; `witness` is the external
    measurement. `delay_compensated` is without the delays of the run's own summary (see
    `Tracking`). `witness_minus_self` is the external measurement against the self-reported one,
    after alignment: what the arm's own sensors do not show.
    """
    tracking = run.tracking
    alignment = measured.alignment
    views = {"self_reported": measured.self_reported, "witness": measured.poses}

    # The errors, then the errors without delays.
    reference = run.reference_at(measured.times)
    errors = {name: PoseError.between(reference, poses) for name, poses in views.items()}
    delays = {part: part_delays(tracking, part).total for part in POSE_PARTS}
    compensated = {
        name: compensate_delays(
            measured.times, run.reference_at, poses, lags=delays, before=errors[name]
        )
        for name, poses in views.items()
    }

    def known_statistics(statistics: PoseStatistics, name: str) -> dict[str, Any]:
        """Return statistics without rotations if none were recorded."""
        if name == "witness" and measured.mounting is None:
            return {**statistics, "rotation_rad": None}
        return {**statistics}

    tracking_error = {}
    contour_error = {}
    for name, poses in views.items():
        tracking_error[name] = known_statistics(errors[name].statistics(), name)
        contour = run.contour_of(measured.times, poses[:, :3])
        contour_error[name] = path_summary(contour)["contour_error"]
    delay_compensated = None
    if tracking["delay_compensated"] is not None:
        delay_compensated = {
            name: known_statistics(summarize_compensated(compensated[name]), name) for name in views
        }
    witness_minus_self = PoseError.between(measured.poses, measured.self_reported)

    return {
        "samples": len(measured.times),
        "time_offset_s": measured.time_offset_ns / 1e9,
        "time_offset_ns": measured.time_offset_ns,
        "transform": alignment.transform.tolist(),
        "marker_m": alignment.marker.tolist(),
        "mean_rotation": None if measured.mounting is None else measured.mounting.tolist(),
        "tracking_error": tracking_error,
        "delay_of": tracking["delay_of"],
        "delay_s": tracking["delay_s"],
        "rotation_delay_s": tracking["rotation_delay_s"],
        "delay_compensated": delay_compensated,
        "contour_error": contour_error,
        "witness_minus_self": known_statistics(witness_minus_self.statistics(), "witness"),
    }


def external_repeats_result(
    runs: Mapping[str, Evaluation], recordings: Sequence[Trajectory], *, find_marker: bool = False
) -> dict[str, Any]:
    """Return what `simbridge evaluate` prints of repeated runs.

    It is the `external_result` of each, and external ISO 9283-style figures.

    Args:
        runs: The runs of one plan that completed, by name.
        recordings: One recording of all runs, or one per run.
        find_marker: Estimate where on the tool the recorded point is; by default it is the TCP.
    """
    measurements = measure_repeats_externally(
        list(runs.values()), recordings, find_marker=find_marker
    )

    positions = []
    for run, measured in zip(runs.values(), measurements, strict=True):
        positions.append(measured.at(run.log.stamp))
    figures = iso_figures(runs.values(), positions)

    run_results = []
    common = {}
    for (name, run), measured in zip(runs.items(), measurements, strict=True):
        result = external_result(run, measured)
        common = {key: result.pop(key) for key in COMMON_KEYS}
        run_results.append({"run": name, **result})
    return {**common, "runs": run_results, "iso_9283_style": figures}
