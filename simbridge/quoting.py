"""Input of users within messages: control characters are visible, and long ones are shortened.

Flags and commands that are meant to be copied are not input: they are never shortened.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable

# Characters of a quoted input, at most.
LONGEST_QUOTE = 80
# Names of a quoted list, at most.
MOST_NAMES = 30
# A text that stands in place of a value is cut off after so many characters.
LONGEST_TEXT = 1_000
NO_BREAK_SPACE = "\u00a0"
ELLIPSIS = "…"


def visible(text: str, keep: str = "") -> str:
    r"""Return a text in which nothing is hidden.

    Control characters, line ends and bytes that are not text are escapes, such as \x1b.

    Args:
        text: Any text.
        keep: Characters that stay as they are, such as line ends.
    """
    return "".join(_escape(character, keep) for character in text)


def _escape(character: str, keep: str) -> str:
    """Return a character, or its escape where it cannot be printed."""
    if character.isprintable() or character == NO_BREAK_SPACE or character in keep:
        return character
    return character.encode("unicode_escape", "surrogatepass").decode()


def shorten(text: str, longest: int = LONGEST_QUOTE) -> str:
    """Return a text of at most `longest` characters: the middle of a longer one is left out."""
    if len(text) <= longest:
        return text
    end = longest // 3
    begin = longest - end - len(ELLIPSIS)
    return text[:begin] + ELLIPSIS + text[-end:]


def as_text(value: object) -> str:
    """Return a value as text, also where it cannot be printed.

    A huge integer cannot, nor an object whose `__str__` fails.
    """
    try:
        text = str(value)
    except Exception:
        return f"a value of type {type(value).__name__} that cannot be printed"
    if len(text) > LONGEST_TEXT:
        return f"{text[:LONGEST_TEXT]} ..."
    return text


def quoted(value: object, longest: int = LONGEST_QUOTE) -> str:
    """Return an input in quotation marks: shortened, and control characters visible."""
    return f"'{unquoted(value, longest)}'"


def unquoted(value: object, longest: int = LONGEST_QUOTE) -> str:
    """Return an input as `quoted` does, without quotation marks."""
    # A text of many characters is not escaped whole; an escape may be longer than the character.
    return shorten(visible(shorten(as_text(value), longest)), longest)


def quoted_list(
    values: Iterable[object], most: int = MOST_NAMES, longest: int = LONGEST_QUOTE
) -> str:
    """Return inputs separated by commas, each shortened.

    Of many, only the first ones, and the number of the others.

    Args:
        values: The inputs.
        most: Largest number of them that is listed.
        longest: Characters of each, at most.
    """
    names = [unquoted(value, longest) for value in values]
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most} more"


def shell_quoted(value: object) -> str:
    """Return a path or another word as it is pasted into a shell; never shortened."""
    return shlex.quote(str(value))
