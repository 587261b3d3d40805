"""An event of a page, as it is passed to the studio's loop."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from simbridge.errors import SimbridgeError

# In place of a page's number: the event comes from none, or from a task in the background.
NO_PAGE = -1
BACKGROUND = -2


class PageEvent(NamedTuple):
    """Something that happened in a page, or in a task in the background.

    Attributes:
        page: The page's number, `NO_PAGE` or `BACKGROUND`.
        name: What happened.
        value: What the user chose; of a task, a function that is called in the loop.
        arrival: When the event arrived, on the monotonic clock, s; infinite for one that is never
            too old.
    """

    page: int
    name: str
    value: Any = None
    arrival: float = math.inf


class RequestRefused(SimbridgeError, RuntimeError):
    """The studio does not do what a page asks for.

    Attributes:
        reason: Why not, as a sentence.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)
