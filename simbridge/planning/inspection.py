"""What a trajectory asks for: rate, gaps, speeds and extents; whether an arm reaches it, and where it would.

A plan is refused for targets out of reach; an inspection counts them, and a recording that is out of reach is placed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from simbridge.errors import PlanRefused, TargetOutOfReach
from simbridge.ik.reaching import reaching_solver
from simbridge.ik.solver import Solver
from simbridge.robot import pose
from simbridge.robot.collision import CollisionModel
from simbridge.robot.kinematics import tool_path
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.text import fixed, pose_residual
from simbridge.trajectory.samples import GAP, LARGEST, Fault, jumps
from simbridge.trajectory.samples import gaps as gaps_of
from simbridge.trajectory.trajectory import Trajectory

# Targets that are solved at most: one out of reach takes as long as a hundred others.
MAX_SOLVED = 400
# Poses that are all farther away than this many times the arm's reach are most likely in another unit.
_FARTHEST = 20.0
# Samples that are solved for each placement, and for the one that is suggested.
_FEW, _MANY = 12, 200
_TURNS = tuple(math.radians(degrees) for degrees in (0, 45, -45, 90, -90, 135, -135, 180))
# Where the middle of the motion is tried: distances from the first joint and heights, as parts of the reach.
_DISTANCES, _HEIGHTS = (0.55, 0.45, 0.65), (0.2, 0.35, 0.05, 0.5)
# Placements that are shortened for each rotation.
_TRIED = 3
# A shift is shortened until the motion is out of reach, and stays by this much of the way inside.
_MARGIN, _HALVINGS = 0.1, 5


@dataclass(frozen=True)
class Spread:
    """Of a quantity."""

    mean: float
    p95: float
    max: float


@dataclass(frozen=True)
class Reach:
    """The part of a trajectory that an arm can attain."""

    robot: str  # the arm's name
    share: float  # of the samples that were solved, 0 to 1
    solved: int  # number of samples that were solved: all, or at most MAX_SOLVED, evenly spread over the trajectory
    first_missed: int | None  # the first sample of those that cannot be attained; None if all can
    first_missed_s: float | None  # its instant since the start


@dataclass(frozen=True)
class Facts:
    """A trajectory in numbers (SI units).

    Attributes:
        speed_m_s, turn_rate_rad_s: Between neighbouring samples, weighted by time; None for a single sample.
        extent_min_m, extent_max_m: The smallest box around the positions, from base_link.
        placement: Where the arm attains none of a file: the transform that brings it in reach (7,), m and quaternion.
    """

    source: str  # where it comes from
    samples: int  # how many
    duration_s: float  # from the first to the last
    rate_hz: float | None  # one over the median step; None for a single sample
    step_std_s: float | None  # standard deviation of the steps that are not gaps; None without any
    gaps: int  # how many steps are longer than 1.5 times the median
    longest_gap_s: float | None  # the longest step; None for a single sample
    longest_gap_at_s: float | None  # when it begins, since the start
    large_gaps: tuple[Fault, ...]  # those that `run` refuses unless --gaps says what to do
    jumps: tuple[Fault, ...]  # steps of position or rotation that are far larger than the others
    length_m: float  # of the way along the samples
    speed_m_s: Spread | None
    turn_rate_rad_s: Spread | None
    extent_min_m: tuple[float, float, float]
    extent_max_m: tuple[float, float, float]
    reach: Reach | None  # what the arm can attain; None without a solver
    read_as: str = ""  # how its file was read, in one line; "" if it is from none
    placement: tuple[float, ...] | None = None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def inspect(
    trajectory: Trajectory, solver: Solver | None = None
) -> tuple[Facts, NDArray[np.bool_] | None]:
    """Measure a trajectory in base_link, and what the solver's arm can attain of it; None to leave that out.

    Returns:
        The facts; and which samples can be attained (T,), those between two that were solved by the nearer one.
    """
    steps = np.diff(trajectory.elapsed)
    ways, turns = pose.error(trajectory.poses[1:], trajectory.poses[:-1])
    way, turn = np.linalg.norm(ways, axis=1), np.linalg.norm(turns, axis=1)
    usual = float(np.median(steps)) if len(steps) else None
    even = steps[steps <= GAP * (usual or 0.0)]
    longest = int(np.argmax(steps)) if len(steps) else None
    low, high = trajectory.poses[:, :3].min(axis=0), trajectory.poses[:, :3].max(axis=0)
    reach, attained = (None, None) if solver is None else _reach(trajectory, solver)
    facts = Facts(
        source=trajectory.source,
        samples=len(trajectory.times),
        duration_s=trajectory.duration,
        rate_hz=None if usual is None else 1.0 / usual,
        step_std_s=float(even.std()) if len(even) else None,
        gaps=len(steps) - len(even),
        longest_gap_s=None if longest is None else float(steps[longest]),
        longest_gap_at_s=None if longest is None else float(trajectory.elapsed[longest]),
        large_gaps=tuple(gaps_of(trajectory, LARGEST)),
        jumps=tuple(jumps(trajectory)),
        length_m=float(way.sum()),
        speed_m_s=_spread(way, steps),
        turn_rate_rad_s=_spread(turn, steps),
        extent_min_m=(float(low[0]), float(low[1]), float(low[2])),
        extent_max_m=(float(high[0]), float(high[1]), float(high[2])),
        reach=reach,
        read_as=trajectory.read_as,
    )
    return facts, attained


def _spread(travelled: Array, steps: Array) -> Spread | None:
    """Of the speed, weighted by how long it lasts."""
    if not len(steps):
        return None
    speeds = travelled / steps
    order = np.argsort(speeds)
    past = np.cumsum(steps[order])
    p95 = speeds[order[np.searchsorted(past, 0.95 * past[-1])]]
    return Spread(float(travelled.sum() / steps.sum()), float(p95), float(speeds.max()))


def _reach(trajectory: Trajectory, solver: Solver) -> tuple[Reach, NDArray[np.bool_]]:
    count = len(trajectory.times)
    chosen = np.unique(np.linspace(0, count - 1, min(count, MAX_SOLVED)).round().astype(int))
    _, _, converged = reaching_solver(solver).solve_each(
        trajectory.poses[chosen], solver.robot.home
    )
    missed = chosen[~converged]
    first = int(missed[0]) if len(missed) else None
    nearest = np.searchsorted(0.5 * (chosen[1:] + chosen[:-1]), np.arange(count))
    reach = Reach(
        robot=solver.robot.name,
        share=float(converged.mean()),
        solved=len(chosen),
        first_missed=first,
        first_missed_s=None if first is None else float(trajectory.elapsed[first]),
    )
    return reach, np.asarray(converged[nearest], dtype=bool)


def check_reach(
    solver: Solver, trajectory: Trajectory, times: Array, targets: Array, start: Array
) -> None:
    """Refuse targets (T, 7), at instants of their trajectory (T,), s, that no posture attains.

    Each is solved to a tolerance, starting at the solution before it, the first at joint positions `start` (n,), rad.

    Raises:
        TargetOutOfReach: Names the first, and says so when all are (most likely in another unit).
    """
    poses = np.concatenate([trajectory.poses, targets]) if len(targets) > 1 else targets
    instants = np.concatenate([trajectory.elapsed, times]) if len(targets) > 1 else times
    order = np.argsort(instants, kind="stable")
    # In chunks: a solve that fails takes as long as a hundred that succeed, and only the first failure is reported.
    for begin in range(0, len(order), 64):
        chunk = order[begin : begin + 64]
        q, residuals, converged = solver.solve_each(poses[chunk], start)
        if not np.all(converged):
            first = int(np.argmin(converged))
            _refuse(
                solver,
                trajectory,
                float(instants[chunk[first]]),
                poses[chunk[first]],
                residuals[first],
            )
        start = q[-1]


def _refuse(
    solver: Solver, trajectory: Trajectory, time: float, target: Array, residual: Array
) -> NoReturn:
    """Refuse for the first target that is out of reach."""
    sample = int(trajectory.sample_at(time))
    distance, angle = float(residual[0]), float(residual[1])
    first = f"the first is sample {sample} at {time:.3f} s, which stays {pose_residual(distance, angle)} away"
    few = np.unique(np.linspace(0, len(trajectory.poses) - 1, 25).astype(int))
    _, residuals, attained = solver.solve_each(trajectory.poses[few], solver.robot.home)
    # The first is only just out of reach; the worst shows how far the motion leaves the workspace.
    worst = int(np.argmax(np.where(attained, -1.0, residuals[:, 0])))
    if residuals[worst, 0] > 2.0 * distance and not attained[worst]:
        first += f"; the farthest is sample {few[worst]}, {pose_residual(*residuals[worst])} away"
    every = not attained.any()
    if every:
        slip = "; are these millimetres? Positions are in metres, unless --columns x[mm] says so"
        slip = slip if in_another_unit(trajectory, solver.robot) else ""
        message = (
            f"every target is out of reach{slip}; {first}. The arm reaches at most "
            f"{solver.robot.reach:.2f} m from its first joint; check units, frame (--frame base for pendant poses) and "
            "TCP."
        )
    else:
        place = ", ".join(fixed(v, 3) for v in target[:3])
        message = (
            f"targets are out of reach; {first} (the first target is {place} m). Move or shrink the trajectory, or "
            "choose a longer arm (--robot)."
        )
    if trajectory.read_as:
        message += f" The file was read as {trajectory.read_as}."
    message = f"The plan was refused: {message}"
    raise TargetOutOfReach(
        message, sample=sample, time=time, distance=distance, angle=angle, every=every
    )


def in_another_unit(trajectory: Trajectory, robot: Robot) -> bool:
    """Whether positions are most likely not in metres: all of them are far out of the arm's reach."""
    return float(np.linalg.norm(trajectory.poses[:, :3], axis=1).min()) > _FARTHEST * robot.reach


