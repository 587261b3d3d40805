"""How much is tried of a property: a few examples and variants in `make test`, many in `make soak`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import pytest
from hypothesis import settings

Test = TypeVar("Test", bound=Callable[..., object])


def few_examples(count: int) -> Callable[[Test], Test]:
    """Decorates a test: so many examples, or twenty times as many in the profile `soak` (tests/conftest.py)."""
    # 50 in every other profile.
    share = settings().max_examples / 50

    def decorated(test: Test) -> Test:
        return pytest.mark.property(settings(max_examples=round(count * share))(test))

    return decorated


def variants(names: Iterable[str], *tested: str) -> list[Any]:
    """Of the variants of one fact those that `make test` tries; `make soak` tries all."""
    return [name if name in tested else pytest.param(name, marks=pytest.mark.soak) for name in names]
