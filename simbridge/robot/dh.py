"""Standard (distal) Denavit-Hartenberg parameters: T_i = Rz(q_i + theta_i) Tz(d_i) Tx(a_i) Rx(alpha_i)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin

from simbridge.robot.robot import Robot


@dataclass(frozen=True)
class DhTable:
    """A row a joint, as UR's controllers tell them of each arm.

    Attributes:
        theta: Offsets of the joint angles (n), rad.
        a, d: m. On a calibrated arm d2 and d3 can be hundreds of metres: the joint axes and the flange are right, the
            frames between are far away.
        alpha: rad.
    """

    theta: tuple[float, ...]
    a: tuple[float, ...]
    d: tuple[float, ...]
    alpha: tuple[float, ...]


def nominal_dh(robot: Robot) -> DhTable:
    """The table of an arm whose chain is made of such transforms (every robots/*.toml is)."""
    fixed = [*(joint.placement for joint in robot.joints[1:]), robot.tool0]
    return DhTable(
        theta=(0.0,) * robot.n,
        a=tuple(float(f.translation[0]) for f in fixed),
        d=tuple(float(f.translation[2]) for f in fixed),
        alpha=tuple(float(np.arctan2(f.rotation[2, 1], f.rotation[1, 1])) for f in fixed),
    )


def with_dh(robot: Robot, table: DhTable) -> Robot:
    """The arm with another table: its kinematics only, so for poses and not for dynamics or collisions."""
    placements = [robot.joints[0].placement]
    for theta, a, d, alpha in zip(table.theta, table.a, table.d, table.alpha, strict=True):
        turn = pin.SE3(pin.utils.rotate("z", theta), np.zeros(3))
        placements.append(turn * pin.SE3(pin.utils.rotate("x", alpha), np.array([a, 0.0, d])))
    joints = tuple(replace(j, placement=p) for j, p in zip(robot.joints, placements[:-1], strict=True))
    return replace(robot, joints=joints, tool0=placements[-1])
