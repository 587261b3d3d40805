"""Cuts the bytes of a large text file into blocks of lines, so that few of them are in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from simbridge.trajectory.tables.text_lines import lines_of

# Bytes of a block at least: some ten thousand rows of a recording.
BLOCK_BYTES = 4 << 20
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class LineBlock(NamedTuple):
    """Successive lines of a file.

    Attributes:
        first: Number of the first line, counted from 1.
        lines: The lines, without line ends. The last line of the last block is what follows the
            file's last line end: "" in a file that ends with one.
        read: Fraction of the file up to the end of the block, 0 to 1.
    """

    first: int
    lines: list[str]
    read: float


def line_blocks(data: bytes, size: int | None = None) -> Iterator[LineBlock]:
    """Decode the lines of a text in UTF-8, block by block.

    Args:
        data: The text; a byte order mark at its beginning is skipped.
        size: Smallest size of all blocks but the last, bytes; None for BLOCK_BYTES.
    """
    block_size = size or BLOCK_BYTES
    begin = len(BYTE_ORDER_MARK) if data.startswith(BYTE_ORDER_MARK) else 0
    first = 1
    while True:
        # A block ends behind a line feed, which is the end of a line whatever ends the others.
        line_feed = data.find(b"\n", begin + block_size)
        if line_feed < 0:
            yield LineBlock(first, lines_of(data[begin:].decode("utf-8", "replace")), 1.0)
            return

        end = line_feed + 1
        lines = lines_of(data[begin:end].decode("utf-8", "replace"))[:-1]
        yield LineBlock(first, lines, end / len(data))
        first += len(lines)
        begin = end
