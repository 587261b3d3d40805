"""`python -m tests.backends.link_sender HOST ROBOT LINK REGISTERS FILE` sends the setpoints of a
file to a controller through a link, many in each of its cycles.

In a process of its own, as a servo process is: ur_rtde leaves threads behind. It has a real-time
priority, as the control script ends where no command comes for long.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import Any

import numpy as np

from simbridge.backends.control_script import draw_session_number
from simbridge.backends.controller_options import servo_config
from simbridge.backends.servo_process import LINKS
from simbridge.planning.options import Options
from simbridge.robot.load import load_robot
from tests.controllers import realtime
from tests.patience import PATIENCE

# Setpoints that are sent before the next state is waited for.
SETPOINTS_PER_STATE = 25


def send(host: str, robot: str, link: Any, registers: Any, file: str) -> None:
    # Before the connection is made: a servo process opens no file after that.
    setpoints = np.load(file)
    options = Options(host=host, link=link, registers=registers)
    config = servo_config(host, load_robot(robot), options)
    opened = LINKS[link](replace(config, number=draw_session_number()))
    opened.check_idle()
    opened.upload()
    opened.await_script()

    for index, setpoint in enumerate(setpoints):
        if index % SETPOINTS_PER_STATE == 0:
            assert opened.states(PATIENCE)
        assert opened.servo(setpoint)
    opened.stop()


if __name__ == "__main__":
    with realtime():
        send(*sys.argv[1:])
    sys.stdout.flush()
    os._exit(0)
