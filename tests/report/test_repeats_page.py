"""The page of repeated runs: its headline, and the source of each ISO 9283-style figure."""

from __future__ import annotations

import pytest

from simbridge.report.repeats_page import missing_figures, repeats_page
from tests.report.pages import Page
from tests.report.repeats import NO_TIMES, iso_view, one_run, summary_of

NO_VELOCITIES = "No AV, RV or FV."
NO_STOP = "No figures of stop 1."
STOPPED = "GuardStop: too far"


def page_of(*runs, external=None):
    """Return the page of these runs."""
    return Page(repeats_page(summary_of(*runs), external))


def test_reason_of_one_source_names_it():
    reported = iso_view("self-reported", NO_VELOCITIES, NO_TIMES)
    external = iso_view("external", NO_STOP, NO_VELOCITIES)

    reasons = missing_figures([reported, external])

    assert reasons == [NO_VELOCITIES, f"Self-reported: {NO_TIMES}", f"External: {NO_STOP}"]


@pytest.mark.parametrize("witness", ["self-reported", "external"])
def test_reason_of_the_only_source_names_none(witness):
    assert missing_figures([iso_view(witness, NO_TIMES)]) == [NO_TIMES]


def test_both_sources_are_explained():
    external = {"iso_9283_style": iso_view("external", NO_STOP)}

    text = page_of(one_run(1, 1e-4), external=external).text("iso")

    assert "Self-reported: these positions" in text
    assert "External: from an external recording" in text
    assert f"Self-reported: {NO_TIMES}" in text
    assert f"External: {NO_STOP}" in text


def test_headline_is_of_completed_runs():
    page = page_of(one_run(1, 1e-4), one_run(2, 3e-4), one_run(3, 6.86e-3, STOPPED))

    size = "0.20 ± 0.14 mm RMS tracking error on line (mean and standard deviation of 2 runs)"
    assert page.text("headline") == f"Predicted for a UR10 with an ideal servo: {size}."
    assert "2 of 3 runs completed." in page.text("verdict")


def test_equal_runs_have_no_deviation():
    headline = page_of(one_run(1, 1e-4), one_run(2, 1e-4)).text("headline")

    assert headline.endswith(": 0.100 mm RMS tracking error on line (mean of 2 runs).")


def test_negligible_error_is_a_bound():
    headline = page_of(one_run(1, 2e-6), one_run(2, 3e-6)).text("headline")

    assert headline.endswith(": tracking error below 0.01 mm on line (mean of 2 runs).")


def test_no_completed_run_has_no_error():
    page = page_of(one_run(1, 6.86e-3, STOPPED))

    assert page.text("headline") == "No run of line completed."
    assert "0 of 3 runs completed." in page.text("verdict")
    # What was recorded stays in the table.
    assert "6.86" in page.text("runs")


def test_run_without_a_sample_has_no_link():
    page = page_of(one_run(1, 1e-4), one_run(2, None, "ApproachRefused: too far"))

    assert page.links == ["01/report.html"]
    assert "02 – – – – – ApproachRefused: too far" in page.text("runs")
