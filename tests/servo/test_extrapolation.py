"""At which gains a prediction is said to be extrapolated."""

from __future__ import annotations

import pytest

from simbridge.servo.extrapolation import describe_extrapolation


@pytest.mark.parametrize("gains", [(), (100.0,), (300.0, 100.0), (300.5, 97.0, 180.0)])
def test_gains_that_were_compared_need_no_remark(gains):
    assert describe_extrapolation(gains) == ""


@pytest.mark.parametrize(
    ("gains", "named"),
    [((2000.0,), "gain 2000"), ((2000.0, 300.0, 1000.0, 2000.0), "gains 1000 and 2000")],
)
def test_other_gains_are_named_once(gains, named):
    sentence = describe_extrapolation(gains)

    assert sentence == f"The servo law at {named} is extrapolated from gains 300 and 100."
