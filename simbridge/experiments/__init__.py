"""The paper's experiments, for any arm and any solvers, and a comparison of solvers.

    homogenization   A: how uniformly the virtual twin's tool accelerates
    convergence      B: one far step of the target
    interpolation    C: the path between the corners of a square
    tracking         D: a moving target, for each gain; and a sweep of kp on noisy targets
    solvers          all solvers through one suite of motions and poses (suite/)

This module is the registry: it has the name and the parameters of each experiment, from which its
flags and help follow. It is quick to import. The module with an experiment's name has three parts:
`measure` takes a robot and solvers and returns arrays; `EXPECTED` has the figures that are known
for a UR10, with their source; and `run` returns an `Outcome`. The comparison of solvers is in the
package suite/, and begins in `suite/command.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, TypeAlias, Union, get_args

from tyro.conf import UseAppendAction, arg, subcommand

from simbridge.errors import InvalidParameter
from simbridge.experiments.flag_types import optional_arg, optional_reading
from simbridge.ik import VelocityLimits
from simbridge.ik.parameters import Jacobian
from simbridge.robot import Six, Task

# The two solvers that the paper compares.
PAPER_SOLVERS = ("forward-dynamics", "jacobian-transpose")
# The source of the known figures.
KDL = "an independent C++ implementation on Orocos KDL"

_Solvers = Annotated[tuple[str, ...], arg(metavar="NAME [NAME ...]")]


def _check_range(name: str, value: float, *, low: float, high: float, unit: str = "") -> None:
    """Refuse a value outside a range (InvalidParameter)."""
    if not low <= value <= high:
        raise InvalidParameter(name, value, f"from {low} to {high}{unit}")


def _check_gains(values: Sequence[float]) -> None:
    """Refuse gains that are not positive numbers (InvalidParameter)."""
    if not values or not all(0.0 < value < float("inf") for value in values):
        raise InvalidParameter("kp", tuple(values), "one or more positive numbers")


@dataclass(frozen=True)
class ExperimentParameters:
    """The parameters of every experiment."""

    robot: Annotated[str, arg(metavar="NAME|FILE")] = "ur10"
    """A name in robots/, or a URDF or TOML file."""
    base: Annotated[str | None, optional_arg("LINK", "base_link, else the root")] = None
    """Link of a URDF that is the arm's base."""
    tip: Annotated[str | None, optional_arg("LINK", "tool0, else the only end")] = None
    """Link of a URDF that is the tool."""
    package: Annotated[
        tuple[str, ...], optional_arg("NAME=DIR ...", "searched for as by `simbridge run`")
    ] = ()
    """Directories of the ROS packages that a URDF's meshes or $(find NAME) refer to."""
    xacro_arg: Annotated[
        tuple[str, ...], UseAppendAction, optional_arg("NAME=VALUE", "the file's defaults")
    ] = ()
    """Value of a xacro argument; repeat the flag for more arguments."""
    link_lengths: Annotated[tuple[float, ...], optional_arg("M ...", "the robot's")] = ()
    """Lengths of the links of a planar arm (planar2r, planar3r), m."""
    tcp: Annotated[
        Six | None, optional_reading(6, float), optional_arg("X Y Z RX RY RZ", "tool0")
    ] = None
    """Tool centre point in tool0: x y z in m, rotation vector rx ry rz in rad."""
    task: Annotated[
        Task | None,
        optional_reading(1, str, get_args(Task)),
        optional_arg(
            "pose|axis|position",
            "the robot's, or as much of it as its joints allow",
            help="Part of a target to attain: the whole pose, the position and the tool's z axis, "
            "or the position.",
        ),
    ] = None
    solver: _Solvers = PAPER_SOLVERS
    """Solvers to compare: names, or custom functions as module:function."""
    out: Annotated[str | None, optional_arg("DIR", "a new one under runs/")] = None
    """Directory to create for results.json and the plots."""
    json: bool = False
    """Print the result as JSON."""

    def check(self) -> None:
        """Refuse values out of their ranges.

        Raises:
            InvalidParameter: A value is out of its range.
        """


@dataclass(frozen=True)
class FromHome(ExperimentParameters):
    """The parameters of experiments that begin in a posture."""

    home: Annotated[
        tuple[float, ...], optional_arg("RAD ...", "the robot's, or another where that is singular")
    ] = ()
    """Joint positions at which the experiment starts, rad (m for a sliding joint)."""


@dataclass(frozen=True)
class HomogenizationParameters(ExperimentParameters):
    """A: how uniformly the virtual twin's tool accelerates, over random postures."""

    solver: Annotated[
        _Solvers,
        arg(
            help_behavior_hint="(default: none)",
            help="Solvers or functions (module:function) whose response to a small error is shown "
            "as well (at most 1000 samples).",
        ),
    ] = ()
    samples: int = 100_000
    """Joint positions, uniform in [-pi, pi) (a sliding joint: between its limits)."""
    seed: int = 0
    """Seed of the random joint positions."""

    def check(self) -> None:
        _check_range("samples", self.samples, low=2, high=10_000_000)
        _check_range("seed", self.seed, low=0, high=2**32 - 1)


