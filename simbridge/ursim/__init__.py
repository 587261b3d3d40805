"""`simbridge ursim`: UR's simulator of a controller, in a container on this computer.

    start     starts it for an arm, and waits until its controller answers
    status    shows what runs
    stop      removes it

This module is the registry: the name and the flags of each action. It is quick to import.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, TypeAlias, Union

from tyro.conf import Positional, arg, subcommand

# The tag of UR's newest image.
NEWEST_TAG = "latest"


@dataclass(frozen=True)
class StartFlags:
    """Start URSim for an arm, and wait until its controller answers."""

    model: Annotated[Positional[str], arg(metavar="MODEL")]
    """The arm, such as ur10e (see `simbridge robots`)."""
    polyscope: Annotated[str, arg(metavar="TAG")] = NEWEST_TAG
    """Version of PolyScope, 3.x for CB3 and 5.x for the others: a tag of UR's image."""
    host: Annotated[str, arg(metavar="ADDRESS")] = "127.0.0.1"
    """Loopback address of its ports: one URSim runs at each."""


@dataclass(frozen=True)
class StatusFlags:
    """Show the URSim that `start` has started; exits with 1 if none runs."""


@dataclass(frozen=True)
class StopFlags:
    """Remove every container that `start` has started, with what was saved in it."""


# Name of each action of `simbridge ursim`: its flags.
ACTIONS: Mapping[str, type] = {"start": StartFlags, "status": StatusFlags, "stop": StopFlags}

# The flags of any action, as the command line reads them.
if TYPE_CHECKING:
    ActionFlags: TypeAlias = StartFlags | StatusFlags | StopFlags
else:
    _COMMANDS = tuple(Annotated[flags, subcommand(name)] for name, flags in ACTIONS.items())
    ActionFlags = Union[_COMMANDS]  # noqa: UP007 (made of a tuple)
