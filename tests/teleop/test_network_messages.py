"""A datagram is a message, or is refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge.errors import InvalidParameter
from simbridge.teleop.network_messages import MAX_DATAGRAM_BYTES, parse

TYPES = [
    "halt",
    "status",
    "engage",
    "disengage",
    "button",
    "pose",
    "twist",
    "jog",
    "joints",
    "a",
]
MESSAGES = st.fixed_dictionaries(
    {
        "type": st.sampled_from(TYPES),
        "client": st.text(max_size=40) | st.just("vision"),
        "seq": st.integers(-1, 2**60) | st.floats(),
        "engagement": st.integers(0, 2**60) | st.none(),
        "values": st.lists(st.floats() | st.integers(-(10**400), 10**400), max_size=8),
    },
    optional={
        "token": st.text(max_size=8),
        "frame": st.text(max_size=5),
        "relative": st.booleans(),
        "x": st.none(),
    },
)


@given(MESSAGES)
def test_a_datagram_is_a_message_or_refused(fields):
    try:
        message = parse(json.dumps(fields).encode())
    except InvalidParameter:
        return

    assert message.client == fields["client"]
    assert message.seq == fields["seq"]


def test_a_long_datagram_is_refused():
    with pytest.raises(InvalidParameter, match="longer than"):
        parse(b" " * (MAX_DATAGRAM_BYTES + 1))
