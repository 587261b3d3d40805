"""The options of an emulated controller: the flags of `simbridge emulate`.

`Emulator` has its defaults from here, and passes its arguments on as these flags.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Any

from tyro.conf import arg

from simbridge.ur.tables import CONTROL, REST


def optional_flag(metavar: str, unset: str) -> Any:
    """Return a flag's value as the help shows it, and what holds when the flag is left out."""
    return arg(metavar=metavar, help_behavior_hint=f"(default: {unset})")


@dataclass(frozen=True)
class EmulatorOptions:
    """The options of one emulated controller, or of several on successive addresses.

    The help of a flag is the text below its field, or next to it if it is too long for a line.
    """

    robot: Annotated[str, arg(metavar="NAME")] = "ur10e"
    """A UR arm in robots/."""
    polyscope: Annotated[str, arg(metavar="VERSION")] = "5.12"
    """Software: 3.15 (CB3, 125 Hz); 5.9, 5.12, 5.25; PolyScope X 10.7, 10.12, 10.14 (500 Hz)."""
    host: Annotated[str, arg(metavar="ADDRESS")] = "127.0.0.1"
    """Address to listen on; use 127.0.0.2 and so on to run several emulators at once."""
    count: Annotated[int, arg(metavar="N")] = 1
    """Number of arms; each runs in its own process, on the next address."""
    calibration: Annotated[str | None, optional_flag("FILE", "nominal kinematics, as URSim")] = None
    """Kinematics of an individual arm (TOML, or ROS's my_robot_calibration.yaml)."""
    boot_time: Annotated[float, arg(metavar="S")] = 0.5
    """Time from power on to idle, s."""
    programs: Annotated[str | None, optional_flag("DIR", "none")] = None
    """The controller's folder of programs (*.urp), which the dashboard loads."""
    start_pose: Annotated[str, arg(metavar="home|ursim|Q")] = "home"
    """Joints at the start: the robot's home, URSim's, or six numbers, rad, separated by commas."""
    joint_speed_limit: Annotated[
        str | None,
        optional_flag("V", "0.2 rad/s above the arm's own speeds"),
        arg(
            help="The safety system's, rad/s: one number, or six separated by commas; the default "
            "is as on UR's controllers."
        ),
    ] = None
    control_port: Annotated[int, arg(metavar="PORT")] = CONTROL
    """Port for fault injection and queries."""
    rest_port: Annotated[int, arg(metavar="PORT")] = REST
    """Port for the Robot API (REST) of PolyScope X; ports below 1024 may need privileges."""
    services: Annotated[
        str | None,
        optional_flag("LIST", "primary,rtde"),
        arg(
            help="Services that are switched on at the pendant of PolyScope X: primary, rtde and, "
            "from 10.14 on, http, separated by commas, or none."
        ),
    ] = None
    realtime_priority: Annotated[int, arg(metavar="N")] = 0
    """Real-time priority of its ticks, 1 to 99; 0 for ordinary scheduling."""
    speed: Annotated[
        float,
        arg(
            metavar="N",
            help="Run the controller's time up to N times faster, for programs and moves (not for "
            "streamed setpoints).",
        ),
    ] = 1.0
    record: Annotated[str | None, optional_flag("FILE", "not kept")] = None
    """Write all traffic with its clients to this new file, one JSON object per line."""
    verbose: bool = False
    """Print each message from and to its clients in readable form."""

    def flags(self) -> list[str]:
        """Return the arguments of `simbridge emulate` for these options; defaults are left out."""
        arguments = []
        for option in fields(self):
            value = getattr(self, option.name)
            if value == option.default:
                continue

            name = option.name.replace("_", "-")
            if value is True:
                arguments.append(f"--{name}")
            elif value is False:
                arguments.append(f"--no-{name}")
            else:
                arguments += [f"--{name}", str(value)]
        return arguments
