"""A robot's TOML: its tables (robots/README.md explains them) and their checks.

Nothing here needs numpy or pinocchio, so that the robots can be listed quickly; `toml_reader`
checks the inertia.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec
from msgspec.structs import replace

from simbridge.errors import InvalidParameter
from simbridge.files.toml_file import TomlFile
from simbridge.quoting import quoted
from simbridge.resources import robot_files
from simbridge.robot import MAX_JOINTS, MAX_SHAPES, Task, Vector
from simbridge.robot.arm_models import ARM_MODELS
from simbridge.robot.robot_names import find_robot, similar_robots
from simbridge.text import join_words

T = TypeVar("T", bound=msgspec.Struct)


class StrictTable(msgspec.Struct, forbid_unknown_fields=True):
    """A table in which a misspelt key is an error."""


class ControllerTable(StrictTable):
    """The table `controller`: period in s, and the series and model of a UR arm."""

    period: float
    series: str = ""
    model: str = ""


class KinematicsTable(StrictTable):
    """The table `kinematics`: Denavit-Hartenberg parameters (n), m and rad, and the base's turn."""

    joint_names: list[str]
    d: list[float]
    a: list[float]
    alpha: list[float]
    base_rpy: Vector = (0.0, 0.0, 0.0)


class LimitsTable(StrictTable):
    """The table `limits`, of the joints (n) and of the arm, SI units."""

    position_min: list[float]
    position_max: list[float]
    velocity: list[float]
    effort: list[float]
    velocity_jump: float
    acceleration: float
    tool_speed: float


class ShapeTable(StrictTable):
    """A shape of a link, in the link's frame, m."""

    start: Vector
    end: Vector
    radius: float
    kind: Literal["capsule", "cylinder"] = "capsule"
    color: Literal["silver", "grey", "blue", "dark"] = "silver"
    solid: bool = True


class InertiaTable(StrictTable):
    """The moments of inertia of a link about its centre of mass, kg m^2."""

    ixx: float
    ixy: float
    ixz: float
    iyy: float
    iyz: float
    izz: float


class LinkTable(StrictTable):
    """A link: mass in kg, centre of mass in m, inertia, and shapes."""

    name: str
    mass: float
    center_of_mass: Vector
    inertia: InertiaTable
    inertia_rpy: Vector = (0.0, 0.0, 0.0)
    shapes: list[ShapeTable] = []


class BaseTable(StrictTable):
    """The table `base`: the shapes of base_link."""

    shapes: list[ShapeTable] = []


class RobotFile(StrictTable):
    """The whole file."""

    title: str
    home: list[float]
    controller: ControllerTable
    kinematics: KinematicsTable
    limits: LimitsTable
    links: list[LinkTable]
    task: Task = "pose"
    base: BaseTable = msgspec.field(default_factory=BaseTable)
    inferred: list[str] = []


class ControllerChanges(StrictTable):
    """The table `controller` of a file with `like`: the fields that differ."""

    period: float | msgspec.UnsetType = msgspec.UNSET
    series: str | msgspec.UnsetType = msgspec.UNSET
    model: str | msgspec.UnsetType = msgspec.UNSET


class LimitChanges(StrictTable):
    """The table `limits` of a file with `like`: the fields that differ."""

    position_min: list[float] | msgspec.UnsetType = msgspec.UNSET
    position_max: list[float] | msgspec.UnsetType = msgspec.UNSET
    velocity: list[float] | msgspec.UnsetType = msgspec.UNSET
    effort: list[float] | msgspec.UnsetType = msgspec.UNSET
    velocity_jump: float | msgspec.UnsetType = msgspec.UNSET
    acceleration: float | msgspec.UnsetType = msgspec.UNSET
    tool_speed: float | msgspec.UnsetType = msgspec.UNSET


