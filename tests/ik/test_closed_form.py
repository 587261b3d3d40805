"""The closed form against the forward kinematics, the law of cosines, another solver, and itself
at the edges.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from simbridge.errors import InvalidParameter, NoClosedForm
from simbridge.ik.closed_form import ClosedForm
from simbridge.ik.settings import SOLVERS
from simbridge.robot import load_robot, pose
from simbridge.robot.calibration import calibrate
from simbridge.robot.calibration_file import read_calibration
from simbridge.robot.kinematics import tool_path
from simbridge.trajectory import Trajectory
from tests.properties import few_examples, variants

pytestmark = pytest.mark.slow

DATA = Path(__file__).parents[1] / "data"
URS = [
    "ur3",
    "ur5",
    "ur10",
    "ur3e",
    "ur5e",
    "ur10e",
    "ur16e",
    "ur15",
    "ur18",
    "ur20",
    "ur30",
    "ur8long",
]
UR10 = load_robot("ur10")
SOLVER = ClosedForm(UR10)
PLANAR = load_robot("planar2r", lengths=(0.5, 0.3))

angles = st.floats(-3.1, 3.1)
postures = st.lists(angles, min_size=6, max_size=6).map(np.array)
# From far below rounding to where nothing is singular any more.
tiny = st.one_of(st.just(0.0), st.floats(-14.0, -1.0).map(lambda exponent: 10.0**exponent))


def tool(robot, q):
    return tool_path(robot, np.atleast_2d(q))


def misses(robot, target, branches):
    """The largest deviation of any branch from the target, m or rad."""
    translation, rotation = pose.error(target, tool_path(robot, branches))
    return max(np.abs(translation).max(), np.abs(rotation).max())


def wrapped(difference):
    return (difference + math.pi) % (2.0 * math.pi) - math.pi


def farthest_apart(a, b):
    """The largest distance from a row of either to the nearest of the other, whole turns aside."""
    between = np.abs(wrapped(a[:, None] - b[None])).max(axis=-1)
    return max(between.min(axis=0).max(), between.min(axis=1).max())


def assert_distinct(branches):
    for i in range(len(branches)):
        for j in range(i):
            assert np.abs(wrapped(branches[i] - branches[j])).max() > 1e-7


def with_limits(robot, **of_joint):
    """The robot with (low, high) for joints given as j0=, j1=, ..."""
    joints = list(robot.joints)
    for name, (low, high) in of_joint.items():
        i = int(name[1:])
        joints[i] = replace(joints[i], position_min=low, position_max=high)
    return replace(robot, joints=tuple(joints))


def shoulder_singular(q, ahead):
    """The posture with the shoulder lifted so that the wrist stands `ahead` metres before the pan
    axis, or None.
    """
    d5 = UR10.placements[5][2, 3]
    a2 = UR10.placements[2][0, 3]
    a3 = UR10.placements[3][0, 3]
    # a2 c2 + a3 c23 + d5 s234 = x c2 - y s2
    x = a2 + a3 * math.cos(q[2]) + d5 * math.sin(q[2] + q[3])
    y = a3 * math.sin(q[2]) - d5 * math.cos(q[2] + q[3])
    size = math.hypot(x, y)
    if size < 0.1:
        return None
    out = q.copy()
    out[1] = wrapped(math.acos(ahead / size) - math.atan2(y, x))
    return out


@pytest.mark.parametrize("name", variants(URS, "ur10", "ur30"))
def test_every_branch_attains_the_target(name):
    robot = load_robot(name)
    solver = ClosedForm(robot)
    joints = np.random.default_rng(3).uniform(-math.pi, math.pi, (100, 6))
    counts = set()

    for q, target in zip(joints, tool(robot, joints), strict=True):
        branches = solver.branches(target, near=q)
        counts.add(len(branches))
        assert misses(robot, target, branches) < 1e-10
        assert np.abs(branches[0] - q).max() < 1e-8
        assert_distinct(branches)

    assert counts == {2, 4, 6, 8}


def test_the_tool_centre_point_is_included():
    robot = UR10.with_tcp(pin.SE3(pin.utils.rotate("y", 0.7), np.array([0.1, -0.05, 0.2])))
    target = tool(robot, robot.home)[0]

    branches = ClosedForm(robot).branches(target)

    assert len(branches) == 8
    assert misses(robot, target, branches) < 1e-10


def test_branches_come_nearest_first_from_the_present_posture():
    target = tool(UR10, UR10.home)[0]

    for near in SOLVER.branches(target):
        branches = SOLVER.branches(target, near)
        away = np.linalg.norm(branches - near, axis=1)
        assert away[0] < 1e-9
        assert np.all(np.diff(away) >= 0.0)


def test_branches_begin_near_the_present_posture():
    solver = ClosedForm(UR10)
    target = tool(UR10, UR10.home)[0]

    assert np.abs(solver.branches(target)[0] - UR10.home).max() < 1e-9

    sixth_branch = solver.branches(target)[5]
    solver.reset(sixth_branch)

    assert np.abs(solver.branches(target)[0] - sixth_branch).max() < 1e-9


def test_joints_take_the_nearest_whole_turn():
    target = tool(UR10, UR10.home)[0]
    near = UR10.home + 2.0 * math.pi * np.array([-1, 0, 0, 1, 1, -1])
    near = np.clip(near, UR10.position_min, UR10.position_max)

    for branch in SOLVER.branches(target, near):
        for i, q in enumerate(branch):
            turns = q + 2.0 * math.pi * np.arange(-3, 4)
            inside = turns[(turns >= UR10.position_min[i]) & (turns <= UR10.position_max[i])]
            assert abs(q - near[i]) <= np.abs(inside - near[i]).min() + 1e-9


def test_branches_beyond_a_limit_are_left_out():
    target = tool(UR10, UR10.home)[0]
    every = SOLVER.branches(target)

    limited = ClosedForm(with_limits(UR10, j2=(0.0, 3.1))).branches(target)

    assert len(limited) == 4
    assert np.array_equal(limited, every[every[:, 2] > 0.0])


def test_a_joint_beyond_its_limit_turns_back():
    robot = with_limits(UR10, j0=(0.5, 0.5 + 2.0 * math.pi))
    solver = ClosedForm(robot)

    branches = solver.branches(tool(UR10, UR10.home)[0], UR10.home)

    assert len(branches) == 8
    assert np.all(branches[:, 0] >= 0.5)
    assert abs(branches[:, 0] - 2.0 * math.pi).min() < 1e-9


def test_a_solution_at_a_limit_survives_rounding():
    home = UR10.home
    robot = with_limits(UR10, j1=(home[1], home[1] + 1.0), j2=(1.0, home[2]), j3=(home[3], 0.0))

    branches = ClosedForm(robot).branches(tool(UR10, home)[0], home)

    assert np.abs(branches[0] - home).max() < 1e-10
    assert np.all((branches >= robot.position_min) & (branches <= robot.position_max))


def test_endless_joints_take_the_nearest_turn():
    robot = load_robot("ur5e")
    robot = with_limits(robot, j5=(-math.inf, math.inf))
    near = robot.home.copy()
    near[5] += 200.0 * math.pi

    assert abs(ClosedForm(robot).branches(tool(robot, robot.home)[0], near)[0, 5] - near[5]) < 1e-9


def test_out_of_reach_there_are_no_branches():
    assert SOLVER.branches([2.0, 0.0, 0.3, 0.0, 1.0, 0.0, 0.0]).shape == (0, 6)
    # Nearer to the pan axis than the wrist can get: the tool's axis points down it.
    assert SOLVER.branches([0.0, 0.01, 0.8, 0.0, 1.0, 0.0, 0.0]).shape == (0, 6)


def test_out_of_reach_steps_settle_stretched():
    solver = ClosedForm(UR10)
    target = np.array([2.0, 0.3, 0.4, 0.0, 1.0, 0.0, 0.0])
    settled = solver.step(target)

    for _ in range(20):
        assert np.abs(solver.step(target) - settled).max() < 1e-9

    distance, angle = solver.last.residual

    assert 0.5 < distance < 1.5
    assert angle < 1e-7
    assert abs(settled[2]) < 1e-9
    assert "elbow" in solver.singular

    outcome = solver.solve(target, settled)

    assert not outcome.converged
    assert outcome.distance == pytest.approx(distance, abs=1e-9)


def test_tracking_out_of_reach_and_back_is_continuous():
    steps = np.concatenate([np.linspace(0.8, 1.6, 4000), np.linspace(1.6, 0.8, 4000)])
    poses = np.array([[x, 0.164, 0.3, 0.0, 1.0, 0.0, 0.0] for x in steps])
    start = SOLVER.solve(poses[0])
    path, residuals, converged = SOLVER.solve_each(poses, start.q)

    assert start.converged
    assert converged[0]
    assert converged[-1]
    assert not converged[4000]
    assert np.all(residuals[converged] < 1e-10)
    # Stretching out, the elbow moves with the root of the distance that is left.
    assert np.abs(np.diff(path, axis=0)).max() < 0.05
    assert np.abs(path[-1] - path[0]).max() < 1e-6 or path[0, 2] * path[-1, 2] < 0.0


def test_an_arm_that_cannot_point_stays():
    solver = ClosedForm(with_limits(UR10, j2=(1.0, 2.5)))
    q = solver.step([2.0, 0.3, 0.4, 0.0, 1.0, 0.0, 0.0])

    assert np.array_equal(q, UR10.home)


def test_the_nearest_branch_is_continuous_along_a_line():
    t = np.linspace(0.0, 1.0, 2000)[:, None]
    points = (1.0 - t) * [0.75, -0.3, 0.3] + t * [0.6, 0.5, 0.5]
    poses = np.column_stack([points, np.tile([0.0, 1.0, 0.0, 0.0], (2000, 1))])

    for q0 in SOLVER.branches(poses[0]):
        path = SOLVER.track(poses, q0)
        assert np.abs(np.diff(path, axis=0)).max() < 2e-3
        translation, rotation = pose.error(poses, tool_path(UR10, path))
        assert max(np.abs(translation).max(), np.abs(rotation).max()) < 1e-10


def test_stepping_equals_tracking_to_the_last_bit():
    rng = np.random.default_rng(5)
    poses = np.column_stack([rng.uniform(-1.2, 1.2, (300, 3)), rng.normal(size=(300, 4))])
    poses[:, 3:] = pose.normalize(poses[:, 3:])
    solver = ClosedForm(UR10)

    path = solver.track(poses, UR10.home)

    assert np.array_equal(np.array([solver.step(target) for target in poses]), path)
    assert np.array_equal(solver.track(poses, UR10.home), path)


@few_examples(25)
@given(q=postures, bend=tiny, half=st.booleans(), sign=st.sampled_from([-1.0, 1.0]))
def test_branches_near_a_singular_wrist_attain(q, bend, half, sign):
    q[4] = math.pi * half + sign * bend
    assert_round_trip(q)


@few_examples(25)
@given(q=postures, bend=tiny, half=st.booleans(), sign=st.sampled_from([-1.0, 1.0]))
def test_nearly_stretched_branches_attain_the_target(q, bend, half, sign):
    q[2] = sign * (math.pi - bend if half else bend)
    assert_round_trip(q)


@few_examples(25)
@given(q=postures, ahead=tiny, sign=st.sampled_from([-1.0, 1.0]))
def test_branches_near_a_singular_shoulder_attain(q, ahead, sign):
    q = shoulder_singular(q, sign * ahead)
    assume(q is not None)
    assert_round_trip(q)


@few_examples(25)
@given(q=postures, bends=st.tuples(tiny, tiny, tiny))
# Stretched so far that the arm reaches only with pan and wrist 3 as they are, which rounding turns
# by more than itself.
@example(q=np.zeros(6), bends=(0.0, 1e-5, 1e-7))
@example(q=np.zeros(6), bends=(1e-6, 1e-8, 1e-10))
@example(q=np.zeros(6), bends=(1e-7, 0.01, 1e-6))
def test_near_several_singularities_every_branch_attains_the_target(q, bends):
    q[2], q[4] = bends[:2]
    q = shoulder_singular(q, bends[2])
    assume(q is not None)
    assert_round_trip(q)


@pytest.mark.parametrize(
    "q",
    [
        # 1e-7 m before the pan axis.
        [0.0, -1.67306332, 0.01, 0.0, 1e-5, 0.0],
        # The shoulder is far from singular.
        [-0.745960104, 0.0, 0.0, -1.5195509, 3.14159265, -0.28032969],
        # The wrist is far from singular.
        [-0.1, -1.627147770047329, 1e-07, -0.9, 1.2, -1.1],
    ],
)
def test_rounding_hides_no_stretched_posture(q):
    assert_round_trip(np.array(q))


@pytest.mark.parametrize("theta5", [1.0, 0.01])
def test_a_nanometre_beyond_reach_is_out_of_reach(theta5):
    q = np.array([0.1, -1.0, 0.0, -1.2, theta5, 0.3])
    target = tool(UR10, q)[0]

    assert len(SOLVER.branches(target, q)) > 0

    # Away along the stretched arm, whose direction is the upper arm's.
    flat = math.cos(q[1])
    target[:3] += 1e-9 * np.array([math.cos(q[0]) * flat, math.sin(q[0]) * flat, -math.sin(q[1])])

    assert SOLVER.branches(target, q).shape == (0, 6)


def assert_round_trip(q):
    target = tool(UR10, q)[0]
    branches = SOLVER.branches(target, q)
    assert 1 <= len(branches) <= 8
    assert np.isfinite(branches).all()
    assert misses(UR10, target, branches) < 1e-10
    assert_distinct(branches)


@pytest.mark.parametrize("theta5", [0.0, math.pi])
def test_a_singular_wrist_stays_and_is_reported(theta5):
    q = np.array([0.2, -1.3, 1.9, -0.4, theta5, 0.9])
    target = tool(UR10, q)[0]
    near = q + np.array([0.0, 0.0, 0.0, 0.3, 0.0, -0.3])
    branch = SOLVER.branches(target, near)[0]

    assert SOLVER.singular == ("wrist",)
    assert branch[5] == pytest.approx(near[5], abs=1e-12)
    assert misses(UR10, target, branch[None]) < 1e-10
    assert SOLVER.branches(tool(UR10, UR10.home)[0]).shape == (8, 6)
    assert SOLVER.singular == ()


def through_the_wrist_singularity(samples=9):
    """Joint positions (T, 6) that stop with wrist 1 and wrist 3 in line for the middle third of the
    way.
    """
    joints = np.tile([0.2, -1.3, 1.9, -0.4, 0.0, 0.9], (samples, 1))
    joints[:, 0] += np.linspace(0.0, 0.02, samples)
    third = samples // 3
    joints[:third, 4] = 0.001 * np.arange(third, 0, -1)
    joints[-third:, 4] = 0.001 * np.arange(1, third + 1)
    return joints


def test_singular_samples_have_their_kinds():
    joints = through_the_wrist_singularity()
    solver = ClosedForm(UR10)
    poses = tool(UR10, joints)

    assert solver.singular == ()

    for follow in (solver.track, solver.solve_each):
        follow(poses, joints[0])
        assert solver.singular == ("wrist",)
        assert solver.singular_samples["wrist"].tolist() == [3, 4, 5]

    solver.track(poses[:3], joints[0])

    assert solver.singular_samples == {}
    assert solver.solve(poses[4], joints[4]).converged
    assert solver.singular_samples["wrist"].tolist() == [0]

    solver.solve(poses[0], joints[0])

    assert solver.singular == ()

    solver.step(poses[4])

    assert solver.singular == ("wrist",)

    solver.reset(joints[0])

    assert solver.singular == ()


def test_a_run_through_singular_poses_reports_them(cli, tum, tmp_path, without_pages):
    joints = through_the_wrist_singularity(30)
    path = tum(tmp_path / "line.tum", Trajectory(0.008 * np.arange(30), tool(UR10, joints)))
    solving = ("--solver", "closed-form", "--home", *joints[0])
    out = tmp_path / "run"

    answer = cli("run", path, *solving, "--out", out)

    assert answer.status == 0, answer.message

    note_text = "met singular poses in 10 of 30 samples (wrist 10, first sample 10)"

    assert note_text in answer.out

    (note,) = json.loads((out / "summary.json").read_text())["solver_notes"]

    assert note_text in note

    (again,) = json.loads(cli("check", path, *solving, "--json").out)["solver_notes"]

    assert again == note

    from_home = json.loads(cli("check", path, "--home", *joints[0], "--json").out)

    assert from_home["solver_notes"] == []


def test_a_singular_wrist_turns_to_reach():
    # Stretched with wrist 2's offset pointing along the arm: any other turn of wrist 3 leaves the
    # target out of reach.
    q = np.array([0.0, 0.0, 0.0, -math.pi / 2, 0.0, 0.4])
    target = tool(UR10, q)[0]

    for turn in (-1.5, 0.2, 2.9):
        branches = SOLVER.branches(target, q + np.array([0.0, 0.0, 0.0, 0.0, 0.0, turn]))
        assert len(branches) > 0
        assert misses(UR10, target, branches) < 1e-10


def test_singular_elbow_and_shoulder_halve_the_branches():
    stretched = np.array([0.1, -1.0, 0.0, -1.2, 1.0, 0.3])
    branches = SOLVER.branches(tool(UR10, stretched)[0], stretched)

    assert SOLVER.singular == ("elbow",)
    assert len(branches) % 2 == 1

    over = shoulder_singular(np.array([0.1, 0.0, 1.2, -1.2, 1.0, 0.3]), 0.0)
    branches = SOLVER.branches(tool(UR10, over)[0], over)

    assert SOLVER.singular == ("shoulder",)
    assert len(branches) in (2, 4)


@few_examples(25)
@given(
    position=st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3),
    quaternion=st.lists(st.floats(-1.0, 1.0), min_size=4, max_size=4),
)
def test_every_target_gives_finite_joints_within_limits(position, quaternion):
    assume(np.linalg.norm(quaternion) > 1e-100)
    solver = ClosedForm(UR10)

    q = solver.step([*position, *quaternion])

    assert np.isfinite(q).all()
    assert np.all((q >= UR10.position_min) & (q <= UR10.position_max))
    assert np.isfinite(solver.last.residual).all()


@pytest.mark.parametrize("target", [[0.0] * 7, [math.nan] + [0.0] * 5 + [1.0], [1.0] * 6, "tool"])
def test_an_invalid_pose_is_refused(target):
    for action in (SOLVER.branches, ClosedForm(UR10).step, SOLVER.solve):
        with pytest.raises((InvalidParameter, ValueError)):
            action(target)


@pytest.mark.parametrize("near", [[0.0] * 5, [math.inf] * 6])
def test_invalid_joint_positions_are_refused(near):
    with pytest.raises(InvalidParameter, match="joint positions"):
        SOLVER.branches(tool(UR10, UR10.home)[0], near)


def test_planar_elbows_obey_the_cosine_law():
    solver = ClosedForm(PLANAR)
    target = tool(PLANAR, [0.4, 0.9])[0]
    branches = solver.branches(target, [0.4, 0.9])
    r = math.hypot(target[0], target[1])
    inner = math.acos((r**2 + 0.5**2 - 0.3**2) / (2.0 * r * 0.5))
    bend = math.pi - math.acos((0.5**2 + 0.3**2 - r**2) / (2.0 * 0.5 * 0.3))

    direction = math.atan2(target[1], target[0])

    assert np.abs(branches - [[direction - inner, bend], [direction + inner, -bend]]).max() < 1e-12


@few_examples(25)
@given(
    q=st.tuples(angles, angles),
    lengths=st.tuples(st.floats(0.1, 2.0), st.floats(0.1, 2.0)),
    bend=tiny,
)
def test_a_planar_arm_attains_every_position(q, lengths, bend):
    robot = load_robot("planar2r", lengths=lengths)
    solver = ClosedForm(robot)

    for second in (q[1], bend, math.pi - bend):
        posture = np.array([q[0], second])
        target = tool(robot, posture)[0]
        branches = solver.branches(target, posture)
        assert 1 <= len(branches) <= 2
        assert np.abs(tool_path(robot, branches)[:, :3] - target[:3]).max() < 1e-10
        assert_distinct(branches)


def test_a_planar_arm_ignores_the_rotation():
    solver = ClosedForm(PLANAR)
    outcome = solver.solve([0.5, 0.2, tool(PLANAR, [0.0, 0.0])[0, 2], 0.6, 0.0, 0.8, 0.0])

    assert outcome.converged
    assert outcome.distance < 1e-12
    assert outcome.angle == 0.0
    assert solver.task == "position"


def test_a_folded_planar_arm_keeps_its_first_joint():
    robot = load_robot("planar2r", lengths=(0.4, 0.4))
    solver = ClosedForm(robot)
    target = tool(robot, [0.0, 0.0])[0]
    target[:2] = 0.0

    branches = solver.branches(target, [0.7, 3.0])

    assert branches == pytest.approx(np.array([[0.7, math.pi]]))
    assert solver.singular == ("elbow",)


def test_a_planar_arm_points_to_an_unreachable_target():
    solver = ClosedForm(PLANAR)
    height = tool(PLANAR, [0.0, 0.0])[0, 2]

    for target, missing in (
        ([0.6, 0.8, height], 0.2),
        ([0.06, 0.08, height], 0.1),
        ([0.36, 0.48, height + 0.5], 0.5),
    ):
        outcome = solver.solve([*target, 0.0, 0.0, 0.0, 1.0])
        assert solver.branches([*target, 0.0, 0.0, 0.0, 1.0]).shape == (0, 2)
        assert not outcome.converged
        assert outcome.distance == pytest.approx(missing, abs=1e-9)


def test_a_ur_urdf_is_recognised():
    robot = load_robot(DATA / "urdf" / "ur10_from_ros.urdf")
    target = tool(robot, [0.3, -1.2, 1.5, -1.0, -1.4, 0.2])[0]

    branches = ClosedForm(robot).branches(target)

    assert len(branches) == 8
    assert misses(robot, target, branches) < 1e-7


@few_examples(25)
@given(
    turns=st.lists(angles, min_size=6, max_size=6),
    shifts=st.lists(st.floats(-1.0, 1.0), min_size=6, max_size=6),
)
def test_branches_do_not_depend_on_frames(turns, shifts):
    frames = [
        pin.SE3(pin.utils.rotate("z", t), np.array([0.0, 0.0, s]))
        for t, s in zip(turns, shifts, strict=True)
    ]
    joints = [
        replace(joint, placement=joint.placement * frame)
        for joint, frame in zip(UR10.joints, frames, strict=True)
    ]
    for i in range(1, 6):
        joints[i] = replace(joints[i], placement=frames[i - 1].inverse() * joints[i].placement)
    robot = replace(UR10, joints=tuple(joints), tool0=frames[5].inverse() * UR10.tool0)
    target = tool(UR10, UR10.home)[0]

    assert np.abs(tool(robot, UR10.home)[0] - target).max() < 1e-12

    branches = ClosedForm(robot).branches(target, UR10.home)

    assert farthest_apart(branches, SOLVER.branches(target, UR10.home)) < 1e-9


def test_other_arms_are_refused():
    table, _ = read_calibration(DATA / "ur10e_calibration.toml")
    arms = {
        "right angle": calibrate(load_robot("ur10e"), table),
        "3 joints": load_robot("planar3r"),
        "slide": replace(
            PLANAR, joints=(PLANAR.joints[0], replace(PLANAR.joints[1], kind="prismatic"))
        ),
    }

    for reason, robot in arms.items():
        with pytest.raises(NoClosedForm, match=reason) as refusal:
            ClosedForm(robot)
        assert "forward-dynamics" in str(refusal.value)
        assert refusal.value.robot == robot.name


def test_skewed_or_apart_axes_are_refused():
    def moved(i, by):
        joints = list(UR10.joints)
        joints[i] = replace(joints[i], placement=joints[i].placement * by)
        return replace(UR10, joints=tuple(joints))

    for i, by, reason in (
        (1, pin.SE3(np.eye(3), np.array([1e-4, 0.0, 0.0])), "do not meet"),
        (4, pin.SE3(pin.utils.rotate("x", 1e-4), np.zeros(3)), "right angle"),
        (2, pin.SE3(pin.utils.rotate("x", 1e-4), np.zeros(3)), "not parallel"),
        (2, pin.SE3(np.eye(3), -UR10.joints[2].placement.translation), "coincide"),
    ):
        with pytest.raises(NoClosedForm, match=reason):
            ClosedForm(moved(i, by))


def test_it_has_neither_settings_nor_lag():
    solver = SOLVERS["closed-form"]().build(UR10)

    assert solver.name == "closed-form"
    assert (solver.iterations, solver.parameters, solver.lag(0.002)) == (1, {}, 0.0)


# test_a_second_process_compiles_nothing_and_prints_nothing shows it for another kernel.
@pytest.mark.soak
def test_a_later_process_finds_the_machine_code():
    target = tool(UR10, UR10.home)[0].tolist()
    far = [2.0, 0.0, 0.3, 0.0, 1.0, 0.0, 0.0]
    SOLVER.step(target)
    SOLVER.step(far)
    SOLVER.solve(target)
    script = f"""
