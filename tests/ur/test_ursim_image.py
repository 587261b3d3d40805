"""UR's images of URSim, and the sentences that say how one is started."""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest

from simbridge.robot import load_robot
from simbridge.ur.ursim_image import container_options, docker_command, start_advice

UR10 = load_robot("ur10")
UR10E = load_robot("ur10e")


@pytest.mark.parametrize(
    ("name", "image", "model"),
    [
        ("ur10", "ursim_cb3", "UR10"),
        ("ur10e", "ursim_e-series", "UR10"),
        ("ur5e", "ursim_e-series", "UR5"),
        ("ur20", "ursim_e-series", "UR20"),
        ("ur8long", "ursim_e-series", "UR8LONG"),
    ],
)
def test_dockers_command_names_image_and_model(name, image, model):
    words = shlex.split(docker_command(load_robot(name)))

    assert words[:2] == ["docker", "run"]
    assert words[-1] == f"docker.io/universalrobots/{image}"
    assert f"ROBOT_MODEL={model}" in words


def test_ports_are_published_at_one_address():
    words = container_options("UR10e", "127.0.0.7")

    assert {"127.0.0.7:29999:29999", "127.0.0.7:30001-30004:30001-30004"} <= set(words)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_on_this_computer_one_command_starts_it(host):
    assert start_advice(UR10E, host).endswith("`simbridge ursim start ur10e`")


def test_another_loopback_address_is_named():
    assert "`simbridge ursim start ur10 --host 127.0.0.7`" in start_advice(UR10, "127.0.0.7")


def test_an_arm_that_is_not_urs_names_no_model():
    panda = replace(UR10, title="Panda", ur_model="")

    assert "`simbridge ursim start MODEL`" in start_advice(panda, "127.0.0.1")


def test_another_computer_gets_dockers_command():
    advice = start_advice(UR10, "lab")

    assert docker_command(UR10) in advice
    assert " -p 30001-30004:30001-30004 " in advice
