"""The errors of a command line whose options cannot be read."""

from __future__ import annotations

from collections.abc import Sequence

from simbridge.errors import Refusal
from simbridge.quoting import quoted, unquoted
from simbridge.text import counted, join_words


class UnknownOption(Refusal, LookupError):
    """An option that a command does not have.

    Attributes:
        command: Name of the command, with that of the experiment or the action if there is one.
        option: The option, as the user gave it.
        nearest: The command's options that are most like it, each with what it takes, such as
            "--out DIR"; the nearest first.
    """

    def __init__(self, command: str, option: str, nearest: Sequence[str]) -> None:
        self.command = command
        self.option = option
        self.nearest = tuple(nearest)

        question = f"Did you mean {join_words(self.nearest, 'or')}? " if self.nearest else ""
        super().__init__(
            f"`simbridge {command}` has no option {quoted(option)}. {question}"
            f"`simbridge {command} --help` lists its options."
        )


class MisplacedOption(Refusal, ValueError):
    """An option before the name of the command that it belongs to.

    Attributes:
        option: The option, as the user gave it.
        kind: What must stand before it: a command, an experiment, or an action.
        usage: The command line up to the option, with a word in capitals for that name.
    """

    def __init__(self, option: str, kind: str, usage: str) -> None:
        self.option = option
        self.kind = kind
        self.usage = usage
        super().__init__(
            f"{quoted(option)} comes too early: options follow the name of the {kind}, as in "
            f"`{usage} {unquoted(option)}`."
        )


class OtherDevicesOption(Refusal, ValueError):
    """An option of teleoperation that the named device does not have.

    Attributes:
        option: The option.
        device: The device that was named.
        devices: The devices that have the option.
    """

    def __init__(self, option: str, device: str, devices: Sequence[str]) -> None:
        self.option = option
        self.device = device
        self.devices = tuple(devices)
        super().__init__(
            f"{option} is an option of teleop {join_words(self.devices)}, not of {device}."
        )


class SurplusValue(Refusal, ValueError):
    """A value on the command line that neither an option nor the command itself can take.

    Attributes:
        command: Name of the command, with that of the experiment or the action if there is one.
        option: The option that the value follows; "" if it follows none.
        values: All values that follow the option; without an option, the value alone.
        advice: How many values are possible, and what to write instead.
    """

    def __init__(self, command: str, option: str, values: Sequence[str], advice: str) -> None:
        self.command = command
        self.option = option
        self.values = tuple(values)
        self.advice = advice

        shown = join_words([quoted(value) for value in self.values])
        if option:
            problem = f"{option} is followed by {counted(len(self.values), 'value')}: {shown}."
            description = f"`simbridge {command} --help` describes it."
        else:
            problem = f"`simbridge {command}` has no use for {shown}."
            description = f"`simbridge {command} --help` lists them."
        super().__init__(f"{problem} {advice} {description}")


class RepeatedOption(Refusal, ValueError):
    """An option that is given several times, of which only one could take effect.

    Attributes:
        command: Name of the command, with that of the experiment or the action if there is one.
        option: The option.
        count: How often it is given.
    """

    def __init__(self, command: str, option: str, count: int) -> None:
        self.command = command
        self.option = option
        self.count = count
        super().__init__(
            f"{option} is given {count} times, but only one value can take effect. Give it once. "
            f"`simbridge {command} --help` describes it."
        )
