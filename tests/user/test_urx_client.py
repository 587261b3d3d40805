"""urx 0.11.0 with the emulator.

Only its class URRobot: Robot does not work with the math3d that installs on Python 3.10 and later.
It cannot read the robot mode of PolyScope 3.5 and later, so it waits for no move
(docs/emulator.md).
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from simbridge.emulator.handle import Emulator
from tests.controllers import EMULATOR_PRIORITY, loopback, realtime
from tests.patience import PATIENCE

pytest.importorskip("urx", reason="urx is not installed: the extra `test` has it")

# urx gives up after half a second without a state.
pytestmark = pytest.mark.real_time

HOST = loopback(90)
CLIENT = """
import sys, warnings
warnings.simplefilter("ignore")
from urx.urrobot import URRobot

robot = URRobot(sys.argv[1])
print(robot.getj())
print(robot.getl())
robot.movej([0.2, -1.3, 1.9, -2.2, -1.5, 0.1], acc=2.0, vel=1.0, wait=False)
robot.close()
"""


def test_urx_reads_joints_and_tool_and_starts_moves():
    with Emulator(
        "ur10e",
        polyscope="5.12",
        host=HOST,
        realtime_priority=EMULATOR_PRIORITY,
        boot_time=0.05,
    ) as controller:
        state = controller.state()
        # The client inherits the priority.
        with realtime():
            ended = subprocess.run(
                [sys.executable, "-c", CLIENT, HOST],
                capture_output=True,
                text=True,
                timeout=PATIENCE,
            )
        assert ended.returncode == 0, ended.stderr
        joints, pose = (
            np.fromstring(line.strip("[]"), sep=",") for line in ended.stdout.splitlines()
        )
        assert np.allclose(joints, state["target_q"], atol=1e-6)
        assert np.allclose(pose, state["tcp_pose"], atol=1e-6)
        controller.wait_for("target_q", [0.2, -1.3, 1.9, -2.2, -1.5, 0.1])
