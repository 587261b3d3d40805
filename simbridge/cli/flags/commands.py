"""All commands."""

from __future__ import annotations

from dataclasses import field, make_dataclass
from typing import Annotated, Any

from tyro.conf import arg, subcommand

from simbridge.cli.flags.inputs import Inspect, Robots, Scenarios
from simbridge.cli.flags.results import Compare, Evaluate, Export, Report
from simbridge.cli.flags.run import Check, Run
from simbridge.cli.flags.tools import Bench, Doctor, Emulate, Experiment
from simbridge.ik.settings import SOLVERS, FunctionParameters


def commands_with(solver: str) -> Any:
    """The commands, of which those that plan have the flags of this solver."""
    kind = SOLVERS.get(solver, FunctionParameters)
    settings = ("parameters", Annotated[kind, arg(name="solver")], field(default_factory=kind))
    run, check = (
        make_dataclass(base.__name__, [settings], bases=(base,), namespace={"__doc__": base.__doc__})
        for base in (Run, Check)
    )
    return (
        Annotated[run, subcommand("run")]
        | Annotated[check, subcommand("check")]
        | Annotated[Inspect, subcommand("inspect")]
        | Annotated[Robots, subcommand("robots")]
        | Annotated[Scenarios, subcommand("scenarios")]
        | Annotated[Export, subcommand("export")]
        | Annotated[Report, subcommand("report")]
        | Annotated[Compare, subcommand("compare")]
        | Annotated[Evaluate, subcommand("evaluate")]
        | Annotated[Doctor, subcommand("doctor")]
        | Annotated[Emulate, subcommand("emulate")]
        | Annotated[Experiment, subcommand("experiment")]
        | Annotated[Bench, subcommand("bench")]
    )
