"""How long the links to a controller take to send a setpoint.

`python -m simbridge.bench.link_call HOST ROBOT LINK SECONDS` holds the arm of an emulated
controller with one setpoint after each of its states, in a process of its own: ur_rtde may crash,
and leaves threads behind.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import replace
from typing import cast

import numpy as np

from simbridge.backends.control_script import draw_session_number
from simbridge.backends.controller_link import ControllerLink
from simbridge.backends.controller_options import servo_config
from simbridge.backends.low_latency import minimize_latency
from simbridge.backends.servo_process import LINKS
from simbridge.bench.measuring import client
from simbridge.lifeline import end_with_parent
from simbridge.planning.link_choices import LinkName
from simbridge.planning.options import Options
from simbridge.robot.load import load_robot
from simbridge.robot.pose import Array

# How long a state is waited for, s.
STATE_TIMEOUT_S = 0.1


def measure_calls(host: str, robot: str, link: LinkName, seconds: float) -> Array:
    """Return how long each call took that sent a setpoint (K,), s.

    Args:
        host: Address of an emulated controller that is ready.
        robot: Name of its arm.
        link: The link.
        seconds: How long setpoints are sent, s.
    """
    with client("simbridge.bench.link_call", host, robot, link, seconds, quiet=True) as sender:
        output, _ = sender.communicate()
    return np.array(json.loads(output.splitlines()[-1]))


def _send_setpoints(link: ControllerLink, seconds: float) -> list[float]:
    """Hold the arm where it is; return how long each call took, s.

    Args:
        link: A link whose control script does not run yet.
        seconds: How long setpoints are sent, s.
    """
    q = np.array(link.check_idle()["target_q"])
    link.upload()
    link.await_script()

    durations = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if link.states(STATE_TIMEOUT_S):
            begin = time.perf_counter()
            link.servo(q)
            durations.append(time.perf_counter() - begin)

    link.stop()
    return durations


def main(host: str, robot: str, link: LinkName, seconds: float) -> None:
    """Print the durations of the calls as JSON, and end this process."""
    options = Options(host=host, link=link)
    config = servo_config(host, load_robot(robot), options)
    opened_link = LINKS[link](replace(config, number=draw_session_number()))
    minimize_latency(0)
    print(json.dumps(_send_setpoints(opened_link, seconds)))

    # Skip ur_rtde's destructors, which take half a second.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    end_with_parent()
    main(sys.argv[1], sys.argv[2], cast(LinkName, sys.argv[3]), float(sys.argv[4]))
