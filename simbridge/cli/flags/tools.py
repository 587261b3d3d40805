"""The commands around running: doctor, emulator, experiments, benchmarks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from tyro.conf import OmitArgPrefixes, OmitSubcommandPrefixes, Positional

from simbridge.bench import Part
from simbridge.cli.flags.reading import given, optional
from simbridge.experiments import Parameters as ExperimentParameters


@dataclass
class Doctor:
    """Look whether a run would work here, and how to mend it; move nothing (docs/hardware.md)."""

    backend: Annotated[
        Literal["pybullet", "ursim", "real"] | None,
        optional(1, "pybullet", "ursim", "real"),
        given("pybullet|ursim|real", "what answers at the host, else pybullet"),
    ] = None
    """For runs on what: the simulator, URSim, or a real arm."""
    host: Annotated[str | None, given("ADDRESS", "the cell's; 127.0.0.1 for ursim")] = None
    """The controller to look at."""
    robot: Annotated[str | None, given("NAME|FILE", "the cell's, else ur10")] = None
    """The arm that is expected."""
    cell: Annotated[str | None, given("FILE", "none")] = None
    """A cell file to compare the controller with (docs/cell.md)."""
    write_cell: Annotated[str | None, given("FILE", "none")] = None
    """Start a cell file from what the controller says."""
    json: bool = False
    """Print the result as JSON, for machines."""


@dataclass
class Emulate:
    """Run an emulated UR controller, for tests of the software that talks to one (docs/emulator.md)."""

    robot: str = "ur10e"
    """A UR arm in robots/."""
    polyscope: str = "5.12"
    """Software version: 3.15 (CB3, 125 Hz), 5.12 or 5.25 (e-Series, 500 Hz)."""
    host: str = "127.0.0.1"
    """Address to listen on; 127.0.0.2 and so on let several run side by side."""
    calibration: Annotated[str | None, given("FILE", "nominal kinematics, as URSim")] = None
    """Kinematics of one very arm (TOML)."""
    boot_time: float = 0.5
    """From power on to idle, s."""
    control_port: int = 30020
    """Where faults and questions are taken."""
    realtime_priority: int = 0
    """Real-time priority of its ticks, 1 to 99 (0: the system's ordinary scheduling)."""


@dataclass
class Experiment:
    """The paper's experiments and a comparison of solvers, for any arm and any solvers (docs/paper.md)."""

    parameters: OmitArgPrefixes[OmitSubcommandPrefixes[ExperimentParameters]]


@dataclass
class Bench:
    """Measure speed, each figure compared with a requirement or a rival."""

    what: Positional[Literal["all"] | Part] = "all"
    """Which part; all leaves out servo, emulator and recording, which take minutes."""
    json: bool = False
    """Print the result as JSON, for machines."""
