"""`--columns` decides before names and rules do."""

from __future__ import annotations

import pytest

from simbridge.errors import InvalidParameter
from simbridge.trajectory import read_trajectory
from simbridge.trajectory.read_options import ReadOptions
from tests.trajectory.tables.motions import NS, assert_same, refusal, rows


def test_columns_are_chosen_by_name_or_number(write_table) -> None:
    path = write_table([[7, *row] for row in rows(NS / 1e9)], "marker,when,left,up,forth,a,b,c,d")

    assert "does not name t, x" in refusal(path)
    assert_same(read_trajectory(path, columns="t=when,x=left,y=up,z=forth,qx=a,qy=b,qz=c,qw=9"))

    bare = write_table([[7, *row] for row in rows(NS / 1e9)], name="bare.csv")

    assert_same(read_trajectory(bare, columns="t=2,x=3,y=4,z=5,qx=6,qy=7,qz=8,qw=9"))
    assert "there is no column 'whe'" in refusal(
        path, columns="t=whe,x=left,y=up,z=forth,qx=a,qy=b,qz=c,qw=d"
    )


@pytest.mark.parametrize("text", ["when", "t=", "k=when", "t[mm]=when", "x[s]", "t=a,,x=b"])
def test_an_empty_choice_is_refused(text: str) -> None:
    with pytest.raises(InvalidParameter, match="choice of columns"):
        ReadOptions(columns=text)
