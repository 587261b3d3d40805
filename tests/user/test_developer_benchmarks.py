"""The benchmarks of developers: each part can be measured, and none of them is in the package."""

from __future__ import annotations

import pkgutil

import pytest

from benchmarks.__main__ import PARTS, QUICK
from benchmarks.growth import growth

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("part", PARTS)
def test_each_part_has_its_function(part):
    assert callable(pkgutil.resolve_name(PARTS[part]))


def test_what_is_measured_by_default_are_parts():
    assert set(QUICK) < set(PARTS)


@pytest.mark.parametrize(
    ("costs", "expected"),
    [
        # Proportional to the work, behind a start of 2 s; and to the square of the work.
        ((3.0, 6.0, 18.0, 66.0), 1.0),
        ((2.0, 17.0, 257.0, 4097.0), 4.0),
        ((2.0, 2.0, 2.0, 2.1), None),
    ],
)
def test_the_growth_is_that_of_a_units_cost(costs, expected):
    assert growth((1, 4, 16, 64), costs, 0.3) == pytest.approx(expected)
