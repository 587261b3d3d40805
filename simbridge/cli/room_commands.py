"""The commands of other rooms: `doctor`, `emulate`, `ursim`, `experiment` and `bench`.

A room is below the command line, so that it does not know the record of the command's flags. It is
imported when its command is called.
"""

from __future__ import annotations

from simbridge.cli.flags import BenchFlags, DoctorFlags, EmulateFlags, ExperimentFlags, UrsimFlags
from simbridge.experiments import SolversParameters
from simbridge.ursim import StartFlags, StatusFlags


def doctor(flags: DoctorFlags) -> int:
    """Check whether a run would work; see `simbridge.doctor.doctor.doctor`."""
    from simbridge.doctor.doctor import RunConnection  # noqa: PLC0415
    from simbridge.doctor.doctor import doctor as check_setup  # noqa: PLC0415

    connection = RunConnection(
        rest_port=flags.rest_port, link=flags.link, registers=flags.registers
    )
    return check_setup(
        flags.backend,
        host=flags.host,
        robot=flags.robot,
        cell=flags.cell,
        write_cell=flags.write_cell,
        connection=connection,
        json=flags.json,
    )


def emulate(flags: EmulateFlags) -> int:
    """Run emulated controllers; see `simbridge.emulator.arms.emulate`."""
    from simbridge.emulator.arms import emulate as emulate_arms  # noqa: PLC0415

    return emulate_arms(**vars(flags))


def ursim(flags: UrsimFlags) -> int:
    """Start, show or remove URSim in a container; see `simbridge.ursim.commands`."""
    from simbridge.ursim import commands  # noqa: PLC0415

    if isinstance(flags.action, StartFlags):
        return commands.start(**vars(flags.action))
    if isinstance(flags.action, StatusFlags):
        return commands.status()
    return commands.stop()


def experiment(flags: ExperimentFlags) -> int:
    """Run an experiment of the paper, or the suite that compares solvers.

    See `simbridge.experiments.experiment` and `simbridge.experiments.suite.command`.
    """
    if isinstance(flags.parameters, SolversParameters):
        from simbridge.experiments.suite.command import compare_solvers  # noqa: PLC0415

        return compare_solvers(flags.parameters)

    from simbridge.experiments.experiment import run_experiment  # noqa: PLC0415

    return run_experiment(flags.parameters)


def bench(flags: BenchFlags) -> int:
    """Measure how this computer keeps time; see `simbridge.bench.bench.bench`."""
    from simbridge.bench.bench import bench as measure  # noqa: PLC0415

    return measure(flags.what, minutes=flags.minutes, as_json=flags.as_json)
