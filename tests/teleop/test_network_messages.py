"""A datagram is a message, or is refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge.errors import InvalidParameter
from simbridge.teleop.network_messages import MAX_DATAGRAM_BYTES, InvalidMessage, parse

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


@pytest.mark.slow
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


def refusal(data):
    """Return the error that refuses a datagram."""
    with pytest.raises(InvalidMessage) as raised:
        parse(data)
    return raised.value


def test_a_missing_field_is_named():
    error = refusal(b'{"type": "twist", "client": "vision", "seq": 7, "values": [0,0,0,0,0,0]}')

    assert str(error) == "Invalid message: field `engagement` is missing (see docs/teleop.md)."


@pytest.mark.parametrize(("fields", "client", "seq"), [
    ('"client": "vision", "seq": 7', "vision", 7),
    ('"client": "a b", "seq": 7', "", 7),
    ('"client": "vision", "seq": -7', "vision", 0),
    ('"client": 5, "seq": "x"', "", 0),
])  # fmt: skip
def test_a_refusal_names_its_sender(fields, client, seq):
    error = refusal(f'{{"type": "pose", {fields}, "values": [1]}}'.encode())

    assert (error.client, error.seq) == (client, seq)


@pytest.mark.parametrize("number", ["NaN", "-Infinity"])
def test_a_value_that_is_not_finite_has_its_sender(number):
    values = f"[{number},0,0,0,0,0]"
    data = f'{{"type":"twist","client":"v","seq":3,"engagement":1,"values":{values}}}'.encode()

    error = refusal(data)

    assert (error.client, error.seq) == ("v", 3)
    assert error.reason == "it has NaN or Infinity, which are not JSON"


@pytest.mark.parametrize(("fields", "reason"), [
    ('"type": "twist", "engagement": 1, "values": [0]',
     "field `values`: expected `array` of length 6"),
    ('"type": "twist", "engagement": 1, "values": [0,0,0,0,0,0], "frame": "world"',
     "field `frame`: expected `base_link`, `base` or `tool`"),
    ('"type": "button", "button": "a b"',
     "field `button`: expected 1 to 32 letters, digits, `_`, `.` or `-`"),
    ('"type": "move"', "field `type`: invalid value 'move'; known are halt, status, engage, "
     "disengage, button, pose, twist, jog, joints"),
])  # fmt: skip
def test_a_reason_names_the_field_and_what_it_takes(fields, reason):
    error = refusal(f'{{"client": "v", "seq": 3, {fields}}}'.encode())

    assert error.reason == reason


def test_half_a_datagram_has_no_sender():
    error = refusal(b'{"type": "pose", "client": "vision", "se')

    assert (error.client, error.seq) == ("", 0)
