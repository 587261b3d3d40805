"""The command line: reads the flags, calls the command's function, and reports errors in one paragraph each.

Only what reading flags needs is imported here; a command's module is imported when the command is called. What a shell
completes at the Tab key follows from the same flags.
"""

from __future__ import annotations

import contextlib
import errno
import io
import pkgutil
import signal
import sys
import traceback
import warnings
from typing import Any

import tyro

from simbridge import __version__
from simbridge.backends import SIMULATION
from simbridge.cli.error_reporting import print_bug, print_error, print_message, print_note
from simbridge.cli.flags import COMMANDS, RUN_FIELDS, Plan, Run, Teleop
from simbridge.cli.option_flags import command_type, given_settings
from simbridge.cli.reading_line import reading_line
from simbridge.cli.streams import discard_output, prepare_streams
from simbridge.errors import InputFileError, OutputError, ScenarioError, SimbridgeError
from simbridge.running.signals import ended_by_signals, number_of

# The system's reasons why the name of a file cannot be looked at, let alone be opened.
UNUSABLE_PATH = (errno.ENAMETOOLONG, errno.EACCES, errno.EPERM, errno.ELOOP)

_DESCRIPTION = """How well does an arm track a sampled motion, and where does the error come from?

simbridge replays a trajectory through a solver and measures the tracking error.

Simulated arm: UR's servoj, gain 2000, lookahead 0.03 s.

The law was verified on a real UR5e at gain 300: docs/validation.md.

Begin with: simbridge run square_tracking

The version: simbridge --version"""


def main(words: list[str] | None = None) -> int:
    """The program `simbridge`.

    Args:
        words: The command line without the program's name; the process's own by default.

    Returns:
        The exit status: 0 for success, 1 when a run missed its tolerance or simbridge has a bug, 2 for input that
        cannot be used or a run that was ended, and 128 plus a signal's number when the signal ended it: 130 for Ctrl-C,
        143 for SIGTERM, 141 when the reader of its output went away. `emulate` ends with 0 for Ctrl-C and SIGTERM.
    """
    given = sys.argv[1:] if words is None else words
    try:
        return _answer(given)
    except BrokenPipeError:
        pass
    except SystemExit as error:
        # Rich exits where standard output has no reader.
        if not isinstance(error.__context__, BrokenPipeError):
            raise
    # The interpreter flushes the streams once more when it exits.
    discard_output()
    return 128 + signal.SIGPIPE


def _answer(given: list[str]) -> int:
    """Carry out a command and report its errors; returns the exit status.

    Raises:
        BrokenPipeError: Nobody reads what is printed, a report of an error included.
    """
    if given == ["--version"]:
        print(f"simbridge {__version__}", flush=True)
        return 0
    with ended_by_signals():
        try:
            flags = _read(command_type(given), given or ["--help"])
            with warnings.catch_warnings():
                warnings.showwarning = print_note
                status = _call(given[0], flags, given)
            sys.stdout.flush()
            return status
        except SimbridgeError as error:
            return print_error(error)
        except KeyboardInterrupt as error:
            print_message("Interrupted.")
            return 128 + number_of(error)
        except BrokenPipeError:
            raise
        except Exception as error:
            if isinstance(error, OSError) and error.errno in (
                errno.ENOSPC,
                errno.EDQUOT,
                errno.EFBIG,
            ):
                return print_error(
                    OutputError("Standard output or a temporary file", str(error.strerror))
                )
            if (
                isinstance(error, OSError)
                and error.errno in UNUSABLE_PATH
                and error.filename is not None
            ):
                return print_error(
                    InputFileError(error.filename, f"it cannot be used: {error.strerror}")
                )
            return print_bug(error, "".join(traceback.format_exception(error)))


def _read(kind: Any, words: list[str]) -> object:
    config = (tyro.conf.FlagCreatePairsOff,)
    read: object = tyro.cli(
        kind, args=words, prog="simbridge", description=_DESCRIPTION, config=config
    )
    return read


def _call(name: str, flags: object, given: list[str]) -> int:
    values = dict(vars(flags))
    for field in RUN_FIELDS:
        values |= {field: _with_last(values[field])} if field in values else {}
    if isinstance(flags, Plan):
        settings = values.pop("parameters")
        values["solver_settings"] = {
            setting: getattr(settings, setting) for setting in given_settings(given)
        }
    # A halted program could not watch the arm: on a controller Ctrl-Z ends a run, too; nor could it restore a terminal.
    watches = isinstance(flags, Teleop) or (isinstance(flags, Run) and flags.backend != SIMULATION)
    with ended_by_signals(*([signal.SIGTSTP] if watches else [])), reading_line():
        status: int = pkgutil.resolve_name(COMMANDS[name][1])(**values)
    return status


def _with_last(given: Any) -> Any:
    """A flag's value, or values, with the newest run in place of `last`."""
    if given == "last" or (isinstance(given, tuple) and "last" in given):
        named = pkgutil.resolve_name("simbridge.cli.listing:named_run")
        return named(given) if isinstance(given, str) else tuple(map(named, given))
    return given


def run_as_script(path: str) -> None:
    """Make a scenario script a program: `python scenarios/NAME.py` takes the flags of `simbridge run`.

    Raises:
        ScenarioError: It is called where loading the script calls it, too.
    """
    prepare_streams()
    # Numpy and pinocchio, which a script has imported.
    from simbridge.planning.scenario import is_being_loaded  # noqa: PLC0415

    if is_being_loaded(path):
        raise ScenarioError(
            path, 'run_as_script(__file__) must stand under: if __name__ == "__main__":'
        )
    sys.exit(main(["run", path, *sys.argv[1:]]))


def completion(shell: str) -> int:
    """Print the completion script of a shell, made by tyro from the flags of all commands; returns 0, the status."""
    with contextlib.redirect_stdout(io.StringIO()) as script, contextlib.suppress(SystemExit):
        _read(command_type([], every=True), ["--tyro-write-completion", shell, "-"])
    print(script.getvalue(), end="")
    return 0
