"""A live session whose source falls silent and comes back, as its user sees it."""

from __future__ import annotations

import numpy as np
import pytest

from simbridge.errors import InvalidParameter
from simbridge.recording.log_reader import read_log
from simbridge.running.run_setup import prepare
from tests.stepped_sessions import lines, moved, stepped

pytestmark = pytest.mark.shares_setup


@pytest.fixture(scope="module")
def stalled_session(tmp_path_factory):
    """A session with a near and a far return, and what its user saw: statuses by name."""
    out = tmp_path_factory.mktemp("stall") / "run"
    seen = {}
    with stepped(out, report=False) as session:
        session.engage()
        session.wait(0.01)
        begin = session.tool
        session.pose(begin)
        session.wait(0.6)
        seen["stalled"] = session.status

        # It comes back near, and far after another stall.
        for k in range(40):
            session.pose(moved(begin, 0.0, 0.06, 0.0))
            session.wait(0.02)
            if k == 0:
                seen["near"] = session.status
        seen["caught up"] = session.status
        session.wait(0.6)
        session.pose(moved(begin, 0.0, 0.372, 0.0))
        session.wait(0.6)
        seen["far"] = session.status

        # The engagement that the session asks for.
        session.engage()
        session.pose(session.tool)
        session.wait(0.1)
        seen["engaged again"] = session.status
        session.disengage()
        session.wait(0.1)
    return out, seen


def test_a_near_return_is_said_while_it_is_slow(stalled_session):
    _, seen = stalled_session

    assert seen["stalled"].causes[0].kind == "stale"
    assert str(seen["near"].causes[0]) == "catching_up 0.25"
    assert seen["caught up"].causes == ()


def test_a_far_return_is_said_until_the_next_engagement(stalled_session):
    _, seen = stalled_session

    assert seen["far"].state == "idle"
    assert seen["far"].causes[0].kind == "engage_again"
    assert seen["far"].causes[0].value == pytest.approx(0.312, abs=1e-4)
    assert seen["engaged again"].state == "tracking"


def test_the_record_says_why_an_input_was_rejected(stalled_session):
    out, _ = stalled_session
    rejected = [item for item in lines(out, "inputs.jsonl") if item["fate"] == "rejected"]

    assert [item["cause"]["kind"] for item in rejected] == ["engage_again"]


def test_stalls_are_solved_again_alike(stalled_session):
    out, _ = stalled_session

    assert np.array_equal(prepare(out).plan.setpoints, read_log(out / "log.mcap").setpoint)


@pytest.mark.parametrize("fraction", [0.0, 1.5, float("nan")])
def test_an_impossible_fraction_is_refused(tmp_path, fraction):
    with pytest.raises(InvalidParameter, match="catch-up"):
        stepped(tmp_path / "run", catch_up=fraction)
