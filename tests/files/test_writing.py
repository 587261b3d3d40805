"""Files appear whole or not at all, whatever ends their writing."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from simbridge.errors import OutputError
from simbridge.files.writing import open_to_append, replacing, write_file
from tests.disk import contents, largest_file


def test_a_refusal_counts_the_missing_bytes(tmp_path):
    file = tmp_path / "file"

    with largest_file(1000), pytest.raises(OutputError) as refusal:
        write_file(file, b"x" * 2500)

    assert refusal.value.missing == 1500
    assert refusal.value.errno == errno.EFBIG
    assert str(refusal.value) == (
        f"{file} cannot be written: File too large; 1500 of its 2500 bytes were not written."
    )


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
@pytest.mark.parametrize("earlier", ["file", "directory", "nothing"])
def test_an_interrupted_writing_changes_nothing(tmp_path, error, earlier):
    target = tmp_path / "out"
    if earlier == "directory":
        target.mkdir()
        (target / "old").write_text("old")
    elif earlier == "file":
        target.write_text("old")
    before = contents(tmp_path)

    with pytest.raises(error), replacing(target) as new:
        if earlier == "directory":
            new.mkdir()
            (new / "part").write_text("half of")
        else:
            new.write_text("half of")
        raise error

    assert contents(tmp_path) == before
    assert list(tmp_path.iterdir()) == ([] if earlier == "nothing" else [target])


def test_ctrl_c_outlasts_a_failing_cleanup(tmp_path, monkeypatch):
    close = os.close

    def close_interrupted(descriptor):
        close(descriptor)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), replacing(tmp_path / "a.csv") as new:
        new.write_text("new")
        monkeypatch.setattr(os, "close", close_interrupted)


def test_ctrl_c_leaves_no_temporary_directory(tmp_path, monkeypatch):
    rmdir = os.rmdir
    calls = []

    def rmdir_interrupted_once(*arguments, **options):
        calls.append(arguments)
        if len(calls) == 1:
            raise KeyboardInterrupt
        rmdir(*arguments, **options)

    monkeypatch.setattr(os, "rmdir", rmdir_interrupted_once)

    with pytest.raises(KeyboardInterrupt):
        write_file(tmp_path / "a.csv", b"new")

    assert contents(tmp_path) == {"a.csv": b"new"}
    assert list(tmp_path.iterdir()) == [tmp_path / "a.csv"]


def test_a_failure_after_ctrl_c_is_reported(tmp_path):
    with pytest.raises(OutputError, match="No such file or directory"):
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            write_file(tmp_path / "gone" / "a.csv", b"new")


def test_an_interrupted_exchange_of_directories_is_undone(tmp_path, monkeypatch):
    target = tmp_path / "bag"
    target.mkdir()
    (target / "old").write_text("old")
    replace = os.replace
    calls = []

    def replace_interrupted_second_time(*paths):
        calls.append(paths)
        if len(calls) == 2:
            raise KeyboardInterrupt
        replace(*paths)

    monkeypatch.setattr(os, "replace", replace_interrupted_second_time)

    with pytest.raises(KeyboardInterrupt), replacing(target) as new:
        new.mkdir()

    remaining = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")]

    assert remaining == ["bag", "bag/old"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_a_failed_exchange_leaves_no_empty_file(tmp_path, monkeypatch, error):
    def replace_failing(*paths):
        raise error

    monkeypatch.setattr(os, "replace", replace_failing)

    with pytest.raises((KeyboardInterrupt, OutputError)):
        write_file(tmp_path / "a.csv", b"new", overwrite=False)

    assert contents(tmp_path) == {}


def test_an_interrupt_after_the_exchange_keeps_the_file(tmp_path, monkeypatch):
    replace = os.replace

    def replace_late(*paths):
        replace(*paths)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", replace_late)

    with pytest.raises(KeyboardInterrupt):
        write_file(tmp_path / "a.csv", b"new", overwrite=False)

    assert contents(tmp_path) == {"a.csv": b"new"}


def test_a_file_is_stored_before_it_is_named(tmp_path, monkeypatch):
    events = []
    fsync = os.fsync
    replace = os.replace

    def record_fsync(descriptor):
        is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        events.append("folder" if is_folder else "file")
        fsync(descriptor)

    def record_replace(*paths):
        events.append("named")
        replace(*paths)

    monkeypatch.setattr(os, "fsync", record_fsync)
    monkeypatch.setattr(os, "replace", record_replace)

    write_file(tmp_path / "file", b"text")

    assert events == ["file", "named", "folder"]


def test_a_link_of_the_user_is_followed(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "link.txt"
    link.symlink_to(tmp_path / "elsewhere" / "file.txt")

    write_file(link, b"text")

    assert link.is_symlink()
    assert (tmp_path / "elsewhere" / "file.txt").read_text() == "text"


def test_a_chosen_name_follows_no_link(tmp_path):
    notes = tmp_path / "notes"
    notes.write_text("notes")
    link = tmp_path / "summary.json"
    link.symlink_to(notes)

    write_file(link, b"text", follow_links=False)

    assert not link.is_symlink()
    assert link.read_text() == "text"
    assert notes.read_text() == "notes"


def test_appending_follows_no_link(tmp_path):
    (tmp_path / "rows.csv").symlink_to(tmp_path / "notes")

    with pytest.raises(OutputError, match="symbolic links"):
        open_to_append(tmp_path / "rows.csv")


def test_a_device_is_written_directly():
    write_file("/dev/null", b"text")

    assert Path("/dev/null").is_char_device()


def test_a_full_device_is_an_error():
    with pytest.raises(OutputError, match="No space left on device; 4 of its 4 bytes") as refusal:
        write_file("/dev/full", b"text")

    assert refusal.value.path == Path("/dev/full")


def test_a_pipe_is_written_directly():
    reading, writing = os.pipe()

    write_file(f"/dev/fd/{writing}", b"text")

    assert os.read(reading, 10) == b"text"

    os.close(reading)
    os.close(writing)


def test_a_file_has_the_usual_permissions(tmp_path):
    (tmp_path / "plain").touch()

    write_file(tmp_path / "written", b"text")

    assert (tmp_path / "written").stat().st_mode == (tmp_path / "plain").stat().st_mode