class LikeFile(StrictTable):
    """A file of an arm with the body of another: the other arm, and what differs.

    The body (kinematics, base and links) is always that of the other arm.

    Attributes:
        like: The other arm: a name in robots/, or the path of a TOML relative to this file.
        title: Name of this arm.
        home: Home of the arm, if it differs.
        task: Task of the arm, if it differs.
        inferred: What was not published for this arm; nothing of this is inherited.
    """

    like: str
    title: str
    home: list[float] | msgspec.UnsetType = msgspec.UNSET
    task: Task | msgspec.UnsetType = msgspec.UNSET
    inferred: list[str] = []
    controller: ControllerChanges = msgspec.field(default_factory=ControllerChanges)
    limits: LimitChanges = msgspec.field(default_factory=LimitChanges)


# The tables of an arm's body, which a file with `like` cannot have.
BODY_TABLES = ("kinematics", "base", "links")

# Red, green, blue of each colour of a shape.
COLORS: dict[str, Vector] = {
    "silver": (0.80, 0.81, 0.83),
    "grey": (0.48, 0.49, 0.52),
    "blue": (0.38, 0.62, 0.80),
    "dark": (0.16, 0.17, 0.18),
}


def robot_facts(path: Path) -> dict[str, Any]:
    """Return what `simbridge robots` lists of a robot's TOML (SI units)."""
    _, data = read_robot_file(path)

    chain = data.kinematics
    lengths = [math.sqrt(a * a + d * d) for a, d in zip(chain.a, chain.d, strict=True)]
    return {
        "robot": path.stem,
        "title": data.title,
        "joints": len(chain.joint_names),
        "controller": data.controller.series,
        "period_s": data.controller.period,
        "arm_length_m": sum(lengths),
        "inferred": data.inferred,
    }


def read_robot_file(path: Path) -> tuple[TomlFile, RobotFile]:
    """Read a robot's TOML, complete it by the arm that it is like, and check it.

    Args:
        path: The file.

    Returns:
        The file that describes the arm's body, for errors about it, and the complete content.

    Raises:
        InputFileError: A file cannot be read, or a field is missing or wrong; names the field.
    """
    file = TomlFile(path)
    if not _has_like(file):
        data = file.decode(RobotFile)
        check_robot(file, data)
        return file, data

    _refuse_body(file)
    changes = file.decode(LikeFile)
    body_file = _find_body_file(file, changes.like)
    body = body_file.decode(RobotFile)
    check_robot(body_file, body)

    data = _apply_changes(body, changes)
    check_robot(file, data)
    return body_file, data


def _has_like(file: TomlFile) -> bool:
    """Return whether a file describes its arm by another one's file."""
    return "like" in file.decode_keys()


def _refuse_body(file: TomlFile) -> None:
    """Refuse tables of the body in a file that has the body of another arm."""
    tables = [table for table in BODY_TABLES if table in file.decode_keys()]
    if tables:
        reason = (
            f"a file with `like` has the body of the other arm, so it cannot have "
            f"{join_words(tables)} of its own. Leave that out, or copy the other arm's file and "
            f"leave out `like`"
        )
        file.refuse(tables[0], reason)


def _find_body_file(file: TomlFile, like: str) -> TomlFile:
    """Return the file of the arm that a file refers to.

    Args:
        file: The file with `like`.
        like: The name of an arm in robots/, or the path of a TOML relative to the file.
    """
    if like.lower().endswith(".toml"):
        path = file.path.parent / like
        if not path.is_file():
            file.refuse("like", f"there is no file {path}")
    else:
        files = robot_files()
        named_path = find_robot(like, files)
        if named_path is None:
            candidates = similar_robots(like, list(files))
            question = (
                f". Did you mean {' or '.join(map(quoted, candidates))}?" if candidates else ""
            )
            file.refuse(
                "like",
                f"this must be the path of a TOML, relative to this file, or one of "
                f"{', '.join(files)}; it is {quoted(like)}{question}",
            )
        path = named_path

    body_file = TomlFile(path)
    if _has_like(body_file):
        reason = f"{path} itself refers to another arm with `like`; name that arm here"
        file.refuse("like", reason)
    return body_file


def _apply_changes(body: RobotFile, changes: LikeFile) -> RobotFile:
    """Return the content of one arm's file with the changes of another file."""
    arm_changes = {
        name: value
        for name, value in (("home", changes.home), ("task", changes.task))
        if value is not msgspec.UNSET
    }
    return replace(
        body,
        title=changes.title,
        inferred=changes.inferred,
        controller=_change_table(body.controller, changes.controller),
        limits=_change_table(body.limits, changes.limits),
        **arm_changes,
    )


