"""The pages in a browser, opened from disk."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from simbridge.cli.command_line import main
from simbridge.evaluation.evaluation import Evaluation
from simbridge.evaluation.summary import summarize
from simbridge.recording.run_directory import RunDirectory
from simbridge.report import write_report
from simbridge.report.replay import replay_page

pytestmark = pytest.mark.shares_setup

LAPTOP = {"width": 1366, "height": 768}
LOOP = {
    "period_mean_s": 0.008,
    "period_std_s": 1.2e-4,
    "period_p999_s": 8.9e-3,
    "period_max_s": 9.1e-3,
    "missed_deadlines": 3,
    "missed_states": 1,
    "state_age_mean_s": 4e-4,
}


@pytest.fixture(scope="module")
def pages(
    line_run: Path, square_run: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """The pages of a short run, as the commands write them; the report of one that a controller timed and that missed
    its tolerance; and the replay of a longer run, whose motion even a slow machine shows in many frames."""
    directory = tmp_path_factory.mktemp("pages")
    run, other, timed = (
        shutil.copytree(line_run, directory / name) for name in ("run", "other", "timed")
    )
    with (timed / "settings.toml").open("a") as settings:
        settings.write("\n[tolerance]\nposition_m = 1e-7\nrotation_rad = 0.1\n")
    assert main(["report", str(run)]) == 0
    evaluation = Evaluation.of(RunDirectory.open(timed))
    write_report(
        evaluation,
        summarize(evaluation, "completed", loop=LOOP, tolerance=evaluation.settings.tolerance),
    )
    square = Evaluation.of(RunDirectory.open(square_run))
    (directory / "replay.html").write_text(replay_page(square, "square"), encoding="utf-8")
    assert main(["compare", str(run), str(other), "--out", str(directory)]) == 0
    return {
        "report": run / "report.html",
        "timed": timed / "report.html",
        "replay": directory / "replay.html",
        "compare": directory / "compare.html",
    }


class Opened:
    """A page, its console errors and its requests."""

    def __init__(self, browser: Any, path: Path, **context: Any) -> None:
        self.context = browser.new_context(viewport=LAPTOP, **context)
        self.page = self.context.new_page()
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda m: self.errors.append(m.text) if m.type == "error" else None)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda r: self.requests.append(r.url))
        self.page.goto(path.as_uri())

    def requests_outside(self) -> list[str]:
        return [url for url in self.requests[1:] if not url.startswith(("data:", "blob:"))]


@pytest.fixture(scope="module")
def opened(browser: Any, pages: dict[str, Path]) -> Any:
    """Opens one of the pages at a laptop's width; once for all tests that ask for the same."""
    every: dict[tuple[Any, ...], Opened] = {}

    def one(name: str, **context: Any) -> Opened:
        wanted = (name, *context.items())
        if wanted not in every:
            every[wanted] = Opened(browser, pages[name], **context)
        return every[wanted]

    yield one
    for page in every.values():
        page.context.close()


def seen(locator: Any) -> list[Any]:
    return [one for one in locator.all() if one.is_visible()]


@pytest.mark.parametrize("name", ["report", "timed", "compare"])
def test_a_page_opens_from_disk_without_an_error_and_fits_a_laptop(opened: Any, name: str) -> None:
    view = opened(name)
    assert view.page.locator("#verdict .headline").inner_text().strip()
    assert view.page.evaluate("document.documentElement.scrollWidth") <= LAPTOP["width"]
    assert view.errors == []
    assert view.requests_outside() == []


def test_the_report_has_its_verdict_and_every_figure(opened: Any) -> None:
    page = opened("report").page
    assert "mm RMS" in page.locator("#verdict .headline").inner_text().replace("\u00a0", " ")
    figures = {"#path": 3, "#worst": 2, "#time": 1, "#contour": 1, "#joints": 6}
    assert {name: len(seen(page.locator(f"{name} svg"))) for name in figures} == figures
    for name in figures:
        for svg in seen(page.locator(f"{name} svg")):
            box = svg.bounding_box()
            assert box["width"] > 200 and box["height"] > 150
    assert page.locator(".replay a").get_attribute("href") == "replay.html"


def test_the_report_of_a_controllers_run_shows_its_badge_and_its_loop(opened: Any) -> None:
    view = opened("timed")
    badge = view.page.locator("#verdict .badge")
    assert badge.is_visible() and badge.inner_text().lower() == "failed"
    assert (
        view.page.locator("#verdict .judgement")
        .inner_text()
        .replace("\u00a0", " ")
        .endswith("within 5.72958°.")
    )
    assert len(seen(view.page.locator("#loop svg"))) == 1
    text = " ".join(view.page.locator("#loop table").inner_text().split())
    assert "Period, mean 8.00 ms" in text and "Missed deadlines 3" in text
    assert view.errors == []


def test_the_report_has_the_errors_as_evo_defines_them(opened: Any) -> None:
    table = opened("report").page.locator("#budget table", has_text="APE")
    assert table.is_visible()
    assert "all pairs" in table.inner_text() and table.locator("tbody tr").count() == 2


