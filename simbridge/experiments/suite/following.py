"""A motion, followed by every solver in turn, call by call with its duration."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from simbridge.experiments.suite.entrants import Entrant
from simbridge.experiments.suite.faults import FaultLog
from simbridge.experiments.suite.motion import Motion
from simbridge.experiments.suite.time_limit import CallTimeout, interrupt_after
from simbridge.ik.callable_solver import CallableSolver
from simbridge.ik.solver import Solver
from simbridge.robot.pose import Array

# Called after each call of a solver, outside of what is timed.
Heartbeat = Callable[[], None]


@dataclass(frozen=True)
class Pass:
    """A solver, once through a motion or as far as its time allowed.

    Attributes:
        joints: Joint positions (K + 1, n), rad: the start, then one row for each call.
        durations: Durations of the calls (K,), s.
        faults: The calls that did not answer with joint positions.
        is_complete: Whether the motion was followed to its end.
    """

    joints: Array
    durations: Array
    faults: FaultLog
    is_complete: bool


@dataclass
class Following:
    """The joint positions and durations with which a solver followed a motion.

    Attributes:
        entrant: The solver.
        passes: Its passes; errors are measured along the first, durations along all.
        time_left: What is left of its time for the motion, s.
    """

    entrant: Entrant
    time_left: float
    passes: list[Pass] = field(default_factory=list)

    @property
    def is_too_slow(self) -> bool:
        """Whether its time was over in the first pass."""
        return not self.passes[0].is_complete


def follow_in_turn(
    motion: Motion,
    entrants: Sequence[Entrant],
    *,
    passes: int,
    time_limit: float,
    heartbeat: Heartbeat,
) -> list[Following]:
    """Let every solver follow a motion several times.

    The solvers take turns with each pass, so that whatever else the computer does meets all of
    them.

    Args:
        motion: The motion.
        entrants: The solvers.
        passes: Number of passes.
        time_limit: Time that a solver has for all its passes, s. It is checked between calls.
        heartbeat: Called after each call.
    """
    followings = [Following(entrant, time_limit) for entrant in entrants]
    for _ in range(passes):
        for following in followings:
            if following.time_left <= 0.0:
                continue
            finished = follow(following.entrant.solver, motion, following.time_left, heartbeat)
            following.time_left -= float(finished.durations.sum())
            following.passes.append(finished)
    return followings


def follow(solver: Solver, motion: Motion, time_limit: float, heartbeat: Heartbeat) -> Pass:
    """Step a solver along a motion from its start.

    Where a call fails, the arm stays where it is, and the next call goes on from there.

    Args:
        solver: The solver.
        motion: The motion.
        time_limit: Computing time after which the pass ends, s.
        heartbeat: Called after each call.
    """
    count = len(motion.targets)
    joints = np.empty((count + 1, len(motion.start)))
    joints[0] = motion.start
    durations = np.empty(count)
    faults = FaultLog()

    solver.reset(motion.start)
    done = 0
    time_used = 0.0
    with contextlib.suppress(CallTimeout), interrupt_after(time_limit):
        while done < count and time_used < time_limit:
            begin = time.perf_counter()
            try:
                joints[done + 1] = solver.step(motion.targets[done])
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # also SystemExit, which ends the call, not the suite
                faults.add(done, error)
                joints[done + 1] = joints[done]
                restore(solver, joints[done])
            durations[done] = time.perf_counter() - begin

            time_used += durations[done]
            done += 1
            heartbeat()

    return Pass(
        joints=joints[: done + 1],
        durations=durations[:done],
        faults=faults,
        is_complete=done == count,
    )


def restore(solver: Solver, q: Array) -> None:
    """Let a solver go on from joint positions q (n,), rad, after a call that failed."""
    # The memory of a `CallableSolver` is as it was before the call. A class of the user's may have
    # written an answer into it that was refused.
    if not isinstance(solver, CallableSolver):
        solver.reset(q)


def warm_up(entrants: Sequence[Entrant], motion: Motion) -> None:
    """Step every solver once: the first call compiles, and imports what a library needs."""
    for entrant in entrants:
        follow(entrant.solver, shorten(motion, 2), np.inf, lambda: None)


def shorten(motion: Motion, count: int) -> Motion:
    """Return the first targets of a motion."""
    reference = None if motion.reference is None else motion.reference[:count]
    return Motion(
        name=motion.name,
        group=motion.group,
        description=motion.description,
        targets=motion.targets[:count],
        reference=reference,
        start=motion.start,
        in_reach=motion.in_reach[:count],
    )
