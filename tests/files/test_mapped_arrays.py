"""Arrays that are in memory where no file can hold them."""

from __future__ import annotations

import errno
import tempfile

import numpy as np
import pytest

from simbridge.files import mapped_arrays
from simbridge.files.mapped_arrays import MappedArrays

BLOCKS = [{"a": np.array([1.0, 2.0])}, {"a": np.array([3.0])}]


def test_blocks_become_one_read_only_array(monkeypatch):
    monkeypatch.setattr(mapped_arrays, "MIN_MAPPED_BYTES", 8)

    arrays = MappedArrays().gather(3, BLOCKS)

    assert arrays["a"].tolist() == [1.0, 2.0, 3.0]
    assert not arrays["a"].flags.writeable


@pytest.mark.parametrize(
    "fault", [FileNotFoundError(errno.ENOENT, "no directory"), OSError(errno.EMFILE, "too many")]
)
def test_without_a_file_they_are_in_memory(fault, monkeypatch):
    def refuse(*_, **__):
        raise fault

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    monkeypatch.setattr(mapped_arrays, "MIN_MAPPED_BYTES", 8)

    arrays = MappedArrays().gather(3, BLOCKS)

    assert arrays["a"].tolist() == [1.0, 2.0, 3.0]
    assert not arrays["a"].flags.writeable
