"""What the commands that plan have in common: what is to be done, by which arm, and how."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal

from tyro.conf import Positional, arg

from simbridge.cli.flags.reading import Seven, Six, given, optional
from simbridge.errors import InvalidParameter

if TYPE_CHECKING:
    from simbridge.planning.options import Options
    from simbridge.robot.obstacles import Floor
    from simbridge.trajectory.sampling import Sampling


@dataclass
class Planned:
    scenario: Positional[str]
    """A name in scenarios/, a script (./mine.py), or a file of samples (TUM, CSV, ROS bag)."""
    robot: Annotated[str | None, given("NAME|FILE", "the cell's, else ur10")] = None
    """A name in robots/ (see `simbridge robots`), or a URDF or TOML file."""
    cell: Annotated[str | None, given("FILE", "a floor, and nothing else")] = None
    """How the arm stands, what it carries and what is around it (TOML, docs/cell.md)."""
    solver: Annotated[str, given("NAME", "the scenario's")] = ""
    """Inverse-kinematics solver, or module:function of your own; settings are --solver.NAME: --solver SOLVER --help."""
    speed_scale: float = 1.0
    """0.2 plays the trajectory at a fifth of its speed."""
    tcp: Annotated[Six | None, optional(6), given("X Y Z RX RY RZ", "the cell's, else tool0")] = None
    """Tool centre point in tool0: x y z in m, rotation vector rx ry rz in rad."""
    payload: Annotated[float | None, optional(1), given("KG", "the cell's, else none")] = None
    """Mass at the TCP that the controller is told of, kg."""
    frame: Literal["base_link", "base"] = "base_link"
    """Frame of the poses: base_link (x forward, ROS) or base (as the pendant shows)."""
    transform: Annotated[Seven | None, optional(7), given("X Y Z QX QY QZ QW", "none")] = None
    """From the frame of a file's poses to base_link: x y z in m, and a quaternion."""
    anchor: Annotated[Literal["start"] | None, optional(1, "start"), given("start", "none")] = None
    """start moves a file's motion so that it begins at the tool's pose at home."""
    topic: Annotated[str | None, given("NAME", "the only one")] = None
    """Topic of a ROS bag; /tf:child for a frame of tf."""
    sample_rate: Annotated[float | None, optional(1), given("HZ", "the trajectory's")] = None
    """Give the solver only so many samples a second (held, unless --hold says else); the error counts from the path."""
    sample_jitter: float = 0.0
    """Standard deviation of the instants at which samples are taken, s."""
    sample_dropout: float = 0.0
    """Chance that a sample is lost, 0 to 1."""
    sample_noise: Annotated[tuple[float, float], arg(metavar="MM DEG")] = (0.0, 0.0)
    """Standard deviation of the samples on each axis, mm and degrees."""
    sample_quantisation: Annotated[float, arg(metavar="MM")] = 0.0
    """Round the samples' positions to multiples of this, mm."""
    sample_seed: Annotated[int, arg(metavar="N")] = 0
    """Of the chance in jitter, dropout and noise."""
    hold: Annotated[
        Literal["linear", "zero-order"] | None,
        optional(1, "linear", "zero-order"),
        given("linear|zero-order", "the scenario's"),
    ] = None
    """The target between two samples: interpolated, or the last one held."""
    on_limits: Annotated[
        Literal["refuse", "limit"] | None, optional(1, "refuse", "limit"), given("refuse|limit", "the scenario's")
    ] = None
    """Setpoints past velocity, acceleration or tool speed: refuse the plan, or limit them."""
    period: Annotated[float | None, optional(1), given("S", "the robot's")] = None
    """Control period, s."""
    home: Annotated[tuple[float, ...], given("RAD ...", "the robot's")] = ()
    """Joint positions from which the first target is solved, rad."""
    link_lengths: Annotated[tuple[float, ...], given("M ...", "the robot's")] = ()
    """Lengths of the links of a planar arm (planar2r, planar3r), m."""
    floor: Annotated[str | None, given("M|none", "the cell's, else 0")] = None
    """Height of the floor in base_link, m; none for no floor."""
    max_tool_speed: Annotated[float | None, optional(1), given("M/S", "the robot's")] = None
    """Largest speed of the TCP, m/s."""
    plan: Annotated[str | None, given("RUN", "solve anew")] = None
    """A run directory whose plan is replayed instead of solving anew."""
    kinematics: Annotated[str | None, given("nominal|FILE", "the controller's own; nominal in simulation")] = None
    """Kinematics: nominal, or those of one very arm from a calibration file or a run."""
    json: bool = False
    """Print the result as JSON, for machines."""

    # With a field `parameters` of the chosen solver's kind: see `_command`.

    def options(self) -> Options:
        from simbridge.planning.options import Options
        from simbridge.robot.cell_file import load_cell

        return Options(
            cell=None if self.cell is None else load_cell(self.cell),
            tcp=self.tcp or (),
            payload=self.payload,
            frame=self.frame,
            transform=self.transform or (),
            anchor=self.anchor,
            topic=self.topic,
            sampling=self._sampling(),
            period=self.period,
            hold=self.hold,
            on_limits=self.on_limits,
            speed_scale=self.speed_scale,
            max_tool_speed=self.max_tool_speed,
            floor=None if self.floor is None else floor_of(self.floor),
            plan=self.plan,
            kinematics=self.kinematics,
        )

    def _sampling(self) -> Sampling | None:
        """The sampling that the flags ask for; None when they ask for none."""
        import math

        from simbridge.trajectory.sampling import Sampling

        position, rotation = self.sample_noise
        asked = Sampling(
            rate=self.sample_rate,
            jitter=self.sample_jitter,
            dropout=self.sample_dropout,
            noise=(position * 1e-3, math.radians(rotation)),
            quantisation=self.sample_quantisation * 1e-3,
            seed=self.sample_seed,
        )
        return None if replace(asked, seed=0) == Sampling() else asked


def floor_of(text: str) -> Floor:
    if text.lower() == "none":
        return "none"
    try:
        return float(text)
    except ValueError:
        raise InvalidParameter("floor", text, "a height in m, or none") from None
