"""A home for an arm whose file has none, and where the ready-made motions fit on it; the same in every call.

The home holds the tool downwards in front of the base, in the middle of a cube whose corners the arm attains without
a jump, and whose size suits the arm's span; its links are clear of the floor, if they can be, there and at the corners
of the square. Of the postures that do, the one is taken whose elbow is highest, far from joint limits and from
singularities, and in which the links keep clear of each other.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pinocchio as pin

from simbridge.robot import pose
from simbridge.robot.collision import FLOOR, MARGIN, CollisionModel
from simbridge.robot.kinematics import (
    POSTURES,
    controllable_task,
    joint_origins,
    restart_postures,
    span,
    task_directions,
    task_jacobians,
    tool_path,
)
from simbridge.robot.pose import Array, Flags, read_only
from simbridge.robot.robot import Robot
from simbridge.robot.workspace import CENTRE, TOOL_DOWN, Workspace, whole_scale
from simbridge.text import counted

# Distance from the vertical through the base to the flange at home, as a share of the span, on UR's arms.
_HELD = 0.575
TASK_WORDS = {
    "axis": "the position and the direction of its z axis",
    "position": "the position alone",
}
"""What is left of a pose for a task."""
# Corners of the ready-made motions of scale 1, from their centre, m: of the square, and of the cube.
_CUBE = np.array([[x, y, z] for z in (0.0, -0.2, 0.2) for x in (-0.2, 0.2) for y in (-0.2, 0.2)])
# How the velocity jumps at a corner of the square of scale 1, m/s.
_CORNER_SPEED = 0.2 * math.sqrt(2.0)
_SIDES = (0.0, 0.5 * math.pi, -0.5 * math.pi, math.pi)
_YAWS = 4
# The tool downwards, turned by quarters about its axis.
_DOWNWARDS = [
    pose.multiply(TOOL_DOWN, pose.quaternions([0.0, 0.0, 0.5 * math.pi * k])) for k in range(_YAWS)
]
# Of the search: postures that it begins from, iterations, their damping, the pull to the middle of the ranges, what
# counts as attained (m and rad), and how many of the postures that are found are looked at.
_SEEDS, _ITERATIONS, _DAMPING, _DRAWN, _NEAR, _TRIED = 48, 50, 1e-4, 0.1, 1e-4, 8


def with_found_home(robot: Robot) -> Robot:
    """The arm with the task that it controls, a home that is found, the workspace around it, and notes of all this."""
    task = controllable_task(robot)
    notes = robot.notes
    if task != robot.task:
        notes += (
            f"With {counted(robot.n, 'joint')} it attains only part of each target: {TASK_WORDS[task]}.",
        )
    robot = replace(robot, task=task)
    found = _search(robot)
    if found is None:
        note = (
            "The file has no home, and none was found with room around it: home is the middle of "
            "the ranges (--home)."
        )
        return replace(robot, notes=(*notes, note))
    home, workspace = found
    x, y, z = workspace.centre
    joints = " ".join(f"{q:.4g}" for q in home.round(4) + 0.0)
    size = "the size of" if workspace.scale == 1.0 else f"{workspace.scale:g} times"
    note = (
        f"The file has no home; found, elbow up: --home {joints}, for motions of {size} those of a "
        f"UR10 around ({x:.2f}, {y:.2f}, {z:.2f}) m."
    )
    return replace(robot, home=read_only(home), workspace=workspace, notes=(*notes, note))


def _search(robot: Robot) -> tuple[Array, Workspace] | None:
    if task_directions(robot, robot.task, slice(2))[1] < 2:
        return None  # No two directions of a position are controlled.
    workspaces = _workspaces(robot)
    front = len(workspaces) // len(_SIDES)
    solid = CollisionModel(robot)
    # In the last passes links may reach into the floor: the base may be high above it.
    for model in (solid, None) if _of_floor(solid) else (None,):
        found = (
            _found(robot, workspaces[:_YAWS], _SEEDS, model)
            or _found(robot, workspaces[_YAWS:front], _SEEDS // 3, model)
            or _found(robot, workspaces[front:], _SEEDS // 6, model)
            or _found(robot, _as_they_are(robot), _SEEDS // 6, model)
        )
        if found is not None:
            return found
    return None


def _of_floor(model: CollisionModel) -> list[int]:
    return [pair for pair in range(model.pairs) if model.names(pair) == FLOOR]


def _as_they_are(robot: Robot) -> list[Workspace]:
    """Around the tool in postures that are good homes, in the tool's orientation there; large, then smaller."""
    # Slides in the middle, where they have room both ways.
    postures = np.where(robot.prismatic, _middle(robot), restart_postures(robot, POSTURES))
    best = tool_path(
        robot, postures[np.argsort(-_score(robot, postures), kind="stable")[: 3 * _YAWS]]
    )
    whole = _HELD * span(robot)
    return [
        Workspace(whole_scale(shrunk * whole), tuple(tool[:3].tolist()), tuple(tool[3:].tolist()))
        for shrunk in (0.85, 0.6, 0.4, 0.25, 0.15)
        for tool in best
    ]


