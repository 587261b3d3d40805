"""Types of the fields that simbridge reads back of settings.toml and summary.json, and a check against them.

A run's files may have been edited by hand. A field that is read has the type given here, or the run is refused with
the field's name; fields that are only shown may hold anything.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, get_type_hints

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from simbridge.errors import LONGEST_VALUE
from simbridge.quoting import unquoted
from simbridge.robot import MAX_JOINTS, Task

# No quantity of an arm is larger in SI units; a larger one would overflow where it is squared or drawn.
MAX_QUANTITY = 1e9
# Of whole numbers, which may be checksums and seeds; the reader of TOML takes larger ones, which no float holds.
MAX_INTEGER = 2**63

Number = Annotated[float, Meta(ge=-MAX_QUANTITY, le=MAX_QUANTITY)]
Positive = Annotated[float, Meta(gt=0.0, le=MAX_QUANTITY)]
NotNegative = Annotated[float, Meta(ge=0.0, le=MAX_QUANTITY)]
# Limits may be infinite.
Joints = Annotated[list[float], Meta(min_length=1, max_length=MAX_JOINTS)]
Vector = Annotated[list[Number], Meta(min_length=3, max_length=3)]
Placement = Annotated[list[Number], Meta(min_length=16, max_length=16)]
Period = Annotated[float, Meta(ge=1e-4, le=10.0)]


class Start(Struct):
    joints: Joints
    reason: str


class ScenarioTable(Struct):
    name: str
    on_limits: str
    hold: str | UnsetType = UNSET
    speed_scale: Positive | UnsetType = UNSET
    floor: Number | str | UnsetType = UNSET
    file: str | UnsetType = UNSET
    plan: str | UnsetType = UNSET
    feedforward: str | UnsetType = UNSET
    corner_tolerance: Number | UnsetType = UNSET
    sampling: dict[str, Any] | UnsetType = UNSET
    start: Start | UnsetType = UNSET


class RobotTable(Struct):
    name: str
    title: str
    home: Joints
    position_min: Joints
    position_max: Joints
    max_velocity: Joints
    max_effort: Joints
    source: str | UnsetType = UNSET
    joint_names: list[str] | UnsetType = UNSET
    max_tool_speed: Positive | UnsetType = UNSET
    tcp: Annotated[list[Number], Meta(min_length=6, max_length=6)] | UnsetType = UNSET
    payload: NotNegative | UnsetType = UNSET
    max_acceleration: Positive | UnsetType = UNSET
    base: str | UnsetType = UNSET
    tip: str | UnsetType = UNSET
    package: list[str] | UnsetType = UNSET


class Difference(Struct):
    position_m: NotNegative
    rotation_rad: NotNegative


class RosTable(Struct):
    hash: str


class KinematicsTable(Struct):
    placements: list[Placement]
    prismatic: list[bool]
    source: str
    checksum: str | UnsetType = UNSET
    file: str | UnsetType = UNSET
    dh: dict[str, Any] | UnsetType = UNSET
    ros: RosTable | UnsetType = UNSET
    controller_difference: Difference | UnsetType = UNSET


class SolverTable(Struct):
    name: str
    parameters: dict[str, Any] | UnsetType = UNSET
    task: Task | UnsetType = UNSET
    predicted_lag_s: Number | UnsetType = UNSET
    notes: list[str] | UnsetType = UNSET


class BackendTable(Struct):
    name: str
    period: Period
    simulated_time: bool
    effort_unit: str
    servo: str | UnsetType = UNSET
    servo_gain: Positive | UnsetType = UNSET
    servo_lookahead: Positive | UnsetType = UNSET
    cycle: Period | UnsetType = UNSET
    phase: Number | UnsetType = UNSET
    joint_lag: NotNegative | UnsetType = UNSET
    unmodelled_payload: NotNegative | UnsetType = UNSET
    plant_file: str | UnsetType = UNSET
    plant_replaced: list[str] | UnsetType = UNSET
    plant_not_simulated: str | UnsetType = UNSET
    on_scaling: str | UnsetType = UNSET


class ToleranceTable(Struct):
    position_m: NotNegative
    rotation_rad: NotNegative


class Shape(Struct):
    kind: str
    start: Vector
    color: Annotated[list[Annotated[float, Meta(ge=0.0, le=1.0)]], Meta(min_length=3, max_length=3)]
    end: Vector
    radius: Positive


class ControllerTable(Struct):
    host: str | UnsetType = UNSET
    model: str | UnsetType = UNSET
    serial_number: str | UnsetType = UNSET
    polyscope: str | UnsetType = UNSET
    ursim: bool | UnsetType = UNSET


class CellTable(Struct):
    file: str


class RepeatsTable(Struct):
    count: Annotated[int, Meta(ge=1, le=10**9)]


class RunSettings(Struct):
    """settings.toml; tables that a run may lack are UNSET."""

    scenario: ScenarioTable
    robot: RobotTable
    kinematics: KinematicsTable
    solver: SolverTable
    backend: BackendTable
    versions: dict[str, str] | UnsetType = UNSET
    label: str | UnsetType = UNSET
    tolerance: ToleranceTable | UnsetType = UNSET
    shapes: dict[str, list[Shape]] | UnsetType = UNSET
    controller: ControllerTable | UnsetType = UNSET
    cell: CellTable | UnsetType = UNSET
    live: dict[str, Any] | UnsetType = UNSET
    repeats: RepeatsTable | UnsetType = UNSET


# Beside the fields that have no default: what every run has written.
REQUIRED = (
    "versions",
    "scenario.hold",
    "scenario.speed_scale",
    "robot.source",
    "robot.joint_names",
    "robot.max_tool_speed",
    "robot.tcp",
    "robot.payload",
    "kinematics.checksum",
    "solver.parameters",
)
REQUIRED_OF_A_SERVO = ("backend.servo_gain", "backend.servo_lookahead")
PER_JOINT = ("joint_names", "home", "position_min", "position_max", "max_velocity", "max_effort")


def check_types(settings: Mapping[str, Any]) -> RunSettings:
    """Check the fields that settings.toml has, and that it has its tables.

    Raises:
        ValueError: A field has another type or an impossible value; the message names it.
    """
    for table in ("scenario", "robot", "kinematics", "solver", "backend"):
        if not isinstance(settings.get(table), dict):
            raise ValueError(f"it has no table [{table}]")
    _refuse_numbers(settings)
    tables: dict[str, Any] = {}
    for field in msgspec.structs.fields(RunSettings):
        if field.name in settings:
            try:
                tables[field.name] = msgspec.convert(settings[field.name], field.type)
            except msgspec.ValidationError as error:
                raise ValueError(f"its table [{field.name}]: {error}") from None
    return RunSettings(**tables)


def check_complete(settings: Mapping[str, Any]) -> None:
    """Check that settings.toml has all that evaluating, showing and repeating a run reads, and that it fits together.

    Raises:
        ValueError: A field is missing or does not fit the others; the message names it.
    """
    typed = check_types(settings)
    required = [*REQUIRED]
    if typed.backend.servo == "servoj":
        required += REQUIRED_OF_A_SERVO
    for name in required:
        table, _, field = name.rpartition(".")
        if field not in (settings[table] if table else settings):
            raise ValueError(f"{name} is missing")

    count = len(typed.kinematics.prismatic)
    if len(typed.kinematics.placements) != count + 1:
        raise ValueError(
            f"kinematics.placements: {count + 1} are needed, one per joint and the tool's"
        )
    for field in PER_JOINT:
        if len(settings["robot"][field]) != count:
            raise ValueError(f"robot.{field}: {count} values are needed, one per joint")
    if not all(map(math.isfinite, typed.robot.home)):
        raise ValueError("robot.home: its values must be finite")


def check_fields(content: Mapping[str, Any], kind: type) -> None:
    """Check the fields that JSON content has against those of a typed dictionary; others are left alone.

    Raises:
        ValueError: A field has another type; the message names it.
    """
    for name, field_type in get_type_hints(kind).items():
        if name in content:
            try:
                msgspec.convert(content[name], field_type)
            except msgspec.ValidationError as error:
                raise ValueError(f"{name}: {error}") from None


def _refuse_numbers(value: object, name: str = "") -> None:
    """Refuse NaN, and finite numbers that no quantity has, wherever they are; a limit may be infinite."""
    if isinstance(value, float) and math.isnan(value):
        raise ValueError(f"{unquoted(name, LONGEST_VALUE)} is not a number")
    if isinstance(value, float) and MAX_QUANTITY < abs(value) < math.inf:
        reason = f"is {value:g}; no quantity is larger than {MAX_QUANTITY:g}"
        raise ValueError(f"{unquoted(name, LONGEST_VALUE)} {reason}")
    if isinstance(value, int) and not -MAX_INTEGER <= value < MAX_INTEGER:
        raise ValueError(
            f"{unquoted(name, LONGEST_VALUE)} is {unquoted(value)}, which is no integer of TOML"
        )
    if isinstance(value, Mapping):
        for key, part in value.items():
            _refuse_numbers(part, f"{name}.{key}" if name else key)
    if isinstance(value, list):
        for index, part in enumerate(value):
            _refuse_numbers(part, f"{name}[{index}]")
