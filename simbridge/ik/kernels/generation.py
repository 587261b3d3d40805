"""Generates the functions `move` and `linearize` from the mathematics of a chain.

Only the structure of a chain's fixed transforms goes into the code: which entries are 0, 1 and -1.
The other numbers remain arguments, and so does the whole tool frame. Arms of one kinematic
structure therefore share their compiled code: all of UR's nominal arms, with any TCP, and all
calibrated ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from simbridge.ik.kernels.mathematics import (
    clamp_error,
    cosine_and_sine,
    difference_quotient,
    mass_matrix,
    pose_error,
    solve,
)
from simbridge.kernels.expression import Generated, Trace, statements, write_function
from simbridge.robot import chain
from simbridge.robot.chain import Frames, Matrix, Scalar, dot
from simbridge.robot.pose import Array, Flags

# Entries of a transform that become part of the generated code, where they simplify it.
PLAIN_NUMBERS = (0.0, 1.0, -1.0)
# Index of the tool's inertia in the array `twin`: see `LoopSettings`.
TOOL_INERTIA = 1


class Structure(NamedTuple):
    """A kinematic structure, which several arms may have in common.

    Attributes:
        frames: Upper three rows of the arms' fixed transforms (n + 1, 3, 4), as bytes of float64,
            in which nan stands for any number but 0, 1 and -1.
        prismatic: True for each joint that slides.
    """

    frames: bytes
    prismatic: tuple[bool, ...]

    def trace_frames(self, trace: Trace, moved: int | None = None) -> Frames:
        """Trace the frames of the chain at the joint positions `q`.

        Args:
            trace: Trace of the generated function.
            moved: Index of a joint that is moved by `difference_step`; None for none.
        """
        placements = self._trace_placements(trace)
        angles = _names(trace, "q", len(self.prismatic))
        if moved is not None:
            angles[moved] = angles[moved] + trace.name("difference_step")
        return chain.frames(placements, self.prismatic, angles, cosine_and_sine)

    def _trace_placements(self, trace: Trace) -> list[Matrix]:
        """Return the fixed transforms, with an argument in place of each nan."""
        entries: list[Matrix] = np.frombuffer(self.frames).reshape(-1, 3, 4).tolist()
        for i, rows in enumerate(entries):
            for r, row in enumerate(rows):
                for c, value in enumerate(row):
                    if math.isnan(value):
                        row[c] = trace.name(f"placements[{i}, {r}, {c}]")
        return entries


def structure_of(placements: Array, prismatic: Flags) -> Structure:
    """Return the kinematic structure of a chain.

    Args:
        placements: The chain's fixed transforms (n + 1, 4, 4).
        prismatic: True for each joint (n,) that slides.
    """
    rows = chain.exact_placements(placements)[:, :3]
    is_plain = np.isin(rows, PLAIN_NUMBERS)
    # The tool's frame remains an argument, whatever its numbers are.
    is_plain[-1] = False
    frames = np.where(is_plain, rows, np.nan).tobytes()
    return Structure(frames, tuple(bool(slides) for slides in prismatic))


def generate_move(structure: Structure, task: str) -> Generated:
    """Generate the function `move`: an iteration of forward dynamics.

    It computes the error at q, the clamped error `pull`, and the acceleration
    H^-1 J^T (Kp pull + damping (pull - last pull)). That is equation 12 of the paper, with a
    ballast on the diagonal of the mass matrix H. The slope of the potential along the acceleration
    is the last element of `motion`.

    Args:
        structure: Kinematic structure of the arms.
        task: The part of a target to attain: "pose", "axis" or "position".
    """
    # Expressions for the arguments of the function: arrays in the order of `LoopSettings`.
    trace = Trace()
    kp = _names(trace, "kp", 6)
    damping = _names(trace, "damping", 6)
    pull_before = _names(trace, "pull", 6)
    twin = _names(trace, "twin", 4)
    clamp = _names(trace, "clamp", 2)
    target = _names(trace, "target", 12)
    # If the rotation of the tool is free, the tool has no rotational inertia.
    if task == "position":
        twin[TOOL_INERTIA] = 0.0

    # The force at the tool: a spring, and a damper of the change of the error.
    frames = structure.trace_frames(trace)
    error = pose_error(target, frames, task)
    pull = clamp_error(error, clamp)
    force = []
    for k, d, e, before in zip(kp, damping, pull, pull_before, strict=True):
        force.append(k * e + d * (e - before))

    # The acceleration of the twin, with the ballast on each joint.
    twists = chain.jacobian(frames, structure.prismatic)
    torque = [dot(twist, force) for twist in twists]
    mass = mass_matrix(frames, twists, twin)
    for j, row in enumerate(mass):
        row[j] = row[j] + trace.name("ballast")
    motion = solve(mass, torque)
    slope = dot(motion, torque)

    results = [
        *_elements("error[{}]", error),
        *_elements("pull[{}]", pull),
        *_elements("motion[{}]", [*motion, slope]),
    ]
    arguments = "placements, q, target, kp, damping, twin, clamp, ballast, pull, error, motion"
    return write_function(f"move({arguments})", statements(trace, results), trace)


def generate_linearize(structure: Structure, task: str, differences: bool = False) -> Generated:
    """Generate the function `linearize`: residual, clamped error and Jacobian of a posture.

    Args:
        structure: Kinematic structure of the arms.
        task: The part of a target to attain: "pose", "axis" or "position".
        differences: Whether the Jacobian is computed by finite differences; else it is exact.
    """
    # The target consists of a position (3) and a rotation matrix (9).
    trace = Trace()
    target = _names(trace, "target", 12)
    clamps = [trace.name("translation_clamp"), trace.name("rotation_clamp")]

    # Residual and error, and the twist of the tool per unit motion of each joint.
    frames = structure.trace_frames(trace)
    residual = pose_error(target, frames, task)
    error = chain.task_rows(frames, clamp_error(residual, clamps), task)
    if differences:
        joints = range(len(structure.prismatic))
        moved_frames = [structure.trace_frames(trace, moved=j) for j in joints]
        step = trace.name("difference_step")
        twists = [difference_quotient(frames, moved, step) for moved in moved_frames]
    else:
        twists = chain.jacobian(frames, structure.prismatic)

    # The elements that the function assigns. The candidate is the posture that a step leads to; its
    # Jacobian has a row per joint.
    results = [*_elements("residual[{}]", residual), *_elements("candidate_error[{}]", error)]
    for j, twist in enumerate(twists):
        row = chain.task_rows(frames, twist, task)
        results += _elements(f"candidate_jacobian[{j}, {{}}]", row)

    # The function begins with lines that give the fields of its record the names of the trace.
    arrays = ("placements", "target", "residual", "candidate_error", "candidate_jacobian")
    numbers = ("translation_clamp", "rotation_clamp", "difference_step")
    unpacking = ["q = descent.iterate.q"]
    unpacking += [f"{name} = descent.search.{name}" for name in (*arrays, *numbers)]
    return write_function("linearize(descent)", [*unpacking, *statements(trace, results)], trace)


def _names(trace: Trace, array: str, count: int) -> list[Scalar]:
    """Return expressions for the first `count` elements of an array argument."""
    return [trace.name(f"{array}[{i}]") for i in range(count)]


def _elements(pattern: str, values: Iterable[Scalar]) -> list[tuple[str, Scalar]]:
    """Pair each value with the text of the array element that it is assigned to."""
    return [(pattern.format(i), value) for i, value in enumerate(values)]
