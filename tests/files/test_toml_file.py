"""TOML files are decoded into typed tables, and refused by field and line."""

from __future__ import annotations

import msgspec
import pytest

from simbridge.errors import InputFileError
from simbridge.files.toml_file import TomlFile, find_repeated


class Link(msgspec.Struct):
    mass: float


class Arm(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    lengths: list[float] = []
    links: list[Link] = []


def refuse(tmp_path, text):
    """Return the error of a file that does not fit."""
    (tmp_path / "arm.toml").write_text(text)
    with pytest.raises(InputFileError) as refusal:
        TomlFile(tmp_path / "arm.toml").decode(Arm)
    return refusal.value


def test_a_document_becomes_a_table(tmp_path):
    (tmp_path / "arm.toml").write_text('name = "arm"\nlengths = [0.3, 0.2]\n')

    assert TomlFile(tmp_path / "arm.toml").decode(Arm) == Arm("arm", [0.3, 0.2])


def test_a_missing_field_is_named(tmp_path):
    error = refuse(tmp_path, "lengths = [0.3]\n")

    assert error.field == "name"
    assert error.reason == "the field is missing"


def test_an_unknown_field_is_named_by_its_line(tmp_path):
    error = refuse(tmp_path, 'name = "arm"\nlenghts = [0.3]\n')

    assert error.field == "lenghts"
    assert error.line == 2
    assert "Did you mean 'lengths'?" in error.reason


def test_a_wrong_type_is_named_in_words(tmp_path):
    error = refuse(tmp_path, 'name = "arm"\nlengths = "long"\n')

    assert error.field == "lengths"
    assert error.reason == "expected a list, got text"


@pytest.mark.parametrize(
    ("header", "line"),
    [("[[links]]", 7), ("  [[ links ]]", 7), ("[['links']]", 7), (r'[["lin\u006bs"]]', None)],
)
def test_a_field_is_found_in_its_table(tmp_path, header, line):
    text = f"name = 'arm'\n[[links]]\nmass = 1\n{header}\nmass = 1\n{header}\nmass = 'heavy'\n"

    error = refuse(tmp_path, text)

    assert error.field == "links[2].mass"
    assert error.line == line


def test_no_line_is_named_after_an_escaped_header(tmp_path):
    plain = "[[links]]\nmass = 1\n[[links]]\nmass = 'heavy'\n[[links]]\nmass = 1\n"

    error = refuse(tmp_path, "name = 'arm'\n" + r'[["lin\u006bs"]]' + "\nmass = 1\n" + plain)

    assert error.field == "links[2].mass"
    assert error.line is None


def test_what_is_no_toml_is_named_by_its_line(tmp_path):
    error = refuse(tmp_path, 'name = "arm"\nlengths = [\n')

    assert error.line == 2
    assert error.reason.startswith("this is not TOML")


def test_deep_nesting_is_refused(tmp_path):
    error = refuse(tmp_path, "name = " + "[" * 33)

    assert "tables or lists are nested more than 32 deep" in error.reason


def test_the_first_repeated_name_is_found():
    assert find_repeated(["a", "b", "a", "b"]) == 2
    assert find_repeated(["a", "b"]) is None
