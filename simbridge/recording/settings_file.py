"""settings.toml: the record of a run as tables, checked when it is read.

A run's files may have been edited by hand. What simbridge reads has the type that `run_record`
gives it, or the run is refused with the field's name.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from simbridge.errors import LONGEST_VALUE
from simbridge.quoting import unquoted
from simbridge.recording.run_record import MAX_QUANTITY, Record, RunRecord, SessionRecord

# Whole numbers may be checksums and seeds; the reader of TOML takes larger ones, which no float
# holds.
MAX_INTEGER = 2**63

TABLES = ("scenario", "robot", "kinematics", "solver", "backend")
"""The tables that every record has."""

ALWAYS_WRITTEN = (
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
"""Keys of every record, each of which is refused by its full name where it is missing."""

WRITTEN_WITH_SERVOJ = ("backend.servo_gain", "backend.servo_lookahead")
"""Further such keys of a record whose servo is servoj."""

PER_JOINT = (
    "joint_names",
    "home",
    "position_min",
    "position_max",
    "max_velocity",
    "max_effort",
)
"""Fields of the table [robot] that have one value per joint."""


def as_tables(record: Record) -> dict[str, Any]:
    """Return the content of settings.toml."""
    tables: dict[str, Any] = _plain(record)
    if record.cell is not None:
        tables["cell"] = {"file": record.cell.file, **_plain(record.cell.values)}
    return tables


def as_table(part: msgspec.Struct) -> dict[str, Any]:
    """Return a part of a record as a table of settings.toml."""
    table: dict[str, Any] = _plain(part)
    return table


def read_record(tables: Mapping[str, Any]) -> Record:
    """Return the record that settings.toml holds.

    Args:
        tables: The content of settings.toml.

    Raises:
        ValueError: A table or a field is missing, has another type or an impossible value, or does
            not fit the others; the message names it.
    """
    # Checks of the raw tables, whose refusals name their keys in full.
    for name in TABLES:
        if not isinstance(tables.get(name), dict):
            raise ValueError(f"it has no table [{name}]")
    _check_numbers(tables)
    _check_present(tables)

    # Table by table, with the types of the record's fields; unknown tables are left out.
    kind = SessionRecord if "live" in tables else RunRecord
    values: dict[str, Any] = {}
    for field in msgspec.structs.fields(kind):
        if field.name not in tables:
            continue
        table = tables[field.name]
        if field.name == "cell" and isinstance(table, dict):
            table = _nest_cell(table)
        try:
            values[field.name] = msgspec.convert(table, field.type)
        except msgspec.ValidationError as error:
            # None means that a key is missing; TOML itself has no null.
            reason = str(error).replace(" | null", "")
            raise ValueError(f"its table [{field.name}]: {reason}") from None

    record = kind(**values)
    _check_joints(record)
    return record


def _plain(value: Any) -> Any:
    """Return tables, lists and plain values for a record; None is left out."""
    if isinstance(value, msgspec.Struct):
        value = msgspec.structs.asdict(value)
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items() if part is not None}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return value


def _nest_cell(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the table [cell] as `CellRecord` has it: its values apart from the file's name."""
    values = dict(table)
    nested = {"values": values}
    if "file" in values:
        nested["file"] = values.pop("file")
    return nested


def _check_present(tables: Mapping[str, Any]) -> None:
    """Refuse a record that lacks what was always written."""
    names = [*ALWAYS_WRITTEN]
    if tables["backend"].get("servo") == "servoj":
        names += WRITTEN_WITH_SERVOJ

    for name in names:
        table, _, key = name.rpartition(".")
        if key not in (tables[table] if table else tables):
            raise ValueError(f"{name} is missing")


def _check_joints(record: Record) -> None:
    """Refuse fields of different numbers of joints, and a home that is infinite."""
    count = len(record.kinematics.prismatic)
    if len(record.kinematics.placements) != count + 1:
        raise ValueError(
            f"kinematics.placements: {count + 1} are needed, one per joint and the tool's"
        )

    for name in PER_JOINT:
        if len(getattr(record.robot, name)) != count:
            raise ValueError(f"robot.{name}: {count} values are needed, one per joint")

    # `_check_numbers` accepts infinity, since a limit may be infinite. A posture may not.
    if not all(map(math.isfinite, record.robot.home)):
        raise ValueError("robot.home: its values must be finite")


def _check_numbers(value: object, name: str = "") -> None:
    """Refuse NaN and impossibly large numbers anywhere in tables; infinity may be a limit.

    Args:
        value: A value of the tables, or a table or list of values.
        name: The full name of its key, for the refusal.

    Raises:
        ValueError: A number is NaN, or impossibly large.
    """
    if isinstance(value, Mapping):
        for key, part in value.items():
            _check_numbers(part, f"{name}.{key}" if name else key)
    elif isinstance(value, list):
        for index, part in enumerate(value):
            _check_numbers(part, f"{name}[{index}]")
    else:
        fault = _number_fault(value)
        if fault:
            raise ValueError(f"{unquoted(name, LONGEST_VALUE)} {fault}")


def _number_fault(value: object) -> str:
    """Return what is wrong with a number; "" for a valid one, and for other values."""
    if isinstance(value, float):
        if math.isnan(value):
            return "is not a number"
        if MAX_QUANTITY < abs(value) < math.inf:
            return f"is {value:g}; values larger than {MAX_QUANTITY:g} are not accepted"
    if isinstance(value, int) and not -MAX_INTEGER <= value < MAX_INTEGER:
        return f"is {unquoted(value)}, which is not a TOML integer"
    return ""
