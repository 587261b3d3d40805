"""Faults of a custom solver, reported as its own: an exception in it, or an invalid answer.

A run and a live session report them by the same errors.
"""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from simbridge.errors import ForeignSolverError, SimbridgeError
from simbridge.ik.targets import MAX_JOINT, check_joints
from simbridge.quoting import as_text
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

# Characters that are shown of an exception of foreign code, which may have any number.
MAX_CHARACTERS = 500


class NamedSolver(Protocol):
    """A solver, as far as an error that names it needs one."""

    robot: Robot

    @property
    def name(self) -> str:
        """Its name, as in `--solver`."""

    @property
    def q(self) -> Array:
        """Its last solution (n,), rad."""


def solver_failure(name: str, error: BaseException, q: Array | None = None) -> ForeignSolverError:
    """Return the error for an exception in a solver.

    Args:
        name: Name of the solver.
        error: The exception.
        q: Joint positions (n,), rad, at which it was raised, if they are known.
    """
    text = f"{type(error).__name__}: {as_text(error)}".rstrip(".: ")[:MAX_CHARACTERS]
    reason = f"failed with {text}"
    frames = traceback.extract_tb(error.__traceback__)
    if frames:
        reason += f" ({frames[-1].filename}, line {frames[-1].lineno})"
    if q is not None:
        reason += f", at the joints {q.tolist()}"
    return ForeignSolverError(name, reason)


def check_answer(name: str, answer: Any, n: int) -> Array:
    """Return the joint positions (n,), rad, that a solver answered.

    Args:
        name: Name of the solver.
        answer: The value that it returned.
        n: The number of joints.

    Raises:
        InvalidParameter: The answer is not n finite numbers, or one is beyond what joint positions
            may be.
    """
    return check_joints(f"answer of the solver {name}", answer, n)


def check_path(solver: NamedSolver, joints: Array) -> None:
    """Refuse the answers (T, n) of a custom solver that cannot be joint positions.

    Raises:
        InvalidParameter: A number is not finite, or beyond what joint positions may be.
    """
    if not is_custom(solver):
        return
    is_posture = (np.abs(joints) <= MAX_JOINT).all(axis=1)
    wrong = np.flatnonzero(~is_posture)
    if len(wrong):
        check_answer(solver.name, joints[wrong[0]], solver.robot.n)


def is_custom(solver: NamedSolver) -> bool:
    """Return whether the class of a solver is not one of simbridge's.

    An exception in it is then not a bug of simbridge.
    """
    return not type(solver).__module__.startswith("simbridge.")


@contextlib.contextmanager
def name_failures(solver: NamedSolver) -> Iterator[None]:
    """Turn whatever a custom solver raises within the block into an error that names it.

    That includes its exit. Ctrl-C passes. An error of simbridge passes as well: the solver was
    given something wrong, or has named itself.

    Raises:
        ForeignSolverError: The custom solver failed.
    """
    try:
        yield
    except (KeyboardInterrupt, SimbridgeError):
        raise
    except BaseException as error:  # also SystemExit and the like
        if not is_custom(solver):
            raise
        raise solver_failure(solver.name, error, solver.q) from error
