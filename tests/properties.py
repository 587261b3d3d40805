"""How often expensive properties are tried: a few examples in `make test`, ten times as many in `make soak`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest
from hypothesis import settings

Test = TypeVar("Test", bound=Callable[..., object])


def few_examples(count: int) -> Callable[[Test], Test]:
    """Decorates a test: so many examples, or ten times as many in the profile `soak` (tests/conftest.py)."""
    # 100 in every other profile.
    share = settings().max_examples / 100

    def decorated(test: Test) -> Test:
        return pytest.mark.property(settings(max_examples=round(count * share))(test))

    return decorated
