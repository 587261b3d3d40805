"""Calibration files: read back to the last bit, and refused by line and field."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge import load_robot
from simbridge.errors import InputFileError, OutputError
from simbridge.robot.calibration import nominal_dh
from simbridge.robot.calibration_file import read_calibration, write_calibration
from simbridge.robot.kinematics_source import with_kinematics
from simbridge.robot.parts import DhTable
from tests.properties import few_examples

pytestmark = pytest.mark.shares_setup

FILE = Path(__file__).parents[1] / "data" / "ur10e_calibration.toml"
SIX = st.tuples(*[st.floats(allow_nan=False, allow_infinity=False)] * 6)
WORDS = st.tuples(*[st.integers(0, 2**32 - 1)] * 6)


@pytest.fixture(scope="module")
def ur10e():
    return load_robot("ur10e")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("calibration")


@few_examples(20)
@given(SIX, SIX, SIX, SIX, WORDS)
def test_a_calibration_reads_back_to_the_last_bit(folder, theta, a, d, alpha, checksum) -> None:
    table = DhTable(theta, a, d, alpha)

    write_calibration(folder / "arm.toml", table, checksum)

    assert read_calibration(folder / "arm.toml") == (table, checksum)


def test_numbers_of_numpy_are_written_as_numbers(folder) -> None:
    table = DhTable(*(tuple(row) for row in np.arange(24.0).reshape(4, 6)))

    write_calibration(folder / "numpy.toml", table, np.arange(6, dtype=np.uint32))

    assert read_calibration(folder / "numpy.toml") == (table, (0, 1, 2, 3, 4, 5))


@pytest.mark.parametrize(
    ("old", "new", "line", "field", "words"),
    [
        ("alpha = ", "alfa = ", None, "alfa", "unknown field. Did you mean 'alpha'?"),
        ("checksum = [1, 2, 3, 4, 5, 6]", "", None, "checksum", "missing"),
        ("[1, 2, 3, 4, 5, 6]", "[1, 2, 3]", 7, "checksum", "6 values are needed"),
        ("[1, 2, 3, 4, 5, 6]", "[1, 2, 3, 4, 5, -1]", 7, "checksum[5]", "32-bit"),
        ("439.140974079901", "inf", 5, "d[1]", "finite"),
        ("439.140974079901", '"far"', 5, "d[1]", "number"),
        ("439.140974079901,", "", 5, "d", "6 values are needed"),
        ("d = [", "d = ", 5, None, "not TOML"),
    ],
)
def test_a_faulty_file_is_named_by_line_and_field(
    tmp_path, ur10e, old, new, line, field, words
) -> None:
    path = tmp_path / "arm.toml"
    path.write_text(FILE.read_text().replace(old, new))

    with pytest.raises(InputFileError) as caught:
        with_kinematics(ur10e, path)

    assert caught.value.path == path
    assert caught.value.field == field
    assert words in caught.value.reason
    assert line is None or caught.value.line == line


def test_a_failed_writing_is_an_error(tmp_path, ur10e) -> None:
    with pytest.raises(OutputError, match=r"arm\.toml"):
        write_calibration(tmp_path / "nowhere" / "arm.toml", nominal_dh(ur10e), (1,) * 6)