def _change_table(table: T, changes: StrictTable) -> T:
    """Return a table in which the fields that are set in another one have its values."""
    values = msgspec.structs.asdict(changes)
    set_values = {name: value for name, value in values.items() if value is not msgspec.UNSET}
    return replace(table, **set_values)


def check_robot(file: TomlFile, data: RobotFile) -> None:
    """Check everything except the inertia of the links.

    Args:
        file: The file, for the errors.
        data: Content of the file.

    Raises:
        InputFileError: A field is wrong; names the field.
    """
    kinematics = data.kinematics
    limits = data.limits
    names = kinematics.joint_names
    n = len(names)

    # The size.
    if n == 0:
        file.refuse("kinematics.joint_names", "an arm needs at least one joint")
    if max(n, len(data.links)) > MAX_JOINTS:
        file.refuse("kinematics.joint_names", f"an arm has at most {MAX_JOINTS} joints and links")
    if len(data.base.shapes) + sum(len(link.shapes) for link in data.links) > MAX_SHAPES:
        file.refuse("links", f"an arm has at most {MAX_SHAPES} shapes")

    # Joints.
    file.check_names([f"kinematics.joint_names[{i}]" for i in range(n)], names)
    for name, column in (("d", kinematics.d), ("a", kinematics.a), ("alpha", kinematics.alpha)):
        file.check_length(f"kinematics.{name}", column, n)
        file.check_finite(f"kinematics.{name}", column)
    file.check_finite("kinematics.base_rpy", kinematics.base_rpy)

    # The controller, and the limits of the arm.
    file.check_positive("controller.period", data.controller.period)
    _check_model(file, data.controller)
    file.check_positive("limits.velocity_jump", limits.velocity_jump)
    file.check_positive("limits.acceleration", limits.acceleration)
    file.check_positive("limits.tool_speed", limits.tool_speed)

    # The limits of the joints.
    file.check_length("limits.position_min", limits.position_min, n)
    file.check_length("limits.position_max", limits.position_max, n)
    file.check_length("limits.velocity", limits.velocity, n)
    file.check_length("limits.effort", limits.effort, n)
    file.check_length("home", data.home, n)
    file.check_finite("home", data.home)
    for i in range(n):
        _check_joint(file, data, i)

    # Links.
    file.check_length("links", data.links, n)
    file.check_names([f"links[{i}].name" for i in range(n)], [link.name for link in data.links])
    _check_shapes(file, "base.shapes", data.base.shapes)
    for i, link in enumerate(data.links):
        _check_link(file, f"links[{i}]", link)


def _check_model(file: TomlFile, controller: ControllerTable) -> None:
    """Check that the model of a UR arm is known, and that its controller is of the series."""
    if not controller.model:
        return

    # PolyScope X alone drives the others: simbridge cannot move them.
    models = {model.name: model for model in ARM_MODELS if model.oldest_polyscope is not None}
    if controller.model not in models:
        names = join_words(list(models), "or")
        file.refuse(
            "controller.model",
            f"this must be {names}, or left out for any other arm; it is "
            f"{quoted(controller.model)}",
        )

    model = models[controller.model]
    if controller.series != model.series:
        file.refuse(
            "controller.series",
            f"this must be {quoted(model.series)} for the model {model.name}; it is "
            f"{quoted(controller.series)}",
        )


def _check_joint(file: TomlFile, data: RobotFile, i: int) -> None:
    """Check limits and home of a joint."""
    limits = data.limits
    joint = data.kinematics.joint_names[i]
    file.check_positive(f"limits.velocity[{i}]", limits.velocity[i])
    file.check_positive(f"limits.effort[{i}]", limits.effort[i])

    low = limits.position_min[i]
    high = limits.position_max[i]
    if not low < high:
        reason = f"{low} is not below the upper limit of {joint}, {high}"
        file.refuse(f"limits.position_min[{i}]", reason)

    q = data.home[i]
    if not low <= q <= high:
        file.refuse(f"home[{i}]", f"{q} rad is outside the range of {joint}, {low} to {high}")


