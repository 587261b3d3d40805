"""The part of a report that a live session has."""

from __future__ import annotations

import shutil

import pytest

from simbridge.evaluation.evaluation import Evaluation
from simbridge.recording.run_directory import RunDirectory
from simbridge.report import session, write_report
from simbridge.sessions.causes import KINDS
from tests.chromium import patient_context
from tests.report.pages import read_page


@pytest.fixture(scope="module")
def reported(live_run, tmp_path_factory):
    """The directory of a live session with all kinds of input, with its report."""
    out = shutil.copytree(live_run, tmp_path_factory.mktemp("reported") / "hand")
    directory = RunDirectory.open(out)
    write_report(Evaluation.of(directory), directory.summary())
    return out


@pytest.fixture(scope="module")
def page(reported):
    """The report of a live session with all kinds of input."""
    return read_page(reported)


def test_states_inputs_and_latency_are_said(page):
    verdict = page.text("verdict")
    part = page.text("session")

    assert "mm) on live inputs" in verdict
    assert "3 rejected, 8 superseded." in verdict
    assert "input to command 2.00 ms (p99 2.00 ms)" in verdict
    assert "Time in each state: tracking" in part
    assert "Rejected inputs: max_jump (1), malformed (1), not_engaged (1)." in part


def test_each_cause_has_a_row(page):
    part = page.text("session")

    for cause in ("stale", "halted", "joint_velocity wrist_3", "max_jump"):
        assert cause in part
    assert "velocity of the joint as a fraction of its limit" in part


@pytest.mark.slow
def test_time_line_has_two_widths(page):
    labels = [attributes["aria-label"] for tag, attributes in page.elements if tag == "svg"]

    time_line = "States of the session, its inputs, and what hindered it, over time: "
    speed = "Speed factor and fraction of the requested step executed, over time. "
    assert sum(label.startswith(time_line) for label in labels) == 2
    assert any(label.startswith(speed) for label in labels)


def test_events_and_notes_are_listed(page):
    part = page.text("session")

    braked = "tracking → braking: stale 0.20 s" in part
    held = "tracking → holding: stale 0.20 s" in part
    assert braked or held
    assert "button: number 2" in part


def test_command_replays_the_session(page, reported):
    assert f"simbridge run {reported} --plan {reported}" in page.text("settings")


def test_never_engaged_session_shows_inputs(never_engaged):
    page = read_page(never_engaged)

    assert "The session was never engaged: nothing moved." in page.text("session")
    assert "1 input: 0 accepted, 1 rejected, 0 superseded." in page.text("verdict")
    assert not page.has("budget")


@pytest.mark.slow
def test_killed_session_says_so(cli, killed_session, tmp_path, without_drawings):
    copy = shutil.copytree(killed_session, tmp_path / "killed")

    answer = cli("report", copy)

    page = read_page(copy)
    verdict = page.text("verdict")
    assert answer.status == 2
    assert "The run did not complete: the log was not closed" in verdict
    assert "planned" not in verdict
    assert "Time in each state: " in page.text("session")


def test_every_cause_has_a_meaning():
    assert set(session.MEANINGS) == set(KINDS)


def test_run_has_no_session_part(line_run):
    assert not read_page(line_run).has("session")


@pytest.mark.slow
@pytest.mark.parametrize("width", [1366, 390])
def test_page_fits_laptop_and_phone(browser, reported, width):
    context = patient_context(browser, viewport={"width": width, "height": 800})
    errors = []
    page = context.new_page()
    page.on(
        "console", lambda message: errors.append(message.text) if message.type == "error" else None
    )

    page.goto((reported / "report.html").as_uri())

    visible_drawings = page.locator("#session svg >> visible=true")
    visible_drawings.nth(1).wait_for()
    drawings = visible_drawings.all()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert len(drawings) == 2
    for drawing in drawings:
        assert drawing.bounding_box()["width"] > 250
    assert errors == []
    context.close()
