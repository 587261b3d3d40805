"""Numbers of examples of a property: a few in `make test`, many in `make soak`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import pytest
from hypothesis import settings

Test = TypeVar("Test", bound=Callable[..., object])


def few_examples(count: int, soak: int = 0) -> Callable[[Test], Test]:
    """Decorates a test: `count` examples; in the profile `soak` (tests/conftest.py) as many as
    `soak` says, by default twenty times `count`.
    """
    # 50 in every other profile.
    share = settings().max_examples / 50
    examples = soak if soak and share > 1.0 else round(count * share)

    def decorated(test: Test) -> Test:
        return pytest.mark.property(settings(max_examples=examples)(test))

    return decorated


def variants(names: Iterable[Any], *tested: Any) -> list[Any]:
    """Return the variants of one fact as parameters; `make test` tries only those of `tested`."""
    return [
        name if name in tested else pytest.param(name, marks=pytest.mark.soak) for name in names
    ]
