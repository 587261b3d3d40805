"""Files are read within limits: regular ones, of a bounded size, as text or YAML."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from simbridge.errors import InputFileError
from simbridge.files.reading import open_file, read_bytes, read_text, read_yaml


def test_a_device_is_not_opened():
    with pytest.raises(InputFileError, match="a device, FIFO or socket"):
        open_file(Path("/dev/zero"))


def test_a_fifo_is_not_opened(tmp_path):
    os.mkfifo(tmp_path / "fifo")

    with pytest.raises(InputFileError, match="a device, FIFO or socket"):
        open_file(tmp_path / "fifo")


def test_a_socket_is_not_opened(tmp_path):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))

    with pytest.raises(InputFileError, match="a device, FIFO or socket"):
        open_file(tmp_path / "socket")


def test_a_file_of_the_largest_size_is_read(tmp_path):
    (tmp_path / "long").write_bytes(bytes(11))

    assert read_bytes(tmp_path / "long", 11) == bytes(11)


def test_a_larger_file_is_refused(tmp_path):
    (tmp_path / "long").write_bytes(bytes(11))

    with pytest.raises(InputFileError, match="larger than"):
        read_bytes(tmp_path / "long", 10)


def test_a_file_that_hides_its_size_is_refused():
    with pytest.raises(InputFileError, match="larger than"):
        read_bytes("/proc/self/status", 10)


def test_a_binary_file_is_refused_by_its_line(tmp_path):
    (tmp_path / "text").write_bytes(b"one\ntwo\0")

    with pytest.raises(InputFileError, match="binary file") as refusal:
        read_text(tmp_path / "text")

    assert refusal.value.line == 2


def test_an_anchor_in_yaml_is_refused_by_its_line(tmp_path):
    (tmp_path / "a.yaml").write_text("a: 1\nb: &b {k: 1}\n")

    with pytest.raises(InputFileError, match="anchors") as refusal:
        read_yaml(tmp_path / "a.yaml")

    assert refusal.value.line == 2
