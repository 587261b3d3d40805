"""A row of bars in a line of text."""

from __future__ import annotations

from collections.abc import Sequence

BARS = "▁▂▃▄▅▆▇█"
# For terminals that have no such letters.
PLAIN_BARS = "_.-:=+*#"


def sparkline(values: Sequence[float], width: int, bars: str = BARS) -> str:
    """The last `width` values as bars, the largest of them full and zero the lowest; blanks before the first.

    Args:
        values: Not negative.
        width: Letters.
        bars: From low to high.
    """
    shown = values[-width:]
    largest = max(shown, default=0.0)
    steps = len(bars) - 1
    drawn = (bars[0 if largest == 0.0 else round(steps * value / largest)] for value in shown)
    return "".join(drawn).rjust(width)
