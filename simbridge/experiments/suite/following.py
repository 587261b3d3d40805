"""Lets every solver follow a motion in turn, and times each call."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from simbridge.experiments.suite.entrants import Entrant
from simbridge.experiments.suite.faults import FaultLog
from simbridge.experiments.suite.suite_motion import SuiteMotion
from simbridge.experiments.suite.time_limit import CallTimeout, interrupt_after
from simbridge.ik.callable_solver import CallableSolver
from simbridge.ik.solver import Solver
from simbridge.robot.pose import Array

# Function that is called after each call of a solver, outside the time that is measured.
Heartbeat = Callable[[], None]


@dataclass(frozen=True)
class Pass:
    """The pass of a solver through a motion, to the end or as far as its time allowed.

    Attributes:
        joints: Joint positions (K + 1, n), rad: the start, then one row for each call.
        durations: Durations of the calls (K,), s.
        faults: Failures of the calls that did not answer with joint positions.
        is_complete: Whether the motion was followed to its end.
    """

    joints: Array
    durations: Array
    faults: FaultLog
    is_complete: bool


@dataclass
class Following:
    """All passes of a solver through a motion.

    Attributes:
        entrant: The solver.
        time_left: Time that the solver has left for the motion, s.
        passes: The passes; errors are measured along the first one, durations along all.
    """

    entrant: Entrant
    time_left: float
    passes: list[Pass] = field(default_factory=list)

    @property
    def is_too_slow(self) -> bool:
        """True if the solver's time was over before the end of the first pass."""
        return not self.passes[0].is_complete


def follow_in_turn(
    motion: SuiteMotion,
    entrants: Sequence[Entrant],
    *,
    passes: int,
    time_limit: float,
    heartbeat: Heartbeat,
) -> list[Following]:
    """Let every solver follow a motion several times.

    The solvers take turns pass by pass, so that other work of the computer slows all of them alike.

    Args:
        motion: The motion.
        entrants: The solvers.
        passes: Number of passes.
        time_limit: Time that a solver has for all its passes, s. It is checked between calls.
        heartbeat: Function that is called after each call.
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


def follow(solver: Solver, motion: SuiteMotion, time_limit: float, heartbeat: Heartbeat) -> Pass:
    """Step a solver along a motion from its start.

    If a call fails, the arm stays where it is, and the next call goes on from there.

    Args:
        solver: The solver.
        motion: The motion.
        time_limit: Computing time after which the pass ends, s.
        heartbeat: Function that is called after each call.
    """
    target_count = len(motion.targets)
    joints = np.empty((target_count + 1, len(motion.start)))
    joints[0] = motion.start
    durations = np.empty(target_count)
    faults = FaultLog()

    solver.reset(motion.start)
    # Number of calls so far, which is the index of the next target.
    call = 0
    time_used = 0.0
    with contextlib.suppress(CallTimeout), interrupt_after(time_limit):
        while call < target_count and time_used < time_limit:
            begin = time.perf_counter()
            try:
                joints[call + 1] = solver.step(motion.targets[call])
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                # A solver may also raise SystemExit: it ends the call, not the suite.
                faults.add(call, error)
                joints[call + 1] = joints[call]
                restore(solver, joints[call])
            durations[call] = time.perf_counter() - begin

            time_used += durations[call]
            call += 1
            heartbeat()

    return Pass(
        joints=joints[: call + 1],
        durations=durations[:call],
        faults=faults,
        is_complete=call == target_count,
    )


def restore(solver: Solver, q: Array) -> None:
    """Make a solver go on from joint positions q (n,), rad, after a call that failed."""
    # A `CallableSolver` still has its state from before the call. Any other class, such as a
    # user's, may have stored an answer that was refused.
    if not isinstance(solver, CallableSolver):
        solver.reset(q)


def warm_up(entrants: Sequence[Entrant], motion: SuiteMotion) -> None:
    """Step every solver twice: the first call may compile code, and import modules."""
    for entrant in entrants:
        follow(entrant.solver, shorten(motion, 2), np.inf, lambda: None)


def shorten(motion: SuiteMotion, count: int) -> SuiteMotion:
    """Return the first targets of a motion."""
    reference = None if motion.reference is None else motion.reference[:count]
    return SuiteMotion(
        name=motion.name,
        group=motion.group,
        description=motion.description,
        targets=motion.targets[:count],
        reference=reference,
        start=motion.start,
        in_reach=motion.in_reach[:count],
    )
