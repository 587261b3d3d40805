"""Errors that cannot be sent between processes as they are."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from simbridge.backends.error_events import error_facts, reconstruct_error
from simbridge.errors import InternalError, InvalidParameter, SimbridgeError
from simbridge.quoting import as_text


@pytest.mark.parametrize(
    "argument", [lambda: 0, "x" * 1_000_000], ids=["a function", "a long text"]
)
def test_an_unsendable_argument_arrives_as_text(argument: object) -> None:
    facts = error_facts(SimbridgeError(argument))

    received = reconstruct_error(facts)

    assert type(received) is SimbridgeError
    assert received.args == (as_text(argument),)
    assert len(json.dumps(facts)) < 100_000


class UnsendableError(SimbridgeError):
    """An error of a user's solver."""

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("cannot be pickled")


def test_an_unsendable_error_arrives_as_internal() -> None:
    received = reconstruct_error(error_facts(UnsendableError("by a user")))

    assert isinstance(received, InternalError)
    assert "by a user" in str(received.trace)


def test_an_unexpected_error_arrives_as_internal() -> None:
    received = reconstruct_error(error_facts(ZeroDivisionError("by nobody")))

    assert isinstance(received, InternalError)
    assert "ZeroDivisionError: by nobody" in str(received)


@pytest.mark.parametrize(
    "value",
    [lambda: None, np.zeros(10**6), type("Local", (), {})()],
    ids=["a function", "a large array", "of a local class"],
)
def test_an_unsendable_value_arrives_as_text(value: object) -> None:
    received = reconstruct_error(error_facts(InvalidParameter("answer", value, "6 finite numbers")))

    assert isinstance(received, InvalidParameter)
    assert received.value == as_text(value)
    assert received.needed == "6 finite numbers"
