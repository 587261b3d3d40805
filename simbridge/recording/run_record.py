"""The record of a run or of a live session: what it was resolved to, as settings.toml holds it.

Each class is a table of the file, and its fields are the table's keys, in the file's order. None
stands for a key that the file does not have: what does not apply was left out. All numbers are in
SI units and radians. `settings_file` reads and writes the file, and `record_tables` makes the
tables of a new record.

A run's files may have been edited by hand. The types and bounds here are what the reader demands of
a field. A field that simbridge only shows may hold anything: its type is `Shown`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct

from simbridge.planning.link_choices import LinkName, RegisterRange
from simbridge.planning.options import OnScaling, Servo
from simbridge.planning.plan import OnLimits
from simbridge.resources import robot_files
from simbridge.robot import MAX_JOINTS, Task
from simbridge.servo.law import ServojLaw
from simbridge.trajectory.trajectory import Hold

# No quantity of an arm is larger in SI units; a larger one would overflow where it is squared or
# drawn.
MAX_QUANTITY = 1e9

Shown = Any
"""A value that is only shown, and therefore not checked."""

Number = Annotated[float, Meta(ge=-MAX_QUANTITY, le=MAX_QUANTITY)]
Positive = Annotated[float, Meta(gt=0.0, le=MAX_QUANTITY)]
NotNegative = Annotated[float, Meta(ge=0.0, le=MAX_QUANTITY)]
Seconds = Annotated[float, Meta(ge=1e-4, le=10.0)]
"""A period or a cycle, s."""

# Limits may be infinite.
JointValues = Annotated[list[float], Meta(min_length=1, max_length=MAX_JOINTS)]
Vector3 = Annotated[list[Number], Meta(min_length=3, max_length=3)]
Vector6 = Annotated[list[Number], Meta(min_length=6, max_length=6)]
Matrix4 = Annotated[list[Number], Meta(min_length=16, max_length=16)]
"""A homogeneous transform (4, 4), row by row."""

Intensity = Annotated[float, Meta(ge=0.0, le=1.0)]
Colour = Annotated[list[Intensity], Meta(min_length=3, max_length=3)]


class StartRecord(Struct):
    """The start of a plan that is not on home's branch of the inverse kinematics.

    Attributes:
        joints: Joint positions (n,), rad or m.
        reason: Why not on home's, as a sentence.
    """

    joints: JointValues
    reason: str


class ScenarioRecord(Struct, kw_only=True):
    """The table [scenario]: what was tracked. A live session has one too, for its inputs.

    From `frame` on, the fields are options as the user gave them (see `record_options`).

    Attributes:
        name: The scenario's name; "live" for a session.
        file: The script or file that it was read from; None for a built-in one.
        description: One line.
        source: The origin of the trajectory.
        start: None if the plan begins on home's branch.
        hold: The target between two samples: "linear" or "zero-order".
        on_limits: What happened to setpoints past a limit: "refuse" or "limit".
        floor: Height of the floor in base_link, m; None without a floor.
        sampling: The fields of `Sampling`; None if the solver got the trajectory itself.
        frame: Frame of the poses in a file: "base_link" or "base".
        base_frame: What the file calls the arm's base.
        transform: Transform from that frame to base_link: x y z, m, and a quaternion.
        anchor: "start" where the motion was moved to the tool's pose at home.
        topic: Topic of a ROS bag, rigid body of motion capture, or array of pose matrices (npz).
        frames: Parent and child of a chain of transforms.
        columns: Columns and units of a table.
        rate: Samples per second of a file without times, Hz.
        gaps: How gaps in a file were filled.
        reference: The file of the true motion, of which `file` has noisy samples.
        reference_offset: Time added to the stamps of `reference`, s.
        column: The part of an RTDE recording that is the trajectory.
        speed_scale: Playback speed; 1 is the trajectory's own.
        plan: The run directory whose plan was replayed.
        feedforward: "on" where commands were sent ahead of the setpoints, else "off".
        corner_tolerance: How far the tool's path may be rounded with feedforward, m.
    """

    name: str
    file: str | None = None
    description: Shown = None
    source: Shown = None
    start: StartRecord | None = None
    hold: Hold
    on_limits: OnLimits
    floor: Number | str | None = None
    sampling: dict[str, Any] | None = None
    frame: Shown = None
    base_frame: Shown = None
    transform: Shown = None
    anchor: Shown = None
    topic: Shown = None
    frames: Shown = None
    columns: Shown = None
    rate: Shown = None
    gaps: Shown = None
    reference: Shown = None
    reference_offset: Shown = None
    column: Shown = None
    speed_scale: Positive
    plan: str | None = None
    feedforward: str | None = None
    corner_tolerance: Number | None = None

    @property
    def feeds_forward(self) -> bool:
        """True if commands were sent ahead of the setpoints."""
        return self.feedforward == "on"


class RobotRecord(Struct, kw_only=True):
    """The table [robot]: the arm, with its tool and its limits.

    Attributes:
        name: The model's name, as `simbridge robots` lists it.
        title: The model's name in texts.
        source: The file that it was read from; "" for an arm that a program defined.
        base: The link of a URDF at which the arm begins.
        tip: The link of a URDF that is the tool.
        package: Directories of packages of a URDF, as NAME=DIR.
        xacro_arg: Arguments of a xacro file, as NAME=VALUE.
        notes: Remarks of the file's reader.
        joint_names: Names of the n joints.
        home: Joint positions (n,), rad or m.
        file_home: Home in the robot's file (n,), where another was chosen.
        position_min: Lower limits (n,), rad or m; may be infinite.
        position_max: Upper limits (n,), rad or m; may be infinite.
        max_velocity: Limits (n,), rad/s or m/s.
        max_effort: Limits (n,), N m or N.
        max_velocity_jump: Largest change of a joint's velocity in a period, rad/s.
        max_acceleration: Largest acceleration of every joint, for the limiter, rad/s^2.
        max_tool_speed: Largest speed of the TCP in this run, m/s.
        tcp: Tool centre point in tool0: x y z, m, and a rotation vector, rad.
        payload: Mass of the payload, as configured on the controller, kg.
        gravity: Acceleration of gravity in base_link (3,), m/s^2.
        payload_cog: Centre of gravity of the payload in tool0 (3,), m.
    """

    name: str
    title: str
    source: str
    base: str | None = None
    tip: str | None = None
    package: list[str] | None = None
    xacro_arg: list[str] | None = None
    notes: Shown = None
    joint_names: list[str]
    home: JointValues
    file_home: Shown = None
    position_min: JointValues
    position_max: JointValues
    max_velocity: JointValues
    max_effort: JointValues
    max_velocity_jump: Shown = None
    max_acceleration: Positive | None = None
    max_tool_speed: Positive
    tcp: Vector6
    payload: NotNegative
    gravity: Shown = None
    payload_cog: Shown = None

    @property
    def is_built_in(self) -> bool:
        """True if the arm is one of those in robots/."""
        return self.name in robot_files() and Path(self.source).name == f"{self.name}.toml"


class DifferenceRecord(Struct):
    """The largest difference between the tool poses of two chains.

    Attributes:
        position_m: Distance, m.
        rotation_rad: Angle, rad.
    """

    position_m: NotNegative
    rotation_rad: NotNegative


class RosKinematicsRecord(Struct, kw_only=True):
    """The table [kinematics.ros]: the contents of ROS's calibration file.

    Attributes:
        hash: The file's own hash; "" without one.
        frames: Each joint's frame: x y z, m, and roll pitch yaw, rad.
    """

    hash: str
    frames: Shown = None


class KinematicsRecord(Struct, kw_only=True):
    """The table [kinematics]: the chain of this one arm, which every evaluation uses.

    Attributes:
        checksum: Identity of the arm for solvers and plans.
        placements: Placements of the joints and the tool (n + 1), each row by row, m.
        prismatic: True for each joint (n,) that is prismatic.
        source: "nominal", "given" (from `file`) or "controller".
        file: The calibration file or the run that the kinematics come from.
        dh: The table of the calibration, as in its file; None for a nominal chain.
        ros: The contents of ROS's calibration file, where the calibration comes from one.
        controller_difference: Difference at the tool from the controller's own kinematics; None in
            simulation.
    """

    checksum: str
    placements: list[Matrix4]
    prismatic: list[bool]
    source: str
    file: str | None = None
    dh: dict[str, Any] | None = None
    ros: RosKinematicsRecord | None = None
    controller_difference: DifferenceRecord | None = None

    @property
    def is_calibrated(self) -> bool:
        """True if the chain comes from a calibration, and is not the model's nominal one."""
        return self.dh is not None or self.ros is not None


