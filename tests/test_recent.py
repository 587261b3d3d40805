"""The bounded store of computed values."""

from __future__ import annotations

from simbridge.recent import Recent


def test_a_value_is_found_by_its_key():
    values = Recent(2)

    values.put("first", 1)

    assert values.get("first") == 1
    assert values.get("second") is None


def test_the_oldest_value_is_dropped():
    values = Recent(2)

    for number in range(3):
        values.put(number, number)

    assert [values.get(number) for number in range(3)] == [None, 1, 2]