def flag_of(placement: Array | tuple[float, ...]) -> str:
    """The values of --transform: x y z in m and the quaternion, with seven decimals."""
    return " ".join(f"{round(float(value), 7) + 0.0:.7g}" for value in placement)


class AttainableSpace(NamedTuple):
    """What an arm can attain without a collision."""

    solver: Solver
    collisions: CollisionModel

    def holds(self, poses: Array, rotation: Array, shift: Array) -> bool:
        """Whether it holds all of the poses, once they are placed."""
        robot, placed = self.solver.robot, pose.compose(np.concatenate([shift, rotation]), poses)
        start, found = robot.home, []
        # A few at a time: a target out of reach takes as long as a hundred in reach, and one is enough.
        for k in range(0, len(placed), 4):
            q, _, converged = self.solver.solve_each(placed[k : k + 4], start)
            if (
                not np.all(converged)
                or (q < robot.position_min).any()
                or (q > robot.position_max).any()
            ):
                return False
            start = q[-1]
            found.append(q)
        try:
            self.collisions.check(np.concatenate(found), robot.period)
        except PlanRefused:
            return False
        return True

    def places(self, middle: Array) -> list[Array]:
        """Places for the middle of a motion, in its own direction, at which an arm attains most rotations."""
        robot = self.solver.robot
        home = tool_path(robot, robot.home[None])[0, :3]
        x, y = middle[:2] if np.hypot(*middle[:2]) > 1e-9 else home[:2]
        outwards = np.array([x, y]) / max(math.hypot(x, y), 1e-9)
        rings = itertools.product(_DISTANCES, _HEIGHTS)
        return [
            *(
                robot.reach * np.array([*(distance * outwards), height])
                for distance, height in rings
            ),
            home,
        ]


