"""The benchmarks of developers: each part can be measured, and none of them is in the package."""

from __future__ import annotations

import pkgutil

import pytest

from benchmarks.__main__ import PARTS, QUICK

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("part", PARTS)
def test_each_part_has_its_function(part):
    assert callable(pkgutil.resolve_name(PARTS[part]))


def test_what_is_measured_by_default_are_parts():
    assert set(QUICK) < set(PARTS)
