"""What holds of every solver of another library; those that are not installed are skipped."""

from __future__ import annotations

import pickle
import sys

import numpy as np
import pytest

from simbridge.errors import InvalidParameter, MissingPackage
from simbridge.ik.settings import RIVALS
from simbridge.planning.options import Options
from simbridge.planning.scenario import Scenario
from simbridge.robot import load_robot, pose
from simbridge.robot.kinematics import tool_path
from simbridge.running.run_setup import prepare
from simbridge.trajectory import Trajectory
from tests.ik.rivals.panda import load_panda
from tests.properties import variants

# The libraries take seconds to import.
pytestmark = pytest.mark.shares_setup

PERIOD = 0.002
# Largest distance from the target on a slow circle, m, and settings for a busy machine.
ERRORS = {
    "pybullet-ik": 1.1e-4,
    "pinocchio-clik": 1.1e-4,
    "trac-ik": 3e-5,
    "roboticstoolbox": 1.5e-3,
}
# The posture that mink holds on an arm with seven joints costs it some of its accuracy.
ERRORS_OF_A_PANDA = ERRORS | {"mink": 2e-5}
# Largest angle, rad, likewise: to KDL a radian counts as 0.01 m.
ANGLES = {"pykdl": 1.1e-3, "roboticstoolbox": 1.5e-3}
SETTINGS = {"trac-ik": {"timeout": 10.0}}
# These search from random postures: they repeat themselves only within their tolerances.
REPEATABLE = [name for name in RIVALS if name not in ("trac-ik", "roboticstoolbox")]
OTHERS = [name for name in RIVALS if name not in ("pink", "mink")]
# Their libraries report whether they have found a solution.
REPORTING = ["pinocchio-clik", "trac-ik", "roboticstoolbox", "pykdl"]
ARMS = ["ur10", "ur5e"]

every_rival = pytest.mark.parametrize("name", RIVALS)


def make(name, arm="ur10", **settings):
    """The rival for an arm, at the control period of an e-Series arm."""
    kind = RIVALS[name]
    for module, _ in kind.packages:
        pytest.importorskip(module)
    robot = arm if not isinstance(arm, str) else load_robot(arm)
    solver = kind(**(SETTINGS.get(name, {}) | settings)).build(robot)
    solver.period = PERIOD
    return solver


def circle(robot, count=40):
    """Targets (T, 7) on the beginning of a circle of 3 cm, from the home of an arm."""
    targets = np.tile(tool_path(robot, robot.home[None])[0], (count, 1))
    angle = 2.0 * np.pi * PERIOD * np.arange(count)
    targets[:, 1] += 0.03 * np.sin(angle)
    targets[:, 2] -= 0.03 * (1.0 - np.cos(angle))
    return targets


@every_rival
@pytest.mark.parametrize("arm", variants(ARMS, "ur10"))
def test_a_slow_circle_is_followed(name, arm):
    solver = make(name, arm)
    targets = circle(solver.robot)

    joints = solver.track(targets, solver.robot.home)

    translation, rotation = pose.error(targets, tool_path(solver.robot, joints))
    assert np.linalg.norm(translation, axis=1).max() < ERRORS.get(name, 1e-5)
    assert np.linalg.norm(rotation, axis=1).max() < ANGLES.get(name, 1e-4)


@every_rival
def test_a_panda_is_followed(name):
    solver = make(name, load_panda())
    targets = circle(solver.robot)

    joints = solver.track(targets, solver.robot.home)

    translation, _ = pose.error(targets, tool_path(solver.robot, joints))
    assert np.linalg.norm(translation, axis=1).max() < ERRORS_OF_A_PANDA.get(name, 1e-5)


@pytest.mark.parametrize("name", REPEATABLE)
def test_steps_equal_track(name):
    solver = make(name)
    targets = circle(solver.robot, count=5)

    steps = [solver.step(target) for target in targets]

    assert np.array_equal(steps, solver.track(targets, solver.robot.home))


@pytest.mark.parametrize("name", REPEATABLE)
def test_a_pickled_copy_goes_on(name):
    solver = make(name)
    first, second = circle(solver.robot, count=2)
    solver.step(first)

    copy = pickle.loads(pickle.dumps(solver))

    assert copy.period == solver.period
    assert np.array_equal(copy.step(second), solver.step(second))


@pytest.mark.parametrize("name", ["pink", "mink"])
def test_declared_limits_are_kept(name):
    solver = make(name)
    assert solver.velocity_limits == "enforced"
    robot = solver.robot
    far_target = tool_path(robot, robot.home[None] + 0.5)[0]

    joints = solver.track(np.tile(far_target, (5, 1)), robot.home)

    steps = np.diff(joints, axis=0, prepend=robot.home[None])
    shares = np.abs(steps) / (robot.max_velocity * PERIOD)
    assert 0.999 < shares.max() < 1.0 + 1e-6


@pytest.mark.parametrize("name", OTHERS)
def test_the_others_declare_none(name):
    assert make(name).velocity_limits == "none"


@pytest.mark.parametrize("name", REPORTING)
def test_without_a_solution_the_arm_stays(name):
    settings = {"timeout": 0.005} if name == "trac-ik" else {}
    solver = make(name, **settings)
    target = tool_path(solver.robot, solver.robot.home[None])[0]
    target[:3] *= 5.0

    q = solver.step(target)

    assert np.array_equal(q, solver.robot.home)


def test_the_toolbox_has_a_tolerance():
    solver = make("roboticstoolbox", tolerance=1e-12)
    targets = circle(solver.robot)

    joints = solver.track(targets, solver.robot.home)

    translation, _ = pose.error(targets, tool_path(solver.robot, joints))
    assert np.linalg.norm(translation, axis=1).max() < 2e-6


def test_a_plan_has_its_own_period():
    name = "pinocchio-clik"
    trajectory = Trajectory(np.array([0.0, 0.1]), circle(load_robot("ur10"), count=1).repeat(2, 0))

    prepared = prepare(Scenario(trajectory), solver=name, options=Options(period=0.004))

    assert prepared.solver.name == name
    assert prepared.solver.period == 0.004


@pytest.mark.parametrize("name", [name for name in RIVALS if RIVALS[name].packages])
def test_a_missing_library_is_named(name, monkeypatch):
    kind = RIVALS[name]
    module, package = kind.packages[0]
    monkeypatch.setitem(sys.modules, module, None)

    with pytest.raises(MissingPackage) as caught:
        kind().build(load_robot("ur10"))

    assert caught.value.package == package
    assert caught.value.extra == kind.extra
    assert str(caught.value).startswith(f"--solver {name} needs the package {package}. ")


@pytest.mark.parametrize("name", ["pink", "mink", "pybullet-ik", "ikpy"])
def test_positions_alone_are_attained(name):
    solver = make(name, "planar3r")
    robot = solver.robot
    assert solver.task == "position"
    target = tool_path(robot, robot.home[None])[0]
    target[1] += 1e-4
    target[3:] = [1.0, 0.0, 0.0, 0.0]

    for _ in range(20):
        q = solver.step(target)

    reached = tool_path(robot, q[None])[0]
    assert np.linalg.norm(reached[:3] - target[:3]) < ERRORS.get(name, 1e-5)


@pytest.mark.parametrize("name", ["pinocchio-clik", "trac-ik"])
def test_a_task_that_it_lacks_is_refused(name):
    with pytest.raises(InvalidParameter) as caught:
        make(name, "planar3r")

    assert caught.value.name == f"task of {name}"
