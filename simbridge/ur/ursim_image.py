"""UR's images of URSim, its simulator of a controller: their names, ports and commands.

Source: Universal Robots, images ursim_cb3 and ursim_e-series on Docker Hub. Both name an arm of the
e-Series without its e.
"""

from __future__ import annotations

import shlex

from simbridge.robot.robot import Robot
from simbridge.ur.tables import DASHBOARD, PRIMARY, REALTIME, RTDE, SECONDARY

# Ports of URSim's screen: by VNC, and as a page for a browser.
VNC = 5900
SCREEN = 6080
URSIM_PORTS = (VNC, SCREEN, DASHBOARD, PRIMARY, SECONDARY, REALTIME, RTDE)
"""The ports that are published: of the screen, and of the controller's interfaces."""

CB3_IMAGE = "docker.io/universalrobots/ursim_cb3"
E_SERIES_IMAGE = "docker.io/universalrobots/ursim_e-series"


def ursim_image(series: str | None) -> str:
    """Return the name of the image for arms of a series, without a tag."""
    return CB3_IMAGE if series == "CB3" else E_SERIES_IMAGE


def pendant_page(host: str) -> str:
    """Return the address of the page that shows the pendant of URSim at a host."""
    return f"http://{host}:{SCREEN}/vnc.html"


def container_options(arm: str, address: str = "") -> list[str]:
    """Return the options that choose the arm and publish the ports, for `docker run`.

    Args:
        arm: The model that its controller reports, such as "UR10e".
        address: Address of this computer at which the ports are published; all of them if "".
    """
    model = arm.removesuffix("e").upper().replace(" ", "")
    prefix = f"{address}:" if address else ""
    options = ["-e", f"ROBOT_MODEL={model}"]
    for ports in (VNC, SCREEN, DASHBOARD, f"{PRIMARY}-{RTDE}"):
        options += ["-p", f"{prefix}{ports}:{ports}"]
    return options


def is_loopback(host: str) -> bool:
    """Return whether an address is one at which only this computer is reached."""
    return host == "localhost" or host.startswith("127.")


def docker_command(robot: Robot) -> str:
    """Return the command that starts URSim for an arm on the computer where it is entered.

    Its ports are open to the network.
    """
    options = container_options(robot.ur_model or robot.title)
    return shlex.join(["docker", "run", "--rm", "-it", *options, ursim_image(robot.series)])


def start_advice(robot: Robot, host: str) -> str:
    """Return a sentence that says how URSim for an arm is started at an address."""
    if not is_loopback(host):
        return f"On that computer URSim is started with: {docker_command(robot)}"

    model = robot.ur_model.lower().replace(" ", "") or "MODEL"
    command = ["simbridge", "ursim", "start", model]
    if host not in ("localhost", "127.0.0.1"):
        command += ["--host", host]
    return f"URSim is started with: `{' '.join(command)}`"
