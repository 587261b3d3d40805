"""The command line: reads the flags, calls the command's function, and reports errors.

Only what reading flags needs is imported here; a command's module is imported when the command is
called. What a shell completes at the Tab key follows from the same flags.
"""

from __future__ import annotations

import contextlib
import errno
import io
import itertools
import pkgutil
import signal
import sys
import traceback
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import tyro

from simbridge import __version__
from simbridge.backends import is_simulated
from simbridge.cli.error_reporting import print_bug, print_error, print_message, print_note
from simbridge.cli.flags import (
    COMMANDS,
    NEWEST_RUN,
    RUN_FIELDS,
    CompletionFlags,
    PlanFlags,
    RunFlags,
    SweepFlags,
    TeleopFlags,
)
from simbridge.cli.missing_values import check_values
from simbridge.cli.option_errors import MisplacedOption
from simbridge.cli.option_flags import any_command, command_types, solver_setting_names
from simbridge.cli.reading_line import reading_line
from simbridge.cli.streams import discard_output, prepare_streams
from simbridge.cli.unread_words import HELP, TYRO_PREFIX, check_options, refuse_unread
from simbridge.errors import (
    InputFileError,
    InvalidParameter,
    MissingLibrary,
    OutputError,
    ScenarioError,
    SimbridgeError,
    UnforeseenError,
    UnknownName,
)
from simbridge.experiments import EXPERIMENTS
from simbridge.quoting import shell_quoted
from simbridge.running.signals import end_on_signals, heed_interrupts, signal_number
from simbridge.ursim import ACTIONS

# Commands that are followed by the name of one of these.
SUBCOMMANDS: dict[str, Mapping[str, type]] = {"experiment": EXPERIMENTS, "ursim": ACTIONS}
# What such a name is called, and the word that stands for it.
SUBCOMMAND_KINDS = {"experiment": "experiment", "ursim": "action of ursim"}
SUBCOMMAND_METAVARS = {"experiment": "EXPERIMENT", "ursim": "ACTION"}
# What follows the name of a shared library in the error of an import that needs it.
LIBRARY_FAULT = ": cannot open shared object file"
# The system's reasons why nothing more can be written.
DISK_FULL_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# The system's reasons why the name of a file cannot be looked at, let alone be opened.
UNUSABLE_PATH_ERRORS = (errno.ENAMETOOLONG, errno.EACCES, errno.EPERM, errno.ELOOP)

DESCRIPTION = """How closely does an arm follow a Cartesian trajectory, and why not exactly?

simbridge replays a trajectory through a solver and measures the tracking error.

A simulated UR arm follows UR's servoj: gain 2000, lookahead 0.03 s.

The law was verified on real arms at gains 300 and 100: docs/validation.md.

Other arms have an ideal servo.

Start with: simbridge run square_tracking

Version: simbridge --version"""


def main(arguments: list[str] | None = None) -> int:
    """Run the program `simbridge`.

    Args:
        arguments: The command line without the program's name; the process's by default.

    Returns:
        The exit status: 0 for success, 1 when a run missed its tolerance or simbridge has a bug, 2
        for input that cannot be used or a run that was ended, and 128 plus a signal's number when
        the signal ended it: 130 for Ctrl-C, 143 for SIGTERM, 141 when the reader of its output went
        away. `emulate` ends with 0 for Ctrl-C and SIGTERM.
    """
    if arguments is None:
        arguments = sys.argv[1:]

    try:
        return _carry_out(arguments)
    except BrokenPipeError:
        pass
    except SystemExit as error:
        # Rich exits where standard output has no reader.
        if not isinstance(error.__context__, BrokenPipeError):
            raise

    # The interpreter flushes the streams once more when it exits.
    discard_output()
    return 128 + signal.SIGPIPE


def _carry_out(arguments: list[str]) -> int:
    """Carry out a command, report its errors, and return the exit status.

    Raises:
        BrokenPipeError: Nobody reads what is printed, a report of an error included.
    """
    if arguments == ["--version"]:
        print(f"simbridge {__version__}", flush=True)
        return 0

    with end_on_signals():
        try:
            _refuse_bare_xacro_arguments(arguments)
            _check_command(arguments)
            _refuse_flags_of_run(arguments)
            flags = _read_flags(arguments)
            with warnings.catch_warnings():
                warnings.showwarning = print_note
                status = _call(arguments[0], flags, arguments)
            sys.stdout.flush()
            return status
        except UnforeseenError as error:
            return _report_foreign_error(error.__cause__ or error, error)
        except SimbridgeError as error:
            return print_error(error)
        except KeyboardInterrupt as error:
            print_message("Interrupted.")
            return 128 + signal_number(error)
        except Exception as error:
            return _report_foreign_error(error)


