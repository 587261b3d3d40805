"""The lines past a singularity approach it as documented.

Judged by pinocchio's Jacobian along the plan.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from simbridge import load_robot
from simbridge.errors import InvalidParameter
from simbridge.planning.options import Options
from simbridge.running.run_setup import prepare
from simbridge.trajectory import elbow_line, shoulder_line, wrist_line
from tests.properties import variants

pytestmark = pytest.mark.shares_setup


def smallest_singular_values(scenario, robot):
    """Along the plan, of the Jacobian with lengths in units of the arm's reach (T,), and the plan's
    trajectory.
    """
    prepared = prepare(scenario, robot=robot, options=Options(period=0.008))
    model = prepared.robot.model
    data = prepared.robot.model.createData()
    frame = model.getFrameId("tcp")
    values = []
    for q in prepared.plan.solution:
        jacobian = pin.computeFrameJacobian(model, data, q, frame, pin.LOCAL_WORLD_ALIGNED)
        jacobian[:3] /= prepared.robot.arm_length
        values.append(np.linalg.svd(jacobian, compute_uv=False)[-1])
    return np.array(values), prepared


@pytest.mark.parametrize("robot", variants(["ur10", "ur3e"], "ur10"))
@pytest.mark.parametrize(
    "scenario", ["elbow_singularity", "shoulder_singularity", "wrist_singularity"]
)
def test_the_smallest_singular_value_dips(scenario, robot):
    values, _ = smallest_singular_values(scenario, robot)
    low = int(np.argmin(values))

    assert 0.3 * len(values) < low < 0.7 * len(values)
    assert values[low] < 0.5 * min(values[0], values[-1])
    # Once down and once up, except for the solver's lag next to the singularity.
    assert np.all(np.diff(values[:: len(values) // 12][:5]) < 0.0)
    assert np.all(np.diff(values[:: -(len(values) // 12)][:5]) < 0.0)


def test_the_elbow_is_stretched_at_the_end():
    _, prepared = smallest_singular_values("elbow_singularity", "ur10")

    elbow = np.abs(prepared.plan.solution[:, 2])

    # elbow_line's `near`.
    assert elbow.min() == pytest.approx(0.1, abs=0.01)
    assert elbow[0] > 3.0 * elbow.min()
    assert elbow[-1] > 3.0 * elbow.min()


def test_the_wrist_nears_the_bases_axis():
    robot = load_robot("ur10")
    _, prepared = smallest_singular_values("shoulder_singularity", "ur10")
    model = robot.model
    data = robot.model.createData()
    wrist = []
    for q in prepared.plan.solution:
        pin.forwardKinematics(model, data, q)
        wrist.append(np.hypot(*data.oMi[6].translation[:2]))
    wrist = np.array(wrist)

    assert 0.4 * len(wrist) < np.argmin(wrist) < 0.6 * len(wrist)


@pytest.mark.parametrize("line", [elbow_line, shoulder_line, wrist_line])
def test_a_line_keeps_length_and_orientation(line):
    start, end = line(load_robot("ur5e"), 0.2)

    assert np.linalg.norm(end[:3] - start[:3]) == pytest.approx(0.2, abs=1e-12)
    np.testing.assert_array_equal(start[3:], end[3:])


@pytest.mark.parametrize("line", [elbow_line, shoulder_line, wrist_line])
def test_another_structure_is_refused(line):
    with pytest.raises(InvalidParameter, match="robot must be an arm of six revolute joints"):
        line(load_robot("planar3r"), 0.2)

    with pytest.raises(InvalidParameter, match="length"):
        line(load_robot("ur10"), 0.0)


def test_a_line_beyond_the_wrist_is_refused():
    with pytest.raises(InvalidParameter, match="near"):
        shoulder_line(load_robot("ur10"), 0.2, near=5.0)


@pytest.mark.parametrize("name", ["ur10", "ur10e"])
def test_the_wrist_line_nears_the_singularity(name: str) -> None:
    robot = load_robot(name)
    q = robot.home.copy()
    q[4] = -0.05

    start, end = wrist_line(robot, 0.4, near=0.05)

    model = robot.model
    data = model.createData()
    pin.framesForwardKinematics(model, data, q)
    expected = data.oMf[model.getFrameId("tcp")].translation

    np.testing.assert_allclose(0.5 * (start + end)[:3], expected, atol=1e-9)
    assert np.linalg.norm(end[:3] - start[:3]) == pytest.approx(0.4)
