"""JointState as text, with the joints' names in its rows.

`rostopic echo -p` numbers the positions: `field.position0` is that of the joint that `field.name0`
names. `ros2 topic echo --csv` prints stamp, frame, names, positions, velocities and efforts without
a header.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from simbridge.trajectory.tables.column_names import parse_column_name, strip_quotes
from simbridge.trajectory.tables.header import Header
from simbridge.trajectory.tables.joint_columns import numbered_component
from simbridge.trajectory.tables.text_dialects import FirstLine

# The columns of the stamp and the frame, as `ros2 topic echo --csv` prints them.
ECHO_BEGINNING = ("header.stamp.sec", "header.stamp.nanosec", "frame_id")
# The vectors behind the names that a message may have: positions, velocities and efforts.
MAX_VECTORS = 3


class JointStateText(NamedTuple):
    """The columns of a JointState.

    Attributes:
        header: Names of the columns, those of positions by their joints: "position.elbow_joint".
        name_indices: The columns of the joints' names.
    """

    header: Header
    name_indices: tuple[int, ...]


def find_joint_state(header: Header | None, line: FirstLine) -> JointStateText | None:
    """Return the columns of a file of JointState; None if it is not one.

    Args:
        header: Header of the file; None if it has none.
        line: First line of the file with numbers.
    """
    if header is None:
        return _without_header(line)
    if len(header.names) != line.count:
        return None
    return _with_header(header, line)


def _with_header(header: Header, line: FirstLine) -> JointStateText | None:
    """Return the columns of `rostopic echo -p`, whose header numbers names and positions."""
    # The columns by the vector's name before "name" or "position", and by number.
    names: dict[tuple[tuple[str, ...], int], int] = {}
    positions: dict[tuple[tuple[str, ...], int], int] = {}
    for index, column in enumerate(header.names):
        component = numbered_component(parse_column_name(column))
        if component is None or not component.vector:
            continue
        key = (component.vector[:-1], component.number)
        if component.vector[-1] == "name":
            names[key] = index
        elif component.vector[-1] == "position":
            positions[key] = index
    if not names or names.keys() != positions.keys():
        return None

    columns = list(header.names)
    for key, index in positions.items():
        joint = strip_quotes(line.fields[names[key]])
        columns[index] = ".".join((*key[0], "position", joint))
    renamed = Header(header.path, columns, header.kind, header.line)
    return JointStateText(renamed, tuple(names.values()))


def _without_header(line: FirstLine) -> JointStateText | None:
    """Return the columns of `ros2 topic echo --csv`."""
    first = len(ECHO_BEGINNING)
    joints = _joints_from(line.fields[first : line.count], line.words, first)
    numbers = line.count - first - len(joints)
    if not joints or numbers % len(joints) or not 1 <= numbers // len(joints) <= MAX_VECTORS:
        return None

    columns = [*ECHO_BEGINNING, *(f"name{i}" for i in range(len(joints)))]
    for quantity in ("position", "velocity", "effort")[: numbers // len(joints)]:
        columns += [f"{quantity}.{joint}" for joint in joints]
    header = Header(line.path, columns, "`ros2 topic echo` of JointState", line.number)
    return JointStateText(header, tuple(range(first, first + len(joints))))


def _joints_from(fields: Sequence[str], words: Sequence[int], first: int) -> list[str]:
    """Return the words at the beginning of fields: the names of joints.

    Args:
        fields: Fields of a line, from the first name on.
        words: The places in the line of fields that are not numbers.
        first: The place of the first name.
    """
    joints = []
    for place, field in enumerate(fields, first):
        if place not in words:
            break
        joints.append(strip_quotes(field))
    return joints