def _read_flags(arguments: Sequence[str]) -> Any:
    """Read the command line as the flags of its command.

    Tyro prints the help and exits, as it does for some values that it cannot read.

    Args:
        arguments: The command line without the program's name; empty for the help.

    Raises:
        UnknownOption, RepeatedOption, MissingValue, SurplusValue: It cannot be read as a whole.
    """
    kinds = command_types(arguments)
    # The help of simbridge itself, or what tyro adds.
    if not arguments or arguments[0] not in kinds:
        return _parse(any_command(kinds), arguments or HELP)[0]

    # The dataclass of the command, or of its experiment or action.
    command = arguments[0]
    kind = kinds[command]
    subcommands = SUBCOMMANDS.get(command, {})
    if len(arguments) > 1 and arguments[1] in subcommands:
        kind = subcommands[arguments[1]]
        command += f" {arguments[1]}"

    # The help is shown even if the command line is not complete.
    if not set(HELP).isdisjoint(arguments):
        return _parse(any_command(kinds), [*command.split(), *HELP])[0]

    check_options(command, kind, arguments)
    check_values(command, kind, arguments)
    flags, unread = _parse(any_command(kinds), arguments)
    refuse_unread(command, kind, arguments, unread)
    return flags


def _refuse_bare_xacro_arguments(arguments: Sequence[str]) -> None:
    """Refuse NAME:=VALUE without a flag before it, as ROS's program xacro takes it.

    Args:
        arguments: The command line.

    Raises:
        InvalidParameter: Names the flag for such a value.
    """
    for flag, argument in zip(["", *arguments], arguments, strict=False):
        name, assignment, value = argument.partition(":=")
        if assignment and name.isidentifier() and not flag.startswith("--"):
            needed = f"given as --xacro-arg {name}={value}, if it is for a xacro file"
            raise InvalidParameter("argument", argument, needed)


def _check_command(arguments: Sequence[str]) -> None:
    """Refuse a command, or a subcommand, that does not exist, and name the nearest one.

    Raises:
        UnknownName: It does not exist.
        MisplacedOption: An option stands in its place.
    """
    if not arguments:
        return
    command = arguments[0]
    _check_name("command", command, COMMANDS, "simbridge COMMAND")

    subcommands = SUBCOMMANDS.get(command, {})
    if subcommands and len(arguments) > 1:
        usage = f"simbridge {command} {SUBCOMMAND_METAVARS[command]}"
        _check_name(SUBCOMMAND_KINDS[command], arguments[1], subcommands, usage)


def _check_name(kind: str, word: str, names: Mapping[str, object], usage: str) -> None:
    """Refuse a word that must be the name of a command or a subcommand, and is not.

    Args:
        kind: What such a name is called.
        word: The word; help may be asked for in its place.
        names: The names.
        usage: The command line up to the word, with a word in capitals for it.

    Raises:
        UnknownName: There is no such name.
        MisplacedOption: The word is an option.
    """
    if word in names or word in HELP or word.startswith(TYRO_PREFIX):
        return
    if word.startswith("-"):
        raise MisplacedOption(word, kind, usage)
    raise UnknownName(kind, word, names)


def _refuse_flags_of_run(arguments: Sequence[str]) -> None:
    """Refuse a flag of `run` given to `sweep`, which takes it as a value of --grid.

    Args:
        arguments: The command line.

    Raises:
        InvalidParameter: Names the --grid for such a flag.
    """
    if arguments[:1] != ["sweep"]:
        return
    # Numpy, which a sweep needs anyway.
    from simbridge.sweeps.parameters import parameters  # noqa: PLC0415

    # A sweep has a few of these flags itself, such as --backend.
    sweep_flags = {field.name.replace("_", "-") for field in fields(SweepFlags)}
    known = {name: item for name, item in parameters().items() if name not in sweep_flags}
    for position, argument in enumerate(arguments):
        flag, equals, value = argument.partition("=")
        name = flag.removeprefix("--").replace("_", "-")
        if not flag.startswith("--") or name not in known:
            continue

        if not equals:
            is_list = known[name].kind == "numbers"
            value = " ".join(_flag_values(arguments[position + 1 :], is_list=is_list))
        assignment = shell_quoted(f"{name}={value or 'A,B,...'}")
        needed = (
            f"given as --grid {assignment}: a sweep takes the flags of `simbridge run` as values "
            "of --grid"
        )
        raise InvalidParameter(flag, value or "no value", needed)


