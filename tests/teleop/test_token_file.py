"""The token file of `teleop network`: what is read, what is refused, and what is warned of."""

from __future__ import annotations

import os
import warnings

import pytest

from simbridge.errors import InputFileError
from simbridge.teleop.options import TeleopOptions
from simbridge.teleop.token_file import MAX_TOKEN_FILE_BYTES, read_token


@pytest.fixture
def token_file(tmp_path):
    """Write a token file that only its owner can read; returns its path."""

    def write(content, mode=0o600):
        path = tmp_path / "token"
        path.write_bytes(content)
        path.chmod(mode)
        return str(path)

    return write


def test_white_space_around_the_token_is_left_out(token_file):
    assert read_token(token_file(b" not-for-others\n")) == "not-for-others"


def test_the_token_is_shown_nowhere(token_file):
    options = TeleopOptions(token=read_token(token_file(b"not-for-others")), listen="0.0.0.0")

    assert "not-for-others" not in repr(options)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b" \n\t\n",
        b"\xef\xbb\xbf",
        b"one-token\nanother-token\n",
        b"token\xff\xfe",
        b"a\0b",
        b"x" * (MAX_TOKEN_FILE_BYTES + 1),
    ],
    ids=["empty", "blank", "byte order mark", "two lines", "latin-1", "binary", "too large"],
)
def test_a_file_without_one_token_is_refused(token_file, content):
    with pytest.raises(InputFileError):
        read_token(token_file(content))


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", ".", "missing"])
def test_what_is_no_regular_file_is_refused(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    with pytest.raises(InputFileError):
        read_token(path)


def test_a_fifo_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "fifo")

    with pytest.raises(InputFileError):
        read_token(str(tmp_path / "fifo"))


@pytest.mark.parametrize("mode", [0o644, 0o604, 0o602])
def test_a_file_open_to_others_is_warned_of(token_file, mode):
    with pytest.warns(UserWarning, match="chmod 600"):
        read_token(token_file(b"not-for-others", mode))


def test_a_file_of_its_owner_is_read_without_a_word(token_file):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_token(token_file(b"not-for-others", 0o600))


def test_an_empty_token_file_ends_the_command(cli, token_file):
    answer = cli("teleop", "network", "--token-file", token_file(b""))

    assert answer.status == 2
    assert "it is empty" in answer.message