def test_the_comparison_has_every_figure(opened: Any) -> None:
    page = opened("compare").page
    figures = {"#path": 3, "#time": 1, "#contour": 1, "#separation": 1}
    assert {name: len(seen(page.locator(f"{name} svg"))) for name in figures} == figures


def test_the_pointer_shows_the_values_of_every_curve(opened: Any) -> None:
    page = opened("report").page
    page.locator("#time .canvas").scroll_into_view_if_needed()
    box = page.locator("#time .canvas").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 100)
    tip = page.locator(".tip").inner_text()
    middle = (54 + (box["width"] / 2 - 54) - 54) / (box["width"] - 54 - 18) * 0.4
    assert float(tip.split(" s")[0]) == pytest.approx(middle, abs=0.01)
    assert "tracking:" in tip and "plant:" in tip and "mm" in tip
    # The same instant on the path.
    assert page.locator("#worst .map .here").get_attribute("visibility") == "visible"


def test_the_pointer_on_the_path_shows_the_error_there(opened: Any) -> None:
    page = opened("report").page
    page.locator("#worst .map").scroll_into_view_if_needed()
    box = page.locator("#worst .map svg").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    tip = page.locator(".tip").inner_text().replace("\u00a0", " ")
    assert "error: " in tip and "x: " in tip


def test_a_drag_zooms_in_and_a_double_click_zooms_out(opened: Any) -> None:
    page = opened("report").page
    canvas = page.locator("#time .canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    whole = canvas.inner_text()
    assert "0.4" in whole
    page.mouse.move(box["x"] + 300, box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + 500, box["y"] + 100, steps=4)
    page.mouse.up()
    assert canvas.inner_text() != whole
    assert "0.4" not in canvas.inner_text().split("rotation below 0.0001°")[1].split()
    page.mouse.dblclick(box["x"] + 400, box["y"] + 100)
    assert canvas.inner_text() == whole


def test_the_keyboard_shows_values_and_zooms(opened: Any) -> None:
    page = opened("report").page
    canvas, tip = page.locator("#time .canvas"), page.locator(".tip")
    canvas.focus()
    whole = canvas.inner_text()
    page.keyboard.press("ArrowRight")
    first = tip.inner_text()
    page.keyboard.press("ArrowRight")
    second = tip.inner_text()
    assert "tracking:" in first
    assert float(second.split(" s")[0]) - float(first.split(" s")[0]) == pytest.approx(
        0.004, abs=0.0015
    )
    page.keyboard.press("+")
    assert canvas.inner_text() != whole
    page.keyboard.press("-")
    assert canvas.inner_text() == whole
    page.keyboard.press("Escape")
    assert not tip.is_visible()
    page.keyboard.press("ArrowLeft")
    assert tip.is_visible()
    page.keyboard.press("Tab")
    assert not tip.is_visible()


def test_a_drawing_does_not_zoom_in_further_than_its_samples(opened: Any) -> None:
    view = opened("report")
    canvas = view.page.locator("#time .canvas")
    canvas.focus()
    whole = canvas.inner_text()
    for _ in range(60):
        view.page.keyboard.press("+")
    assert view.errors == []
    begin, end = (
        float(text) for text in re.findall(r"^\d\.\d+$", canvas.inner_text(), re.MULTILINE)[-2:]
    )
    assert 0.001 < end - begin < 0.05
    # Its curves are still there.
    assert all("L" in path.get_attribute("d") for path in canvas.locator("svg g path").all())
    view.page.keyboard.press("-")
    assert canvas.inner_text() == whole


def test_the_name_of_a_drawing_is_whole_sentences(opened: Any) -> None:
    for canvas in opened("report").page.locator(".canvas").all():
        assert ".." not in canvas.get_attribute("aria-label")


def test_without_scripts_the_drawings_are_seen(opened: Any) -> None:
    page = opened("report", java_script_enabled=False).page
    assert len(seen(page.locator("#time .static svg"))) == 1
    assert len(seen(page.locator("#joints .static svg"))) == 6


@pytest.mark.parametrize("name", ["report", "compare"])
def test_on_paper_the_drawings_are_seen(opened: Any, tmp_path: Path, name: str) -> None:
    page = opened(name).page
    page.emulate_media(media="print")
    try:
        assert seen(page.locator(".canvas")) == []
        assert all(
            drawing.is_visible()
            for drawing in page.locator("#time .static .wide svg, #time .broad svg").all()
        )
        printed = page.pdf()
    finally:
        page.emulate_media(media="screen")
    assert printed.startswith(b"%PDF") and len(printed) > 20_000


def test_the_replay_opens_from_disk_and_plays(opened: Any) -> None:
    view = opened("replay")
    view.page.wait_for_selector("canvas", timeout=60_000)
    assert "square_tracking on UR10" in view.page.locator("#legend").inner_text()
    view.page.wait_for_selector("input", timeout=60_000)
    assert view.page.evaluate("document.documentElement.scrollWidth") <= LAPTOP["width"]
    # It plays by itself, in a loop.
    shown = "document.querySelector('input').value"
    first = view.page.evaluate(shown)
    view.page.wait_for_function(f"{shown} !== '{first}'", timeout=60_000)
    assert view.errors == []
    assert view.requests_outside() == []
