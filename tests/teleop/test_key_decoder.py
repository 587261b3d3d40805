"""Keys, decoded from any bytes in any parts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge.teleop.key_decoder import Key, KeyDecoder

pytestmark = pytest.mark.slow


@given(st.lists(st.binary(max_size=12), max_size=12))
def test_no_bytes_break_the_decoder(parts):
    decoder = KeyDecoder()
    for part in parts:
        decoder.feed(part)

    # Nothing piles up in it either.
    assert decoder.feed(b"\x1b[0\x00" + b" " * 80)[-1] == Key("space")


@given(
    st.lists(
        st.sampled_from([b"w", b"\x1b[A", b"\x1bOB", b"\x1b[5~", b"\x1b[119;1:3u", b" "]),
        max_size=8,
    ),
    st.data(),
)
def test_sequences_may_come_in_parts(sequences, data):
    whole = b"".join(sequences)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(whole)))))
    decoder = KeyDecoder()

    keys = []
    for begin, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        keys += decoder.feed(whole[begin:end])

    assert keys == KeyDecoder().feed(whole)