class SolverRecord(Struct, kw_only=True):
    """The table [solver].

    Attributes:
        name: A name in `ALL_SOLVERS`, or module:function.
        task: The part of a target that the solver is to attain.
        parameters: Settings of the solver, as keyword arguments.
        predicted_lag_s: Lag behind a target at constant speed, s; None if no formula is known.
        notes: Remarks on how the solver treats this plan, as sentences.
        host_step_time_s: Mean time of a step on the computer that made the plan, s; None if it
            was not measured.
    """

    name: str
    task: Task | None = None
    parameters: dict[str, Any]
    predicted_lag_s: Number | None = None
    notes: list[str] | None = None
    host_step_time_s: NotNegative | None = None


class BackendRecord(Struct, kw_only=True):
    """The table [backend]: the backend of the arm, and the servo that followed the commands.

    Attributes:
        name: A name in `BACKENDS`.
        period: Control period, s.
        simulated_time: Whether the arm was simulated.
        effort_unit: Unit of a revolute joint's effort: "N m", or "A" where the controller reports
            currents.
        servo: "servoj" or "ideal".
        servo_lookahead: Lookahead of servoj, s.
        servo_gain: Gain of servoj, 1/s^2.
        cycle: The controller's own cycle, s.
        phase: Time from the start of a cycle to the start of servoj's calls, s.
        joint_lag: Delay of the joints behind their targets, s.
        acceleration_lag: How far the joints trail, besides, for each rad/s^2 of their targets'
            acceleration, s^2.
        plant_file: The plant file that the tuning comes from.
        plant_robot: Name of the arm that the file was identified of.
        plant_not_simulated: Effects that the file reports of the arm and that are not simulated.
        gain_deviation: One standard deviation of the gain as identified, 1/s^2.
        lookahead_deviation: One standard deviation of the lookahead, s.
        plant_replaced: Values of the plant file that options replaced: "gain", "lookahead".
        on_scaling: Reaction to a controller that scales the speed: "follow" or "stop".
        on_pause: Reaction to a controller whose program is paused: "wait" or "stop".
        link: Whose RTDE client sent the commands: "ur_rtde" or "rtde"; None in simulation.
        registers: The half of the registers that carried them: "lower" or "upper"; None in
            simulation.
        unmodelled_payload: Mass at the TCP that the controller does not know of, kg.
        rest_port: Port of PolyScope X's Robot API, if another than 80 was given.
        realtime: Whether a simulation was paced by the wall clock.
    """

    name: str
    period: Seconds
    simulated_time: bool
    effort_unit: str
    servo: Servo | None = None
    servo_lookahead: Positive | None = None
    servo_gain: Positive | None = None
    cycle: Seconds | None = None
    phase: Number | None = None
    joint_lag: NotNegative | None = None
    acceleration_lag: NotNegative | None = None
    plant_file: str | None = None
    plant_robot: str | None = None
    plant_not_simulated: str | None = None
    gain_deviation: Number | None = None
    lookahead_deviation: Number | None = None
    plant_replaced: list[str] | None = None
    on_scaling: OnScaling | None = None
    on_pause: Shown = None
    link: LinkName | None = None
    registers: RegisterRange | None = None
    unmodelled_payload: NotNegative | None = None
    rest_port: Annotated[int, Meta(ge=1, le=65535)] | None = None
    realtime: Shown = None

    @property
    def servo_law(self) -> ServojLaw | None:
        """The law of servoj with this tuning; None for an ideal servo, or one of unknown tuning.

        Raises:
            InvalidParameter: The tuning is out of range.
        """
        if self.servo != "servoj" or self.servo_gain is None or self.servo_lookahead is None:
            return None
        cycle = self.period if self.cycle is None else self.cycle
        return ServojLaw(cycle, self.servo_gain, self.servo_lookahead)


