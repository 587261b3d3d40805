"""The laser tracker beside the real UR5 of `tests.servo.cb3_recording`: an outside witness.

A rigid motion from the arm's base to the tracker, the place of the reflector on the flange, and the
tracker's clock are fitted with the measured joints: eleven numbers, of which none bends a path. The
kinematics are nominal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares
from scipy.spatial.transform import Rotation

from simbridge.robot import load_robot
from simbridge.robot.kinematics import tool_path
from tests.servo.cb3_recording import read_recording, read_table

# Time between two samples of the tracker, s.
INTERVALS = {"125hzLAN": 0.0080003, "10hzLAN": 0.100003}
# Beginnings of the tracker's samples that are tried, s before the first one arrived.
TRIED_BEGINS = np.arange(0.0, 0.6, 0.05)


@dataclass(frozen=True, eq=False)
class TrackerFit:
    """The tracker's view of an arm.

    Attributes:
        placement: Base to tracker: translation, m, and rotation vector, rad (6,).
        reflector: Place of the reflector in the flange (3,), m.
        stamps: When the tracker's points (P,) were measured, by the arm's clock, s.
        points: The measured points (P, 3), m.
    """

    placement: np.ndarray
    reflector: np.ndarray
    stamps: np.ndarray
    points: np.ndarray

    def distances(self, stamps: np.ndarray, joints: np.ndarray) -> np.ndarray:
        """Return distances of joints (T, 6) from the points, m; NaN where joints are."""
        known = np.isfinite(joints).all(axis=1)
        flange = tool_path(load_robot("ur5"), np.where(known[:, np.newaxis], joints, 0.0))
        reflectors = flange[:, :3] + Rotation.from_quat(flange[:, 3:]).apply(self.reflector)
        reflectors[~known] = np.nan

        columns = [np.interp(self.stamps, stamps, column) for column in reflectors.T]
        rotation = Rotation.from_rotvec(self.placement[3:])
        seen = rotation.apply(np.stack(columns, axis=1)) + self.placement[:3]
        distances: np.ndarray = np.linalg.norm(seen - self.points, axis=1)
        return distances


def row_stamps(bag: str) -> np.ndarray:
    """Return the stamps of the joints' rows, s, without the jitter with which they arrived."""
    stamps = read_recording(bag).stamps
    rows = np.arange(len(stamps))
    return np.polyval(np.polyfit(rows, stamps, 1), rows)


def fit_tracker(bag: str) -> TrackerFit:
    """Fit the tracker's eleven numbers to the measured joints of a bag."""
    table = read_table(f"{bag}_tracker.csv.gz")
    points = table[:, 1:4]
    samples = np.arange(len(points)) * INTERVALS[bag]
    stamps = row_stamps(bag)
    flange = tool_path(load_robot("ur5"), read_recording(bag).actual_q)
    rotations = Rotation.from_quat(flange[:, 3:])

    def seen(parameters: np.ndarray) -> np.ndarray:
        """Return the reflector's places in the tracker's frame (P, 3), m."""
        reflectors = flange[:, :3] + rotations.apply(parameters[6:9])
        times = parameters[9] + samples * (1.0 + 1e-4 * parameters[10])
        columns = [np.interp(times, stamps, column) for column in reflectors.T]
        return Rotation.from_rotvec(parameters[3:6]).apply(np.stack(columns, 1)) + parameters[:3]

    # Begin with the rigid motion that is best without a reflector, for several clocks.
    starts = []
    for begin in table[0, 0] - TRIED_BEGINS:
        columns = [np.interp(begin + samples, stamps, column) for column in flange[:, :3].T]
        flanges = np.stack(columns, axis=1)
        rotation, misfit = Rotation.align_vectors(
            points - points.mean(axis=0), flanges - flanges.mean(axis=0)
        )
        translation = points.mean(axis=0) - rotation.apply(flanges.mean(axis=0))
        starts.append((misfit, [*translation, *rotation.as_rotvec(), 0.0, 0.0, 0.0, begin, 0.0]))

    start = min(starts)[1]
    fit = least_squares(lambda parameters: (seen(parameters) - points).ravel(), start).x
    return TrackerFit(
        placement=fit[:6],
        reflector=fit[6:9],
        stamps=fit[9] + samples * (1.0 + 1e-4 * fit[10]),
        points=points,
    )
