"""Refuses an option of the command line that is given without its value."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from simbridge.cli.declared_options import declared_options, is_option
from simbridge.errors import MissingValue


def check_values(command: str, kind: type, arguments: Sequence[str]) -> None:
    """Refuse an option without its values, or with too few of them.

    Args:
        command: Name of the command, with that of the experiment or the action if there is one.
        kind: The dataclass of the command's flags.
        arguments: The command line without the program's name.

    Raises:
        MissingValue: Names the option and the values that it takes.
    """
    options = declared_options(kind)
    for position, word in enumerate(arguments):
        # The form --option=VALUE has its value.
        option = options.get(word.replace("_", "-"))
        if option is None:
            continue
        values = itertools.takewhile(lambda text: not is_option(text), arguments[position + 1 :])
        if len(list(values)) < option.value_count:
            raise MissingValue(command, word, option.metavar)