class ToleranceRecord(Struct):
    """The table [tolerance]: the largest RMS of the tracking error that passes.

    Attributes:
        position_m: Largest RMS of the position error, m.
        rotation_rad: Largest RMS of the rotation error, rad.
    """

    position_m: NotNegative
    rotation_rad: NotNegative


class ShapeRecord(Struct):
    """One shape of a link, in the frame of the link's joint.

    Attributes:
        kind: "capsule" or "cylinder".
        start: One end of its axis, m.
        end: The other end of the shape's axis, m.
        radius: Radius of the shape, m.
        color: Red, green and blue, 0 to 1.
    """

    kind: str
    start: Vector3
    end: Vector3
    radius: Positive
    color: Colour


class ControllerRecord(Struct, kw_only=True):
    """The table [controller]: what the controller said of itself.

    Attributes:
        host: The controller's address.
        model: Model of the arm; "" if unknown.
        serial_number: Serial number of the arm; "" if unknown.
        polyscope: Version of its software.
        ursim: Whether it is UR's simulator.
        emulated: Whether it is the emulator.
        kinematics_checksum: The controller's own, over its DH table (6,).
    """

    host: str | None = None
    model: str | None = None
    serial_number: str | None = None
    polyscope: str | None = None
    ursim: bool | None = None
    emulated: bool | None = None
    kinematics_checksum: Shown = None


