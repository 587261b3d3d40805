"""The headers of several lines of motion capture: OptiTrack's Motive and Vicon's Tracker and Nexus, exported as CSV."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from simbridge.errors import InputFileError
from simbridge.trajectory.columns import POSITION, QUATERNION, ROTATION_VECTOR, UNIT_NAMES, Choice, Columns

_VICON = ("objects", "segments")


def motion_capture(
    path: str | Path, lines: Sequence[str], choice: Choice, body: str | None
) -> tuple[Columns, int] | None:
    """The columns of an export, and the index of its first line with numbers; None for another kind of file.

    Args:
        path: For messages.
        lines: Of the file.
        choice: What `--columns` says; it decides units, and that RX RY RZ of Vicon are rotation vectors.
        body: Which rigid body; None for the only one.

    Raises:
        InputFileError: There is no such body, there are several, or its rotations are no quaternions.
    """
    begin = [_cells(line) for line in lines[:12]]
    if begin[0][0].lower() == "format version":
        return _motive(path, begin, choice, body)
    if begin[0][0].lower() in _VICON and len(begin) > 4 and begin[1][0].replace(".", "", 1).isdecimal():
        return _vicon(path, begin, choice, body)
    return None


def _cells(line: str) -> list[str]:
    return [cell.strip().strip('"') for cell in line.split(",")]


def _motive(path: str | Path, begin: Sequence[Sequence[str]], choice: Choice, body: str | None) -> tuple[Columns, int]:
    about = dict(zip(begin[0][::2], begin[0][1::2], strict=False))
    kind = about.get("Rotation Type", "Quaternion")
    if kind != "Quaternion":
        raise InputFileError(
            path, f"its rotations are of the type '{kind}'; export it with the type Quaternion", line=1
        )
    last = next((i for i, cells in enumerate(begin) if cells[0] == "Frame"), None)
    types = next((cells for cells in begin if {"Rigid Body", "Bone"} & set(cells)), None)
    if last is None or types is None:
        raise InputFileError(path, "it has no rigid body: export rigid bodies, with the header")
    names, groups, axes = begin[begin.index(types) + 1], begin[last - 1], begin[last]
    found: dict[str, dict[str, int]] = {}
    for i, (what, name, group, axis) in enumerate(zip(types, names, groups, axes, strict=False)):
        if what in ("Rigid Body", "Bone") and group in ("Rotation", "Position"):
            found.setdefault(name, {})[axis.lower() if group == "Position" else f"q{axis.lower()}"] = i
    name = _chosen(path, found, body)
    unit = UNIT_NAMES.get(about.get("Length Units", "Meters").lower(), "")
    places = [found[name].get(role) for role in POSITION + QUATERNION]
    # y is up there: the frame must be placed.
    return _columns(path, places, QUATERNION, unit, choice, f"Motive, '{name}'", "OptiTrack", (1,), "s"), last + 1


def _vicon(path: str | Path, begin: Sequence[Sequence[str]], choice: Choice, body: str | None) -> tuple[Columns, int]:
    rate = float(begin[1][0])
    last = next((i for i, cells in enumerate(begin) if cells[0] == "Frame"), None)
    if last is None or last + 1 >= len(begin):
        raise InputFileError(path, "its header has no line 'Frame,Sub Frame,...', as Vicon's exports have")
    found: dict[str, dict[str, int]] = {}
    name = ""
    titles = [*begin[last - 1], *[""] * len(begin[last])]
    for i, axis in enumerate(begin[last][2:], start=2):
        name = titles[i] or name
        found.setdefault(name, {})[axis.lower()] = i
    name = _chosen(path, found, body)
    own, units = found[name], begin[last + 1]
    vector = "rw" not in own
    if vector and not {"rx", "ry", "rz"} <= set(choice.columns):
        reason = (
            "RX RY RZ may be rotation vectors or Euler angles, which the file does not say. If they are rotation "
            "vectors, add --columns rx=RX,ry=RY,rz=RZ; else export quaternions (RX RY RZ RW)"
        )
        raise InputFileError(path, reason, line=last + 1)
    roles = ROTATION_VECTOR if vector else QUATERNION
    places = [own.get(name) for name in ("tx", "ty", "tz", "rx", "ry", "rz", *([] if vector else ["rw"]))]
    unit, turn = (UNIT_NAMES.get(units[i or 0].lower(), "") if (i or 0) < len(units) else "" for i in places[2:4])
    columns = _columns(path, places, roles, unit, choice, f"Vicon, '{name}'", "Vicon", (0,), "s", rate, turn)
    return columns, last + 2


def _chosen(path: str | Path, found: dict[str, dict[str, int]], body: str | None) -> str:
    names = ", ".join(found)
    if body is None and len(found) == 1:
        return next(iter(found))
    if body not in found:
        what = f"it has {len(found)} rigid bodies" if body is None else f"there is no rigid body '{body}'"
        raise InputFileError(path, f"{what}; choose one with --topic: {names}", field="topic")
    return body


def _columns(
    path: str | Path,
    places: Sequence[int | None],
    rotation: tuple[str, ...],
    unit: str,
    choice: Choice,
    understood: str,
    frame: str,
    times: tuple[int, ...],
    time_unit: str,
    rate: float | None = None,
    turn: str = "",
) -> Columns:
    indices = tuple(place for place in places if place is not None)
    roles = POSITION + rotation
    if len(indices) != len(roles):
        raise InputFileError(path, "a rigid body has no position or no rotation: export both")
    stated = {**dict.fromkeys(POSITION, unit), **dict.fromkeys(ROTATION_VECTOR, turn), **choice.units}
    return Columns(
        roles=roles,
        names=roles,
        indices=indices,
        units=tuple(stated.get(role, "") for role in roles),
        times=("Frame",) if rate else ("Time",),
        time_indices=times,
        time_unit=time_unit,
        width=None,
        origin="as the header names",
        understood=understood,
        frame=frame,
        rate=rate,
    )
