"""What the experiments can be told at the command line: plain data, quick to import."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, TypeAlias

from tyro.conf import arg, subcommand

from simbridge.errors import InvalidParameter

PAPERS = ("forward-dynamics", "jacobian-transpose")
"""The two solvers that the paper compares."""

# Short of what memory and patience can bear.
_MOST_SAMPLES = 10_000_000
_MOST_ITERATIONS = 1_000_000

_Out = Annotated[str | None, arg(metavar="DIR", help_behavior_hint="(default: one under runs/)")]
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
class _Experiment:
    robot: str = "ur10"
    """A name in robots/, or a URDF or TOML file."""
    solver: _Solvers = PAPERS
    """Solvers to compare: names, or functions of your own as module:function."""
    out: _Out = None
    """The directory to make for results.json and the figures."""
    json: bool = False
    """Print the result as JSON, for machines."""


@dataclass(frozen=True)
class HomogenizationParameters(_Experiment):
    """A: how evenly the twin's tool accelerates, over random joint positions."""

    solver: Annotated[_Solvers, arg(help_behavior_hint="(default: none)")] = ()
    """Solvers, or functions (module:function), whose response to a small error is shown beside the paper's three
    matrices, which are the virtual twin's (at most 1000 samples)."""
    samples: int = 100_000
    """Joint positions, uniform in [-pi, pi) (a sliding joint: between its limits)."""
    seed: int = 0
    """Of the random joint positions."""

    def __post_init__(self) -> None:
        check_count("samples", self.samples, 2, _MOST_SAMPLES)
        check_count("seed", self.seed, 0, 2**32 - 1)


@dataclass(frozen=True)
class ConvergenceParameters(_Experiment):
    """B: one far step of the target, from home."""

    iterations: int = 150
    """How long the step is watched."""
    kp: float = 1.0
    """Stiffness of the translation; the rotation gets a tenth."""

    def __post_init__(self) -> None:
        check_count("iterations", self.iterations, 1, _MOST_ITERATIONS)
        check_gains("kp", [self.kp])


@dataclass(frozen=True)
class InterpolationParameters(_Experiment):
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
class TrackingParameters(_Experiment):
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
class SolversParameters(_Experiment):
    """All solvers, with their default settings, on one trajectory and on random reachable poses."""

    solver: Annotated[_Solvers, arg(help_behavior_hint="(default: all that can)")] = ()
    """Solvers to compare: names, or functions of your own as module:function."""
    scenario: str = "square_tracking"
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