def _check_link(file: TomlFile, field: str, link: LinkTable) -> None:
    """Check mass, moments and shapes of a link."""
    file.check_positive(f"{field}.mass", link.mass)
    file.check_finite(f"{field}.center_of_mass", link.center_of_mass)
    file.check_finite(f"{field}.inertia_rpy", link.inertia_rpy)
    for name, moment in msgspec.structs.asdict(link.inertia).items():
        if not math.isfinite(moment):
            reason = f"must be a finite number, not {moment}"
            file.refuse(f"{field}.inertia.{name}", reason)
    _check_shapes(file, f"{field}.shapes", link.shapes)


def _check_shapes(file: TomlFile, field: str, shapes: Sequence[ShapeTable]) -> None:
    """Check the shapes of a link."""
    for i, shape in enumerate(shapes):
        file.check_finite(f"{field}[{i}].start", shape.start)
        file.check_finite(f"{field}[{i}].end", shape.end)
        file.check_positive(f"{field}[{i}].radius", shape.radius)
        if shape.kind == "cylinder" and shape.start == shape.end:
            file.refuse(f"{field}[{i}].end", "a cylinder must not end where it starts")


def with_lengths(data: RobotFile, lengths: Sequence[float]) -> RobotFile:
    """Return the file's planar arm with links of other lengths: rods of the same thickness.

    A link that is s times as long has its shapes and its centre of mass scaled by s along it and s
    times the mass. A rod's moment about its own axis, m r^2 / 2, grows by s; of the moment about a
    transverse axis, m r^2 / 4 + m l^2 / 12, the part with the length grows by s^3.

    Args:
        data: The file.
        lengths: Lengths of the links (n,), m.

    Raises:
        InvalidParameter: The arm is not planar with its links along x, or the lengths are not one
            positive number per link.
    """
    kinematics = data.kinematics
    is_planar = not any(kinematics.alpha) and not any(kinematics.d)
    if not is_planar or not all(a > 0.0 for a in kinematics.a):
        needed = f"left out: {data.title} is not a planar arm"
        raise InvalidParameter("link lengths", list(lengths), needed)
    are_positive = all(math.isfinite(length) and length > 0.0 for length in lengths)
    if len(lengths) != len(kinematics.a) or not are_positive:
        needed = f"{len(kinematics.a)} positive numbers in m, one per link"
        raise InvalidParameter("link lengths", list(lengths), needed)

    new_lengths = [float(length) for length in lengths]
    links = [
        _scale_link(link, length / a)
        for link, length, a in zip(data.links, new_lengths, kinematics.a, strict=True)
    ]
    return replace(data, kinematics=replace(kinematics, a=new_lengths), links=links)


def _scale_link(link: LinkTable, s: float) -> LinkTable:
    """Return a link that is s times as long; see `with_lengths`.

    Its mass and its distances along x grow by s; so the products of inertia with x, a mass times a
    distance along x times one across, grow by s^2.
    """
    inertia = link.inertia
    x, y, z = link.center_of_mass
    return replace(
        link,
        mass=link.mass * s,
        center_of_mass=(x * s, y, z),
        inertia=InertiaTable(
            ixx=inertia.ixx * s,
            ixy=inertia.ixy * s**2,
            ixz=inertia.ixz * s**2,
            iyy=_scale_transverse(inertia.iyy, inertia.ixx, s),
            iyz=inertia.iyz * s,
            izz=_scale_transverse(inertia.izz, inertia.ixx, s),
        ),
        shapes=[_scale_shape(shape, s) for shape in link.shapes],
    )


def _scale_transverse(moment: float, axial: float, s: float) -> float:
    """Return a rod's moment about a transverse axis, kg m^2, of the moment about its own axis."""
    return (moment - 0.5 * axial) * s**3 + 0.5 * axial * s


def _scale_shape(shape: ShapeTable, s: float) -> ShapeTable:
    """Return a shape that is s times as long along x."""
    start_x, start_y, start_z = shape.start
    end_x, end_y, end_z = shape.end
    return replace(shape, start=(start_x * s, start_y, start_z), end=(end_x * s, end_y, end_z))
