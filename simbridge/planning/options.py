"""How a scenario is run: every choice that is not the scenario's, the robot's or the solver's own."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
import pinocchio as pin

from simbridge.errors import InvalidParameter, UnknownName
from simbridge.planning.scenario import OnLimits
from simbridge.robot.calibration import with_kinematics
from simbridge.robot.cell import Cell, floor_requirement, tcp_requirement
from simbridge.robot.obstacles import CollisionScene, Floor
from simbridge.robot.robot import Robot
from simbridge.servo import servoj
from simbridge.trajectory.files import Anchor, Frame, ReadOptions
from simbridge.trajectory.sampling import Sampling
from simbridge.trajectory.trajectory import Hold

Servo = Literal["stiff", "servoj"]
OnScaling = Literal["follow", "stop"]


@dataclass(frozen=True)
class Options:
    """How a scenario is run; every field is a flag of `simbridge run`.

    A cell says how things are: what it gives is filled in where it was left out here, and may not be contradicted.

    Attributes:
        cell: The arm's mounting, tool, load and surroundings.
        host: Address of the controller, for URSim and real arms.
        tcp: Tool centre point in tool0: x y z (m) rx ry rz (rotation vector, rad); none by default.
        payload: Mass that the controller is told of, kg, at the TCP unless the cell says where; none by default.
        unmodelled_payload: Mass at the TCP that it is not told of, kg; simulation only.
        frame: "base_link", or "base" for poses as the pendant gives them.
        transform: From the frame of a file's poses to base_link, x y z (m) qx qy qz qw; none by default.
        anchor: "start" moves a file's motion so that it begins at the tool's pose at home.
        topic: Which topic of a ROS bag.
        sampling: How the targets are sampled for the solver, in place of the scenario's.
        period: Control period, s; the robot's by default.
        hold: In place of the scenario's.
        on_limits: In place of the scenario's.
        speed_scale: 0.2 plays the trajectory at a fifth of its speed.
        max_tool_speed: m/s; the robot's by default.
        floor: Height of the floor in base_link, m, or "none"; 0 by default.
        realtime: Pace simulated time by the wall clock.
        gui: Open the simulator's window.
        tolerance: Largest RMS of the tracking error: m and rad; None to judge nothing.
        plan: A run whose plan is replayed instead of solving anew.
        kinematics: "nominal"; or a file with the table of this very arm, or a run that was made with it. By default the
            cell's, else nominal in simulation and the controller's own on a controller.
        servo: How the simulated controller follows setpoints: "stiff", or "servoj", the model in `simbridge.servo`.
        servo_lookahead: Of servoj, s.
        servo_gain: Of servoj, 1/s^2.
        on_scaling: What to do when a controller scales the speed: "follow" it in time, or "stop".
        realtime_priority: Of the process that sends setpoints to a controller, 1 to 99; 0 for the ordinary scheduler.
        yes: Let the cell file answer where a person is asked before a real arm moves.

    Raises:
        InvalidParameter, UnknownName: One of them makes no sense, or contradicts the cell.
    """

    cell: Cell | None = None
    host: str | None = None
    tcp: Sequence[float] = ()
    payload: float | None = None
    unmodelled_payload: float = 0.0
    frame: Frame = "base_link"
    transform: tuple[float, ...] = ()
    anchor: Anchor | None = None
    topic: str | None = None
    sampling: Sampling | None = None
    period: float | None = None
    hold: Hold | None = None
    on_limits: OnLimits | None = None
    speed_scale: float = 1.0
    max_tool_speed: float | None = None
    floor: Floor | None = None
    realtime: bool = False
    gui: bool = False
    tolerance: tuple[float, float] | None = None
    plan: str | os.PathLike[str] | None = None
    kinematics: str | os.PathLike[str] | None = None
    servo: Servo = "stiff"
    servo_lookahead: float = servoj.LOOKAHEAD
    servo_gain: float = servoj.GAIN
    on_scaling: OnScaling = "follow"
    realtime_priority: int = 0
    yes: bool = False

    def __post_init__(self) -> None:
        for kind, value, known in (
            ("hold", self.hold, (None, *get_args(Hold))),
            ("servo", self.servo, get_args(Servo)),
            ("way with speed scaling", self.on_scaling, get_args(OnScaling)),
            ("way with limits", self.on_limits, (None, *get_args(OnLimits))),
        ):
            if value not in known:
                raise UnknownName(kind, str(value), [name for name in known if name])
        # Its own checks are made on the way.
        _ = self.reading
        self._check_numbers()
        if self.host is not None and not self.host.strip():
            raise InvalidParameter("host", self.host, "the address of a controller, such as 192.168.1.10")
        for field in ("host", "tcp", "payload", "floor"):
            if self.cell is not None:
                object.__setattr__(self, field, self.cell.resolve(field, getattr(self, field)))

    @property
    def robot(self) -> str:
        """The name of the arm's model where none is given."""
        return "ur10" if self.cell is None or self.cell.robot is None else self.cell.robot

    @property
    def kinematics_source(self) -> str | os.PathLike[str] | None:
        """Whose kinematics to take (see `with_kinematics`); None when neither options nor cell say."""
        if self.kinematics is not None:
            return self.kinematics
        return None if self.cell is None else self.cell.calibration

    @property
    def reading(self) -> ReadOptions:
        """How a file of poses is read, and where they belong."""
        return ReadOptions(self.frame, self.transform, self.anchor, self.topic)

    @property
    def collision_scene(self) -> CollisionScene:
        """What the arm must not touch."""
        floor = 0.0 if self.floor is None else None if self.floor == "none" else self.floor
        return CollisionScene(floor) if self.cell is None else replace(self.cell.collision_scene, floor=floor)

    def equipped(self, robot: Robot) -> Robot:
        """The arm with the chosen kinematics, the TCP and the known payload, mounted as in the cell.

        Raises:
            InvalidParameter: The cell is another arm's.
            InputFileError: The file of the kinematics cannot be read, or is another model's.
        """
        if self.kinematics_source is not None:
            nominal, robot = robot, with_kinematics(robot, self.kinematics_source)
            self._note_other_kinematics(nominal, robot)
        if self.tcp:
            x, y, z, *turn = (float(v) for v in self.tcp)
            robot = robot.with_tcp(pin.SE3(pin.exp3(np.array(turn)), np.array([x, y, z])))
        if self.payload is not None:
            robot = robot.with_payload(self.payload, None if self.cell is None else self.cell.payload_cog)
        if self.cell is None:
            return robot
        self.cell.resolve("robot", robot.name)
        return robot if self.cell.mounting is None else robot.with_gravity(self.cell.gravity)

    def _note_other_kinematics(self, nominal: Robot, chosen: Robot) -> None:
        calibration = None if self.cell is None else self.cell.calibration
        if calibration is None or self.kinematics is None:
            return
        if with_kinematics(nominal, calibration).checksum != chosen.checksum:
            warnings.warn(
                f"The plan is made with the kinematics of --kinematics {self.kinematics}, not with those of the cell's "
                f"calibration ({calibration.name}): at the tool they differ by millimetres.",
                stacklevel=2,
            )

    def _check_numbers(self) -> None:
        if len(self.tcp) and (needed := tcp_requirement(self.tcp)):
            raise InvalidParameter("TCP", list(self.tcp), needed)
        if self.period is not None and not 1e-4 <= self.period <= 1.0:
            raise InvalidParameter("period", f"{self.period} s", "from 0.0001 to 1 s")
        for name, value, needed in (
            ("speed scale", self.speed_scale, "a positive number"),
            ("largest tool speed", self.max_tool_speed, "a positive number of m/s"),
        ):
            if value is not None and not 0.0 < value < math.inf:
                raise InvalidParameter(name, value, needed)
        for name, value, needed in (
            ("payload", self.payload or 0.0, "a mass in kg, not negative"),
            ("unmodelled payload", self.unmodelled_payload, "a mass in kg, not negative"),
            *(("tolerance", part, "two numbers, none of them negative") for part in self.tolerance or ()),
        ):
            if not 0.0 <= value < math.inf:
                raise InvalidParameter(name, value, needed)
        if not 0 <= self.realtime_priority <= 99:
            raise InvalidParameter("real-time priority", self.realtime_priority, "from 1 to 99, or 0 for none")
        servoj.check_tuning(self.servo_lookahead, self.servo_gain)
        if self.floor is not None and (needed := floor_requirement(self.floor)):
            raise InvalidParameter("floor", self.floor, needed)
