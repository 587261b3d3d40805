"""Stops and corners of a commanded path, at which the ISO 9283-style figures are measured.

Pose accuracy, repeatability and settling are measured where the target rests. Where it still moves,
the distance to the arm is mostly delay and no error of its pose. A corner is a sharp turn between
two straight legs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simbridge.robot import pose
from simbridge.robot.pose import Array
from simbridge.trajectory.trajectory import Hold, Trajectory

# Shortest rest of the target, s.
MIN_REST = 0.2
# A rest may be shorter by this, s: the resolution of stamps since 1970 is a quarter of it.
ROUNDING = 1e-6
# Speed below which a linearly interpolated target is at rest, if it also turns slowly, m/s.
REST_SPEED = 1e-4
# Angular speed below which it turns slowly, rad/s.
REST_TURN_SPEED = 1e-3
# A visit of a stop begins this long before the target arrives, s, for an arm that is ahead of it.
APPROACH = 0.5

# Largest distance between visits of the same stop, m.
SAME_POSITION = 1e-5
# Largest angle between visits of the same stop, rad.
SAME_ROTATION = 1e-4
# Smallest cosine between the approaches of visits of the same stop.
SAME_SIDE_COSINE = float(np.cos(np.deg2rad(5.0)))

# Angle that the path must exceed in a corner, rad: 30 degrees plus a margin for rounding.
SHARP = float(np.deg2rad(30.0)) + 1e-9
# Largest change of direction along a straight leg, rad.
STRAIGHT = float(np.deg2rad(1.0))
# Angle below which turns at consecutive samples may belong to a coarsely sampled arc, rad: those of
# an octagon are 45 degrees.
COARSE_ARC = float(np.deg2rad(50.0))
# Shortest time between two turns that are not noise, s.
MIN_LEG = 0.09

# The length past a cut corner may exceed what the speed allows by this part of it; that of an arc
# does so by 0.035 or more.
CUT_TOLERANCE = 0.02
# Legs with a squared sine below this do not intersect.
PARALLEL_SQUARED_SINE = 1e-10
# Between samples closer than this, m, the path has no direction.
MIN_STEP = 1e-7


@dataclass(frozen=True)
class Visit:
    """One visit of a stop, in s since the trajectory's first sample.

    Attributes:
        begin: The arm's samples belong to the visit from here on: before the arrival, after the
            previous rest.
        arrival: Begin of the target's rest.
        departure: End of the target's rest.
    """

    begin: float
    arrival: float
    departure: float


@dataclass(frozen=True)
class Stop:
    """A pose at which the target rests, always approached from the same side.

    Attributes:
        position: Position of the pose (3,), m.
        visits: All visits, in order.
    """

    position: Array
    visits: tuple[Visit, ...]


@dataclass(frozen=True)
class Corner:
    """A sharp turn between two straight legs.

    Attributes:
        position: Intersection (3,) of the two legs, m.
        arriving: Unit vector (3,) along the leg before.
        leaving: Unit vector (3,) along the leg after.
        time: Instant of the corner, s.
        begin: Instant at the middle of the leg before, s: no other corner is in between.
        end: Instant at the middle of the leg after, s.
    """

    position: Array
    arriving: Array
    leaving: Array
    time: float
    begin: float
    end: float


def find_rests(path: Trajectory, hold: Hold) -> list[tuple[float, float]]:
    """Return begin and end of the target's rests of MIN_REST or longer, s since the first sample.

    With zero-order hold the target rests between any two samples.
    """
    elapsed = path.elapsed
    is_held = hold == "zero-order"

    # The segments in which a linearly interpolated target would rest.
    distances = np.linalg.norm(np.diff(path.poses[:, :3], axis=0), axis=1)
    angles = _angles_between(path.poses[:-1, 3:], path.poses[1:, 3:])
    periods = np.diff(elapsed)
    is_still = (distances <= REST_SPEED * periods) & (angles <= REST_TURN_SPEED * periods)

    # Join successive segments to one rest; with zero-order hold, only if the target does not jump
    # at the sample between them.
    intervals: list[tuple[float, float]] = []
    for k in np.flatnonzero(is_still | is_held):
        begin = float(elapsed[k])
        end = float(elapsed[k + 1])
        follows = bool(intervals) and intervals[-1][1] == begin
        if follows and (not is_held or is_still[k - 1]):
            intervals[-1] = (intervals[-1][0], end)
        else:
            intervals.append((begin, end))

    return [(begin, end) for begin, end in intervals if end - begin >= MIN_REST - ROUNDING]


def find_jumps(path: Trajectory, hold: Hold) -> bool:
    """Check whether the target rests for MIN_REST or longer and then jumps, without a path."""
    if hold != "zero-order":
        return False
    is_jump = (path.poses[1:, :3] != path.poses[:-1, :3]).any(axis=1)
    is_rest = np.diff(path.elapsed) >= MIN_REST - ROUNDING
    return bool((is_jump & is_rest).any())


def find_stops(path: Trajectory, hold: Hold) -> list[Stop]:
    """Return the stops of the target, in order of the first arrival.

    A rest at the very start does not count as a stop: the arm arrives there by its approach, not
    along the path. Two visits belong to one stop if the pose is the same and the target arrives
    from the same side.
    """
    # The pose, the direction of arrival and the visits of each stop.
    known_stops: list[tuple[Array, Array, list[Visit]]] = []
    last_departure = 0.0
    for arrival, departure in find_rests(path, hold):
        visit = Visit(max(last_departure, arrival - APPROACH), arrival, departure)
        last_departure = departure
        if arrival == 0.0:
            continue

        middle = 0.5 * (arrival + departure)
        resting_pose = path.target(np.array([middle]), hold)[0]
        approach_pose = path.target(np.array([arrival - MIN_REST]), hold)[0]
        direction = resting_pose[:3] - approach_pose[:3]

        for known_pose, known_direction, visits in known_stops:
            same_pose = _is_same_pose(resting_pose, known_pose)
            if same_pose and _is_same_side(direction, known_direction):
                visits.append(visit)
                break
        else:
            known_stops.append((resting_pose, direction, [visit]))

    return [
        Stop(np.array(resting_pose[:3]), tuple(visits)) for resting_pose, _, visits in known_stops
    ]


def _is_same_pose(a: Array, b: Array) -> bool:
    """Check that two poses (7,) are equal within rounding."""
    if float(np.linalg.norm(a[:3] - b[:3])) > SAME_POSITION:
        return False
    return float(_angles_between(a[None, 3:], b[None, 3:])[0]) <= SAME_ROTATION


def _is_same_side(a: Array, b: Array) -> bool:
    """Check that two approaches (3,), m, have one direction, or both only rotate in place."""
    lengths = np.linalg.norm([a, b], axis=1)
    if lengths.min() <= SAME_POSITION:
        return bool(lengths.max() <= SAME_POSITION)
    return float(a @ b) >= SAME_SIDE_COSINE * float(lengths[0]) * float(lengths[1])


def _angles_between(a: Array, b: Array) -> Array:
    """Return the angles (K,) in rad between rotations (K, 4), exact also for small ones."""
    vectors = pose.rotation_vectors(pose.multiply(b, pose.conjugate(a)))
    return np.asarray(np.linalg.norm(vectors, axis=1))


def find_corners(times: ArrayLike, points: ArrayLike) -> tuple[list[Corner], int]:
    """Return the corners of a path, in order, and the number of ambiguous sharp turns.

    A corner that falls between two samples is cut by the polyline through them, which then turns
    twice: the corner is the intersection of the legs, if the path is fast enough to go past it. Any
    other sharp turn next to another one is a corner only if it can be neither part of an arc nor
    noise; else it is ambiguous.

    Args:
        times: Strictly increasing instants (T,), s.
        points: The path (T, 3) at the instants, m.
    """
    path = _Polyline(times, points)
    path_corners: list[Corner] = []
    ambiguous = 0

    for first, last in _consecutive_samples(path.turning_samples()):
        corners_here, ambiguous_here = _corners_of_turns(path, first, last)
        path_corners += corners_here
        ambiguous += ambiguous_here

    return path_corners, ambiguous


def _corners_of_turns(path: _Polyline, first: int, last: int) -> tuple[list[Corner], int]:
    """Return the corners among turns at consecutive samples, and the number of ambiguous ones.

    Args:
        path: The path. It turns at every sample from `first` to `last`, but at neither of the
            samples next to these.
        first: The first of the consecutive samples.
        last: The last of them.
    """
    path_corners: list[Corner] = []
    ambiguous = 0

    k = first
    while k <= last:
        cut_corner = None if k == last else path.cut_corner(k)
        if cut_corner is not None:
            path_corners.append(path.corner(cut_corner, k, k + 1))
            # The next sample is the second turn of this corner.
            k += 2
            continue

        if path.is_sharp(k):
            if path.is_certain(k, first, last):
                path_corners.append(path.corner(path.points[k], k, k))
            else:
                ambiguous += 1
        k += 1

    return path_corners, ambiguous


class _Polyline:
    """A path as steps from sample to sample; it turns at sample k between steps k - 1 and k.

    Attributes:
        times: Stamps of the samples (T,), s.
        points: Positions at the samples (T, 3), m.
        directions: Unit vectors along the steps (T - 1, 3); zero for a rest.
        speeds: Speeds along the steps (T - 1,), m/s.
        is_rest: Whether each step (T - 1,) is too short to have a direction.
        cosines: Cosines of the turns at the samples (T - 2,), from the second to the last but one.
    """

    def __init__(self, times: ArrayLike, points: ArrayLike) -> None:
        self.times: Array = np.asarray(times, dtype=float)
        self.points: Array = np.asarray(points, dtype=float)

        steps = np.diff(self.points, axis=0)
        lengths = np.linalg.norm(steps, axis=1)
        self.directions: Array = steps / np.where(lengths > MIN_STEP, lengths, np.inf)[:, None]
        self.speeds: Array = lengths / np.diff(self.times)
        self.is_rest: NDArray[np.bool_] = lengths <= MIN_STEP
        self.cosines: Array = np.einsum("ij,ij->i", self.directions[:-1], self.directions[1:])

    def turning_samples(self) -> NDArray[np.intp]:
        """Return the samples at which the path turns; with a rest on either side it is a stop."""
        is_moving = ~self.is_rest[:-1] & ~self.is_rest[1:]
        is_turn = is_moving & (self.cosines < np.cos(STRAIGHT))
        return np.flatnonzero(is_turn) + 1

    def is_sharp(self, k: int) -> bool:
        """Check that the turn at a sample is sharp enough for a corner."""
        return bool(self.cosines[k - 1] < np.cos(SHARP))

    def is_certain(self, k: int, first: int, last: int) -> bool:
        """Check that a sharp turn can be neither part of an arc nor noise.

        Args:
            k: Sample of the turn.
            first: First of the consecutive samples around it at which the path turns.
            last: Last of them.
        """
        if first == last:
            return True
        if self.cosines[k - 1] >= np.cos(COARSE_ARC):
            return False

        long_before = k == first or self.times[k] - self.times[k - 1] >= MIN_LEG
        long_after = k == last or self.times[k + 1] - self.times[k] >= MIN_LEG
        return bool(long_before and long_after)

    def corner(self, position: Array, first: int, last: int) -> Corner:
        """Return the corner between the step before one sample and the step after another one.

        Args:
            position: Position of the corner (3,), m.
            first: Sample at which the leg before ends.
            last: Sample at which the leg after begins.
        """
        t = self.times
        time = 0.5 * (t[first] + t[last])
        arriving = self.directions[first - 1]
        leaving = self.directions[last]

        # The corner counts from the middle of the leg before to the middle of the leg after. A leg
        # is as long as its steps keep their direction, counted from the corner.
        steps_before = _straight_steps(self.directions[first - 1 :: -1] @ arriving)
        steps_after = _straight_steps(self.directions[last:] @ leaving)
        begin = 0.5 * (time + t[first - steps_before])
        end = 0.5 * (time + t[last + steps_after])
        return Corner(
            np.array(position),
            arriving,
            leaving,
            time=float(time),
            begin=float(begin),
            end=float(end),
        )

    def cut_corner(self, k: int) -> Array | None:
        """Return the corner (3,), m, that is cut between samples k and k + 1; None without one.

        To go past the corner takes the time between the two samples, at no higher speed than before
        or after.
        """
        arriving = self.directions[k - 1]
        leaving = self.directions[k + 1]
        cosine = float(arriving @ leaving)
        if cosine >= np.cos(SHARP) or 1.0 - cosine**2 < PARALLEL_SQUARED_SINE:
            return None

        # Legs of a single step are between waypoints: nothing shows that the path continues
        # straight beyond them.
        steps_before = _straight_steps(self.directions[max(k - 2, 0) : k] @ arriving)
        steps_after = _straight_steps(self.directions[k + 1 : k + 3] @ leaving)
        if steps_before < 2 and steps_after < 2:
            return None

        # Lengths from sample k to the corner and from there to sample k + 1, m.
        chord = self.points[k + 1] - self.points[k]
        along_arriving = chord @ arriving
        along_leaving = chord @ leaving
        until = (along_arriving - cosine * along_leaving) / (1.0 - cosine**2)
        since = (along_leaving - cosine * along_arriving) / (1.0 - cosine**2)

        # By how much the legs miss each other, and the longest possible length past the corner, m.
        miss = float(np.linalg.norm(chord - until * arriving - since * leaving))
        highest_speed = max(self.speeds[k - 1], self.speeds[k + 1])
        duration = self.times[k + 1] - self.times[k]
        longest = (1.0 + CUT_TOLERANCE) * highest_speed * duration
        if min(until, since) < 0.0 or until + since > longest or miss > CUT_TOLERANCE * longest:
            return None

        # The middle between the two legs where they come closest.
        start = self.points[k]
        end = self.points[k + 1]
        return np.asarray(0.5 * (start + until * arriving + end - since * leaving))


def _consecutive_samples(samples: NDArray[np.intp]) -> list[tuple[int, int]]:
    """Return the first and the last of every run of consecutive samples."""
    if len(samples) == 0:
        return []
    runs = np.split(samples, np.flatnonzero(np.diff(samples) > 1) + 1)
    return [(int(run[0]), int(run[-1])) for run in runs]


def _straight_steps(cosines: Array) -> int:
    """Return the number of steps up to the first that leaves a direction.

    Args:
        cosines: Cosines of the angles (K,) between the steps and the direction.
    """
    turns = np.flatnonzero(cosines < np.cos(STRAIGHT))
    return int(turns[0]) if len(turns) else len(cosines)
