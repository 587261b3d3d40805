"""The planar arms: the lengths of their links are parameters, and their task is a position."""

from __future__ import annotations

from pathlib import Path
from typing import get_args, get_type_hints

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge import load_robot
from simbridge.errors import InputFileError, InvalidParameter
from simbridge.planning.scenario import Scenario
from simbridge.robot.chain import TASK_ROWS
from simbridge.robot.collision import CollisionModel
from simbridge.robot.kinematics import tool_path
from simbridge.robot.robot_file import RobotFile
from simbridge.running.run_setup import prepare
from simbridge.trajectory import Trajectory
from tests.properties import few_examples

ARMS = {"planar2r": (0.7, 0.5), "planar3r": (0.75, 0.5, 0.25)}
metres = st.floats(0.02, 30.0)


def tool(lengths, q):
    """The tool's position in the plane, from the links' directions."""
    directions = np.cumsum(q)
    return np.array([np.dot(lengths, np.cos(directions)), np.dot(lengths, np.sin(directions)), 0.0])


@pytest.mark.parametrize("name", ARMS)
def test_the_tool_ends_a_chain_in_the_plane(name):
    robot = load_robot(name)

    for q in np.random.default_rng(3).uniform(-np.pi, np.pi, (20, robot.n)):
        np.testing.assert_allclose(
            tool_path(robot, q[None])[0, :3], tool(ARMS[name], q), rtol=0.0, atol=1e-14
        )
    assert robot.arm_length == pytest.approx(sum(ARMS[name]), abs=1e-15)
    assert robot.planar


@few_examples(15, soak=1000)
@given(st.tuples(metres, metres, metres), st.tuples(*[st.floats(-3.0, 3.0)] * 3))
def test_loading_sets_the_links_lengths(lengths, q):
    robot = load_robot("planar3r", lengths=lengths)
    found = tool_path(robot, np.array([q]))[0, :3]

    np.testing.assert_allclose(found, tool(lengths, q), rtol=0.0, atol=1e-13 * sum(lengths))


@few_examples(15, soak=1000)
@given(st.tuples(metres, metres))
def test_a_longer_link_keeps_its_thickness(lengths):
    robot = load_robot("planar2r", lengths=lengths)
    usual = load_robot("planar2r")
    for link, was, length, before in zip(
        robot.links, usual.links, lengths, ARMS["planar2r"], strict=True
    ):
        (rod,) = link.shapes
        (rod_before,) = was.shapes
        assert rod.radius == rod_before.radius
        assert rod.end == pytest.approx((length, 0.0, 0.0))
        mass = 4.0 * length
        r = rod.radius
        assert link.inertia.mass == pytest.approx(mass)
        assert link.inertia.lever == pytest.approx([0.5 * length, 0.0, 0.0])
        across = mass * (r * r / 4.0 + length * length / 12.0)
        # The file's moments have six digits.
        assert np.diag(link.inertia.inertia) == pytest.approx(
            [0.5 * mass * r * r, across, across], rel=1e-4
        )
        assert was.inertia.mass == pytest.approx(4.0 * before)


def test_the_files_own_lengths_change_nothing():
    for name, lengths in ARMS.items():
        one = load_robot(name)
        other = load_robot(name, lengths=lengths)
        assert one.checksum == other.checksum
        assert one.urdf == other.urdf


@pytest.mark.parametrize(
    ("name", "lengths", "reason"),
    [
        ("planar3r", (0.5, 0.4), "3 positive numbers in m, one per link"),
        ("planar3r", (0.5, 0.4, 0.0), "3 positive numbers"),
        ("planar2r", (0.5, float("nan")), "2 positive numbers"),
        ("planar2r", (), "2 positive numbers"),
        ("ur10", (1.0,) * 6, "UR10 is not a planar arm"),
    ],
)
def test_invalid_lengths_are_refused(name, lengths, reason):
    with pytest.raises(InvalidParameter, match=reason) as caught:
        load_robot(name, lengths=lengths)
    assert caught.value.name == "link lengths"


def test_a_urdf_takes_no_lengths(tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_text(load_robot("planar2r").urdf, encoding="utf-8")

    with pytest.raises(InvalidParameter, match="it defines its own links"):
        load_robot(path, lengths=(0.5, 0.5))


@pytest.mark.parametrize("name", ARMS)
def test_a_planar_arms_task_is_the_position(name):
    assert load_robot(name).task == "position"


def test_three_links_are_redundant_and_two_are_not():
    for name, joints in (("planar2r", 2), ("planar3r", 3)):
        robot = load_robot(name)
        data = robot.model.createData()
        jacobian = pin.computeFrameJacobian(
            robot.model, data, robot.home, robot.model.getFrameId("tool0"), pin.LOCAL_WORLD_ALIGNED
        )
        assert np.linalg.matrix_rank(jacobian[:3]) == 2
        assert np.linalg.svd(jacobian[:2], compute_uv=False)[-1] > 0.1
        assert robot.n == joints


def test_links_pass_through_each_other_as_on_paper():
    robot = load_robot("planar3r")

    assert CollisionModel(robot).pairs == 0
    assert all(link.shapes for link in robot.links)


def test_solvers_know_every_task_of_files():
    assert get_args(get_type_hints(RobotFile)["task"]) == tuple(TASK_ROWS)


def planar_file(tmp_path: Path, old: str, new: str) -> Path:
    source = load_robot("planar2r").source
    assert source is not None
    text = source.read_text(encoding="utf-8")
    assert old in text
    path = tmp_path / "mine.toml"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    return path


@pytest.mark.parametrize("task", TASK_ROWS)
def test_a_robot_file_names_its_task(tmp_path, task):
    assert load_robot(planar_file(tmp_path, '"position"', f'"{task}"')).task == task


def test_a_file_without_task_means_the_pose(tmp_path):
    assert load_robot(planar_file(tmp_path, 'task = "position"', "")).task == "pose"


@pytest.mark.parametrize(
    ("task", "reason"),
    [
        ('"poses"', "'poses' is not one of pose, axis, position"),
        ("3", "expected text, got a whole number"),
        ('["position"]', "expected text, got a list"),
    ],
)
def test_an_unknown_task_is_refused_with_its_line(tmp_path, task, reason):
    path = planar_file(tmp_path, '"position"', task)

    with pytest.raises(InputFileError, match=reason) as caught:
        load_robot(path)
    assert (caught.value.field, caught.value.line) == ("task", 5)


@pytest.mark.parametrize("start", [(0.9, 1.0, 0.0), (-0.4, 0.6, 0.0), (0.3, -1.1, 0.0)])
def test_a_plan_starts_at_its_first_target(start):
    there = np.array([[*start, 0.0, 0.0, 0.0, 1.0]])
    prepared = prepare(
        Scenario(Trajectory(np.array([0.0, 0.2]), np.repeat(there, 2, axis=0))), robot="planar3r"
    )

    found = tool(ARMS["planar3r"], prepared.plan.setpoints[0])

    np.testing.assert_allclose(found, start, rtol=0.0, atol=1e-8)


@pytest.mark.parametrize("scenario", ["square_tracking", "square_corners", "step"])
@pytest.mark.parametrize("name", ARMS)
def test_the_papers_scenarios_fit_the_plane(name, scenario):
    prepared = prepare(scenario, robot=name)
    reached = tool(ARMS[name], prepared.plan.solution[-1])

    np.testing.assert_allclose(reached, prepared.plan.targets[-1, :3], rtol=0.0, atol=5e-3)
