"""URSim is started by one command."""

from __future__ import annotations

import shlex

import pytest

from simbridge.backends.ursim_startup import docker_command
from tests.backends.controller_facts import UR5E, UR10, UR10E


@pytest.mark.parametrize(
    ("robot", "image", "model"),
    [
        (UR10, "ursim_cb3", "UR10"),
        (UR10E, "ursim_e-series", "UR10"),
        (UR5E, "ursim_e-series", "UR5"),
    ],
)
def test_the_command_names_image_model_and_every_port(robot, image, model):
    words = shlex.split(docker_command(robot))

    assert words[:2] == ["docker", "run"]
    assert words[-1] == f"universalrobots/{image}"
    assert f"ROBOT_MODEL={model}" in words
    assert {"127.0.0.1:29999:29999", "127.0.0.1:30001-30004:30001-30004"} <= set(words)


@pytest.mark.parametrize(
    ("host", "where"), [("localhost", "127.0.0.1:"), ("127.0.0.7", "127.0.0.7:"), ("lab", "")]
)
def test_only_another_computers_ports_are_open_to_a_network(host, where):
    words = shlex.split(docker_command(UR10, host))

    assert f"{where}30001-30004:30001-30004" in words
