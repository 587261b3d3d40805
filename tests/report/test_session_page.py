"""The part of a report that a live session has."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from simbridge.cli.command_line import main
from simbridge.report import session
from simbridge.sessions.causes import NAMES
from tests.report.conftest import Page


def page(directory: Path) -> Page:
    return Page((directory / "report.html").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def shown(live_run: Path) -> Page:
    return page(live_run)


def test_states_inputs_and_latency_are_in_words(shown: Page) -> None:
    verdict, part = shown.text("verdict"), shown.text("session")
    assert "mm) on live inputs" in verdict
    assert (
        "3 rejected, 8 superseded." in verdict
        and "input to command 2.00 ms (p99 2.00 ms)" in verdict
    )
    assert "Its states: tracking" in part
    assert "Rejected inputs: max_jump (1), malformed (1), not_engaged (1)." in part


def test_each_cause_has_a_row_with_its_number(shown: Page) -> None:
    part = shown.text("session")
    for cause in ("stale", "halted", "joint_velocity wrist_3", "max_jump"):
        assert cause in part
    assert "share of the joint's limit" in part


def test_the_time_line_is_drawn_for_wide_and_narrow_screens(shown: Page) -> None:
    labels = [attributes.get("aria-label") for tag, attributes in shown.elements if tag == "svg"]
    label = "States of the session, its inputs, and what hindered it, over time: "
    assert sum(text.startswith(label) for text in labels) == 2
    assert any(
        label.startswith("Speed factor and share of the wanted step over time. ")
        for label in labels
    )


def test_events_and_notes_are_listed(shown: Page) -> None:
    part = shown.text("session")
    assert "tracking → braking: stale 0.20 s" in part or "tracking → holding: stale 0.20 s" in part
    assert "button: number 2" in part


def test_the_page_says_how_to_replay_the_session(shown: Page, live_run: Path) -> None:
    assert f"simbridge run {live_run} --plan {live_run}" in shown.text("settings")


def test_of_a_session_that_was_never_engaged_the_page_shows_the_inputs(never_engaged: Path) -> None:
    found = page(never_engaged)
    assert "It was never engaged: nothing moved." in found.text("session")
    assert "1 input: 0 accepted, 1 rejected, 0 superseded." in found.text("verdict")
    assert not found.has("budget")


def test_the_page_of_a_killed_session_says_so(killed_session: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(killed_session, tmp_path / "killed")
    assert main(["report", str(copy)]) == 2
    found = page(copy)
    assert "The run did not complete: the log was not closed" in found.text("verdict")
    assert "planned" not in found.text("verdict")
    assert "Its states: " in found.text("session")


def test_every_cause_has_a_meaning() -> None:
    assert set(session.MEANINGS) == set(NAMES)


def test_a_replay_has_no_such_part(line_run: Path) -> None:
    assert not page(line_run).has("session")


@pytest.mark.parametrize("width", [1366, 390])
def test_the_page_fits_a_laptop_and_a_phone(browser: Any, live_run: Path, width: int) -> None:
    context = browser.new_context(viewport={"width": width, "height": 800})
    opened, errors = context.new_page(), []
    opened.on(
        "console", lambda message: errors.append(message.text) if message.type == "error" else None
    )
    opened.goto((live_run / "report.html").as_uri())
    assert opened.evaluate("document.documentElement.scrollWidth") <= width
    drawings = [one for one in opened.locator("#session svg").all() if one.is_visible()]
    assert len(drawings) == 2 and all(one.bounding_box()["width"] > 250 for one in drawings)
    assert errors == []
    context.close()
