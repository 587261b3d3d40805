"""Names for the columns of a recording without a header."""

from __future__ import annotations

import pytest

from simbridge.errors import InvalidParameter, UnknownName
from simbridge.judging.column_names import expand_columns


def test_a_vector_stands_for_all_its_columns():
    assert expand_columns("timestamp,actual_q") == (
        "timestamp",
        *(f"actual_q_{i}" for i in range(6)),
    )


def test_short_names_of_identification_are_known():
    names = expand_columns("t, q 6, qd 6, i 6, i_des 6, tau_des 6")

    assert len(names) == 31
    assert names[7] == "actual_qd_0"
    assert names[-1] == "target_moment_5"


@pytest.mark.parametrize("entry", ["skip*3", "skip 3", "skip:3"])
def test_columns_can_be_skipped(entry):
    assert expand_columns(f"t,{entry},actual_q_0") == (
        "t",
        "skip",
        "skip",
        "skip",
        "actual_q_0",
    )


def test_an_unknown_name_is_refused_with_the_nearest():
    with pytest.raises(UnknownName, match="actual_q") as refusal:
        expand_columns("t,actuel_q")
    assert refusal.value.name == "actuel_q"


@pytest.mark.parametrize("text", ["t,q 5", "t,,q", "q,actual_q", "t,skip*99999"])
def test_wrong_counts_and_repetitions_are_refused(text):
    with pytest.raises(InvalidParameter):
        expand_columns(text)
