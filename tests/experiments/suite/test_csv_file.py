"""results.csv: a stranger's reader has all figures of results.json by name."""

from __future__ import annotations

import csv

import pytest

from simbridge.experiments.suite.csv_file import TABLE, write_csv
from simbridge.experiments.suite.results import CallFault
from tests.experiments.suite.made_up_results import OWN, make_results, motion_result

COLUMNS = """
schema_version velocity_limits motion solver steps steps_done too_slow faults
error_rms_m error_max_m error_rms_rad error_max_rad
reference_error_rms_m reference_error_max_m reference_error_rms_rad reference_error_max_rad
lag_s shares_speed shares_acceleration shares_acceleration_rms shares_jerk
beyond_limits_rad flips chatter drift_rad
times_median_s times_p99_s times_ratio times_calls times_passes
pose_set poses solved solved_at_once median_calls median_time_s p99_time_s
median_error_m median_error_rad
""".split()


@pytest.fixture
def rows(tmp_path):
    """The rows of a table with a fault in the first motion, by column."""
    results = make_results()
    faults = [
        CallFault(kind="ValueError", count=3, first_call=7, message="no solution"),
        CallFault(kind="not a number", count=1, first_call=9, message="NaN"),
    ]
    results.motion_results[0] = motion_result("square", OWN, 0.004, faults=faults)
    write_csv(tmp_path, results)
    with (tmp_path / TABLE).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_columns_have_the_names_of_the_figures(rows):
    assert list(rows[0]) == COLUMNS


def test_a_motion_is_a_row(rows):
    motion = {name: text for name, text in rows[0].items() if text}

    assert motion == {
        "schema_version": "1",
        "velocity_limits": "none",
        "motion": "square",
        "solver": OWN,
        "steps": "100",
        "steps_done": "100",
        "too_slow": "False",
        "faults": "3 × ValueError; 1 × not a number",
        "error_rms_m": "0.004",
        "error_max_m": "0.008",
        "error_rms_rad": "0.0",
        "error_max_rad": "0.0",
        "lag_s": "0.0",
        "shares_speed": "0.5",
        "shares_acceleration": "0.2",
        "shares_acceleration_rms": "0.1",
        "shares_jerk": "0.3",
        "beyond_limits_rad": "0.0",
        "flips": "0",
        "times_median_s": "1e-05",
        "times_p99_s": "2e-05",
        "times_ratio": "1.0",
        "times_calls": "300",
        "times_passes": "3",
    }


def test_a_set_of_poses_is_a_row(rows):
    poses = {name: text for name, text in rows[-1].items() if text}

    assert poses == {
        "schema_version": "1",
        "velocity_limits": "enforced",
        "pose_set": "random_poses",
        "solver": "pink",
        "poses": "10",
        "solved": "0.9",
        "solved_at_once": "0.9",
        "median_calls": "5.0",
        "median_time_s": "0.0001",
        "p99_time_s": "0.001",
        "median_error_m": "1e-09",
        "median_error_rad": "1e-09",
    }
