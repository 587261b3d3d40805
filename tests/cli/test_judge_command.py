"""`simbridge judge` at the command line: several logs, columns, refusals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

RECORDING = Path(__file__).parents[1] / "data" / "ur3e_moves" / "moves.csv.gz"


@pytest.fixture
def headless(tmp_path):
    """A recording without a header: time, six positions, six velocities."""
    path = tmp_path / "excitation.csv"
    times = 0.01 * np.arange(50)
    q = np.sin(times)[:, None] * np.ones(6)
    np.savetxt(path, np.column_stack([times, q, np.gradient(q, 0.01, axis=0)]), delimiter=",")
    return path


def test_the_first_line_names_the_log(cli):
    answer = cli("judge", RECORDING)

    assert answer.status == 0
    assert answer.out.startswith(f"{RECORDING}: A UR3e ")


def test_a_log_that_fails_does_not_keep_the_others_back(cli, tmp_path):
    empty = tmp_path / "empty.csv"
    empty.touch()

    answer = cli("judge", tmp_path / "missing.csv", empty, RECORDING)

    assert answer.status == 2
    assert "missing.csv: file not found" in answer.err
    assert "empty.csv: it is empty" in answer.err
    assert str(RECORDING) in answer.out


def test_columns_name_those_of_a_file_without_a_header(cli, headless):
    answer = cli("judge", headless, "--columns", "t,q,qd")

    assert answer.status == 0
    assert "made 1 motion" in answer.out


def test_a_wrong_number_of_columns_is_refused(cli, headless):
    answer = cli("judge", headless, "--columns", "t,q")

    assert answer.status == 2
    assert "--columns names 7 columns, but it has 13" in answer.err


def test_a_directory_without_a_run_is_refused(cli, tmp_path):
    answer = cli("judge", tmp_path)

    assert answer.status == 2
    assert "not a run directory" in answer.err
