"""The products with the Jacobian that the steps share, over the first `rows` components of the task."""

from __future__ import annotations

from simbridge.ik.kernels.lazy import compiled
from simbridge.robot.pose import Array


@compiled
def to_task(jacobian: Array, dq: Array, rows: int, out: Array) -> None:
    """J dq (rows,): how the tool moves when the joints do."""
    for k in range(rows):
        out[k] = 0.0
    for j in range(jacobian.shape[0]):
        for k in range(rows):
            out[k] += jacobian[j, k] * dq[j]


@compiled
def to_joints(jacobian: Array, force: Array, rows: int, out: Array) -> None:
    """J^T force (n,): the joints' torques for a force at the tool."""
    for j in range(jacobian.shape[0]):
        s = 0.0
        for k in range(rows):
            s += jacobian[j, k] * force[k]
        out[j] = s


@compiled
def task_gram(jacobian: Array, rows: int, out: Array) -> None:
    """The lower triangle of J J^T (rows, rows)."""
    for a in range(rows):
        for b in range(a + 1):
            s = 0.0
            for j in range(jacobian.shape[0]):
                s += jacobian[j, a] * jacobian[j, b]
            out[a, b] = s


@compiled
def joint_gram(jacobian: Array, rows: int, out: Array) -> None:
    """The lower triangle of J^T J (n, n)."""
    for i in range(jacobian.shape[0]):
        for j in range(i + 1):
            s = 0.0
            for k in range(rows):
                s += jacobian[i, k] * jacobian[j, k]
            out[i, j] = s
