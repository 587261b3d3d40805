"""The tables of a cell file, as docs/cell.md explains them."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

from simbridge.robot.obstacles import Vector


class _Strict(msgspec.Struct, forbid_unknown_fields=True):
    """A table in which a misspelt key is an error."""


class BoxTable(_Strict):
    name: str
    centre: Vector
    size: Vector
    rotation: Vector = (0.0, 0.0, 0.0)


class PlaneTable(_Strict):
    name: str
    point: Vector
    normal: Vector


class CapsuleTable(_Strict):
    start: Vector
    end: Vector
    radius: float


class CellFile(_Strict):
    host: str | UnsetType = UNSET
    robot: str | UnsetType = UNSET
    serial_number: str | UnsetType = UNSET
    tcp: tuple[float, float, float, float, float, float] | UnsetType = UNSET
    payload: float | UnsetType = UNSET
    payload_cog: Vector | UnsetType = UNSET
    mounting: str | Vector | UnsetType = UNSET
    floor: float | str | UnsetType = UNSET
    calibration: str | UnsetType = UNSET
    keep_out_boxes: list[BoxTable] = []
    keep_out_planes: list[PlaneTable] = []
    tool_capsules: list[CapsuleTable] = []