def _workspaces(robot: Robot) -> list[Workspace]:
    """Where the cube may be, best first: in front, to the sides, behind; large, then smaller; low, then higher. Each
    with the tool turned by quarters about its axis, in a row."""
    heights = tool_path(robot, restart_postures(robot, POSTURES))[:, 2]
    low, high = np.quantile(heights, [0.05, 0.95])
    size, largest = _HELD * span(robot), 10 if robot.planar else 20
    whole = whole_scale(size, largest)
    levels = [CENTRE[2] * whole, *(low + part * (high - low) for part in (0.5, 0.3, 0.7))]
    found = []
    for angle in _SIDES:
        x, y, _ = pin.utils.rotate("z", angle) @ [CENTRE[0] * whole, CENTRE[1] * whole, 0.0]
        for shrunk in (1.0, 0.85, 0.7, 0.5):
            for z in heights[:1] if robot.planar else levels:
                centre, scale = (float(x), float(y), float(z)), whole_scale(shrunk * size, largest)
                found += [Workspace(scale, centre, tuple(turned.tolist())) for turned in _DOWNWARDS]
    return found


def _found(
    robot: Robot, workspaces: list[Workspace], count: int, model: CollisionModel | None
) -> tuple[Array, Workspace] | None:
    """The best home in the first of these workspaces that fits, of `count` postures that are tried for each.

    With a model, its links stay above the floor there and at the corners of the square.
    """
    centres = np.array([[*workspace.centre, *workspace.orientation] for workspace in workspaces])
    targets, group = np.repeat(centres, count, axis=0), np.repeat(np.arange(len(centres)), count)
    q, attained = _solved(
        robot, np.tile(restart_postures(robot, count), (len(centres), 1)), targets
    )
    q, group = _unwound(robot, q[attained]), group[attained]
    if not len(q):
        return None
    order = np.lexsort([-_score(robot, q), group // _YAWS])
    chosen: list[tuple[int, Array]] = []
    for index, posture in zip(group[order].tolist(), q[order], strict=True):
        # Solutions that are the same up to a few degrees count once.
        like = [other for other_index, other in chosen if other_index // _YAWS == index // _YAWS]
        if len(like) < _TRIED and all(np.abs(posture - other).max() > 0.1 for other in like):
            chosen.append((index, posture))
    cube = _CUBE * ([1.0, 1.0, 0.0] if robot.planar else [1.0, 1.0, 1.0])
    corners = [
        centres[index] + np.pad(workspaces[index].scale * cube, ((0, 0), (0, 4)))
        for index, _ in chosen
    ]
    begin = np.repeat([posture for _, posture in chosen], len(cube), axis=0)
    reached, attained = _solved(robot, begin, np.concatenate(corners))
    near = attained & (np.abs(reached - begin).max(axis=1) < 0.5 * math.pi)
    # The largest velocity of a joint for 1 m/s of the tool in any direction, rad/s.
    rates = np.linalg.norm(np.linalg.pinv(_jacobians(robot, reached))[:, :, :3], axis=2).max(axis=1)
    jumps = rates.reshape(len(chosen), -1)[:, :4].max(axis=1)
    jumps *= [_CORNER_SPEED * workspaces[index].scale for index, _ in chosen]
    fits = near.reshape(len(chosen), -1).all(axis=1) & (jumps < robot.max_velocity_jump)
    if model is not None:
        at_corners, floor = reached.reshape(len(chosen), -1, robot.n)[:, :4], _of_floor(model)
        for k in np.flatnonzero(fits):
            postures = (chosen[k][1], *at_corners[k])
            fits[k] = all(model.distances(posture)[floor].min() >= MARGIN for posture in postures)
    if not fits.any():
        return None
    best = chosen[int(np.argmax(fits))][0]
    fitting = [
        posture for (index, posture), fit in zip(chosen, fits, strict=True) if fit and index == best
    ]
    # The fewest links that touch; the first of these is the best.
    home = max(
        fitting, key=lambda posture: CollisionModel(replace(robot, home=read_only(posture))).pairs
    )
    exact, _ = _solved(robot, home[None], centres[best : best + 1], near=1e-10, drawing=0.0)
    return exact[0], workspaces[best]


def _solved(
    robot: Robot, begin: Array, targets: Array, near: float = _NEAR, drawing: float = _DRAWN
) -> tuple[Array, Flags]:
    """Postures (T, n) by damped least squares from given ones (T, n), for targets (T, 7), and which attain them (T,).

    Attained is what is within `near`, m and rad. A redundant arm goes the part `drawing` of the way to the middle of
    its ranges in an iteration.
    """
    q, left = begin.copy(), np.arange(len(begin))
    low, high = robot.position_min, robot.position_max
    for _ in range(_ITERATIONS):
        error = _errors(robot, q[left], targets[left])
        missed = np.abs(error).max(axis=1) > near
        left, error = left[missed], error[missed]
        if not len(left):
            break
        rows = _jacobians(robot, q[left])
        across = rows.transpose(0, 2, 1)
        inverse = across @ np.linalg.inv(rows @ across + _DAMPING * np.eye(rows.shape[1]))
        drawn = (
            drawing * (_middle(robot) - q[left])
            if robot.n > rows.shape[1]
            else np.zeros_like(q[left])
        )
        step = np.clip(error, -0.3, 0.3) - (rows @ drawn[:, :, None])[:, :, 0]
        q[left] = np.clip(q[left] + drawn + (inverse @ step[:, :, None])[:, :, 0], low, high)
    return q, np.abs(_errors(robot, q, targets)).max(axis=1) <= near


def _unwound(robot: Robot, q: Array) -> Array:
    """Postures (T, n) with whole turns taken away that lead from the middle of a joint's range."""
    turned = q - 2.0 * math.pi * np.round((q - _middle(robot)) / (2.0 * math.pi)) * ~robot.prismatic
    return np.where((turned >= robot.position_min) & (turned <= robot.position_max), turned, q)


def _jacobians(robot: Robot, q: Array) -> Array:
    return task_jacobians(robot.placements, robot.prismatic, q, robot.task)


def _middle(robot: Robot) -> Array:
    low, high = (
        np.clip(limit, -math.pi, math.pi) for limit in (robot.position_min, robot.position_max)
    )
    return 0.5 * (low + high)


def _score(robot: Robot, q: Array) -> Array:
    """How good homes (T, n) are (T,): joints high up, near the middle of their ranges, away from singularities."""
    origins = joint_origins(robot.placements, robot.prismatic, q)
    size = np.linalg.norm(origins - origins[:, :1], axis=2).max(initial=1e-6)
    room = np.minimum(q - robot.position_min, robot.position_max - q).min(axis=1) / math.pi
    away = np.abs(q - _middle(robot)).mean(axis=1) / math.pi
    singular = np.linalg.svd(_jacobians(robot, q), compute_uv=False)
    singular = singular[:, : min(robot.n, singular.shape[1])]
    height = origins[:, :, 2].mean(axis=1) / size
    return (
        height
        - 0.3 * away
        + np.minimum(room, 0.3)
        + np.minimum(singular[:, -1] / singular[:, 0], 0.1)
    )


def _errors(robot: Robot, q: Array, targets: Array) -> Array:
    """What is left to targets (T, 7) at postures (T, n), in the rows (T, m) of `chain.task_rows`."""
    attained = tool_path(robot, q)
    translation, rotation = pose.error(targets, attained)
    if robot.task == "position":
        return translation
    if robot.task == "axis":
        z = np.array([0.0, 0.0, 1.0])
        pointing = pose.rotate(pose.conjugate(attained[:, 3:]), pose.rotate(targets[:, 3:], z))
        return np.concatenate([translation, np.cross(z, pointing)[:, :2]], axis=1)
    return np.concatenate([translation, rotation], axis=1)