import sys
from simbridge.ik.closed_form import ClosedForm
from simbridge.robot import load_robot
solver = ClosedForm(load_robot("ur10"))
solver.step({target}), solver.step({far}), solver.solve({target})
"""

    later = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )

    assert later.stderr == ""


def test_eight_branches_attain_the_home_pose():
    robot = load_robot("ur10")
    target = pin.XYZQUATToSE3(tool_path(robot, robot.home[None])[0])

    branches = ClosedForm(robot).branches(target)

    assert len(branches) == 8


# The base frame of ur-analytic-ik is the pendant's.
PENDANT_BASE = np.diag([-1.0, -1.0, 1.0, 1.0])


@pytest.fixture
def ur_analytic_ik():
    """A solver of others, which has no wheel for Python 3.12."""
    return pytest.importorskip(
        "ur_analytic_ik", reason="ur-analytic-ik has no wheel for this Python"
    )


@pytest.mark.parametrize(
    ("name", "postures"),
    [
        ("ur10", 3000),
        pytest.param("ur10", 10_000, marks=pytest.mark.soak),
        pytest.param("ur5e", 10_000, marks=pytest.mark.soak),
    ],
)
def test_branches_are_those_of_ur_analytic_ik(name, postures, ur_analytic_ik):
    solver = ClosedForm(load_robot(name))
    theirs = getattr(ur_analytic_ik, name)
    joints = np.random.default_rng(7).uniform(-math.pi, math.pi, (postures, 6))

    for target in map(pin.XYZQUATToSE3, tool(solver.robot, joints)):
        ours = solver.branches(target)
        expected = np.array(theirs.inverse_kinematics(PENDANT_BASE @ target.homogeneous))
        assert len(ours) == len(expected)
        assert farthest_apart(ours, expected) < 1e-9


def test_ur_analytic_ik_misses_singular_postures(ur_analytic_ik):
    rng = np.random.default_rng(1)
    missed = 0

    for q in rng.uniform(-3.0, 3.0, (100, 6)):
        over = shoulder_singular(q, 0.0)
        if over is None:
            continue
        target = tool(UR10, over)[0]
        theirs = ur_analytic_ik.ur10.inverse_kinematics(
            PENDANT_BASE @ pin.XYZQUATToSE3(target).homogeneous
        )
        ours = SOLVER.branches(target, over)
        assert len(ours) > 0
        assert misses(UR10, target, ours) < 1e-10
        missed += len(theirs) == 0

    assert missed > 0
