"""A home for an arm whose file has none, and where the ready-made motions fit on it.

The home holds the tool downwards in front of the base, in the middle of a cube whose corners the
arm attains without a jump, and whose size suits the arm's span; its links are clear of the floor,
if they can be, there and at the corners of the square. Of the postures that do, the one is taken
whose elbow is highest, far from joint limits and from singularities, and in which the links keep
clear of each other. It is the same in every call.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from simbridge.robot import pose
from simbridge.robot.collision import FLOOR, MARGIN, CollisionModel
from simbridge.robot.kinematics import joint_origins, tool_path
from simbridge.robot.pose import Array, Flags, read_only
from simbridge.robot.posture_search import middle_posture, posture_jacobians, solve_postures
from simbridge.robot.postures import (
    POSTURES,
    controllable_task,
    restart_postures,
    span,
    task_directions,
)
from simbridge.robot.robot import Robot
from simbridge.robot.workspace import CENTRE, TOOL_DOWN, Workspace, whole_scale
from simbridge.text import counted

TASK_WORDS = {
    "axis": "the position and the direction of its z axis",
    "position": "the position alone",
}
"""The part of a pose that a task constrains, in words."""

# Distance from the vertical through the base to the flange at home, as a fraction of the span, on
# UR's arms.
HOME_DISTANCE_FRACTION = 0.575
# Corners of the ready-made motions of scale 1, from their centre, m: of the square, and of the
# cube.
CUBE = np.array([[x, y, z] for z in (0.0, -0.2, 0.2) for x in (-0.2, 0.2) for y in (-0.2, 0.2)])
SQUARE_CORNERS = 4
# How the velocity jumps at a corner of the square of scale 1, m/s.
CORNER_SPEED = 0.2 * math.sqrt(2.0)
# Directions from the base in which a workspace may be, rad: in front, to the sides, behind.
SIDES = (0.0, 0.5 * math.pi, -0.5 * math.pi, math.pi)
# The tool downwards, turned by quarters about its axis.
TOOL_TURNS = 4
TOOL_ORIENTATIONS = [
    pose.multiply(TOOL_DOWN, pose.quaternions([0.0, 0.0, 0.5 * math.pi * k]))
    for k in range(TOOL_TURNS)
]

# Postures that the search begins from in the best workspace; fewer in the others.
SEED_POSTURES = 48
# How many of the postures that are found in a workspace are examined.
MAX_CANDIDATES = 8
# Postures whose joints all differ less are the same one, rad.
SAME_POSTURE = 0.1
# Farthest that a joint may move from the home to a corner, rad.
MAX_CORNER_MOTION = 0.5 * math.pi
# What the chosen home attains, m and rad.
HOME_TOLERANCE = 1e-10


class Home(NamedTuple):
    """A home, and the workspace around it.

    Attributes:
        q: Joint positions (n,), rad.
        workspace: Size and place of the ready-made motions.
    """

    q: Array
    workspace: Workspace


class _Candidate(NamedTuple):
    """A posture that holds the tool in the middle of a workspace.

    Attributes:
        workspace_index: Which workspace.
        q: Joint positions (n,), rad.
    """

    workspace_index: int
    q: Array


def with_found_home(robot: Robot, *, is_replaced: bool = False) -> Robot:
    """Return the arm with a home that is found, and the workspace around it.

    Its task is the one that its joints control; its notes tell of all this.

    Args:
        robot: The arm, whose file defines no home.
        is_replaced: Whether plans start from a given home, so that the found one only places the
            built-in scenarios.
    """
    task = controllable_task(robot)
    notes = robot.notes
    if task != robot.task:
        joints = counted(robot.n, "joint")
        notes += (f"With {joints}, it can follow only part of each target: {TASK_WORDS[task]}.",)
    robot = replace(robot, task=task)

    home = _search_home(robot)
    if home is None:
        consequence = "the middle of the joint ranges is used (set another with --home)"
        if is_replaced:
            consequence = "built-in scenarios may be out of reach"
        note = (
            "The file defines no home posture, and none with room around it was found: "
            f"{consequence}."
        )
        return replace(robot, notes=(*notes, note))

    workspace = home.workspace
    x, y, z = workspace.centre
    # Without negative zeros.
    rounded = home.q.round(4) + 0.0
    positions = " ".join(f"{q:.4g}" for q in rounded)
    size = "have" if workspace.scale == 1.0 else f"are scaled to {workspace.scale:g} times"
    scenarios = (
        f"Built-in scenarios {size} their UR10 size, centred at ({x:.2f}, {y:.2f}, {z:.2f}) m"
    )
    note = (
        f"The file defines no home posture; this one, elbow up, was found: --home {positions}. "
        f"{scenarios}."
    )
    if is_replaced:
        note = f"{scenarios}, where this arm has room: around --home {positions}, elbow up."
    return replace(robot, home=read_only(home.q), workspace=workspace, notes=(*notes, note))


def _search_home(robot: Robot) -> Home | None:
    """Search workspaces around an arm for a home, the best places first.

    All of them are searched for a home that keeps the arm above the floor. Only where there is none
    are they searched again without regard to the floor: the base may be mounted high above it.

    Returns:
        The first home that is found; None if there is none, or if the arm does not control the
        position of its tool in two directions, as an arm with a single joint.
    """
    position_x_and_y = slice(2)
    _, controlled_directions = task_directions(robot, robot.task, position_x_and_y)
    if controlled_directions < 2:
        return None

    # The workspaces in front of the base come first, and the first of these is the best one. The
    # farther down the list, the fewer postures a search begins from.
    workspaces = _workspaces(robot)
    count_in_front = len(workspaces) // len(SIDES)
    searches = [
        (workspaces[:TOOL_TURNS], SEED_POSTURES),
        (workspaces[TOOL_TURNS:count_in_front], SEED_POSTURES // 3),
        (workspaces[count_in_front:], SEED_POSTURES // 6),
        (_workspaces_around_tool(robot), SEED_POSTURES // 6),
    ]

    model = CollisionModel(robot)
    # An arm without shapes has nothing to keep above the floor.
    floor_models = [model, None] if _floor_pairs(model) else [None]
    for floor_model in floor_models:
        for candidates, seeds in searches:
            home = _find_home(robot, candidates, seeds=seeds, floor_model=floor_model)
            if home is not None:
                return home
    return None


def _floor_pairs(model: CollisionModel) -> list[int]:
    """Return the indices of the pairs of a link and the floor."""
    return [pair for pair in range(model.pairs) if model.names(pair) == FLOOR]


def _workspaces(robot: Robot) -> list[Workspace]:
    """Return where the cube may be, best first.

    In front, to the sides, behind; large, then smaller; low, then higher. Each of them comes with
    the tool turned by quarters about its axis, in a row.
    """
    heights = tool_path(robot, restart_postures(robot, POSTURES))[:, 2]
    low, high = np.quantile(heights, [0.05, 0.95])
    size = HOME_DISTANCE_FRACTION * span(robot)
    largest = 10 if robot.planar else 20
    whole = whole_scale(size, largest)
    if robot.planar:
        levels = [heights[0]]
    else:
        levels = [CENTRE[2] * whole]
        levels += [low + fraction * (high - low) for fraction in (0.5, 0.3, 0.7)]

    workspaces = []
    for side in SIDES:
        x, y, _ = pin.utils.rotate("z", side) @ [CENTRE[0] * whole, CENTRE[1] * whole, 0.0]
        for reduction in (1.0, 0.85, 0.7, 0.5):
            scale = whole_scale(reduction * size, largest)
            for z in levels:
                centre = (float(x), float(y), float(z))
                for orientation in TOOL_ORIENTATIONS:
                    workspaces.append(Workspace(scale, centre, tuple(orientation.tolist())))
    return workspaces


def _workspaces_around_tool(robot: Robot) -> list[Workspace]:
    """Return workspaces around the tool in postures that are good homes; large, then smaller.

    The tool keeps its orientation there.
    """
    # Slides in the middle, where they have room both ways.
    random_postures = restart_postures(robot, POSTURES)
    postures = np.where(robot.prismatic, middle_posture(robot), random_postures)
    best_first = np.argsort(-_home_scores(robot, postures), kind="stable")
    tools = tool_path(robot, postures[best_first[: 3 * TOOL_TURNS]])

    whole = HOME_DISTANCE_FRACTION * span(robot)
    workspaces = []
    for reduction in (0.85, 0.6, 0.4, 0.25, 0.15):
        scale = whole_scale(reduction * whole)
        for tool in tools:
            centre = tuple(tool[:3].tolist())
            workspaces.append(Workspace(scale, centre, tuple(tool[3:].tolist())))
    return workspaces


def _find_home(
    robot: Robot,
    workspaces: Sequence[Workspace],
    *,
    seeds: int,
    floor_model: CollisionModel | None,
) -> Home | None:
    """Find the best home in the first workspace that fits.

    Args:
        robot: The arm.
        workspaces: The workspaces to try, best first.
        seeds: Postures that the search in each begins from.
        floor_model: Model of the arm with a floor, above which the links stay at home and at the
            corners of the square; None without a floor.
    """
    centres = np.array([[*workspace.centre, *workspace.orientation] for workspace in workspaces])
    candidates = _find_candidates(robot, centres, seeds)
    if not candidates:
        return None

    # Postures at the corners, and which candidates have them within reach.
    corners, fits = _reach_corners(robot, candidates, workspaces=workspaces, centres=centres)
    if floor_model is not None:
        floor_pairs = _floor_pairs(floor_model)
        for k in np.flatnonzero(fits):
            postures = (candidates[k].q, *corners[k, :SQUARE_CORNERS])
            fits[k] = all(
                floor_model.distances(posture)[floor_pairs].min() >= MARGIN for posture in postures
            )
    if not fits.any():
        return None

    # Candidates are in the order of the positions of workspaces, best first.
    first_fit = int(np.argmax(fits))
    best = candidates[first_fit].workspace_index
    fitting = []
    for candidate, is_fitting in zip(candidates, fits, strict=True):
        if is_fitting and candidate.workspace_index == best:
            fitting.append(candidate.q)

    # Pairs that touch at home are not tested: the most pairs are the fewest that touch.
    home = max(fitting, key=lambda q: CollisionModel(replace(robot, home=read_only(q))).pairs)
    exact, _ = solve_postures(
        robot,
        home[None],
        centres[best : best + 1],
        tolerance=HOME_TOLERANCE,
        centring_gain=0.0,
    )
    return Home(exact[0], workspaces[best])


def _find_candidates(robot: Robot, centres: Array, seeds: int) -> list[_Candidate]:
    """Find postures that hold the tool in the middle of workspaces.

    Args:
        robot: The arm.
        centres: Poses of the tool (W, 7).
        seeds: Postures that the search for each begins from.

    Returns:
        At most `MAX_CANDIDATES` for each position of the tool, in the order of the workspaces, the
        best first; solutions that are the same up to a few degrees count once.
    """
    # The search in each workspace begins from all seeds.
    start = np.tile(restart_postures(robot, seeds), (len(centres), 1))
    q, is_attained = solve_postures(robot, start, np.repeat(centres, seeds, axis=0))
    q = _unwind(robot, q[is_attained])
    workspace_indices = np.repeat(np.arange(len(centres)), seeds)[is_attained]
    if not len(q):
        return []

    # By position of the tool, whose turns at one position belong together; then the best first.
    order = np.lexsort([-_home_scores(robot, q), workspace_indices // TOOL_TURNS])
    candidates: list[_Candidate] = []
    for index, posture in zip(workspace_indices[order].tolist(), q[order], strict=True):
        position = index // TOOL_TURNS
        neighbours = []
        for candidate in candidates:
            if candidate.workspace_index // TOOL_TURNS == position:
                neighbours.append(candidate.q)

        is_new = all(np.abs(posture - neighbour).max() > SAME_POSTURE for neighbour in neighbours)
        if is_new and len(neighbours) < MAX_CANDIDATES:
            candidates.append(_Candidate(index, posture))
    return candidates


def _reach_corners(
    robot: Robot,
    candidates: Sequence[_Candidate],
    *,
    workspaces: Sequence[Workspace],
    centres: Array,
) -> tuple[Array, Flags]:
    """Solve postures at the corners of the cube around every candidate.

    Args:
        robot: The arm.
        candidates: K postures in the middle of workspaces.
        workspaces: All workspaces.
        centres: Pose of the tool in the middle of each workspace (W, 7).

    Returns:
        Postures at the C corners (K, C, n), those of the square first, and which candidates fit
        (K,): the arm attains the corners without going far, and without a jump in the joints'
        velocities.
    """
    cube = CUBE * ([1.0, 1.0, 0.0] if robot.planar else [1.0, 1.0, 1.0])
    scales = [workspaces[candidate.workspace_index].scale for candidate in candidates]
    corner_poses = []
    for candidate, scale in zip(candidates, scales, strict=True):
        # At the corners the tool is oriented as in the middle.
        shifts = np.pad(scale * cube, ((0, 0), (0, 4)))
        corner_poses.append(centres[candidate.workspace_index] + shifts)

    start = np.repeat([candidate.q for candidate in candidates], len(cube), axis=0)
    q, is_attained = solve_postures(robot, start, np.concatenate(corner_poses))
    is_near = is_attained & (np.abs(q - start).max(axis=1) < MAX_CORNER_MOTION)

    # The largest velocity of a joint for 1 m/s of the tool in any direction, rad/s.
    inverses = np.linalg.pinv(posture_jacobians(robot, q))[:, :, :3]
    rates = np.linalg.norm(inverses, axis=2).max(axis=1)
    corner_rates = rates.reshape(len(candidates), -1)[:, :SQUARE_CORNERS].max(axis=1)

    # The largest jump of a joint's velocity at a corner of the square, rad/s.
    tool_jumps = CORNER_SPEED * np.array(scales)
    joint_jumps = corner_rates * tool_jumps

    all_near = is_near.reshape(len(candidates), -1).all(axis=1)
    fits = all_near & (joint_jumps < robot.max_velocity_jump)
    return q.reshape(len(candidates), -1, robot.n), fits


def _unwind(robot: Robot, q: Array) -> Array:
    """Return postures (T, n) without whole turns away from the middle of a joint's range."""
    turns = np.round((q - middle_posture(robot)) / (2.0 * math.pi))
    unwound = q - 2.0 * math.pi * turns * ~robot.prismatic
    is_within = (unwound >= robot.position_min) & (unwound <= robot.position_max)
    return np.where(is_within, unwound, q)


def _home_scores(robot: Robot, q: Array) -> Array:
    """Return how good homes postures (T, n) are (T,).

    Good are joints high up, near the middle of their ranges, away from singularities.
    """
    origins = joint_origins(robot.placements, robot.prismatic, q)
    size = np.linalg.norm(origins - origins[:, :1], axis=2).max(initial=1e-6)
    height = origins[:, :, 2].mean(axis=1) / size

    room = np.minimum(q - robot.position_min, robot.position_max - q).min(axis=1) / math.pi
    distance = np.abs(q - middle_posture(robot)).mean(axis=1) / math.pi

    singular_values = np.linalg.svd(posture_jacobians(robot, q), compute_uv=False)
    singular_values = singular_values[:, : min(robot.n, singular_values.shape[1])]
    conditioning = singular_values[:, -1] / singular_values[:, 0]
    return height - 0.3 * distance + np.minimum(room, 0.3) + np.minimum(conditioning, 0.1)
