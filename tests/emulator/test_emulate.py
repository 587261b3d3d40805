"""Which arms `simbridge emulate` takes, and with which software."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from simbridge.emulator.emulated_controller import EmulatedController
from simbridge.emulator.program import ScriptProgram
from simbridge.emulator.state import profile
from simbridge.resources import robot_files
from simbridge.robot import load_robot
from simbridge.robot.arm_models import models_of_type
from tests.patience import PATIENCE

UR_ARMS = [name for name in robot_files() if name.startswith("ur")]


@pytest.mark.parametrize("name", UR_ARMS)
def test_every_ur_arm_is_recognised_by_its_robot_type(name):
    robot = load_robot(name)
    software = profile("3.15" if robot.series == "CB3" else "5.25")
    controller = EmulatedController(robot, software, ScriptProgram)

    assert controller.period == robot.period
    assert robot.ur_model in models_of_type(controller.robot_type, software.version[0])
    # The dashboard leaves the e out.
    number = robot.title.removeprefix("UR").removesuffix("e").replace(" Long", "L")
    assert controller.model_name == f"UR{number}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "polyscope", "remedy"),
    [
        (
            "ur5",
            "5.12",
            "must be 3.15 (--polyscope) for the UR5, which needs PolyScope 3; got",
        ),
        ("ur20", "3.15", "10.14 (--polyscope) for the UR20, which needs"),
        ("ur15", "5.12", "for the UR15, which needs PolyScope 5.22 (or X 10.8) or later"),
        ("ur7e", "5.9", "which needs PolyScope 5.22 (or X 10.9) or later"),
        ("ur20", "5.12", "which needs PolyScope 5.14 (or X 10.7) or later"),
        ("planar3r", "5.12", "must be a UR arm, with six joints (got planar3r): it has 3 joints"),
    ],
)
def test_a_controller_that_does_not_exist_is_refused(cli, name, polyscope, remedy):
    answer = cli("emulate", "--robot", name, "--polyscope", polyscope, "--host", "127.0.0.52")

    assert answer.status == 2
    assert remedy in answer.message


@pytest.mark.parametrize("name", ["ur10x", "planar", "panda"])
def test_only_arms_that_can_be_emulated_are_offered(cli, name):
    answer = cli("emulate", "--robot", name, "--host", "127.0.0.52")

    assert answer.status == 2
    assert f"There is no UR arm '{name}'." in answer.message
    assert "ur10e" in answer.message
    assert "planar2r" not in answer.message
    assert "_description" not in answer.message


@pytest.mark.parametrize(("polyscope", "bits"), [("5.12", 1), ("5.25", 2049)])
def test_newer_software_reports_the_enabling_input(polyscope, bits):
    controller = EmulatedController(load_robot("ur10e"), profile(polyscope), ScriptProgram)

    assert controller.state.safety_status_bits == bits


@pytest.mark.slow
def test_the_emulator_starts_and_moves_without_numba_and_scipy():
    source = """
        import sys
        import simbridge.emulator.emulate
        from simbridge.emulator.arm import frame_of
        from simbridge.emulator.emulated_controller import EmulatedController
        from simbridge.emulator.program import ScriptProgram
        from simbridge.emulator.state import profile
        from simbridge.robot.load import load_robot

        controller = EmulatedController(load_robot("ur10e"), profile("5.12"), ScriptProgram)
        controller.state.robot_mode = 7
        q = controller.state.target_q
        next(controller.arm.any_joints(frame_of(controller.arm.pose(q)), q + 0.5))
        controller.servo(q + 0.01, 0.002, lookahead=0.1, gain=300)
        controller.tick()
        controller.tick()
        assert controller.state.target_qd.any()
        print([name for name in ("numba", "scipy", "matplotlib") if name in sys.modules])
    """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(source)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )

    assert ended.stdout == "[]\n", ended.stderr
