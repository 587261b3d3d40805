"""Samples of a log as they stand in its chunks: one after the other, each the same bytes but for its numbers.

So many samples are one numpy array: they are written and read without a look at any single message.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
from mcap.opcode import Opcode
from numpy.typing import NDArray

from simbridge.recording.cdr import Layout

# An MCAP message before its data: opcode, length, channel; sequence number, log time, publish time.
_BEGIN = struct.Struct("<BQH")
_TIMES = struct.Struct("<IQQ")
_HEAD = _BEGIN.size + _TIMES.size
# Each message says its time four times: twice in its head, and as seconds and nanoseconds in its data.
_HEAD_TIMES = {"log": _BEGIN.size + 4, "publish": _BEGIN.size + 12}


class WholeSamples:
    """The bytes of one sample: a message on each channel, in one order.

    Args:
        layouts: The messages, in that order, each with its channel's number.

    Attributes:
        size: Bytes of a sample.
        places: Where each channel's message begins in a sample, in bytes.
    """

    def __init__(self, layouts: Mapping[int, Layout]) -> None:
        self.size = 0
        self.places: dict[int, int] = {}
        template, fixed = [], []
        numbers: dict[str, tuple[Any, int]] = {}
        times: dict[str, tuple[Any, int]] = {}
        for channel, layout in layouts.items():
            self.places[channel] = self.size
            head = _BEGIN.pack(Opcode.MESSAGE, _HEAD - 9 + layout.size, channel) + bytes(_TIMES.size)
            message, unchanging = layout.template
            template += [np.frombuffer(head, np.uint8), message]
            fixed += [np.arange(_HEAD) < _BEGIN.size, unchanging]
            for name, offset in _HEAD_TIMES.items():
                times[f"{name} {channel}"] = ("<u8", self.size + offset)
            for name, (kind, offset) in layout.columns.items():
                place = (kind, self.size + _HEAD + offset)
                if name in {"sec", "nanosec"}:
                    times[f"{name} {channel}"] = place
                else:
                    numbers[name] = place
            self.size += _HEAD + layout.size
        self._mask = np.where(np.concatenate(fixed), 0xFF, 0).astype(np.uint8)
        self._template = np.concatenate(template) & self._mask
        self._numbers, self._times = self._record(numbers), self._record(times)

    def _record(self, fields: Mapping[str, tuple[Any, int]]) -> np.dtype[Any]:
        kinds, offsets = zip(*fields.values(), strict=True)
        return np.dtype({"names": list(fields), "formats": kinds, "offsets": offsets, "itemsize": self.size})

    def blank(self, count: int) -> tuple[NDArray[np.uint8], dict[str, NDArray[Any]]]:
        """Bytes (count, size) of samples without their numbers, and views of the numbers, by name, to be filled in."""
        content = np.tile(self._template, (count, 1))
        rows = content.view(self._numbers)[:, 0]
        return content, {name: rows[name] for name in self._numbers.names or ()}

    def set_times(self, content: NDArray[np.uint8], times: NDArray[np.uint64]) -> None:
        """Write the times (T,), ns, into the bytes of T samples."""
        seconds, rest = np.divmod(times, np.uint64(10**9))
        values = {"log": times, "publish": times, "sec": seconds, "nanosec": rest}
        rows = content.view(self._times)[:, 0]
        for name in self._times.names or ():
            rows[name] = values[name.split()[0]]

    def decode(self, content: bytes) -> dict[str, NDArray[Any]] | None:
        """The numbers of the samples (T,) or (T, n) by name; None for anything but whole samples."""
        if len(content) % self.size:
            return None
        found = np.frombuffer(content, np.uint8).reshape(-1, self.size)
        if ((found & self._mask) != self._template).any():
            return None
        rows = np.frombuffer(content, self._numbers)
        return {name: np.ascontiguousarray(rows[name]) for name in self._numbers.names or ()}