def placements(trajectory: Trajectory, space: AttainableSpace) -> Iterator[Array]:
    """Placements (7,) that bring all of a motion in reach, the smallest rotation first."""
    few, many = (_some_of(trajectory.poses, count) for count in (_FEW, _MANY))
    middle = 0.5 * (few[:, :3].min(axis=0) + few[:, :3].max(axis=0))
    for turn in _TURNS:
        rotation = np.array([0.0, 0.0, math.sin(turn / 2.0), math.cos(turn / 2.0)])
        turned = pose.rotate(rotation, middle)
        whole = [place - turned for place in space.places(turned)]
        whole = [shift for shift in whole if space.holds(few, rotation, shift)][:_TRIED]
        short = sorted(
            (_shortened(space, few, rotation, shift) for shift in whole), key=np.linalg.norm
        )
        # Close to the edge of the reach joints are fast: where the nearest is refused for that, a whole shift may do.
        for shift in (*short[:2], *whole[:2]):
            rounded = np.round(shift, 3)
            if space.holds(many, rotation, rounded):
                yield np.concatenate([rounded, rotation])


def _some_of(poses: Array, count: int) -> Array:
    return poses[
        np.unique(np.linspace(0, len(poses) - 1, min(count, len(poses))).round().astype(int))
    ]


def _shortened(space: AttainableSpace, poses: Array, rotation: Array, shift: Array) -> Array:
    """The shortest part of a shift that still brings the poses in reach, and a margin."""
    short, enough = 0.0, 1.0
    for _ in range(_HALVINGS):
        tried = 0.5 * (short + enough)
        if space.holds(poses, rotation, tried * shift):
            enough = tried
        else:
            short = tried
    return min(enough + _MARGIN, 1.0) * shift
