"""Generated functions: straight-line code for a chain.

Of the fixed transforms only the structure goes into the text: which entries are 0, 1 and -1. The other numbers stay
arguments, and so does the whole tool frame. Arms of one kinematic structure (all of UR's, with any TCP) thus share one
module, and so do all calibrated ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from simbridge.ik.kernels import mathematics
from simbridge.ik.kernels.expression import Trace, statements
from simbridge.ik.kernels.module import Generated
from simbridge.robot import chain
from simbridge.robot.chain import Matrix, Scalar
from simbridge.robot.pose import Array, Flags

# The functions that the rotation's part of a task's error calls.
_LOGARITHM: dict[str, tuple[Callable[..., Any], ...]] = {
    "pose": (mathematics.rotation_vector,),
    "axis": (mathematics.axis_turn,),
    "position": (),
}


class Structure(NamedTuple):
    """What arms of one kinematic structure share: where their frames have 0, 1 and -1, and which joints slide."""

    frames: bytes
    prismatic: tuple[bool, ...]

    def symbols(self, trace: Trace) -> list[Matrix]:
        """The placements, with a name for each entry that is not 0, 1 or -1."""
        entries = np.frombuffer(self.frames).reshape(-1, 3, 4).tolist()
        return [
            [
                [trace.name(f"placements[{i}, {r}, {c}]") if value != value else value for c, value in enumerate(row)]
                for r, row in enumerate(rows)
            ]
            for i, rows in enumerate(entries)
        ]

    def frames_at(self, trace: Trace, moved: int | None = None) -> chain.Frames:
        """The frames at the joint positions `q`; with one joint moved on by `difference_step` if given."""
        angles = _names(trace, "q", len(self.prismatic))
        if moved is not None:
            angles[moved] = angles[moved] + trace.name("difference_step")
        return chain.frames(self.symbols(trace), self.prismatic, angles, mathematics.cosine_and_sine)


def structure_of(placements: Array, prismatic: Flags) -> Structure:
    """The kinematic structure of a chain: placements (n + 1, 4, 4), and which joints slide (n,)."""
    return _structure(placements.tobytes(), prismatic.tobytes())


@lru_cache(maxsize=256)
def _structure(placements: bytes, prismatic: bytes) -> Structure:
    slides = np.frombuffer(prismatic, dtype=bool)
    return Structure(
        structure_entries(np.frombuffer(placements).reshape(-1, 4, 4)).tobytes(), tuple(map(bool, slides.tolist()))
    )


def structure_entries(placements: Array) -> Array:
    """The frames as rows of four (n + 1, 3, 4): 0, 1 and -1, and nan for any other number; the tool's are all nan."""
    rows = chain.exact_placements(placements)[:, :3]
    plain = np.isin(rows, (0.0, 1.0, -1.0))
    plain[-1] = False
    return np.where(plain, rows, np.nan)


def move(structure: Structure, task: str) -> Generated:
    """The function `move` of forward dynamics.

    Its results: the error at q, its clamped part `pull`, and the acceleration H^-1 J^T (Kp pull + damping (pull - last
    pull)) of equation 12 with a ballast on H's diagonal, followed by the slope of the potential along it.
    """
    trace = Trace()
    kp, damping, last, twin, clamp, target = (
        _names(trace, name, count)
        for name, count in (("kp", 6), ("damping", 6), ("pull", 6), ("twin", 4), ("clamp", 2), ("target", 12))
    )
    at = structure.frames_at(trace)
    error = mathematics.pose_error(target[:3], [target[3:6], target[6:9], target[9:]], at, task)
    pull = mathematics.clamped(error, clamp)
    force = [k * e + d * (e - before) for k, d, e, before in zip(kp, damping, pull, last, strict=True)]
    # A tool whose rotation is free has no rotational inertia.
    if task == "position":
        twin[1] = 0.0
    twists = chain.jacobian(at, structure.prismatic)
    torque = [chain.dot(twist, force) for twist in twists]
    mass = mathematics.mass_matrix(at, twists, twin)
    for j, row in enumerate(mass):
        row[j] = row[j] + trace.name("ballast")
    motion = mathematics.solved(mass, torque)
    slope = chain.dot(motion, torque)
    results = [*_into("error[{}]", error), *_into("pull[{}]", pull), *_into("motion[{}]", [*motion, slope])]
    arguments = "placements, q, target, kp, damping, twin, clamp, ballast, pull, error, motion"
    return _function("move", arguments, trace, results, _LOGARITHM[task])


def linearize(structure: Structure, task: str, differences: bool = False) -> Generated:
    """The function `linearize` of the iterative solvers: see `step.linearize`.

    Args:
        differences: Whether its Jacobian is one of finite differences; else the exact one.
    """
    trace = Trace()
    target = _names(trace, "target", 12)
    clamp = [trace.name("translation_clamp"), trace.name("rotation_clamp")]
    at = structure.frames_at(trace)
    error = mathematics.pose_error(target[:3], [target[3:6], target[6:9], target[9:]], at, task)
    pull = chain.task_rows(at, mathematics.clamped(error, clamp), task)
    if differences:
        moved = [structure.frames_at(trace, moved=j) for j in range(len(structure.prismatic))]
        twists = [mathematics.difference_quotient(at, there, trace.name("difference_step")) for there in moved]
    else:
        twists = chain.jacobian(at, structure.prismatic)
    constrained = [chain.task_rows(at, twist, task) for twist in twists]
    rows = [entry for j, twist in enumerate(constrained) for entry in _into(f"jacobian[{j}, {{}}]", twist)]
    arguments = "placements, q, target, translation_clamp, rotation_clamp, difference_step, error, pull, jacobian"
    results = [*_into("error[{}]", error), *_into("pull[{}]", pull), *rows]
    turns = (mathematics.rotation_vector,) if differences else ()
    return _function("linearize", arguments, trace, results, (*_LOGARITHM[task], *turns))


def _names(trace: Trace, array: str, count: int) -> list[Scalar]:
    return [trace.name(f"{array}[{i}]") for i in range(count)]


def _into(places: str, values: Iterable[Scalar]) -> list[tuple[str, Scalar]]:
    return [(places.format(i), value) for i, value in enumerate(values)]


def _function(
    name: str, arguments: str, trace: Trace, results: list[tuple[str, Scalar]], calls: tuple[Callable[..., Any], ...]
) -> Generated:
    body = "\n".join(f"    {line}" for line in statements(trace, results))
    return Generated(
        f"def {name}({arguments}):\n{body}\n", (mathematics.cosine_and_sine, mathematics.shortened, *calls)
    )
