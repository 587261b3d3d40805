"""The values that each control of a page offers, against which values from the page are checked.

A browser's own controls send nothing else; but a page's web socket carries whatever its other end
sends, and viser hands it on: a dropdown takes any text. What a control offers is therefore noted
when it is made, out of the page's reach, and each of its events is checked against that.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import viser

from simbridge.errors import Refusal

# The longest text of a field: the longest path of Linux.
MAX_TEXT_CHARACTERS = 4096
# Beyond it, not every whole number is a double, and no setting makes sense.
MAX_NUMBER = 2.0**53
# By how much of its range a slider's value may be rounded.
ROUNDING = 1e-9
# By how much the length of a page's quaternions may differ from 1.
MAX_QUATERNION_ERROR = 1e-3

# How a refused value is quoted: shortened.
REFUSED_VALUE = reprlib.Repr()
REFUSED_VALUE.maxstring = 60
REFUSED_VALUE.maxother = 60


class EventRefused(Refusal, ValueError):
    """A page sent a value that its control does not offer.

    Attributes:
        control: The control's name.
        value: The value that was sent.
        offered: What the control offers, in words.
    """

    def __init__(self, control: str, value: Any, offered: str) -> None:
        self.control = control
        self.value = value
        self.offered = offered
        quoted = REFUSED_VALUE.repr(value)
        super().__init__(f"The control '{control}' does not offer {quoted}; it offers {offered}.")


class Offer(Protocol):
    """The values that a control offers."""

    @property
    def description(self) -> str:
        """The offered values, as words that follow "it offers"."""

    def includes(self, value: Any) -> bool:
        """Return whether a value is offered."""


@dataclass(frozen=True)
class TextChoice:
    """One of several texts."""

    options: tuple[str, ...]

    @property
    def description(self) -> str:
        return f"one of {len(self.options)} choices"

    def includes(self, value: Any) -> bool:
        return isinstance(value, str) and value in self.options


@dataclass(frozen=True)
class NumberRange:
    """A finite number between two bounds."""

    low: float = -MAX_NUMBER
    high: float = MAX_NUMBER

    @property
    def description(self) -> str:
        return f"numbers from {self.low:g} to {self.high:g}"

    def includes(self, value: Any) -> bool:
        if not is_finite_number(value):
            return False
        rounding = ROUNDING * (self.high - self.low)
        return self.low - rounding <= value <= self.high + rounding


@dataclass(frozen=True)
class NumberVector:
    """A fixed count of finite numbers."""

    count: int

    @property
    def description(self) -> str:
        return f"{self.count} numbers"

    def includes(self, value: Any) -> bool:
        if not isinstance(value, Sequence | np.ndarray) or len(value) != self.count:
            return False
        return all(is_finite_number(number) for number in value)


@dataclass(frozen=True)
class UnitQuaternion:
    """Four numbers that are a rotation."""

    @property
    def description(self) -> str:
        return "unit quaternions"

    def includes(self, value: Any) -> bool:
        if not NumberVector(4).includes(value):
            return False
        return abs(math.hypot(*value) - 1.0) <= MAX_QUATERNION_ERROR


@dataclass(frozen=True)
class Text:
    """A text of bounded length in one line."""

    longest: int = MAX_TEXT_CHARACTERS

    @property
    def description(self) -> str:
        return f"a line of at most {self.longest} characters"

    def includes(self, value: Any) -> bool:
        return isinstance(value, str) and len(value) <= self.longest and value.isprintable()


@dataclass(frozen=True)
class OnOff:
    """On or off."""

    @property
    def description(self) -> str:
        return "on or off"

    def includes(self, value: Any) -> bool:
        return isinstance(value, bool)


# What a control offers that is no longer there.
NOTHING = TextChoice(())


def is_finite_number(value: Any) -> bool:
    """Return whether a value is a finite real number, and no truth value."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return False
    # An integer may be too large to be compared as a double.
    return bool(-MAX_NUMBER <= value <= MAX_NUMBER)


def offer_of(handle: Any) -> Offer:
    """Return the present offer of one of viser's handles.

    Raises:
        TypeError: The handle is of a kind for which nothing is known; the page may not use it.
    """
    if isinstance(handle, viser.GuiDropdownHandle | viser.GuiButtonGroupHandle):
        return TextChoice(tuple(handle.options))
    if isinstance(handle, viser.GuiSliderHandle):
        return NumberRange(handle.min, handle.max)
    if isinstance(handle, viser.GuiNumberHandle):
        low = -MAX_NUMBER if handle.min is None else handle.min
        high = MAX_NUMBER if handle.max is None else handle.max
        return NumberRange(low, high)
    if isinstance(handle, viser.GuiVector3Handle):
        return NumberVector(3)
    if isinstance(handle, viser.GuiTextHandle):
        return Text()
    if isinstance(handle, viser.GuiCheckboxHandle):
        return OnOff()
    raise TypeError(
        f"What does a {type(handle).__name__} offer? Say so in simbridge/browser/offers.py."
    )


def check_offered(control: str, value: Any, offer: Offer) -> None:
    """Check a value of a page against what its control offers.

    Raises:
        EventRefused: The value is not offered.
    """
    if not offer.includes(value):
        raise EventRefused(control, value, offer.description)
