"""The clients of the network input, without a socket."""

from __future__ import annotations

import json

import numpy as np
import pinocchio as pin
import pytest

from simbridge.sessions.causes import LiveCause
from simbridge.teleop.datagram_exchange import MAX_CLIENTS, DatagramExchange
from tests.teleop.fake_session import FakeSession

pytestmark = pytest.mark.slow


def test_each_process_numbers_engagements_otherwise():
    first_numbers = {DatagramExchange()._last_engagement for _ in range(20)}

    assert len(first_numbers) == 20


def test_a_flood_leaves_time_for_the_loop():
    exchange = DatagramExchange()
    for _ in range(5_000):
        exchange.receive(b"x", ("127.0.0.1", 1), 0.0)
    exchange.replies(FakeSession(), "")

    for number in range(1_000):
        status = {"type": "status", "client": f"c{number}", "seq": 1}
        exchange.receive(json.dumps(status).encode(), "a", 0.0)

    assert len(exchange._newest) <= MAX_CLIENTS


def answer(exchange, session, fields):
    """Let a client send a message, and return the reply."""
    exchange.receive(json.dumps(fields).encode(), "a", 0.0)
    ((data, _),) = exchange.replies(session, "")
    return json.loads(data)


def test_an_unusable_datagram_is_answered_with_its_number():
    fields = {"type": "twist", "client": "vision", "seq": 12}

    reply = answer(DatagramExchange(), FakeSession(), fields)

    assert (reply["client"], reply["seq"]) == ("vision", 12)


def test_a_reply_says_why_the_engagement_ended():
    exchange = DatagramExchange()
    session = FakeSession()
    session.status.state = "engaged"
    exchange.receive(b'{"type": "engage", "client": "vision", "seq": 1}', "a", 0.0)
    exchange.note_engagement(0.0)
    exchange.replies(session, "")
    pose = {"type": "pose", "client": "vision", "engagement": exchange.engagement}
    pose["values"] = [0.5, 0.4, 0.3, 0.0, 0.0, 0.0, 1.0]
    session.status.state = "idle"
    session.status.causes = (LiveCause.of("engage_again", "", 0.312),)

    answer(exchange, session, {**pose, "seq": 2})
    reply = answer(exchange, session, {**pose, "seq": 3})

    assert not reply["ok"]
    assert reply["error"] == (
        "Dropped: it does not belong to the current engagement (engage_again 312 mm); "
        "send engage first."
    )


def test_the_quaternion_of_the_tool_keeps_its_sign():
    exchange = DatagramExchange()
    session = FakeSession()
    quaternions = []
    for seq, angle in enumerate(np.linspace(0.0, 4.0 * np.pi, 60).tolist()):
        session.tool = pin.SE3(pin.exp3(np.array([0.0, 0.0, angle])), np.zeros(3))
        status = {"type": "status", "client": "vision", "seq": seq}
        quaternions.append(answer(exchange, session, status)["tool"][3:])

    assert np.abs(np.diff(quaternions, axis=0)).max() < 0.2
