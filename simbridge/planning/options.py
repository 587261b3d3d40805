"""Options of a run: every choice that is neither the scenario's, nor the robot's, nor the solver's.

Each option is one field of `Options`. Its flag and help at the command line, its entry in
settings.toml and its checks follow from the field; the code that uses the option reads the field.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property
from typing import Any, Literal, get_type_hints

import msgspec
import numpy as np
import pinocchio as pin

from simbridge.errors import InvalidChoice, InvalidParameter, UnknownName
from simbridge.planning.link_choices import LinkName, RegisterRange
from simbridge.planning.option_field import (
    describe_fields,
    literal_choices,
    option,
    planned_option,
    run_option,
    shared_option,
)
from simbridge.planning.plan import OnLimits
from simbridge.resources import AnyPath
from simbridge.robot.cell import Cell
from simbridge.robot.cell_file import load_cell
from simbridge.robot.cell_rules import requirement
from simbridge.robot.kinematics_source import with_kinematics
from simbridge.robot.obstacles import CollisionScene, Floor
from simbridge.robot.packages import read_packages
from simbridge.robot.robot import Robot
from simbridge.servo.law import GAIN, LOOKAHEAD, check_tuning
from simbridge.servo.plant import Plant, load_plant
from simbridge.text import join_words
from simbridge.trajectory.gaps import Gaps
from simbridge.trajectory.read_options import Anchor, Column, Frame, ReadOptions
from simbridge.trajectory.sampling import Sampling
from simbridge.trajectory.trajectory import Hold

# Shortest control period, s.
MIN_PERIOD_S = 1e-4
# Longest control period, s.
MAX_PERIOD_S = 1.0
# Largest real-time priority of Linux's scheduler.
MAX_REALTIME_PRIORITY = 99

Servo = Literal["servoj", "ideal"]
Switch = Literal["off", "on"]
OnScaling = Literal["follow", "stop"]
OnPause = Literal["wait", "stop"]
StartChoice = Literal["home", "auto"]


def read_floor(text: str) -> Floor:
    """Read the height of a floor, in m, or "none".

    Raises:
        InvalidParameter: The text is neither.
    """
    if text.lower() == "none":
        return "none"
    try:
        return float(text)
    except ValueError:
        raise InvalidParameter("floor", text, "a height in m, or none") from None


@describe_fields
@dataclass(frozen=True)
class Options:
    """The options of a run or a check, in SI units and radians.

    The first fields say how a file of poses is read. A cell describes an installation: its values
    are used where an option is left out, and must not be contradicted.

    Raises:
        InvalidParameter, UnknownName: A value is invalid, or contradicts the cell.
    """

    frame: Frame = planned_option(
        "base_link",
        "Frame of the poses: base_link (x forward, as in ROS) or base (as on the pendant).",
    )
    base_frame: str | None = planned_option(
        None,
        "The file's name for the arm's base frame, if it is not base_link (left_base_link, for "
        "example). The tf of a bag transforms the poses into it. With --frame base, it is the "
        "pendant's base frame.",
        "NAME",
        "base_link",
    )
    transform: tuple[float, ...] = planned_option(
        (),
        "Transform from the frame of a file's poses to base_link: x y z in m, and a quaternion.",
        "X Y Z QX QY QZ QW",
        "none",
    )
    anchor: Anchor | None = planned_option(
        None,
        "start: move the motion of a file so that it begins at the tool's pose at home.",
        unset="none",
    )
    topic: str | None = planned_option(
        None,
        "Topic of a ROS bag (/tf:child for a tf frame, /poses:2 for one pose of a PoseArray), "
        "rigid body of motion capture, or array of pose matrices in an npz file.",
        "NAME",
        "the only one",
    )
    frames: tuple[str, ...] = planned_option(
        (),
        "Two tf frames in a bag: read the poses of CHILD in PARENT, chaining the "
        "transforms between them.",
        "PARENT CHILD",
        "none",
    )
    columns: str | None = planned_option(
        None,
        "Columns and units of a table: t[ns]=stamp,x=px,qw=q_0 or x[mm], j1=a of joints; by name, "
        "or by number from 1.",
        "ROLE[UNIT]=NAME,...",
        "by their names",
    )
    rate: float | None = planned_option(
        None, "Samples per second, for a file without times.", "HZ", "none"
    )
    gaps: Gaps | None = planned_option(
        None,
        "What to do about gaps of more than 10 sample periods in a file: refuse the file, hold "
        "the last pose, interpolate, or split it there and use the longest piece.",
        unset="refuse",
    )
    reference: AnyPath | None = option(
        None,
        "File of the true motion, if the trajectory file holds noisy samples of it: errors are "
        "measured from the true motion. It is read and placed like the trajectory file.",
        "FILE",
        "the file itself",
        table="scenario",
    )
    reference_offset: float | None = option(
        None,
        "Seconds to add to the times of --reference, if its clock differs from the "
        "trajectory file's.",
        "SECONDS",
        "0",
        table="scenario",
    )
    column: Column | None = planned_option(
        None,
        "Which columns of a controller's recording (CSV with UR's field names) are the "
        "trajectory; or joints: the arm's joint positions, from a table or bag that also has "
        "poses.",
        unset="poses, else joints",
        flag="from",
    )
    cell: Cell | None = option(
        None,
        "Cell file: mounting, tool, payload and obstacles of one arm (TOML, docs/cell.md).",
        "FILE",
        "none: a floor and no other obstacle",
        read=load_cell,
    )
    host: str | None = run_option(
        None,
        "Address of the controller, for ursim and real.",
        "ADDRESS",
        "the cell's; 127.0.0.1 for ursim",
    )
    rest_port: int | None = run_option(
        None,
        "Port of the Robot API (REST) of a controller with PolyScope X.",
        "PORT",
        "80, as on every controller",
        table="backend",
    )
    tcp: Sequence[float] = option(
        (),
        "Tool centre point in tool0: x y z in m, rotation vector rx ry rz in rad.",
        "X Y Z RX RY RZ",
        "the cell's, else tool0",
    )
    payload: float | None = option(
        None,
        "Payload configured on the controller, kg; at the TCP unless the cell gives its centre of "
        "gravity.",
        "KG",
        "the cell's, else none",
    )
    unmodelled_payload: float = run_option(
        0.0,
        "Mass at the TCP that is not configured on the controller, kg (simulation only).",
        "KG",
        table="backend",
    )
    sampling: Sampling | None = option(
        None,
        "How a slow or noisy source samples the trajectory for the solver.",
        unset="the scenario's",
        prefix="sample_",
    )
    period: float | None = option(None, "Control period.", "S", "the robot's")
    hold: Hold | None = option(
        None,
        "Target between two samples: interpolated, or the last sample held.",
        unset="the scenario's",
    )
    on_limits: OnLimits | None = option(
        None,
        "refuse: refuse a plan that exceeds a limit on velocity, velocity jump or tool speed; "
        "limit: slow such setpoints down, and respect the acceleration limit as well.",
        unset="the scenario's",
    )
    start: StartChoice | None = option(
        None,
        "Where the plan starts: on home's branch of the inverse kinematics (home); or, if that is "
        "refused, whole turns away or on another branch (auto).",
        unset="auto in simulation; home on ursim and real",
    )
    speed_scale: float = option(
        1.0, "Playback speed: 0.2 is a fifth of the trajectory's.", "FACTOR", table="scenario"
    )
    max_tool_speed: float | None = option(
        None, "Maximum TCP speed.", "M/S", "the robot's; 0.25 on real"
    )
    floor: Floor | None = option(
        None,
        "Height of the floor in base_link, m; none for no floor.",
        "M|none",
        "the cell's, else 0",
        read=read_floor,
    )
    realtime: bool = run_option(
        False, "Run the simulation in real time, paced by the wall clock.", table="backend"
    )
    gui: bool = run_option(False, "Open the simulator's window (runs in real time).")
    tolerance: tuple[float, float] | None = run_option(
        None,
        "Largest RMS tracking error that is acceptable, position and rotation; if it "
        "is exceeded, the exit status is 1.",
        "MM DEG",
        "not checked",
        units=(1e-3, math.radians(1.0)),
    )
    plan: AnyPath | None = option(
        None, "A run directory whose plan is replayed.", "RUN", "make a new plan", table="scenario"
    )
    kinematics: AnyPath | None = option(
        None,
        "Kinematics: nominal, or those of an individual arm from a calibration file (TOML, ROS's "
        "my_robot_calibration.yaml or UR's calibration.conf) or a run.",
        "nominal|FILE",
        "the cell's, else the controller's own; nominal in simulation",
    )
    servo: Servo | None = shared_option(
        None,
        "How the simulated arm follows commands: servoj, UR's servo law, verified on a real UR5e "
        "at gain 300 and a real UR5 at gain 100 (docs/validation.md); or ideal, an ideal servo, "
        "for other arms and for work on solvers.",
        unset="servoj for a UR arm or with servoj options, else ideal",
    )
    servo_gain: float | None = shared_option(
        None, "servoj gain (stiffness), 100 to 2000.", "GAIN", unset=f"the plant's, or {GAIN:g}"
    )
    servo_lookahead: float | None = shared_option(
        None,
        "servoj lookahead, 0.03 to 0.2 s; the arm lags steady motion by about this time.",
        "S",
        unset=f"the plant's, or {LOOKAHEAD:g}",
    )
    plant: AnyPath | None = shared_option(
        None,
        "The arm's servo as measured by `simbridge identify --out`: gain, lookahead, phase and "
        "joint lag for the simulated arm and for feedforward. On a controller, servoj uses this "
        "gain and lookahead.",
        "PLANT.TOML",
        "none",
    )
    base: str | None = shared_option(
        None, "Link of a URDF that is the arm's base.", "LINK", "base_link, else the root"
    )
    tip: str | None = shared_option(
        None, "Link of a URDF that is the tool.", "LINK", "tool0, else the only end"
    )
    package: tuple[str, ...] = shared_option(
        (),
        "Directory of a ROS package that a URDF's meshes or $(find NAME) refer to; "
        "separate several by commas.",
        "NAME=DIR",
        "ROS_PACKAGE_PATH, and the directories around the file",
        read=read_packages,
    )
    xacro_arg: tuple[str, ...] = shared_option(
        (),
        "Value of a xacro argument; repeat the flag for more arguments.",
        "NAME=VALUE",
        "the file's defaults",
        repeats=True,
    )
    feedforward: Switch | None = planned_option(
        None,
        "on: compensate for servo lag by sending commands that lead the setpoints, computed with "
        "the inverse of servoj's law.",
        unset="the cell's, else off",
    )
    corner_tolerance: float | None = planned_option(
        None,
        "With feedforward: how far the tool's path may be rounded at corners.",
        "MM",
        "0.5 mm",
        units=(1e-3,),
    )
    on_scaling: OnScaling = run_option(
        "follow",
        "If the controller scales the speed: slow the trajectory down with it "
        "(follow), or stop the arm.",
    )
    on_pause: OnPause = run_option(
        "wait",
        "If the program is paused at the pendant: wait and continue from rest, or end the run.",
    )
    realtime_priority: int = run_option(
        0,
        "Real-time priority of the process that sends setpoints to a controller, 1 to 99; 0 for "
        "ordinary scheduling.",
        "N",
    )
    link: LinkName | None = run_option(
        None,
        "RTDE client that commands a controller: ur_rtde, or simbridge's own (rtde), which needs "
        "neither ur_rtde nor port 30003.",
        unset="ur_rtde if it is installed and the controller has what it needs, else rtde",
    )
    registers: RegisterRange = run_option(
        "lower",
        "RTDE registers that carry the commands: 0 to 23 (lower), or 24 to 47 (upper), which "
        "EtherNet/IP and PROFINET leave free.",
    )
    label: str = run_option(
        "", "A name for the run, shown in lists and on its page.", "TEXT", "none"
    )
    yes: bool = run_option(
        False,
        "Move a real arm without asking for confirmation, if the cell file matches the controller.",
    )

    def __post_init__(self) -> None:
        self._convert_values()
        for name, choices in _choices().items():
            value = getattr(self, name)
            if value is not None and value not in choices:
                raise InvalidChoice(name.replace("_", "-"), str(value), choices)

        # These check themselves.
        _ = self.reading
        _ = self.plant_model
        self._check_values()
        self._check_address()
        self._check_tolerances()
        self._check_tcp_and_floor()

        # What a cell describes, an option must not contradict.
        if self.cell is not None:
            for name in ("host", "tcp", "payload", "floor"):
                object.__setattr__(self, name, self.cell.resolve(name, getattr(self, name)))

        # What a cell recommends is not a fact of the installation: an option may differ from it.
        if self.feedforward is None:
            recommended = None if self.cell is None else self.cell.feedforward
            object.__setattr__(self, "feedforward", recommended or "off")
        self._check_ideal_servo()

    def _convert_values(self) -> None:
        """Convert what a program may give: a switch as True or False, and a cell by its file."""
        if isinstance(self.feedforward, bool):
            object.__setattr__(self, "feedforward", "on" if self.feedforward else "off")
        if self.cell is not None and not isinstance(self.cell, Cell):
            object.__setattr__(self, "cell", load_cell(self.cell))

    @property
    def reading(self) -> ReadOptions:
        """The options that choose how a file of poses is read, and in which frame."""
        names = [option_field.name for option_field in fields(ReadOptions)]
        return ReadOptions(**{name: getattr(self, name) for name in names})

    @property
    def robot(self) -> str:
        """The name of the arm's model where the user names none."""
        if self.cell is None or self.cell.robot is None:
            return "ur10"
        return self.cell.robot

    @property
    def kinematics_source(self) -> AnyPath | None:
        """Source of the kinematics, of the option or the cell; None if neither says."""
        if self.kinematics is not None:
            return self.kinematics
        return None if self.cell is None else self.cell.calibration

    @cached_property
    def plant_model(self) -> Plant:
        """The arm behind servoj: the plant's file, and the tuning that the options give instead.

        Raises:
            InputFileError: The file cannot be read.
            InvalidParameter: servoj does not take this tuning.
        """
        plant = Plant() if self.plant is None else load_plant(self.plant)

        # What an option gives replaces what the file says, unless they agree.
        replaced: dict[str, float] = {}
        for name, value in (("gain", self.servo_gain), ("lookahead", self.servo_lookahead)):
            planned = getattr(plant, name)
            if value is not None and not math.isclose(value, planned, rel_tol=1e-6):
                replaced[name] = value
                if self.plant is not None:
                    warnings.warn(
                        f"--servo-{name} {value:g} replaces the {name} of {self.plant}, "
                        f"{planned:g}.",
                        stacklevel=2,
                    )

        exact = {f"{name}_deviation": 0.0 for name in replaced}
        plant = msgspec.structs.replace(plant, **replaced, **exact, replaced=tuple(replaced))
        check_tuning(plant.lookahead, plant.gain)
        return plant

    def servo_of(self, robot: Robot) -> Servo:
        """Return how a simulated arm follows commands.

        As chosen; otherwise a UR arm, or one for which servoj is tuned or inverted, by servoj.
        """
        if self.servo is not None:
            return self.servo
        is_tuned = self.servo_gain is not None or self.servo_lookahead is not None
        asks_for_servoj = is_tuned or self.plant is not None or self.feedforward == "on"
        return "servoj" if robot.is_from_ur or asks_for_servoj else "ideal"

    @property
    def collision_scene(self) -> CollisionScene:
        """The obstacles that the arm must not touch."""
        floor: float | None = 0.0
        if self.floor == "none":
            floor = None
        elif self.floor is not None:
            floor = self.floor

        if self.cell is None:
            return CollisionScene(floor)
        return replace(self.cell.collision_scene, floor=floor)

    @property
    def links(self) -> dict[str, Any]:
        """The options that choose the arm in a URDF or xacro file, as arguments of `load_robot`."""
        return {
            "base": self.base,
            "tip": self.tip,
            "packages": self.package,
            "xacro_args": self.xacro_arg,
        }

    def equip(self, robot: Robot) -> Robot:
        """Return the arm with the chosen kinematics, TCP and payload, mounted as in the cell.

        Raises:
            InvalidParameter: The cell is another arm's.
            InputFileError: The file of the kinematics cannot be read, or is another model's.
        """
        if self.kinematics_source is not None:
            nominal = robot
            robot = with_kinematics(nominal, self.kinematics_source)
            self._note_other_kinematics(nominal, robot)

        if self.tcp:
            x, y, z, *rotation = (float(value) for value in self.tcp)
            robot = robot.with_tcp(pin.SE3(pin.exp3(np.array(rotation)), np.array([x, y, z])))

        if self.payload is not None:
            centre_of_gravity = None if self.cell is None else self.cell.payload_cog
            robot = robot.with_payload(self.payload, centre_of_gravity)

        if self.cell is not None:
            self.cell.resolve("robot", robot.name)
            if self.cell.mounting is not None:
                robot = robot.with_gravity(self.cell.gravity)
        return robot

    def _note_other_kinematics(self, nominal: Robot, chosen: Robot) -> None:
        """Warn where the chosen kinematics are not those of the cell's calibration."""
        calibration = None if self.cell is None else self.cell.calibration
        if calibration is None or self.kinematics is None:
            return

        if with_kinematics(nominal, calibration).checksum != chosen.checksum:
            warnings.warn(
                f"The plan is made with the kinematics of --kinematics {self.kinematics}, not with "
                f"those of the cell's calibration ({calibration.name}): at the tool they differ by "
                "millimetres.",
                stacklevel=2,
            )

    def _check_values(self) -> None:
        """Refuse numbers and texts out of their ranges."""
        if self.period is not None and not MIN_PERIOD_S <= self.period <= MAX_PERIOD_S:
            needed = f"from {MIN_PERIOD_S:g} to {MAX_PERIOD_S:g} s"
            raise InvalidParameter("period", f"{self.period} s", needed)
        if not self.label.isprintable():
            raise InvalidParameter("label", repr(self.label), "one line of text")
        if not 0.0 < self.speed_scale < math.inf:
            raise InvalidParameter("speed scale", self.speed_scale, "a positive number")
        if self.max_tool_speed is not None and not 0.0 < self.max_tool_speed < math.inf:
            needed = "a positive number of m/s"
            raise InvalidParameter("largest tool speed", self.max_tool_speed, needed)

        if self.reference is not None and self.sampling is not None:
            needed = "left out with --reference: the file's poses already are the samples"
            raise InvalidParameter("sampling of targets", "one", needed)

        needed_mass = "a non-negative mass in kg"
        if self.payload is not None and not 0.0 <= self.payload < math.inf:
            raise InvalidParameter("payload", self.payload, needed_mass)
        if not 0.0 <= self.unmodelled_payload < math.inf:
            raise InvalidParameter("unmodelled payload", self.unmodelled_payload, needed_mass)

        if not 0 <= self.realtime_priority <= MAX_REALTIME_PRIORITY:
            needed = f"from 1 to {MAX_REALTIME_PRIORITY}, or 0 for none"
            raise InvalidParameter("real-time priority", self.realtime_priority, needed)

    def _check_address(self) -> None:
        """Refuse a host or a port that is impossible."""
        if self.host is not None and not self.host.strip():
            needed = "the address of a controller, such as 192.168.1.10"
            raise InvalidParameter("host", self.host, needed)
        if self.rest_port is not None and not 1 <= self.rest_port <= 65535:
            raise InvalidParameter("REST port", self.rest_port, "from 1 to 65535")

    def _check_tolerances(self) -> None:
        """Refuse tolerances whose value is impossible."""
        if self.corner_tolerance is not None and not 0.0 <= self.corner_tolerance < math.inf:
            needed = "a non-negative length in m"
            raise InvalidParameter("corner tolerance", self.corner_tolerance, needed)
        for part in self.tolerance or ():
            if not 0.0 <= part < math.inf:
                raise InvalidParameter("tolerance", part, "two non-negative numbers")

    def _check_tcp_and_floor(self) -> None:
        """Refuse a TCP or a floor whose value is impossible."""
        # `requirement` returns what the value must be, and None for a valid value.
        if len(self.tcp):
            needed_tcp = requirement("tcp", self.tcp)
            if needed_tcp is not None:
                raise InvalidParameter("TCP", np.asarray(self.tcp).tolist(), needed_tcp)
        if self.floor is not None:
            needed_floor = requirement("floor", self.floor)
            if needed_floor is not None:
                raise InvalidParameter("floor", self.floor, needed_floor)

    def _check_ideal_servo(self) -> None:
        """Refuse options of servoj with the ideal servo."""
        if self.servo != "ideal":
            return

        flags = []
        if self.servo_gain is not None:
            flags.append("--servo-gain")
        if self.servo_lookahead is not None:
            flags.append("--servo-lookahead")
        if self.plant is not None:
            flags.append("--plant")
        if self.feedforward == "on":
            flags.append("--feedforward on")

        if flags:
            needed = (
                f"servoj with {join_words(flags)}: the ideal servo has neither this tuning nor a "
                "lag to compensate"
            )
            raise InvalidParameter("servo", self.servo, needed)


@cache
def _choices() -> dict[str, tuple[str, ...]]:
    """Return the values of the options that have a list of them, by name."""
    choices = {}
    for name, kind in get_type_hints(Options).items():
        # A floor may be a height instead.
        if name != "floor" and literal_choices(kind):
            choices[name] = literal_choices(kind)
    return choices


def options_by_name(
    options: Options | None, choices: Mapping[str, Any], other_keywords: Iterable[str] = ()
) -> Options:
    """Return options with some of them given by name, as keyword arguments of a public function.

    Args:
        options: The options to change; None for the defaults.
        choices: Values by the names of the fields of `Options`.
        other_keywords: The function's other keyword arguments, one of which an unknown name may be
            meant for.

    Raises:
        UnknownName: There is no such option.
        InvalidParameter: A value is invalid.
    """
    known = [item.name for item in fields(Options)]
    for name in choices:
        if name not in known:
            raise UnknownName("option", name, [*other_keywords, *known], where="of a run")
    return Options(**choices) if options is None else replace(options, **choices)
