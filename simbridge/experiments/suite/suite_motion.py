"""Defines what the solvers of the suite are given: motions, and sets of single poses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from simbridge.robot.pose import Array, Flags

# Kind of a motion: see `SuiteMotion.group`.
Group = Literal["tracking", "stream"]


@dataclass(frozen=True, kw_only=True)
class SuiteMotion:
    """Targets for a solver, one per control period of the arm.

    Poses are those of the TCP in base_link: x y z in m, then the quaternion x y z w.

    Attributes:
        name: Short name, for a row of the tables.
        group: "tracking" for dense targets, which are the motion itself; "stream" for targets that
            arrive less often, late or with noise, and are held until the next one.
        description: Sentence that says what the arm is asked to do.
        targets: Poses that the solver is given (T, 7).
        reference: Poses of the ideal motion behind a stream (T, 7), of which the targets are
            samples; None if the targets are the ideal motion.
        start: Joint positions (n,), rad or m, that attain the first target; every solver begins
            there.
        in_reach: Whether each target can be attained within the joint limits (T,).
        loops: Number of laps of a closed path. Lap k ends at sample k (T - 1) / loops.
    """

    name: str
    group: Group
    description: str
    targets: Array
    reference: Array | None = None
    start: Array
    in_reach: Flags
    loops: int = 1


@dataclass(frozen=True, kw_only=True)
class PoseSet:
    """Single targets, each with joint positions from which it is to be solved.

    Attributes:
        name: Short name, for a row of the tables.
        description: Sentence that says how poses and starts are chosen.
        targets: Poses of the TCP in base_link (N, 7).
        starts: Joint positions to start from (N, n), rad or m.
        reachable: Whether joint positions within the limits attain all of the poses, rather than
            none.
    """

    name: str
    description: str
    targets: Array
    starts: Array
    reachable: bool
