"""A chain and its mathematics, printed as a Python module.

Of the fixed transforms only the structure goes into the text: which entries are 0 and +-1. The other numbers stay
arguments, and so does the whole tool frame. Arms of one build (all of UR's, with any TCP) thus share one module, and so
do all calibrated ones.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from simbridge.ik.kernels import kinematics, loops, mathematics
from simbridge.ik.kernels.expression import Scalar, Trace, statements

# Angles of pi/2 and pi are meant exactly; a double cannot say so, and products of a few of them even less.
_SNAP = 1e-14

# What the rotation's part of a task's error calls.
_LOGARITHM: dict[str, tuple[Callable[..., object], ...]] = {
    "pose": (mathematics.rotation_vector,),
    "axis": (mathematics.axis_turn,),
    "position": (),
}

_HEADER = '''"""Made by simbridge for chains of this structure; it may be deleted at any time.

{structure}
"""
import math

import numpy as np

from simbridge.ik.kernels.lazy import inlined
'''


def forward_dynamics_source(placements: NDArray[np.float64], prismatic: Sequence[bool], task: str = "pose") -> str:
    """The module of the forward-dynamics solver: move, track, accumulate, solve.

    Args:
        placements: The chain (n + 1, 4, 4); its last frame is the tool's.
        prismatic: Which joints slide (n).
        task: "pose", "axis" or "position".
    """
    slides = [bool(slide) for slide in prismatic]
    helpers = (
        mathematics.cosine_and_sine,
        mathematics.shortened,
        loops.aim,
        loops.potential,
        loops.attained,
        loops.largest_of,
        loops.copy,
        loops.eased,
    )
    return "\n\n".join(
        [
            _header(placements, slides),
            *_helpers(*helpers, *_LOGARITHM[task]),
            _move(placements, slides, task),
            *(_copied(function) for function in (loops.track, loops.accumulate, loops.solve)),
        ]
    )


def conditioning_source(placements: NDArray[np.float64], prismatic: Sequence[bool]) -> str:
    """The module of experiment A: `accumulated` over many configurations (see `conditioning.py`)."""
    from simbridge.ik.kernels import conditioning

    slides = [bool(slide) for slide in prismatic]
    trace = Trace()
    at = mathematics.frames(_symbols(trace, placements), slides, _names(trace, "q", len(slides)))
    twists = mathematics.jacobian(at, slides)
    rows = mathematics.columns(twists)
    plain = [[mathematics.dot(rows[i], rows[j]) for j in range(i + 1)] for i in range(6)]
    matrices = [("plain", plain)]
    for name in ("conditioned", "naive"):
        mass = mathematics.mass_matrix(at, twists, _names(trace, name, 4))
        matrices.append((f"{name}_out", mathematics.weighted(twists, mass)))
    results = [(f"{name}[{i}, {j}]", m[i][j]) for name, m in matrices for i in range(6) for j in range(i + 1)]
    arguments = "placements, q, conditioned, naive, plain, conditioned_out, naive_out"
    function = _function("mobility", arguments, "J J^T, and J H^-1 J^T of two twins: lower triangles.", trace, results)
    turn = _helpers(mathematics.cosine_and_sine)
    return "\n\n".join([_header(placements, slides), *turn, "@inlined\n" + function, _copied(conditioning.accumulated)])


def look_source(placements: NDArray[np.float64], prismatic: Sequence[bool], task: str) -> str:
    """The module of function `look`, with which every solver that works on the Jacobian begins (see `look.py`)."""
    slides = [bool(slide) for slide in prismatic]
    trace = Trace()
    target = _names(trace, "target", 12)
    clamp = [trace.name("translation_clamp"), trace.name("rotation_clamp")]
    at = mathematics.frames(_symbols(trace, placements), slides, _names(trace, "q", len(slides)))
    error = mathematics.pose_error(target[:3], [target[3:6], target[6:9], target[9:]], at, task)
    pull = mathematics.task_rows(at, mathematics.clamped(error, clamp), task)
    twists = [mathematics.task_rows(at, twist, task) for twist in mathematics.jacobian(at, slides)]
    rows = [entry for j, twist in enumerate(twists) for entry in _into(f"jacobian[{j}, {{}}]", twist)]
    arguments = "chain, q, target, translation_clamp, rotation_clamp, error, pull, jacobian"
    about = "The error at q; what of it pulls, clamped, in the task's rows; the Jacobian's rows, a joint each."
    results = [*_into("error[{}]", error), *_into("pull[{}]", pull), *rows]
    return "\n\n".join(
        [
            _header(placements, slides),
            *_helpers(mathematics.cosine_and_sine, mathematics.shortened),
            *_helpers(*_LOGARITHM[task]),
            _function("look", arguments, about, trace, results, "placements = chain.placements"),
        ]
    )


def poses_source(placements: NDArray[np.float64], prismatic: Sequence[bool]) -> str:
    """The module of the loop `poses` of `kinematics.py`."""
    slides = [bool(slide) for slide in prismatic]
    trace = Trace()
    at = mathematics.frames(_symbols(trace, placements), slides, _names(trace, "q", len(slides)))
    frame = [*at.position, *(entry for row in at.rotation for entry in row)]
    about = "The tool's position (3) and rotation matrix (9, row by row)."
    return "\n\n".join(
        [
            _header(placements, slides),
            *_helpers(mathematics.cosine_and_sine, kinematics.quaternion),
            "@inlined\n" + _function("tool_at", "placements, q, tool", about, trace, _into("tool[{}]", frame)),
            _copied(kinematics.poses),
        ]
    )


def jacobians_source(placements: NDArray[np.float64], prismatic: Sequence[bool], task: str) -> str:
    """The module of the loop `jacobians` of `kinematics.py`."""
    slides = [bool(slide) for slide in prismatic]
    trace = Trace()
    at = mathematics.frames(_symbols(trace, placements), slides, _names(trace, "q", len(slides)))
    twists = [mathematics.task_rows(at, twist, task) for twist in mathematics.jacobian(at, slides)]
    rows = [entry for i, row in enumerate(mathematics.columns(twists)) for entry in _into(f"out[{i}, {{}}]", row)]
    about = "The task's rows of the Jacobian (m, n)."
    return "\n\n".join(
        [
            _header(placements, slides),
            *_helpers(mathematics.cosine_and_sine),
            "@inlined\n" + _function("rows_at", "placements, q, out", about, trace, rows),
            _copied(kinematics.jacobians),
        ]
    )


def _move(placements: NDArray[np.float64], slides: list[bool], task: str) -> str:
    """The error at q, what of it pulls, and the acceleration H^-1 J^T (Kp e + Kd de/dt) of equation 12."""
    trace = Trace()
    kp, damping, last, twin, clamp, target = (
        _names(trace, name, count)
        for name, count in (("kp", 6), ("damping", 6), ("pull", 6), ("twin", 4), ("clamp", 2), ("target", 12))
    )
    at = mathematics.frames(_symbols(trace, placements), slides, _names(trace, "q", len(slides)))
    error = mathematics.pose_error(target[:3], [target[3:6], target[6:9], target[9:]], at, task)
    pull = mathematics.clamped(error, clamp)
    force = [k * e + d * (e - before) for k, d, e, before in zip(kp, damping, pull, last, strict=True)]
    # A tool that may turn as it likes resists no turning.
    if task == "position":
        twin[1] = 0.0
    twists = mathematics.jacobian(at, slides)
    torque = [mathematics.dot(twist, force) for twist in twists]
    mass = mathematics.mass_matrix(at, twists, twin)
    for j, row in enumerate(mass):
        row[j] = row[j] + trace.name("ballast")
    motion = mathematics.solved(mass, torque)
    slope = mathematics.dot(motion, torque)
    arguments = "placements, q, target, kp, damping, twin, clamp, ballast, pull, error, motion"
    about = (
        "The error at q, what of it pulls (its clamped part), and the acceleration H^-1 J^T (Kp pull + damping "
        "(pull - last pull)) with a ballast on H's diagonal, followed by how fast the potential falls along it."
    )
    results = [*_into("error[{}]", error), *_into("pull[{}]", pull), *_into("motion[{}]", [*motion, slope])]
    return "@inlined\n" + _function("move", arguments, about, trace, results)


def structure(placements: NDArray[np.float64]) -> NDArray[np.float64]:
    """The frames as rows of four (n + 1, 3, 4): 0, 1 and -1, and nan for any other number; the tool's are all nan."""
    rows = placements[:, :3]
    nearest = np.round(rows)
    plain = (np.abs(rows - nearest) < _SNAP) & (np.abs(nearest) <= 1.0)
    plain[-1] = False
    # Without negative zeros, so that equal structures have equal bytes.
    return np.where(plain, nearest + 0.0, np.nan)


