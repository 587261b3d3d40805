"""URScript's arithmetic of poses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin

from simbridge.emulator.arm import frame_of, pose_of
from simbridge.emulator.builtins.arguments import as_list, as_pose, numbers
from simbridge.emulator.builtins.functions import Functions
from simbridge.emulator.urscript.values import Pose


class PoseFunctions(Functions):
    """Products, differences and distances of poses: nothing of the controller is asked."""

    def do_pose_trans(self, _thread: Any, p_from: Any, p_from_to: Any) -> Pose:
        return as_pose(pose_of(frame_of(numbers("p_from", p_from, 6)) * frame_of(numbers("p_from_to", p_from_to, 6))))

    def do_pose_inv(self, _thread: Any, p_from: Any) -> Pose:
        return as_pose(pose_of(frame_of(numbers("p_from", p_from, 6)).inverse()))

    def do_pose_add(self, _thread: Any, p_1: Any, p_2: Any) -> Pose:
        a, b = frame_of(numbers("p_1", p_1, 6)), frame_of(numbers("p_2", p_2, 6))
        return as_pose(pose_of(pin.SE3(a.rotation @ b.rotation, a.translation + b.translation)))

    def do_pose_sub(self, _thread: Any, p_to: Any, p_from: Any) -> Pose:
        a, b = frame_of(numbers("p_to", p_to, 6)), frame_of(numbers("p_from", p_from, 6))
        return as_pose(pose_of(pin.SE3(a.rotation @ b.rotation.T, a.translation - b.translation)))

    def do_pose_dist(self, _thread: Any, pose_from: Any, pose_to: Any) -> float:
        return float(np.linalg.norm(numbers("pose_to", pose_to, 6)[:3] - numbers("pose_from", pose_from, 6)[:3]))

    def do_point_dist(self, _thread: Any, p_from: Any, p_to: Any) -> float:
        return self.do_pose_dist(_thread, p_from, p_to)

    def do_interpolate_pose(self, _thread: Any, p_from: Any, p_to: Any, alpha: float) -> Pose:
        a, b = frame_of(numbers("p_from", p_from, 6)), frame_of(numbers("p_to", p_to, 6))
        turn = pin.exp3(alpha * pin.log3(b.rotation @ a.rotation.T))
        return as_pose(pose_of(pin.SE3(turn @ a.rotation, a.translation + alpha * (b.translation - a.translation))))

    def do_wrench_trans(self, _thread: Any, t_from_to: Any, w_from: Any) -> list[float]:
        frame, w = frame_of(numbers("T_from_to", t_from_to, 6)).inverse(), numbers("w_from", w_from, 6)
        force = frame.rotation @ w[:3]
        return as_list(np.concatenate([force, frame.rotation @ w[3:] + np.cross(frame.translation, force)]))
