"""The sentences by which the studio explains what limits the arm."""

from __future__ import annotations

import numpy as np
import pytest

from simbridge.browser.explanation import EXPLANATIONS, explain_motion
from simbridge.browser.snapshot import Snapshot
from simbridge.sessions.causes import KINDS, LiveCause


def snapshot_with(*causes):
    """Return an instant of an arm 5 mm from the goal that these causes limit."""
    return Snapshot(
        time=0.0,
        q=np.zeros(6),
        qd=np.zeros(6),
        solution=np.zeros(6),
        target=np.zeros(7),
        errors=(0.0,) * 5,
        distance=0.005,
        angle=0.0,
        causes=causes,
    )


def test_each_cause_has_an_explanation():
    assert set(EXPLANATIONS) == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_an_explanation_is_a_whole_sentence(kind):
    sentence = explain_motion(snapshot_with(LiveCause.of(kind, "elbow_joint", 0.1)), 0.0, "pose")

    assert sentence.endswith(".")
    assert "{" not in sentence


def test_an_explanation_names_joint_and_number():
    cause = LiveCause.of("singularity", "elbow_joint", 0.012)

    sentence = explain_motion(snapshot_with(cause), 0.0, "pose")

    assert sentence == "Slowed near a singularity of elbow (smallest singular value 0.012)."


def test_the_distance_out_of_reach_is_said_once():
    cause = LiveCause.of("reach", "", 0.2)

    sentence = explain_motion(snapshot_with(cause), 0.2, "pose")

    assert sentence == "The goal is 200 mm out of reach."
