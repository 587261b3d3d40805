"""Makes shapes that are tracked with one dense target per control period."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from simbridge.experiments.layout import PAPER_SIDE, PAPER_SPEED
from simbridge.experiments.suite.stage import Stage, attains_all, follow
from simbridge.experiments.suite.suite_motion import SuiteMotion
from simbridge.robot.pose import Array
from simbridge.text import plain
from simbridge.trajectory import paths
from simbridge.trajectory.iso_cube import IsoCube
from simbridge.trajectory.motion_laws import MinimumJerk, MotionLaw, Trapezoid
from simbridge.trajectory.paths import GeometricPath
from simbridge.trajectory.shapes import corners, square
from simbridge.trajectory.trace import trace

# Sizes that are tried, as fractions of the full one.
SIZES = (1.0, 0.7, 0.5, 0.35)

# Largest speed of the figure eight, m/s, on an arm of scale 1.
SHAPE_SPEED = 0.3
# Largest speed of the helix and the Lissajous curve, m/s, on an arm of scale 1.
CURVE_SPEED = 0.5
# Largest speed of the cube's cycle, m/s, on an arm of scale 1.
CUBE_SPEED = 0.4
# Acceleration of the figure eight and the cube's cycle, m/s^2, on an arm of scale 1.
ACCELERATION = 1.5
# Time for which each corner of the square is the target, if only the corners are, s.
CORNER_DWELL = 1.0
# Time that the tool stays at each pose of the cube, s.
CUBE_DWELL = 0.2

# Number of laps of the closed loop, each of which is from rest to rest.
LAPS = 10
# Duration of a lap, s.
LAP_TIME = 0.8
# Radius of the closed loop, m, on an arm of scale 1.
LOOP_RADIUS = 0.04
# Ratio of the largest speed of a minimum-jerk motion to its mean speed, 15/8.
MINIMUM_JERK_PEAK = 1.875


@dataclass(frozen=True)
class ShapeTargets:
    """Targets of a shape on an arm.

    Attributes:
        description: Sentence that describes the shape.
        targets: Poses (T, 7), one per control period.
        loops: Number of laps.
        is_continuous: Whether the targets are dense, so that the arm can follow without a jump.
    """

    description: str
    targets: Array
    loops: int = 1
    is_continuous: bool = True


def make_shapes(stage: Stage, notes: list[str]) -> list[SuiteMotion]:
    """Return the shapes that an arm can follow, each in the largest size that it can follow.

    Args:
        stage: The arm.
        notes: List of notes, to which one is appended for each shape that is left out.
    """
    motions = []
    for name, make_shape in SHAPES.items():
        if name == "iso_cube" and not stage.lift:
            notes.append(
                f"iso_cube is left out: {stage.robot.name} cannot raise its tool, and the test "
                "cube is not flat."
            )
            continue
        motion = _fit_shape(stage, name, make_shape)
        if motion is None:
            notes.append(
                f"{name} is left out: {stage.robot.name} cannot follow it within its joint limits, "
                f"not even at {SIZES[-1]:g} of its size."
            )
        else:
            motions.append(motion)
    return motions


def _fit_shape(
    stage: Stage, name: str, make_shape: Callable[[Stage], ShapeTargets]
) -> SuiteMotion | None:
    """Return the motion along a shape in the largest size that the arm can follow, or None.

    Args:
        stage: The arm.
        name: Name of the motion.
        make_shape: Function that makes the shape for a stage of some scale.
    """
    for size in SIZES:
        shape = make_shape(stage.shrink(size))
        start = stage.solve(shape.targets[0])
        if start is None:
            continue
        if shape.is_continuous:
            can_follow = follow(stage, shape.targets, start) is not None
        else:
            # Such targets are a few poses, each held for many periods. Each pose is solved once, in
            # any order: `start` is only the first guess.
            can_follow = attains_all(stage, np.unique(shape.targets, axis=0), start)
        if can_follow:
            return SuiteMotion(
                name=name,
                group="tracking",
                description=shape.description,
                targets=shape.targets,
                start=start,
                in_reach=np.ones(len(shape.targets), dtype=bool),
                loops=shape.loops,
            )
    return None


def _paper_square(stage: Stage) -> ShapeTargets:
    """Return one lap of the paper's square, at constant speed (experiment D)."""
    side = PAPER_SIDE * stage.scale
    speed = PAPER_SPEED * stage.scale
    rate = 1.0 / stage.robot.period
    path = square(side, stage.centre, speed, rate, orientation=stage.orientation)
    targets = path.target(stage.instants(path.duration))
    description = (
        f"The paper's square of {plain(1e3 * side)} mm, at a constant "
        f"{plain(1e3 * speed)} mm/s around its corners."
    )
    return ShapeTargets(description, targets)