@dataclass(frozen=True)
class ConvergenceParameters(FromHome):
    """B: one far step of the target, from home."""

    iterations: int = 150
    """Iterations to run after the step."""
    kp: float = 1.0
    """Stiffness of the translation; the rotation gets a tenth."""

    def check(self) -> None:
        _check_range("iterations", self.iterations, low=1, high=1_000_000)
        _check_gains([self.kp])


@dataclass(frozen=True)
class InterpolationParameters(FromHome):
    """C: from each corner of a square to the next, with only the corner as target."""

    steps: int = 1000
    """Solver steps from corner to corner."""
    iterations: int = 50
    """Iterations per step."""
    kp: float = 1.0
    """Stiffness of the translation; the rotation gets a tenth."""

    def check(self) -> None:
        _check_range("steps", self.steps, low=1, high=100_000)
        _check_range("iterations", self.iterations, low=1, high=10_000)
        _check_gains([self.kp])


@dataclass(frozen=True)
class TrackingParameters(FromHome):
    """D: a square at constant speed, for each gain; a sweep of kp on noisy targets."""

    kp: Annotated[tuple[float, ...], arg(metavar="KP [KP ...]")] = (5.0, 10.0, 20.0, 50.0)
    """Stiffnesses to track the square with."""
    iterations: int = 50
    """Iterations per step."""
    speed: float = 0.2
    """Speed of the target on a UR10, m/s; proportionally slower on smaller arms."""
    noise: float = 0.002
    """Noise of the gain sweep's targets: standard deviation along each axis, m."""
    target_rate: float = 10.0
    """Rate of the gain sweep's targets, Hz; each target is held until the next."""
    seed: int = 0
    """Seed of the noise."""

    def check(self) -> None:
        _check_gains(self.kp)
        _check_range("iterations", self.iterations, low=1, high=10_000)
        _check_range("seed", self.seed, low=0, high=2**32 - 1)
        _check_range("speed", self.speed, low=0.001, high=10, unit=" m/s")
        _check_range("noise", self.noise, low=0, high=0.1, unit=" m")
        _check_range(
            "target-rate", self.target_rate, low=0.5, high=100, unit=" Hz, the solver's rate"
        )


@dataclass(frozen=True)
class SolversParameters(FromHome):
    """Every solver on the same motions and poses, timed: docs/solvers.md."""

    solver: Annotated[_Solvers, arg(help_behavior_hint="(default: all that support the arm)")] = ()
    """Solvers to compare: names, or custom functions as module:function. The first one is the
    baseline of all times."""
    rivals: Annotated[
        str, arg(metavar="all|NAME,NAME ...", help_behavior_hint="(default: none)")
    ] = ""
    """Solvers of other libraries to compare as well (docs/rivals.md)."""
    solver_limits: Annotated[
        VelocityLimits | None,
        optional_reading(1, str, get_args(VelocityLimits)),
        optional_arg("enforced|none", "what the solver declares, none for a function"),
    ] = None
    """Whether the functions that are compared keep the joint velocity limits in each step: decides
    in which table they are."""
    motion: Annotated[
        tuple[str, ...], optional_arg("NAME [NAME ...]", "all motions and sets of poses")
    ] = ()
    """Motions and sets of poses to compare on."""
    scenario: Annotated[tuple[str, ...], optional_arg("NAME|FILE ...", "none")] = ()
    """Trajectories to add to the motions: names in scenarios/, scripts, or files of samples."""
    motion_time: Annotated[float, arg(metavar="S")] = 20.0
    """Time that each solver has for a motion, s; beyond it, it is too slow."""
    jacobian: Annotated[tuple[Jacobian, ...], arg(metavar="exact|difference ...")] = ("exact",)
    """Jacobians of the solvers that use one: exact, by finite differences, or both in turn."""
    seed: int = 0
    """Seed of all that is random in motions and poses."""
    baseline: Annotated[str | None, optional_arg("FILE", "no comparison")] = None
    """An earlier results.json of the same arm: names what got worse, with exit status 1."""

    def check(self) -> None:
        _check_range("motion-time", self.motion_time, low=0.1, high=3600.0, unit=" s")
        _check_range("seed", self.seed, low=0, high=2**32 - 1)


# Every experiment: the name of its command and of its module here, and its parameters.
EXPERIMENTS: Mapping[str, type[ExperimentParameters]] = {
    "homogenization": HomogenizationParameters,
    "convergence": ConvergenceParameters,
    "interpolation": InterpolationParameters,
    "tracking": TrackingParameters,
    "solvers": SolversParameters,
}

# The parameters of any experiment, as the command line reads them.
if TYPE_CHECKING:
    Parameters: TypeAlias = ExperimentParameters
else:
    _COMMANDS = tuple(Annotated[kind, subcommand(name)] for name, kind in EXPERIMENTS.items())
    Parameters = Union[_COMMANDS]  # noqa: UP007 (a tuple of types has no other form)