def _flag_values(arguments: Sequence[str], *, is_list: bool) -> list[str]:
    """Return the values that follow a flag.

    Args:
        arguments: The command line after the flag.
        is_list: Whether the flag takes several numbers; otherwise it takes one value.
    """
    if not is_list:
        return [value for value in arguments[:1] if not value.startswith("--")]
    return list(itertools.takewhile(_is_number, arguments))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _report_foreign_error(error: BaseException, ended: SimbridgeError | None = None) -> int:
    """Print an error that no part of simbridge has foreseen, and return the exit status.

    Args:
        error: The error that was raised.
        ended: The error of the run or session that it ended; None if it ended none.

    Raises:
        BrokenPipeError: Nobody reads what is printed.
    """
    if isinstance(error, BrokenPipeError):
        raise error

    if isinstance(error, OSError) and error.errno in DISK_FULL_ERRORS:
        return print_error(OutputError("Standard output or a temporary file", str(error.strerror)))

    if isinstance(error, OSError) and error.errno in UNUSABLE_PATH_ERRORS:
        if error.filename is not None:
            reason = f"it is not writable: {error.strerror}"
            return print_error(InputFileError(error.filename, reason))

    library, fault, _ = str(error).partition(LIBRARY_FAULT)
    if isinstance(error, ImportError) and fault:
        return print_error(MissingLibrary(library))

    return print_bug("".join(traceback.format_exception(error)), ended)


def _parse(kind: Any, arguments: Sequence[str]) -> tuple[Any, list[str]]:
    """Parse arguments as the flags of a type; tyro prints help and errors, and exits.

    Returns:
        The flags, and the words of the command line for which there is no use.
    """
    return tyro.cli(
        kind,
        args=arguments,
        prog="simbridge",
        description=DESCRIPTION,
        config=(tyro.conf.FlagCreatePairsOff,),
        return_unknown_args=True,
    )


def _call(name: str, flags: Any, arguments: Sequence[str]) -> int:
    """Call the function of a command with its flags, and return the exit status.

    Args:
        name: Name of the command.
        flags: The flags that tyro parsed.
        arguments: The command line, which says which settings of the solver were named.
    """
    values = vars(flags)
    runs = {field: _resolve_newest_run(values[field]) for field in RUN_FIELDS if field in values}
    flags = replace(flags, **runs)

    # A solver's settings that no flag names are the scenario's.
    if isinstance(flags, PlanFlags):
        settings = vars(values["parameters"])
        named = solver_setting_names(arguments)
        flags.solver_settings = {setting: settings[setting] for setting in named}

    # A halted program could not watch the arm, nor restore a terminal: on a controller and in
    # teleoperation Ctrl-Z ends the command, too.
    signals = []
    if isinstance(flags, TeleopFlags):
        heed_interrupts()
        signals = [signal.SIGTSTP]
    if isinstance(flags, RunFlags) and not is_simulated(flags.backend):
        heed_interrupts()
        signals = [signal.SIGTSTP]

    with end_on_signals(*signals), reading_line():
        _, function = COMMANDS[name]
        status: int = pkgutil.resolve_name(function)(flags)
    return status


def _resolve_newest_run(value: Any) -> Any:
    """Return a flag's value, or values, with the newest run in place of `last`."""
    if value == NEWEST_RUN:
        return _named_run(value)
    if isinstance(value, tuple) and NEWEST_RUN in value:
        return tuple(_named_run(run) for run in value)
    return value


def _named_run(name: str) -> str:
    # Only a command line with `last` loads what lists runs.
    path: str = pkgutil.resolve_name("simbridge.cli.runs_command:named_run")(name)
    return path


def run_as_script(path: str) -> None:
    """Make a scenario script a program: `python scenarios/NAME.py` takes the flags of `run`.

    Raises:
        ScenarioError: It is called where loading the script calls it, too.
    """
    prepare_streams()
    # Numpy and pinocchio, which a script has imported.
    from simbridge.planning.scenario import is_being_loaded  # noqa: PLC0415

    if is_being_loaded(path):
        reason = 'run_as_script(__file__) must stand under: if __name__ == "__main__":'
        raise ScenarioError(path, reason)
    sys.exit(main(["run", path, *sys.argv[1:]]))


def completion(flags: CompletionFlags) -> int:
    """Print the completion script of a shell, made by tyro from the flags of all commands.

    Returns:
        The exit status, 0.
    """
    with contextlib.redirect_stdout(io.StringIO()) as script, contextlib.suppress(SystemExit):
        _parse(
            any_command(command_types([], every=True)),
            ["--tyro-write-completion", flags.shell, "-"],
        )
    print(script.getvalue(), end="")
    return 0
