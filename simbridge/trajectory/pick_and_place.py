"""Pick and place: down, up, across, down, up and back, at rest at every turn."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from simbridge.trajectory.checks import check_positive, vector
from simbridge.trajectory.timing import MotionLaw
from simbridge.trajectory.trace import concatenate, move
from simbridge.trajectory.trace import dwell as dwell_at
from simbridge.trajectory.trajectory import Trajectory


def pick_and_place(
    pick: ArrayLike, place: ArrayLike, lift: float, law: MotionLaw, dwell: float = 0.5, rate: float = 100.0
) -> Trajectory:
    """One cycle from above the pick pose, to both poses, and back.

    Args:
        pick, place: Poses (7,) where the gripper closes and opens; the tool turns from one to the other on the way.
        lift: How far above both it travels, along z of base_link, m.
        law: For each of the six moves.
        dwell: How long it stands at each of the two, s.
        rate: Samples per second, in Hz.

    Raises:
        InvalidParameter: A parameter is out of its range, or one pose lies straight above the other.
        InvalidTrajectory: A quaternion is not of unit length.
    """
    check_positive(lift=lift, dwell=dwell)
    up = np.array([0.0, 0.0, lift, 0.0, 0.0, 0.0, 0.0])
    at_pick, at_place = vector("pick", pick, 7), vector("place", place, 7)
    above_pick, above_place = at_pick + up, at_place + up
    return concatenate(
        move(above_pick, at_pick, law, rate),
        dwell_at(at_pick, dwell),
        move(at_pick, above_pick, law, rate),
        move(above_pick, above_place, law, rate),
        move(above_place, at_place, law, rate),
        dwell_at(at_place, dwell),
        move(at_place, above_place, law, rate),
        move(above_place, above_pick, law, rate),
        source="pick and place",
    )
