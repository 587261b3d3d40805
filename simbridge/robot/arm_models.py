"""The arms that UR's controllers report: their types, names and oldest software.

Sources: robot types and oldest versions as in UR's client library; names of the dashboard as in
the documentation of UR's ROS 2 driver (a UR5 and a UR5e both answer UR5). Not documented by UR:
the dashboard's names of UR7e, UR12e and UR15, which follow the same rule here, and of UR18 and
UR8 Long, which other programs report.
"""

from __future__ import annotations

from dataclasses import dataclass

# The first major version of the e-Series' software, PolyScope 5.
E_SERIES_MAJOR = 5

VersionStart = tuple[int, int]


@dataclass(frozen=True)
class ArmModel:
    """An arm as its controller reports it.

    Attributes:
        name: Name of the arm, as `controller.model` in robots/*.toml: "UR10e".
        robot_type: Number of the arm in the primary interface's configuration data.
        dashboard_name: The dashboard's answer to `get robot model`.
        oldest_polyscope: Major and minor version of the oldest PolyScope 3 or 5 that drives it;
            None if only PolyScope X does.
        oldest_polyscope_x: Major and minor version of the oldest PolyScope X that drives it; None
            if none does.
    """

    name: str
    robot_type: int
    dashboard_name: str
    oldest_polyscope: VersionStart | None
    oldest_polyscope_x: VersionStart | None = None

    @property
    def series(self) -> str:
        """The series of its controller, "CB3" or "e-Series", as in robots/*.toml."""
        return "CB3" if self.is_cb3 else "e-Series"

    @property
    def is_cb3(self) -> bool:
        """True for an arm of the CB3 series."""
        return self.oldest_polyscope is not None and self.oldest_polyscope[0] < E_SERIES_MAJOR

    def runs_on(self, version: VersionStart) -> bool:
        """Return whether a version of PolyScope, major and minor, drives the arm."""
        for oldest in (self.oldest_polyscope, self.oldest_polyscope_x):
            if oldest is not None and oldest[0] == version[0]:
                return version >= oldest
        return False


UR10 = ArmModel("UR10", 2, "UR10", (3, 0))
# If two arms share a robot type, the older one comes first.
ARM_MODELS = (
    ArmModel("UR3", 3, "UR3", (3, 0)),
    ArmModel("UR5", 1, "UR5", (3, 0)),
    UR10,
    ArmModel("UR3e", 3, "UR3", (5, 0), (10, 7)),
    ArmModel("UR5e", 1, "UR5", (5, 0), (10, 7)),
    ArmModel("UR7e", 1, "UR7", (5, 22), (10, 9)),
    ArmModel("UR10e", 2, "UR10", (5, 0), (10, 7)),
    ArmModel("UR12e", 2, "UR12", (5, 22), (10, 9)),
    ArmModel("UR16e", 4, "UR16", (5, 0), (10, 7)),
    ArmModel("UR8 Long", 6, "UR8L", (5, 23), (10, 11)),
    ArmModel("UR15", 9, "UR15", (5, 22), (10, 8)),
    ArmModel("UR18", 5, "UR18", (5, 23), (10, 11)),
    ArmModel("UR20", 7, "UR20", (5, 14), (10, 7)),
    ArmModel("UR30", 8, "UR30", (5, 15), (10, 7)),
    ArmModel("UR10g-1750", 12, "UR10g-1750", None, (10, 15)),
    ArmModel("UR17g-1300", 13, "UR17g-1300", None, (10, 15)),
    ArmModel("UR18g-950", 14, "UR18g-950", None, (10, 15)),
)


def find_model(name: str) -> ArmModel | None:
    """Return the model with a name, such as "UR10e"; None if it is not an arm of UR."""
    for model in ARM_MODELS:
        if model.name == name:
            return model
    return None


def describe_versions(model: ArmModel) -> str:
    """Return which versions of PolyScope drive an arm: "PolyScope 5.22 (or X 10.8) or later"."""
    if model.is_cb3:
        return "PolyScope 3"

    versions = []
    for name, oldest in (("", model.oldest_polyscope), ("X ", model.oldest_polyscope_x)):
        if oldest is not None:
            versions.append(f"{name}{oldest[0]}.{oldest[1]}")
    first, *others = versions
    alternative = f" (or {others[0]})" if others else ""
    return f"PolyScope {first}{alternative} or later"


def runs_on(name: str, version: VersionStart) -> bool:
    """Return whether a version of PolyScope, major and minor, drives the model with a name."""
    model = find_model(name)
    return model is not None and model.runs_on(version)


def models_of_type(robot_type: int | None, major: int) -> tuple[str, ...]:
    """Return the names of the models that a controller may have.

    CB3 and e-Series share robot types and differ in the version; UR5e and UR7e, and UR10e and
    UR12e, cannot be told apart.

    Args:
        robot_type: The number that the controller reports; None if it reports none.
        major: Major version of its software.

    Returns:
        The names, the oldest arm first; none for an unknown type.
    """
    has_cb3 = major < E_SERIES_MAJOR
    return tuple(
        model.name
        for model in ARM_MODELS
        if model.robot_type == robot_type and model.is_cb3 == has_cb3
    )


def describe_type(robot_type: int | None) -> str:
    """Return a clause about a robot type that no known arm has."""
    if robot_type is None:
        return "the controller does not report the type of its arm"
    return f"the controller reports robot type {robot_type}, which simbridge does not know"
