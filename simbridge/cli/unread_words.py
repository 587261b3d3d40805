"""Refuses options that a command does not have, and values that nothing takes.

Each is answered with what to write instead: the options of the same command that are most like it,
or how an option takes several values.
"""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Mapping, Sequence

from simbridge.cli.declared_options import (
    DeclaredOption,
    declared_options,
    find_option,
    is_option,
    positional_metavars,
)
from simbridge.cli.option_errors import RepeatedOption, SurplusValue, UnknownOption
from simbridge.errors import nearest_names
from simbridge.quoting import shell_quoted

# How many options are suggested for one that does not exist, at most.
MAX_SUGGESTIONS = 4
# How like it they must be spelled, from 0 to 1.
MIN_LIKENESS = 0.6
# What is no option of any command: the end of the options, the help, and what tyro adds.
HELP = ("--help", "-h")
END_OF_OPTIONS = "--"
TYRO_PREFIX = "--tyro-"
# The option whose values a sweep runs through.
GRID = "--grid"


def check_options(command: str, kind: type, arguments: Sequence[str]) -> None:
    """Refuse an option that the command does not have, or that cannot be given like this.

    Args:
        command: Name of the command, with that of the experiment or the action if there is one.
        kind: The dataclass of the command's flags.
        arguments: The command line without the program's name.

    Raises:
        UnknownOption: The command does not have it.
        SurplusValue: It is a switch with a value, or has several values such as NAME=VALUE.
        RepeatedOption: It is given several times, but only one value can take effect.
    """
    options = declared_options(kind)
    counts: Counter[str] = Counter()
    for position, word in enumerate(arguments):
        if not is_option(word) or word in (END_OF_OPTIONS, *HELP) or word.startswith(TYRO_PREFIX):
            continue

        flag = find_option(word, options)
        if flag is None:
            raise _unknown_option(command, word, options)
        _check_assignments(command, flag, options[flag], arguments[position:])
        counts[flag] += 1

    for flag, count in counts.items():
        if count > 1 and options[flag].metavar and not options[flag].is_repeatable:
            raise RepeatedOption(command, flag, count)


def refuse_unread(
    command: str, kind: type, arguments: Sequence[str], unread: Sequence[str]
) -> None:
    """Refuse a command line of which some words were not read.

    Args:
        command: Name of the command, with that of the experiment or the action if there is one.
        kind: The dataclass of the command's flags.
        arguments: The command line without the program's name.
        unread: Its words that tyro has not read, in their order; empty if it has read all.

    Raises:
        UnknownOption: The first of them looks like an option.
        SurplusValue: The first of them is a value.
    """
    if not unread:
        return
    word = unread[0]
    options = declared_options(kind)
    if word.startswith("-"):
        raise _unknown_option(command, word, options)

    # The values from the last option before the word on.
    begin = len(arguments) - 1 - arguments[::-1].index(word)
    while begin > 0 and not is_option(arguments[begin]):
        begin -= 1
    flag = find_option(arguments[begin], options)
    if flag is not None and options[flag].metavar:
        values = _values_of(arguments[begin:])
        raise SurplusValue(command, flag, values, _advise(command, flag, options[flag], values))

    metavars = positional_metavars(kind)
    arguments_read = f"{' '.join(metavars)} and options" if metavars else "options only"
    raise SurplusValue(command, "", [word], f"It takes {arguments_read}.")


def _check_assignments(
    command: str, flag: str, option: DeclaredOption, words: Sequence[str]
) -> None:
    """Refuse a value of a switch, and several values such as NAME=VALUE behind one option.

    A second one would be read as an argument of the command, such as a scenario.

    Args:
        command: Name of the command.
        flag: The option.
        option: What it takes.
        words: The command line from the option on.

    Raises:
        SurplusValue: Says how the option is written.
    """
    _, equals, value = words[0].partition("=")
    if equals and not option.metavar:
        raise SurplusValue(command, flag, [value], "It is a switch and takes none.")

    if option.is_repeatable and "=" in option.metavar:
        first, *others = _values_of(words) or [""]
        assignments = [word for word in others if "=" in word and not os.path.exists(word)]
        if assignments:
            values = [first, *assignments]
            raise SurplusValue(command, flag, values, _advise(command, flag, option, values))


def _values_of(words: Sequence[str]) -> list[str]:
    """Return the values of an option, up to the next one.

    Args:
        words: The command line from the option on.
    """
    _, equals, value = words[0].partition("=")
    first = [value] if equals else []
    return first + list(itertools.takewhile(lambda word: not is_option(word), words[1:]))


def _advise(command: str, flag: str, option: DeclaredOption, values: Sequence[str]) -> str:
    """Say how many values an option takes, and how to give more of them.

    Args:
        command: Name of the command.
        flag: The option.
        option: What it takes.
        values: The values that follow it.
    """
    if option.is_repeatable:
        repeated = " ".join(f"{flag} {shell_quoted(value)}" for value in values)
        return f"It takes one at a time; repeat it: `{repeated}`."

    number = "one" if option.value_count == 1 else str(option.value_count)
    advice = f"It takes {number}: `{flag} {option.metavar}`."
    if command == "run" and option.value_count == 1 and _is_swept(flag):
        name = flag.removeprefix("--")
        advice += f" `simbridge sweep SCENARIO {GRID} {name}=A,B` runs several."
    return advice


def _is_swept(flag: str) -> bool:
    """Return whether an option of `run` is a parameter of a sweep."""
    # Numpy, which `run` loads anyway.
    from simbridge.sweeps.parameters import parameters  # noqa: PLC0415

    return flag.removeprefix("--") in parameters()


def _unknown_option(
    command: str, word: str, options: Mapping[str, DeclaredOption]
) -> UnknownOption:
    """Return the error that names the options most like one that does not exist.

    Args:
        command: Name of the command.
        word: The option as the user gave it, perhaps with a value behind "=".
        options: The command's options.
    """
    option = word.partition("=")[0]
    name = option.lstrip("-").replace("_", "-")
    names = [flag.removeprefix("--") for flag in options]

    # The options that are spelled like it, the nearest first.
    similar = nearest_names(name, names, MAX_SUGGESTIONS, likeness=MIN_LIKENESS)

    # The options that have a word that begins with it, as "gain" begins a word of "servo-gain". A
    # hyphen before both names stands for the beginning of a word.
    related = [known for known in names if f"-{name}" in f"-{known}".replace(".", "-")]

    # With related options, only the nearest of those that are spelled like it is suggested.
    nearest = similar[:1] + related if related else similar
    nearest = list(dict.fromkeys(nearest))[:MAX_SUGGESTIONS]

    suggestions = [f"--{known} {options[f'--{known}'].metavar}".rstrip() for known in nearest]
    return UnknownOption(command, option, suggestions)
