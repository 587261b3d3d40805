"""Expectation of a test that a plan is refused."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from simbridge.errors import LimitExceeded, PlannedCollision


@contextlib.contextmanager
def refuses(*what: str, match: str | None = None) -> Iterator[pytest.ExceptionInfo]:
    """The code inside is refused for one of these: a quantity of `LimitExceeded`, or a kind of
    `PlannedCollision`.
    """
    with pytest.raises((LimitExceeded, PlannedCollision), match=match) as caught:
        yield caught
    error = caught.value
    assert (error.quantity if isinstance(error, LimitExceeded) else error.kind) in what