class CellRecord(Struct):
    """The table [cell]: the installation.

    Attributes:
        file: The cell file; "" for a cell that a program defined.
        values: Values of the cell, under the names of its file; in settings.toml they stand beside
            `file`.
    """

    file: str
    values: dict[str, Any]


class RepeatsRecord(Struct, kw_only=True):
    """The table [repeats] of one of several runs of the same plan.

    Attributes:
        number: Number of this run among them, from 1.
        count: How many were wanted.
    """

    number: Shown = None
    count: Annotated[int, Meta(ge=1, le=10**9)]


class LiveRecord(Struct, kw_only=True):
    """The table [live]: how a session treated its inputs (see `LiveOptions`).

    Attributes:
        hold: The reference between two poses: "continue" or "zero-order".
        timeout: Time without an input after which the arm brakes, s; None for the time of the
            input's kind.
        max_jump: A pose further from the last one is rejected: m and rad.
        catch_up: Fraction of the limits that was used after a stall until the arm had caught up.
        filter: "none", "one-euro" or "butterworth".
        filter_cutoff: Cutoff frequency of the filter, Hz.
        lead: Whether the inverse of the servo law was sent.
        filter_delay_s: How far the filter's output trails its input, s.
        preview: Whether chunks were fed forward.
    """

    hold: str
    timeout: Number | None = None
    max_jump: Annotated[list[float], Meta(min_length=2, max_length=2)]
    catch_up: Number
    filter: str
    filter_cutoff: Number
    lead: bool
    filter_delay_s: Shown = None
    preview: bool


class MotionRecord(Struct, kw_only=True):
    """The tables that the records of a run and of a live session have in common.

    Attributes:
        label: The user's name for it.
        scenario: What was tracked.
        robot: The arm.
        kinematics: The arm's chain.
        solver: The solver of the inverse kinematics.
        backend: The backend of the arm, and the servo that followed the commands.
        versions: Versions of Python and of the packages that a result depends on.
        tolerance: None if no verdict was wanted.
        shapes: Shapes of base_link and of every link, by name; None for an arm without shapes.
        controller: None in simulation.
        cell: None without one.
    """

    label: str | None = None
    scenario: ScenarioRecord
    robot: RobotRecord
    kinematics: KinematicsRecord
    solver: SolverRecord
    backend: BackendRecord
    versions: dict[str, str]
    tolerance: ToleranceRecord | None = None
    shapes: dict[str, list[ShapeRecord]] | None = None
    controller: ControllerRecord | None = None
    cell: CellRecord | None = None


class RunRecord(MotionRecord, kw_only=True):
    """The record of a run.

    Attributes:
        repeats: None for a run that is not one of several.
    """

    repeats: RepeatsRecord | None = None


class SessionRecord(MotionRecord, kw_only=True):
    """The record of a live session.

    Attributes:
        live: How the session treated its inputs.
    """

    live: LiveRecord


Record = RunRecord | SessionRecord
