"""The clients of the network input, without a socket."""

from __future__ import annotations

import json

from simbridge.teleop.datagram_exchange import MAX_CLIENTS, DatagramExchange
from tests.teleop.fake_session import FakeSession


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
