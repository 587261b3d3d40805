"""URScript's functions of poses, rotations, vectors and matrices; they need no controller."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin

from simbridge.emulator.arm import frame_of, pose_of
from simbridge.emulator.builtins import as_list, as_pose, numbers
from simbridge.emulator.urscript.library import FunctionGroup
from simbridge.emulator.urscript.values import Pose, short
from simbridge.errors import InvalidParameter
from simbridge.robot.pose import Array


def _frame(name: str, pose: Any) -> pin.SE3:
    return frame_of(numbers(name, pose, 6))


def _rows(matrix: Any) -> Array:
    """A matrix as an array (rows, columns)."""
    array = np.array(matrix, dtype=float) if isinstance(matrix, tuple) else np.zeros(0)
    if array.ndim != 2 or not np.isfinite(array).all():
        raise InvalidParameter("matrix", short(matrix), "a list of lists of finite numbers, all of one length")
    return array


class GeometryFunctions(FunctionGroup):
    """Poses, rotations, vectors and matrices."""

    def do_pose_trans(self, _thread: Any, p_from: Any, p_from_to: Any) -> Pose:
        return as_pose(pose_of(_frame("p_from", p_from) * _frame("p_from_to", p_from_to)))

    def do_pose_inv(self, _thread: Any, p_from: Any) -> Pose:
        return as_pose(pose_of(_frame("p_from", p_from).inverse()))

    def do_pose_add(self, _thread: Any, p_1: Any, p_2: Any) -> Pose:
        a, b = _frame("p_1", p_1), _frame("p_2", p_2)
        return as_pose(pose_of(pin.SE3(a.rotation @ b.rotation, a.translation + b.translation)))

    def do_pose_sub(self, _thread: Any, p_to: Any, p_from: Any) -> Pose:
        a, b = _frame("p_to", p_to), _frame("p_from", p_from)
        return as_pose(pose_of(pin.SE3(a.rotation @ b.rotation.T, a.translation - b.translation)))

    def do_pose_dist(self, _thread: Any, pose_from: Any, pose_to: Any) -> float:
        return float(np.linalg.norm(numbers("pose_to", pose_to, 6)[:3] - numbers("pose_from", pose_from, 6)[:3]))

    def do_point_dist(self, _thread: Any, p_from: Any, p_to: Any) -> float:
        return self.do_pose_dist(_thread, p_from, p_to)

    def do_interpolate_pose(self, _thread: Any, p_from: Any, p_to: Any, alpha: float) -> Pose:
        a, b = _frame("p_from", p_from), _frame("p_to", p_to)
        rotation = pin.exp3(alpha * pin.log3(b.rotation @ a.rotation.T)) @ a.rotation
        return as_pose(pose_of(pin.SE3(rotation, a.translation + alpha * (b.translation - a.translation))))

    def do_wrench_trans(self, _thread: Any, T_from_to: Any, w_from: Any) -> list[float]:
        frame, w = _frame("T_from_to", T_from_to).inverse(), numbers("w_from", w_from, 6)
        force = frame.rotation @ w[:3]
        return as_list(np.concatenate([force, frame.rotation @ w[3:] + np.cross(frame.translation, force)]))

    def do_rpy2rotvec(self, _thread: Any, rpy_vector: Any) -> list[float]:
        # Extrinsic rotations about x, y and z, in this order.
        return as_list(pin.log3(pin.rpy.rpyToMatrix(numbers("rpy_vector", rpy_vector, 3))))

    def do_rotvec2rpy(self, _thread: Any, rotation_vector: Any) -> list[float]:
        return as_list(pin.rpy.matrixToRpy(pin.exp3(numbers("rotation_vector", rotation_vector, 3))))

    def do_normalize(self, thread: Any, v: Any) -> list[float]:
        vector = numbers("v", v, len(v) if isinstance(v, tuple) else 0, most=1e150)
        length = float(np.linalg.norm(vector))
        if length == 0.0:
            raise InvalidParameter("v", short(v), "a list of numbers that are not all zero")
        return as_list(vector / length)

    def do_transpose(self, _thread: Any, m: Any) -> Any:
        if isinstance(m, tuple) and not any(isinstance(row, tuple) for row in m):
            return [[value] for value in m]
        return [list(column) for column in zip(*_rows(m).tolist(), strict=True)]

    def do_inv(self, thread: Any, m: Any) -> Any:
        if isinstance(m, Pose):
            return self.do_pose_inv(thread, m)
        matrix = _rows(m)
        thread.charge(len(matrix) ** 3)
        if matrix.shape[0] != matrix.shape[1] or np.linalg.matrix_rank(matrix) < len(matrix):
            raise InvalidParameter("m", short(m), "a square matrix that has an inverse")
        return np.linalg.inv(matrix)
