"""The command line: flags in, a command's function called, errors told in one paragraph.

Only what is needed to read flags is imported here; each command imports its own tools when it is called.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
import warnings
from pathlib import Path

import tyro

from simbridge.cli.error_reporting import INTERRUPTED, report_bug, report_error, report_note, say
from simbridge.cli.flags.commands import commands_with
from simbridge.cli.flags.inputs import Inspect, Robots, Scenarios
from simbridge.cli.flags.results import Compare, Evaluate, Export, Report
from simbridge.cli.flags.run import Check, Run
from simbridge.cli.flags.solver import solver_changes, solver_given
from simbridge.cli.flags.tools import Bench, Doctor, Emulate, Experiment
from simbridge.errors import ScenarioError, SimbridgeError

_DESCRIPTION = """How well does an arm track a sampled motion, and who is to blame for the rest?

simbridge replays a Cartesian trajectory through an inverse-kinematics solver, sends the joint setpoints to an arm, and
measures the tracking error. Begin with: simbridge run square_tracking"""


def main(arguments: list[str] | None = None) -> int:
    """The program `simbridge`.

    Returns:
        The exit status: 0 when all went well, 1 when a run missed its tolerance or simbridge made a mistake of its own,
        2 for input that cannot be used or a run that was ended, 130 after Ctrl-C.
    """
    given = sys.argv[1:] if arguments is None else arguments
    if given == ["--version"]:
        from simbridge import __version__

        print(f"simbridge {__version__}")
        return 0
    _end_runs_on_sigterm()
    try:
        command: object = tyro.cli(
            commands_with(solver_given(given)),
            args=given or ["--help"],
            prog="simbridge",
            description=_DESCRIPTION,
            config=(tyro.conf.FlagCreatePairsOff,),
        )
        with warnings.catch_warnings():
            warnings.showwarning = report_note
            return _dispatch(command, given)
    except SimbridgeError as error:
        return report_error(error)
    except KeyboardInterrupt:
        say(INTERRUPTED)
        return 130
    except BrokenPipeError:
        # The reader of a pipe (such as head) has gone: nothing more can be said, not even by the interpreter's exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        return report_bug(error, "".join(traceback.format_exception(error)))


def _end_runs_on_sigterm() -> None:
    """SIGTERM ends a run as Ctrl-C does: the arm is stopped and what there is gets measured."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)


def _stop_the_arm_on_ctrl_z() -> None:
    """Ctrl-Z ends a run on a controller as Ctrl-C does: halted, this program could not tell what the arm does."""
    if threading.current_thread() is threading.main_thread() and hasattr(signal, "SIGTSTP"):
        signal.signal(signal.SIGTSTP, signal.default_int_handler)


def _dispatch(command: object, given: list[str]) -> int:
    from simbridge.cli import commands

    if isinstance(command, Run):
        if command.backend != "pybullet":
            _stop_the_arm_on_ctrl_z()
        return commands.run(command, solver_changes(command, given))
    if isinstance(command, Check):
        return commands.check(command, solver_changes(command, given))
    if isinstance(command, Inspect):
        return commands.inspect(command)
    if isinstance(command, Robots):
        return commands.robots(as_json=command.json)
    if isinstance(command, Scenarios):
        return commands.scenarios(as_json=command.json)
    if isinstance(command, Export):
        return commands.export(Path(command.run), command.to, as_json=command.json)
    if isinstance(command, Report):
        from simbridge.cli.report_command import report

        return report(command.run, as_json=command.json)
    if isinstance(command, Compare):
        from simbridge.cli.compare_command import compare

        return compare(command.runs, out=command.out, as_json=command.json)
    if isinstance(command, Evaluate):
        from simbridge.evaluation.external_measurement import evaluate

        return evaluate(
            command.run, command.attained, topic=command.topic, find_marker=command.marker, as_json=command.json
        )
    if isinstance(command, Doctor):
        from simbridge.doctor import doctor

        return doctor(**vars(command))
    if isinstance(command, Emulate):
        from simbridge.emulator.emulate import emulate

        return emulate(**vars(command))
    if isinstance(command, Experiment):
        from simbridge.experiments.experiment import run_experiment

        return run_experiment(command.parameters)
    assert isinstance(command, Bench)
    from simbridge.bench.bench import bench

    return bench(command.what, as_json=command.json)


def run_as_script(path: str) -> None:
    """What a scenario script ends in: `python scenarios/NAME.py` takes the flags of `simbridge run`.

    Raises:
        ScenarioError: It stands where it is also called when the script is only loaded.
    """
    from simbridge.planning.scenario import is_being_loaded

    if is_being_loaded(path):
        raise ScenarioError(path, 'run_as_script(__file__) must stand under: if __name__ == "__main__":')
    sys.exit(main(["run", path, *sys.argv[1:]]))
