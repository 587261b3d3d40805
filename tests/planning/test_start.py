"""Where a plan begins: home's branch wherever it passes, else another one, named and recorded."""

from __future__ import annotations

import numpy as np
import pytest

from simbridge import load_robot
from simbridge.errors import LimitExceeded, PlannedCollision, TargetOutOfReach
from simbridge.ik.closed_form import ClosedForm
from simbridge.ik.forward_dynamics import ForwardDynamicsParameters
from simbridge.planning.options import Options
from simbridge.planning.plan import Plan
from simbridge.planning.planner import make_plan
from simbridge.planning.scenario import Scenario, load_scenario
from simbridge.recording.run_record import StartRecord
from simbridge.running.run_recording import record_run
from simbridge.running.run_setup import prepare
from simbridge.trajectory import Trajectory

pytestmark = pytest.mark.slow

# A long period, s, and twice the speed: where a plan begins in these tests does not depend on
# them.
QUICK = {"period": 0.016, "speed_scale": 2.0}


@pytest.fixture(scope="module")
def elbow_down():
    """A UR5e whose home is on the branch with the elbow below the floor."""
    robot = load_robot("ur5e")
    start = load_scenario("circle", robot).trajectory.start
    branches = ClosedForm(robot).branches(start, robot.home)
    lowest = min(branches, key=lambda q: np.sin(-q[1]))
    return load_robot("ur5e", home=lowest)


def planned(robot, start=None, **more):
    scenario = load_scenario("circle", robot)
    return make_plan(
        robot,
        scenario,
        ForwardDynamicsParameters().build(robot),
        Options(start=start, **QUICK, **more),
    )[0]


@pytest.mark.parametrize("name", ["ur10", "ur3e"])
def test_homes_branch_is_kept(name):
    robot = load_robot(name)
    auto = planned(robot, "auto")

    home = planned(robot, "home")

    assert np.array_equal(auto.setpoints, home.setpoints)
    assert auto.start is None
    assert "start" not in auto.as_arrays()


def test_another_branch_is_stored(elbow_down):
    with pytest.warns(UserWarning, match="The plan starts on another branch, that of --home "):
        plan = planned(elbow_down)

    assert plan.start is not None
    assert "below the floor" in plan.start.reason

    np.testing.assert_allclose(plan.setpoints[0], plan.start.joints, atol=1e-6)
    again = Plan.from_arrays(plan.as_arrays())

    assert again.start is not None
    assert np.array_equal(again.start.joints, plan.start.joints)
    assert np.array_equal(planned(elbow_down).setpoints, plan.setpoints)


def test_check_and_settings_name_the_branch(elbow_down):
    from simbridge.running.run_setup import check_facts

    prepared = prepare("circle", robot=elbow_down, options=Options(**QUICK))
    facts = check_facts(prepared)["start"]

    assert facts["joints"] == prepared.plan.start.joints.tolist()

    start = record_run(prepared).scenario.start

    assert start == StartRecord(facts["joints"], facts["reason"])


def test_the_refusal_names_branch_and_flag(elbow_down):
    with pytest.raises(
        PlannedCollision,
        match=r"below the floor.*would pass: use --home (.+) or --start auto",
    ) as caught:
        planned(elbow_down, "home")

    named = [
        float(q)
        for q in str(caught.value).partition("--home ")[2].partition(" or --start")[0].split()
    ]

    assert planned(load_robot("ur5e", home=named), "home").start is None


def turn_of_tool(turns):
    """Return a trajectory in which the tool turns about its own axis, downwards."""
    fractions = np.linspace(0.0, 1.0, 1201)
    angles = 2.0 * np.pi * turns * fractions**2 * (3.0 - 2.0 * fractions)
    poses = np.zeros((len(angles), 7))
    poses[:, :3] = [0.40, 0.10, 0.25]
    poses[:, 3] = np.cos(0.5 * angles)
    poses[:, 4] = np.sin(0.5 * angles)
    return Trajectory(0.01 * np.arange(len(angles)), poses)


def test_other_turns_of_homes_posture_are_tried():
    robot = load_robot("ur5e")
    solver = ForwardDynamicsParameters().build(robot)
    scenario = Scenario(turn_of_tool(1.5))
    home_start = solver.solve(scenario.trajectory.start, robot.home).q

    with pytest.warns(UserWarning, match="whole turns away.*wrist_3_joint would be at") as notes:
        plan, _ = make_plan(robot, scenario, solver, Options(start="auto", **QUICK))

    (note,) = [str(note.message) for note in notes if "The plan starts" in str(note.message)]
    assert "branch" not in note
    assert "Move the trajectory" not in note
    # The same posture, with the last joint begun a turn before.
    difference = plan.start.joints - home_start
    assert np.allclose(difference[:5], 0.0, atol=1e-6)
    assert abs(difference[5]) == pytest.approx(2.0 * np.pi)
    assert np.allclose(plan.setpoints[0], plan.start.joints, atol=1e-6)
    assert np.abs(plan.setpoints[:, 5]).max() <= 2.0 * np.pi


def test_a_refused_turn_names_the_home_that_passes():
    robot = load_robot("ur5e")
    solver = ForwardDynamicsParameters().build(robot)

    with pytest.raises(LimitExceeded, match=r"would pass: use --home (.+) or") as caught:
        make_plan(robot, Scenario(turn_of_tool(1.5)), solver, Options(start="home", **QUICK))

    words = str(caught.value).partition("--home ")[2].partition(" or --start")[0].split()
    home = [float(word) for word in words]
    other = load_robot("ur5e", home=home)
    solver = ForwardDynamicsParameters().build(other)
    plan, _ = make_plan(other, Scenario(turn_of_tool(1.5)), solver, Options(**QUICK))
    assert plan.start is None


@pytest.mark.parametrize(
    ("turns", "advice"),
    [
        (2.4, "wrist_3_joint travels 864.0 degrees, but its range is only 720.0 degrees wide"),
        (1.95, "travels 702.0 degrees, so it must start between 342.0 degrees and 360.0 degrees"),
    ],
)
def test_turns_that_no_start_fits_say_so(turns, advice):
    robot = load_robot("ur5e")
    solver = ForwardDynamicsParameters().build(robot)
    # Every 16 ms, the joint would travel 0.1 degrees less than the advice expected here.
    options = Options(start="auto", period=0.008, speed_scale=2.0)

    with pytest.raises(LimitExceeded) as caught:
        make_plan(robot, Scenario(turn_of_tool(turns)), solver, options)

    assert advice in str(caught.value)
    assert "--home" not in str(caught.value)
    assert "Move the trajectory." not in str(caught.value)


def test_what_no_branch_reaches_is_refused_as_before():
    robot = load_robot("ur10")
    scenario = load_scenario("past_the_edge", robot)

    with pytest.raises(TargetOutOfReach) as caught:
        make_plan(robot, scenario, ForwardDynamicsParameters().build(robot), Options(**QUICK))

    assert "--start" not in str(caught.value)


def test_an_inevitable_floor_has_no_advice():
    with pytest.raises(PlannedCollision) as caught:
        planned(load_robot("ur10"), floor=0.45)

    assert "would pass" not in str(caught.value)
