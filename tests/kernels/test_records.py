"""Records for compiled code, from the classes that describe them."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import pytest

from simbridge.kernels.compile import kernel_of
from simbridge.kernels.records import allocate_record, with_attributes
from simbridge.robot.pose import Array, Counts


class Part:
    """A part of a record."""

    weights: Annotated[Array, "n", 2]
    order: Annotated[Counts, "n"]


class Whole:
    """A record with a part."""

    count: int
    scale: float
    part: Part


def fill(wholes):
    """Fill in the arrays of a record: compiled code."""
    whole = wholes[0]
    for i in range(whole.count):
        whole.part.order[i] = i
        whole.part.weights[i, 1] = whole.scale * i


@pytest.fixture
def wholes():
    wholes = allocate_record(Whole, {"n": 3})
    whole = with_attributes(wholes)[0]
    whole.count = 3
    whole.scale = 0.5
    return wholes


def test_sides_are_numbers_or_have_names(wholes):
    assert wholes["part"]["weights"].shape == (1, 3, 2)
    assert wholes["part"]["order"].shape == (1, 3)


def test_elements_have_the_described_types(wholes):
    assert wholes["count"].dtype == np.int64
    assert wholes["part"]["order"].dtype == np.int64
    assert wholes["part"]["weights"].dtype == np.float64


def test_compiled_code_fills_what_attributes_show(wholes):
    kernel_of(fill, "record of a test")(wholes)

    part = with_attributes(wholes)[0].part

    assert part.order.tolist() == [0, 1, 2]
    assert part.weights[:, 1].tolist() == [0.0, 0.5, 1.0]
