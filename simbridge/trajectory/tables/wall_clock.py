"""Times of day as text: ISO 8601, also with slashes."""

from __future__ import annotations

import re

import numpy as np

NANOSECONDS_PER_SECOND = 1_000_000_000
# 2026-11-25T18:59:42.123456789Z, or with a blank, or slashes. In ns, years from 1678 to 2261 can be
# represented.
WALL_CLOCK_START = re.compile(r"(?:17|18|19|20|21)\d\d([-/])\d\d\1\d\d[T ]\d\d:\d\d")
# For messages.
TIMES_OF_DAY = (
    "times of day have the form 2026-11-25 18:59:42.5, in UTC unless an offset such as "
    "+01:00 follows"
)
MAX_OFFSET_MINUTES = 14 * 60

_OFFSET = re.compile(r" ?(Z|UTC|GMT|[+-]\d\d(?::?\d\d)?)$")
_PARTS_OF_A_CLOCK = re.compile(r"[-\dT:.]+")


def parse_wall_clock(text: str) -> int:
    """Return the ns since 1970 of a date and time; in UTC unless it states a zone.

    Raises:
        ValueError: The text is not a date and time.
    """
    if not WALL_CLOCK_START.match(text):
        raise ValueError(text)

    minutes = 0
    offset = _OFFSET.search(text)
    clock = text
    if offset is not None:
        clock = text[: offset.start()]
        minutes = _offset_minutes(offset[1])
    if abs(minutes) > MAX_OFFSET_MINUTES:
        raise ValueError(text)

    clock = clock.strip().replace(" ", "T", 1).replace("/", "-").replace(",", ".")
    # A zone that is not known would still be there, of which numpy warns.
    if not _PARTS_OF_A_CLOCK.fullmatch(clock):
        raise ValueError(text)
    utc = int(np.datetime64(clock, "ns").astype(np.int64))
    return utc - minutes * 60 * NANOSECONDS_PER_SECOND


def _offset_minutes(offset: str) -> int:
    """Return how far a zone is ahead of UTC, min: "+01:30" is 90, "Z" is 0."""
    if offset[0] not in "+-":
        return 0
    digits = offset.replace(":", "")
    minutes = int(digits[1:3]) * 60 + int(digits[3:5] or 0)
    return -minutes if offset[0] == "-" else minutes
