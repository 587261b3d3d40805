"""A large text is decoded in blocks, in which no line is lost, split or counted twice."""

from __future__ import annotations

import pytest

from simbridge.trajectory.line_blocks import line_blocks

LINES = ["a,b", "", "1,2", "3,ä4", "", "5,6"]


@pytest.mark.parametrize("size", [1, 5, 1000])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_blocks_hold_all_lines(size, line_end):
    data = line_end.join(LINES).encode("utf-8-sig")

    blocks = list(line_blocks(data, size))

    assert [line for block in blocks for line in block.lines] == LINES


def test_blocks_number_their_lines():
    data = "\n".join(LINES).encode()

    blocks = list(line_blocks(data, 5))

    assert len(blocks) > 1
    assert all(LINES[block.first - 1] == block.lines[0] for block in blocks)


def test_the_last_block_ends_the_file():
    blocks = list(line_blocks(b"1\n2\n3\n", 1))

    assert blocks[-1].lines == [""]
    assert blocks[-1].read == 1.0
