"""Every solver from singular postures, and to poses that only singular postures attain."""

from __future__ import annotations

import math

import numpy as np
import pytest

from simbridge.ik.closed_form import ClosedForm
from simbridge.ik.settings import SOLVERS
from simbridge.ik.targets import residual
from simbridge.robot import load_robot, pose
from simbridge.robot.kinematics import tool_path

ARMS = ["ur3", "ur10e", "ur20", "planar2r", "planar3r"]
# The same geometry as a UR10e in other sizes.
OTHER_SIZES = ("ur3", "ur20")


def singular(robot):
    """Postures (k, n): all joints zero, stretched, the wrist aligned or folded back; on a planar
    arm folded.
    """
    bent = {4: (0.0, math.pi), 2: (0.0,)} if robot.n == 6 else {1: (0.0, math.pi)}
    postures = [np.zeros(robot.n)]
    for joint, angles in bent.items():
        for angle in angles:
            q = robot.home.copy()
            q[joint if robot.n == 6 else slice(1, None)] = angle
            postures.append(q)
    return np.array(postures)


def goals(robot, q):
    """Its own pose, one near it, one half a turn away, each with a start."""
    here, near = tool_path(robot, np.array([q, q + 0.05 * np.arange(1, robot.n + 1) / robot.n]))
    over = here.copy()
    over[3:] = pose.multiply(np.array([1.0, 0.0, 0.0, 0.0]), here[3:])
    return [(here, robot.home), (near, q), (over, q)]


def cases(names, soak=OTHER_SIZES):
    """Return each arm with each of these solvers as parameters; some arms are left to soak."""
    return [
        pytest.param(arm, name, marks=[pytest.mark.soak] * (arm in soak))
        for arm in ARMS
        for name in names
        if (arm, name) != ("planar3r", "closed-form")
    ]


# The tests below move planar3r where it is redundant; make soak shows that its results repeat.
@pytest.mark.parametrize(("arm", "name"), cases(SOLVERS, soak=(*OTHER_SIZES, "planar3r")))
def test_results_are_finite_and_repeatable(arm, name):
    robot = load_robot(arm)
    for q in singular(robot):
        for target, start in goals(robot, q):
            solver, twin = (SOLVERS[name]().build(robot) for _ in range(2))
            joints = solver.track(np.tile(target, (20, 1)), start)
            assert np.isfinite(joints).all()
            twin.reset(start)
            assert np.array([twin.step(target) for _ in range(20)]).tobytes() == joints.tobytes()
            assert np.isfinite([*twin.last.residual, twin.last.manipulability]).all()
            solution = solver.solve(target, start)
            assert np.isfinite(solution.q).all()
            assert twin.solve(target, start).q.tobytes() == solution.q.tobytes()
            remaining = residual(solver.task, target, tool_path(robot, solution.q[None])[0])
            assert max(remaining) < 1e-6 or not solution.converged
            assert (solution.distance, solution.angle) == pytest.approx(remaining, abs=1e-9)


@pytest.mark.parametrize(("arm", "name"), cases(("pseudoinverse", "selectively-damped")))
def test_reliable_solvers_attain_singular_poses(arm, name):
    """The closed form knows which poses can be attained at all; of planar3r those of its own
    postures can.
    """
    robot = load_robot(arm)
    solver = SOLVERS[name]().build(robot)
    closed = None if arm == "planar3r" else ClosedForm(robot)
    for q in singular(robot):
        for target, start in goals(robot, q):
            attainable = closed is None or len(closed.branches(target, q)) > 0
            assert solver.solve(target, start).converged == attainable


@pytest.mark.parametrize(("arm", "name"), cases(SOLVERS))
def test_at_rest_on_a_singular_posture_nothing_moves(arm, name):
    robot = load_robot(arm)
    # The soft pull to the natural posture is meant to move what the task leaves free.
    solver = SOLVERS[name](**({"pull": 0.0} if name == "constrained" else {})).build(robot)
    for q in singular(robot):
        joints = solver.track(np.tile(tool_path(robot, q[None]), (50, 1)), q)
        assert np.abs(joints - q).max() < 1e-6
