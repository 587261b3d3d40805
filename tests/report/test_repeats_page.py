"""The page of repeated runs: its headline, and the source of each ISO 9283-style figure."""

from __future__ import annotations

from typing import Any

import pytest

from simbridge.report.repeats_page import missing_figures, repeats_page
from tests.report.conftest import Page

BOTH, OWN, OUTSIDE = "No AV, RV or FV.", "No AT or RT.", "No figures of stop 1."


def view(witness: str, *missing: str) -> dict[str, Any]:
    return {
        "witness": witness,
        "figures": [],
        "stops_m": [],
        "limit_band_m": None,
        "missing": list(missing),
    }


def one_run(number: int, rms: float | None, outcome: str = "completed") -> dict[str, Any]:
    error = (
        None
        if rms is None
        else {"position_m": {"rms": rms, "max": 2 * rms}, "rotation_rad": {"rms": 0.0}}
    )
    contour = None if rms is None else {"position_m": {"rms": rms}}
    return {
        "run": f"{number:02}",
        "outcome": outcome,
        "tracking_error": error,
        "contour_error": contour,
        "delay_s": None,
    }


def summary_of(*runs: dict[str, Any]) -> dict[str, Any]:
    completed = [run for run in runs if run["outcome"] == "completed"]
    facts = {
        "scenario": "line",
        "robot": "ur10",
        "solver": "forward-dynamics",
        "backend": "pybullet",
        "passed": None,
    }
    facts |= {"label": "", "robot_title": "UR10", "servo": "an ideal servo", "feedforward": False}
    counts = {"outcome": runs[-1]["outcome"], "repeats": 3, "completed": len(completed)}
    return {**facts, **counts, "runs": list(runs), "iso_9283_style": view("self-reported", OWN)}


def page(*runs: dict[str, Any], external: dict[str, Any] | None = None) -> Page:
    return Page(repeats_page(summary_of(*runs), external))


def test_a_reason_that_holds_for_one_source_names_it() -> None:
    found = missing_figures([view("self-reported", BOTH, OWN), view("external", OUTSIDE, BOTH)])
    assert found == [BOTH, f"Self-reported: {OWN}", f"External: {OUTSIDE}"]


@pytest.mark.parametrize("witness", ["self-reported", "external"])
def test_a_reason_of_the_only_source_names_none(witness: str) -> None:
    assert missing_figures([view(witness, OWN)]) == [OWN]


def test_both_sources_are_explained_and_their_reasons_are_on_the_page() -> None:
    shown = page(one_run(1, 1e-4), external={"iso_9283_style": view("external", OUTSIDE)}).text(
        "iso"
    )
    assert (
        "Self-reported: these positions" in shown
        and "External: from an external recording" in shown
    )
    assert f"Self-reported: {OWN}" in shown and f"External: {OUTSIDE}" in shown


def test_the_headline_has_mean_and_deviation_of_the_completed_runs_only() -> None:
    runs = (one_run(1, 1e-4), one_run(2, 3e-4), one_run(3, 6.86e-3, "GuardStop: too far"))
    size = "0.20 ± 0.14 mm RMS tracking error on line (mean and standard deviation of 2 runs)"
    assert page(*runs).text("headline") == f"Predicted for a UR10 with an ideal servo: {size}."
    assert "2 of 3 runs completed." in page(*runs).text("verdict")


def test_runs_that_are_equal_have_no_deviation() -> None:
    shown = page(one_run(1, 1e-4), one_run(2, 1e-4)).text("headline")
    assert shown.endswith(": 0.100 mm RMS tracking error on line (mean of 2 runs).")


def test_an_error_that_no_arm_keeps_is_not_given_as_a_number() -> None:
    shown = page(one_run(1, 2e-6), one_run(2, 3e-6)).text("headline")
    assert shown.endswith(": tracking error below 0.01 mm on line (mean of 2 runs).")


def test_without_a_completed_run_the_headline_gives_no_error() -> None:
    shown = page(one_run(1, 6.86e-3, "GuardStop: too far"))
    assert shown.text("headline") == "No run of line completed."
    assert "0 of 3 runs completed." in shown.text("verdict")
    # What was recorded stays in the table.
    assert "6.86" in shown.text("runs")


def test_a_run_without_a_sample_has_no_link() -> None:
    shown = page(one_run(1, 1e-4), one_run(2, None, "ApproachRefused: too far"))
    links = [attributes["href"] for tag, attributes in shown.elements if tag == "a"]
    assert links == ["01/report.html"]
    assert "02 – – – – – ApproachRefused: too far" in shown.text("runs")