def _symbols(trace: Trace, placements: NDArray[np.float64]) -> list[mathematics.Matrix]:
    return [
        [
            [trace.name(f"placements[{i}, {r}, {c}]") if value != value else value for c, value in enumerate(row)]
            for r, row in enumerate(rows)
        ]
        for i, rows in enumerate(structure(placements).tolist())
    ]


def _names(trace: Trace, array: str, count: int) -> list[Scalar]:
    return [trace.name(f"{array}[{i}]") for i in range(count)]


def _into(places: str, values: Iterable[Scalar]) -> list[tuple[str, Scalar]]:
    return [(places.format(i), value) for i, value in enumerate(values)]


def _function(
    name: str, arguments: str, about: str, trace: Trace, results: list[tuple[str, Scalar]], first: str = ""
) -> str:
    lines = [f'"""{about}"""', *([first] if first else []), *statements(trace, results)]
    body = "\n".join(f"    {line}" for line in lines)
    return f"def {name}({arguments}):\n{body}\n"


def _helpers(*functions: Callable[..., object]) -> list[str]:
    return ["@inlined\n" + _copied(function) for function in functions]


def _copied(function: Callable[..., object]) -> str:
    """A function's own text."""
    text = inspect.getsource(function)
    return text[text.index("def ") :]


def _header(placements: NDArray[np.float64], slides: list[bool]) -> str:
    marks = {0.0: "0", 1.0: "1", -1.0: "-"}
    kinds = [*("prismatic" if slide else "revolute" for slide in slides), "tool"]
    shown = (
        f"{kind:9} {' | '.join(' '.join(marks.get(v, 'x') for v in row) for row in rows)}"
        for kind, rows in zip(kinds, structure(placements).tolist(), strict=True)
    )
    return _HEADER.format(structure="\n".join(shown))
