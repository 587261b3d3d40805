"""Where an arm begins whose own home is singular: in a posture from which its tool can move every way.

Upright or stretched in the middle of its joints' ranges, which is all that a URDF says, some direction is closed to the
tool: the first step of every solver would be about that, and of none about the solver.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from simbridge.errors import TargetOutOfReach
from simbridge.experiments.layout import START, Layout, layout, within
from simbridge.ik.forward_dynamics import ForwardDynamics, restart_postures
from simbridge.robot.kinematics import movable_directions, task_jacobians
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.trajectory.orientation import TOOL_DOWN
from simbridge.trajectory.paper import paper_size, span

SINGULAR = 0.02
"""Least over largest singular value, below which a posture is no place to begin. At home a UR arm has 0.14 to 0.2."""

# Postures that are looked at; how much of a joint's range is kept free at either end; and how many are tried.
_LOOKED_AT, _MARGIN = 2000, 0.1
_SOLVED_FROM, _TRIED = 40, 5


def dexterity(robot: Robot, joints: Array) -> Array:
    """Least over largest singular value (T,) of the task's Jacobian at postures (T, n): 0 where it is singular.

    Lengths count in halves of the farthest that the arm gets. Directions in which it never moves are left out.
    """
    jacobians = task_jacobians(robot.placements, robot.prismatic, joints, robot.task)
    jacobians[:, :3] /= max(0.5 * span(robot), 1e-3)
    values = np.linalg.svd(jacobians, compute_uv=False)
    last = min(movable_directions(robot.placements, robot.prismatic, robot.task), robot.n) - 1
    return np.asarray(values[:, last] / values[:, 0])


def start(robot: Robot) -> Array:
    """Joint positions (n,) from which an arm gets around as large a square as any that were tried.

    If it can, with its tool before the base and down, as a UR10 holds it at home.
    """
    postures = _dexterous(robot)
    best, largest = postures[0], 0.0
    for q in (*_before_the_base(robot, postures), *postures[:_TRIED]):
        place = _layout(replace(robot, home=q, file_home=robot.home))
        if place is None:
            continue
        if not place.note:
            return q
        if place.scale > largest:
            best, largest = q, place.scale
    return best


def _layout(robot: Robot) -> Layout | None:
    try:
        return layout(robot)
    except TargetOutOfReach:
        return None


def _dexterous(robot: Robot) -> Array:
    """Postures (k, n) in which no joint is near the end of its range, the most dexterous first."""
    postures = restart_postures(robot, _LOOKED_AT)
    middle = 0.5 * (postures.min(axis=0) + postures.max(axis=0))
    kept = middle + (1.0 - 2.0 * _MARGIN) * (postures - middle)
    return np.asarray(kept[np.argsort(-dexterity(robot, kept))[:_SOLVED_FROM]])


def _before_the_base(robot: Robot, postures: Array) -> Iterator[Array]:
    """In these postures' neighbourhoods: the tool down, in the middle of the paper's square; the best first."""
    target = np.array([*paper_size(robot).centre, *TOOL_DOWN])
    solver = ForwardDynamics(robot)
    solutions = [solver.solve_near(target, q, START) for q in postures]
    found = [s.q for s in solutions if s.converged and within(robot, s.q)]
    room = [min(np.pi, *(q - robot.position_min), *(robot.position_max - q)) for q in found]
    worth = np.array([dexterity(robot, q[None])[0] for q in found]) * np.array(room)
    return (found[i] for i in np.argsort(-worth)[:_TRIED])
