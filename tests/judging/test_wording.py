"""The sentences on a judged log."""

from __future__ import annotations

import pytest

from simbridge.judging.tracking_errors import DifferenceSize, SignalDifference, TrackingErrors
from simbridge.judging.wording import error_phrase


@pytest.mark.parametrize(
    ("trailing", "subject"), [("actual", "the joints"), ("target", "the joint targets")]
)
def test_an_exact_signal_is_named(trailing, subject):
    size = DifferenceSize(
        rms_rad=0.0,
        max_rad=0.0,
        max_joint="elbow",
        max_at_s=0.0,
        tool_rms_m=None,
        tool_max_m=None,
    )
    whole = SignalDifference("command sent", trailing, source="servo law", size=size, lag=None)

    phrase = error_phrase(TrackingErrors(whole, parts=(whole,)))

    assert phrase == f"{subject} were exactly at the commands"
