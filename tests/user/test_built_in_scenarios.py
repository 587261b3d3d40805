"""Every scenario can be planned on a large and on a small arm, or the error gives the reason."""

from __future__ import annotations

import numpy as np
import pytest

from simbridge.errors import ScenarioError, TargetOutOfReach
from simbridge.planning.options import Options
from simbridge.resources import scenario_files
from simbridge.running.run_setup import prepare
from tests.properties import variants

# Those of the paper are planned on every arm in test_paper_size.py.
NAMES = sorted(
    set(scenario_files()) - {"square_tracking", "square_corners", "step", "past_the_edge"}
)
IN_SPACE_ONLY = [
    "elbow_singularity",
    "iso_cube",
    "pick_and_place",
    "shoulder_singularity",
    "wrist_singularity",
]


@pytest.mark.parametrize("scenario", NAMES)
@pytest.mark.parametrize("robot", variants(["ur10", "ur3e", "ur8long"], "ur10", "ur3e"))
def test_the_plan_of_every_scenario_passes_its_check(robot, scenario):
    # The arms' own 8 and 2 ms would only take longer.
    prepared = prepare(scenario, robot=robot, options=Options(period=0.02))

    assert prepared.peaks.clearance.distance > 0.005
    assert np.all(prepared.peaks.velocity <= prepared.robot.max_velocity * (1.0 + 1e-6))


@pytest.mark.parametrize("scenario", sorted(set(NAMES) - set(IN_SPACE_ONLY)))
def test_plane_figures_pass_on_a_planar_arm_too(scenario):
    prepared = prepare(scenario, robot="planar3r")

    assert np.all(prepared.plan.trajectory.poses[:, 2] == 0.0)


@pytest.mark.parametrize("scenario", IN_SPACE_ONLY)
def test_a_planar_arm_refuses_scenarios_in_space(scenario):
    with pytest.raises(
        ScenarioError,
        match=r"robot must be an arm (of six|that moves in space)",
    ):
        prepare(scenario, robot="planar3r")


@pytest.mark.parametrize("robot", variants(["ur10", "ur3", "planar3r"], "ur10", "planar3r"))
def test_the_line_past_the_edge_is_refused(robot):
    with pytest.raises(TargetOutOfReach) as caught:
        prepare("past_the_edge", robot=robot)
    # The first missed target is just past the edge; its distance is not shown as zero.
    assert 0.0 < caught.value.distance < 0.01
    assert "pose is 0.0 mm" not in str(caught.value)
    assert "the farthest is" in str(caught.value)


def test_check_refuses_the_line_past_the_edge(cli):
    assert cli("check", "past_the_edge", "--robot", "planar3r").status == 2


def test_descriptions_follow_the_task(cli):
    from simbridge import load_robot, load_scenario

    assert "tool down" in load_scenario("square_tracking", load_robot("ur10")).description
    assert "tool down" not in load_scenario("square_tracking", load_robot("planar3r")).description
