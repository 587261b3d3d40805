"""Compressed files are decompressed within a limit."""

from __future__ import annotations

import bz2

import lz4.frame
import pytest
import zstandard

from simbridge.errors import InputFileError
from simbridge.files.decompression import FREE_BYTES, MAX_EXPANSION, Expander, expansion

TEXT = b"text " * 1000


@pytest.fixture
def expander(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(bytes(100))
    return Expander(file)


def test_the_limit_grows_with_the_file():
    assert expansion(100) == 100 * MAX_EXPANSION + FREE_BYTES


def test_zstd_is_decompressed(expander):
    assert expander.zstd(zstandard.compress(TEXT)) == TEXT


def test_lz4_is_decompressed(expander):
    assert expander.lz4(lz4.frame.compress(TEXT)) == TEXT


def test_bzip2_is_decompressed(expander):
    assert expander.bz2(bz2.compress(TEXT)) == TEXT


def test_more_than_the_limit_is_refused(expander):
    limit = expansion(100)
    expander.spend(bytes(limit))

    with pytest.raises(InputFileError, match="a decompression bomb"):
        expander.spend(b"x")
