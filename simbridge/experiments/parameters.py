"""What the experiments can be told at the command line: plain data, quick to import."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias, get_args

from tyro.conf import arg, subcommand

from simbridge.cli.flags.reading import Six, given, optional
from simbridge.errors import InvalidParameter

PAPERS = ("forward-dynamics", "jacobian-transpose")
"""The two solvers that the paper compares."""
SQUARE = "square_tracking"
"""The scenario of the paper's square."""

Task: TypeAlias = Literal["pose", "axis", "position"]
"""What of a target is asked for, the most first."""

# Short of what memory and patience can bear.
_MAX_SAMPLES = 10_000_000
_MAX_ITERATIONS = 1_000_000

_Out = Annotated[str | None, given("DIR", "one under runs/")]
_Solvers = Annotated[tuple[str, ...], arg(metavar="NAME [NAME ...]")]


def check_count(name: str, value: int, least: int, most: int) -> None:
    """Refuses a number of things that is out of its range."""
    if not least <= value <= most:
        raise InvalidParameter(name, value, f"from {least} to {most}")


def check_gains(name: str, values: Sequence[float]) -> None:
    """Refuses a sweep of gains that is empty or holds one that does not pull."""
    if not values or not all(0.0 < value < float("inf") for value in values):
        raise InvalidParameter(name, tuple(values), "one or more positive numbers")


@dataclass(frozen=True)
class Experiment:
    """What all of them are told."""

    robot: str = "ur10"
    """A name in robots/, or a URDF or TOML file."""
    link_lengths: Annotated[tuple[float, ...], given("M ...", "the robot's")] = ()
    """Lengths of the links of a planar arm (planar2r, planar3r), m."""
    tcp: Annotated[Six | None, optional(6), given("X Y Z RX RY RZ", "tool0")] = None
    """Tool centre point in tool0: x y z in m, rotation vector rx ry rz in rad."""
    task: Annotated[
        Task | None,
        optional(1, *get_args(Task)),
        given("pose|axis|position", "the robot's, or as much of it as its joints can do"),
    ] = None
    """What of a target is asked for: all, the position and the tool's z axis, or the position."""
    solver: _Solvers = PAPERS
    """Solvers to compare: names, or functions of your own as module:function."""
    out: _Out = None
    """The directory to make for results.json and the figures."""
    json: bool = False
    """Print the result as JSON, for machines."""


@dataclass(frozen=True)
class FromHome(Experiment):
    """What those are told that begin somewhere."""

    home: Annotated[tuple[float, ...], given("RAD ...", "the robot's, or another where that is singular")] = ()
    """Joint positions from which the experiment begins, rad (m for a sliding joint)."""


@dataclass(frozen=True)
class HomogenizationParameters(Experiment):
    """A: how evenly the twin's tool accelerates, over random joint positions."""

    solver: Annotated[_Solvers, arg(help_behavior_hint="(default: none)")] = ()
    """Solvers, or functions (module:function), whose response to a small error is shown beside the paper's three
    matrices, which are the virtual twin's (at most 1000 samples)."""
    samples: int = 100_000
    """Joint positions, uniform in [-pi, pi) (a sliding joint: between its limits)."""
    seed: int = 0
    """Of the random joint positions."""

    def __post_init__(self) -> None:
        check_count("samples", self.samples, 2, _MAX_SAMPLES)
        check_count("seed", self.seed, 0, 2**32 - 1)


@dataclass(frozen=True)
class ConvergenceParameters(FromHome):
    """B: one far step of the target, from home."""

    iterations: int = 150
    """How long the step is watched."""
    kp: float = 1.0
    """Stiffness of the translation; the rotation gets a tenth."""

    def __post_init__(self) -> None:
        check_count("iterations", self.iterations, 1, _MAX_ITERATIONS)
        check_gains("kp", [self.kp])


@dataclass(frozen=True)
class InterpolationParameters(FromHome):
    """C: from each corner of a square to the next, with only the corner as target."""

    steps: int = 1000
    """Solver steps from corner to corner."""
    iterations: int = 50
    """Iterations a step."""
    kp: float = 1.0
    """Stiffness of the translation; the rotation gets a tenth."""

    def __post_init__(self) -> None:
        check_count("steps", self.steps, 1, 100_000)
        check_count("iterations", self.iterations, 1, 10_000)
        check_gains("kp", [self.kp])


@dataclass(frozen=True)
class TrackingParameters(FromHome):
    """D: a square at constant speed, for each gain; and kp as a dial on noisy, slow targets."""

    kp: Annotated[tuple[float, ...], arg(metavar="KP [KP ...]")] = (5.0, 10.0, 20.0, 50.0)
    """Stiffnesses of the sweep."""
    iterations: int = 50
    """Iterations a step."""
    speed: float = 0.2
    """Of the target on a UR10, m/s; on smaller arms slower in proportion."""
    noise: float = 0.002
    """Of the dial's targets: standard deviation along each axis, m."""
    target_rate: float = 10.0
    """Of the dial's targets, Hz; each is held until the next."""
    seed: int = 0
    """Of the noise."""

    def __post_init__(self) -> None:
        check_gains("kp", self.kp)
        check_count("iterations", self.iterations, 1, 10_000)
        check_count("seed", self.seed, 0, 2**32 - 1)
        if not 0.001 <= self.speed <= 10.0:
            raise InvalidParameter("speed", self.speed, "from 0.001 to 10 m/s")
        if not 0.0 <= self.noise <= 0.1:
            raise InvalidParameter("noise", self.noise, "from 0 to 0.1 m")
        if not 0.5 <= self.target_rate <= 100.0:
            raise InvalidParameter("target-rate", self.target_rate, "from 0.5 to 100 Hz, the solver's rate")


@dataclass(frozen=True)
class SolversParameters(FromHome):
    """All solvers, with their default settings, on one trajectory and on random reachable poses."""

    solver: Annotated[_Solvers, arg(help_behavior_hint="(default: all that can)")] = ()
    """Solvers to compare: names, or functions of your own as module:function."""
    scenario: str = SQUARE
    """The trajectory: a name in scenarios/, a script, or a file of samples."""
    samples: int = 200
    """Random poses, each with a random start."""
    seed: int = 0
    """Of poses and starts."""

    def __post_init__(self) -> None:
        check_count("samples", self.samples, 1, 100_000)
        check_count("seed", self.seed, 0, 2**32 - 1)


Parameters: TypeAlias = (
    Annotated[HomogenizationParameters, subcommand("homogenization")]
    | Annotated[ConvergenceParameters, subcommand("convergence")]
    | Annotated[InterpolationParameters, subcommand("interpolation")]
    | Annotated[TrackingParameters, subcommand("tracking")]
    | Annotated[SolversParameters, subcommand("solvers")]
)
"""Every experiment's parameters, as the command line takes them."""