def _corners(stage: Stage) -> ShapeTargets:
    """Return only the corners of the square as targets (experiment C)."""
    side = PAPER_SIDE * stage.scale
    path = corners(side, stage.centre, CORNER_DWELL, orientation=stage.orientation)
    targets = path.target(stage.instants(path.duration), "zero-order")
    description = (
        f"Only the corners of the square are given, one every {CORNER_DWELL:g} s: each target is "
        f"{plain(1e3 * side)} mm from the one before."
    )
    return ShapeTargets(description, targets, is_continuous=False)


def _figure_eight(stage: Stage) -> ShapeTargets:
    """Return a figure eight from rest to rest."""
    width = 0.4 * stage.scale
    height = 0.2 * stage.scale
    path = paths.figure_eight(width, height, stage.centre)
    law = Trapezoid(SHAPE_SPEED * stage.scale, ACCELERATION * stage.scale)
    description = (
        f"A figure eight of {plain(1e3 * width)} by {plain(1e3 * height)} mm, from rest to rest."
    )
    return ShapeTargets(description, _trace(stage, path, law))


def _helix(stage: Stage) -> ShapeTargets:
    """Return two turns of a helix, which is flat if the arm cannot raise its tool."""
    radius = 0.08 * stage.scale
    rise = 0.05 * stage.scale * stage.lift
    path = paths.helix(radius, stage.centre, pitch=rise, turns=2.0)
    rising = f" that rises by {plain(1e3 * rise)} mm a turn" if rise else ""
    description = (
        f"Two turns of {plain(2e3 * radius)} mm diameter{rising}, with minimum jerk from rest to "
        "rest."
    )
    return ShapeTargets(description, _trace(stage, path, MinimumJerk(CURVE_SPEED * stage.scale)))


def _lissajous(stage: Stage) -> ShapeTargets:
    """Return a Lissajous curve in a box, which is flat if the arm cannot raise its tool."""
    amplitudes = stage.scale * np.array([0.12, 0.09, 0.05 * stage.lift])
    phases = (0.5 * np.pi, 0.0, 0.0)
    path = paths.lissajous(amplitudes, (3, 2, 1), phases, stage.centre)
    box = " by ".join(plain(2e3 * amplitude) for amplitude in amplitudes if amplitude)
    description = f"A 3:2:1 Lissajous curve in {box} mm, with minimum jerk from rest to rest."
    return ShapeTargets(description, _trace(stage, path, MinimumJerk(CURVE_SPEED * stage.scale)))


def _iso_cube(stage: Stage) -> ShapeTargets:
    """Return the cycle of the five test poses of ISO 9283."""
    x, y, z = stage.centre.tolist()
    edge = PAPER_SIDE * stage.scale
    cycle = IsoCube((x, y, z), edge).cycle(
        Trapezoid(CUBE_SPEED * stage.scale, ACCELERATION * stage.scale),
        dwell=CUBE_DWELL,
        rate=1.0 / stage.robot.period,
        orientation=stage.orientation,
    )
    description = (
        f"The five poses of an ISO 9283 test cube of {plain(1e3 * edge)} mm, with a stop at each."
    )
    return ShapeTargets(description, cycle.target(stage.instants(cycle.duration)))


def _closed_loop(stage: Stage) -> ShapeTargets:
    """Return a small circle ten times, each lap from rest to rest.

    All laps take the same whole number of control periods, so that joint positions can be compared
    from lap to lap.
    """
    radius = LOOP_RADIUS * stage.scale
    circle = paths.circle(radius, stage.centre)
    periods = round(LAP_TIME / stage.robot.period)
    mean_speed = circle.length / (periods * stage.robot.period)
    law = MinimumJerk(MINIMUM_JERK_PEAK * mean_speed)

    # Each lap begins with the last target of the one before.
    lap = _trace(stage, circle, law)[: periods + 1]
    laps = np.concatenate([lap[:1], *[lap[1:]] * LAPS])
    description = (
        f"A circle of {plain(2e3 * radius)} mm diameter, {LAPS} times; a joint that does not "
        "come back to where it was has drifted."
    )
    return ShapeTargets(description, laps, loops=LAPS)


def _trace(stage: Stage, path: GeometricPath, law: MotionLaw) -> Array:
    """Return targets (T, 7) along a path, with the constant orientation of the stage."""
    rate = 1.0 / stage.robot.period
    path_in_time = trace(path, law, rate=rate, orientation=stage.orientation)
    return path_in_time.target(stage.instants(path_in_time.duration))


# Functions that make the shapes, by the name of the motion.
SHAPES: Mapping[str, Callable[[Stage], ShapeTargets]] = {
    "square": _paper_square,
    "corners": _corners,
    "figure_eight": _figure_eight,
    "helix": _helix,
    "lissajous": _lissajous,
    "iso_cube": _iso_cube,
    "closed_loop": _closed_loop,
}
