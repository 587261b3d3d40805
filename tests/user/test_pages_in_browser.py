"""The pages of runs in a browser, opened from disk."""

from __future__ import annotations

import re
import shutil

import pytest

from simbridge.cli.command_line import main
from simbridge.evaluation.evaluation import Evaluation
from simbridge.evaluation.summary import summarize
from simbridge.recording.run_directory import RunDirectory
from simbridge.report import write_report
from simbridge.report.replay import replay_page
from tests.chromium import patient_context
from tests.report.pages import leave_out_drawings, plain_spaces

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
# Duration of the run, s, and what the drawing over time leaves free of its axes, px.
DURATION = 0.4
LEFT_MARGIN = 54
RIGHT_MARGIN = 18


@pytest.fixture(scope="module")
def pages(line_run, small, run_without_page, tmp_path_factory):
    """Files of pages, by name.

    "report" and "compare" are those of a short run, as the commands write them. "timed" is of a run
    that a controller timed and that missed its tolerance, and has no other drawing than that of the
    loop. "replay" is of a longer run, whose motion even a slow machine shows in many frames.
    """
    directory = tmp_path_factory.mktemp("pages")
    run = shutil.copytree(line_run, directory / "run")
    other = shutil.copytree(line_run, directory / "other")
    assert main(["report", str(run)]) == 0
    assert main(["compare", str(run), str(other), "--out", str(directory)]) == 0

    timed = shutil.copytree(line_run, directory / "timed")
    with (timed / "settings.toml").open("a") as settings:
        settings.write("\n[tolerance]\nposition_m = 1e-7\nrotation_rad = 0.1\n")
    evaluation = Evaluation.of(RunDirectory.open(timed))
    tolerance = evaluation.settings.tolerance
    with pytest.MonkeyPatch.context() as patch:
        leave_out_drawings(patch)
        write_report(evaluation, summarize(evaluation, "completed", loop=LOOP, tolerance=tolerance))

    longer = directory / "longer"
    assert run_without_page(small["square_tracking"], "--out", longer) == 0
    square = Evaluation.of(RunDirectory.open(longer))
    (directory / "replay.html").write_text(replay_page(square, "square"), encoding="utf-8")

    return {
        "report": run / "report.html",
        "timed": timed / "report.html",
        "replay": directory / "replay.html",
        "compare": directory / "compare.html",
    }


class Opened:
    """A page in the browser, its console errors and its requests."""

    def __init__(self, browser, path, **context):
        self.errors = []
        self.requests = []
        self.context = patient_context(browser, viewport=LAPTOP, **context)
        self.page = self.context.new_page()
        self.page.on("console", self._keep_error)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())

    def _keep_error(self, message):
        if message.type == "error":
            self.errors.append(message.text)

    def requests_outside(self):
        """Return what was asked of a host, after the page itself."""
        return [url for url in self.requests[1:] if not url.startswith(("data:", "blob:"))]


@pytest.fixture(scope="module")
def opened(browser, pages):
    """Opens one of the pages at a laptop's width; once for all tests that ask for the same."""
    opened_pages = {}

    def open_page(name, **context):
        key = (name, *context.items())
        if key not in opened_pages:
            opened_pages[key] = Opened(browser, pages[name], **context)
        return opened_pages[key]

    yield open_page
    for view in opened_pages.values():
        view.context.close()


def visible(locator):
    """Return the elements that are visible."""
    return [element for element in locator.all() if element.is_visible()]


def scroll_to(locator):
    """Scroll to an element; return its box."""
    locator.scroll_into_view_if_needed()
    return locator.bounding_box()


@pytest.mark.parametrize("name", ["report", "timed", "compare"])
def test_page_opens_from_disk(opened, name):
    view = opened(name)

    assert view.page.locator("#verdict .headline").inner_text().strip()
    assert view.page.evaluate("document.documentElement.scrollWidth") <= LAPTOP["width"]
    assert view.errors == []
    assert view.requests_outside() == []


def unfold(page):
    """Open everything that is folded."""
    page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")


@pytest.mark.parametrize("size", [{"width": 1280, "height": 800}, {"width": 390, "height": 844}])
def test_first_drawing_is_on_the_first_screen(browser, pages, size):
    context = patient_context(browser, viewport=size)
    try:
        page = context.new_page()
        page.goto(pages["report"].as_uri())

        (drawing,) = visible(page.locator("#time svg"))
        box = drawing.bounding_box()
    finally:
        context.close()

    assert box["y"] + box["height"] <= size["height"]


def test_what_magnifies_micrometres_is_folded(browser, pages):
    context = patient_context(browser, viewport=LAPTOP)
    try:
        page = context.new_page()
        page.goto(pages["report"].as_uri())

        shown = {
            section: len(visible(page.locator(f"{section} svg")))
            for section in ("#path", "#worst", "#contour")
        }
    finally:
        context.close()

    # A straight line is flat in every view; the error along it is drawn with equal axes.
    assert shown == {"#path": 1, "#worst": 0, "#contour": 0}


def test_report_has_every_drawing(opened):
    page = opened("report").page
    unfold(page)

    counts = {"#path": 4, "#worst": 1, "#time": 1, "#contour": 1, "#joints": 6}
    for section, count in counts.items():
        drawings = visible(page.locator(f"{section} svg"))
        assert len(drawings) == count
        for drawing in drawings:
            box = drawing.bounding_box()
            assert box["width"] > 200
            assert box["height"] > 150
    assert "mm RMS" in plain_spaces(page.locator("#verdict .headline").inner_text())
    assert page.locator(".replay a").get_attribute("href") == "replay.html"


def test_timed_report_has_badge_and_loop(opened):
    view = opened("timed")

    badge = view.page.locator("#verdict .badge")
    judgement = plain_spaces(view.page.locator("#verdict .judgement").inner_text())
    assert badge.is_visible()
    assert badge.inner_text().lower() == "failed"
    assert judgement.endswith("within 5.72958°.")

    loop = " ".join(view.page.locator("#loop table").inner_text().split())
    assert len(visible(view.page.locator("#loop svg"))) == 1
    assert "Period, mean 8.00 ms" in loop
    assert "Missed deadlines 3" in loop
    assert view.errors == []


def test_report_has_the_errors_of_evo(opened):
    page = opened("report").page
    unfold(page)
    table = page.locator("#budget table", has_text="APE")

    assert table.is_visible()
    assert "all pairs" in table.inner_text()
    assert table.locator("tbody tr").count() == 2


def test_comparison_has_every_drawing(opened):
    page = opened("compare").page

    unfold(page)
    counts = {"#path": 3, "#time": 1, "#contour": 1, "#separation": 1}
    for section, count in counts.items():
        assert len(visible(page.locator(f"{section} svg"))) == count


@pytest.mark.parametrize("section", ["delay", "metrics", "contour", "settings"])
def test_comparison_folds_what_is_not_its_first_answer(opened, section):
    # Another page than the one that tests unfold.
    page = opened("compare", java_script_enabled=False).page
    content = page.locator(f"#{section} :is(.numbers, .chart, p)").first

    assert not content.is_visible()
    page.locator(f"#{section} summary").click()
    assert content.is_visible()


def test_pointer_shows_every_curve(opened):
    page = opened("report").page
    box = scroll_to(page.locator("#time .canvas"))

    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 100)

    tip = page.locator(".tip").inner_text()
    # The pointer is in the middle of the canvas, not of the axes.
    right_of_axis = box["width"] / 2 - LEFT_MARGIN
    middle = right_of_axis / (box["width"] - LEFT_MARGIN - RIGHT_MARGIN) * DURATION
    assert float(tip.split(" s")[0]) == pytest.approx(middle, abs=0.01)
    assert "tracking:" in tip
    assert "plant:" in tip
    assert "mm" in tip
    # The same instant on the path.
    assert page.locator("#error-map .map .here").get_attribute("visibility") == "visible"


def test_pointer_on_the_path_shows_the_error(opened):
    page = opened("report").page
    page.locator("#error-map .map").scroll_into_view_if_needed()
    box = page.locator("#error-map .map svg").bounding_box()

    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)

    tip = plain_spaces(page.locator(".tip").inner_text())
    assert "error: " in tip
    assert "x: " in tip


def test_drag_zooms_in_and_double_click_out(opened):
    page = opened("report").page
    canvas = page.locator("#time .canvas")
    box = scroll_to(canvas)
    whole = canvas.inner_text()

    page.mouse.move(box["x"] + 300, box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + 500, box["y"] + 100, steps=4)
    page.mouse.up()
    zoomed_in = canvas.inner_text()
    page.mouse.dblclick(box["x"] + 400, box["y"] + 100)
    zoomed_out = canvas.inner_text()

    assert "0.4" in whole
    assert zoomed_in != whole
    assert "0.4" not in zoomed_in.split("rotation below 0.0001°")[1].split()
    assert zoomed_out == whole


def test_keyboard_shows_values_and_zooms(opened):
    page = opened("report").page
    canvas = page.locator("#time .canvas")
    tip = page.locator(".tip")
    canvas.focus()
    whole = canvas.inner_text()

    page.keyboard.press("ArrowRight")
    first = tip.inner_text()
    page.keyboard.press("ArrowRight")
    second = tip.inner_text()
    step = float(second.split(" s")[0]) - float(first.split(" s")[0])
    assert "tracking:" in first
    assert step == pytest.approx(0.004, abs=0.0015)

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


def test_zoom_ends_at_the_samples(opened):
    view = opened("report")
    canvas = view.page.locator("#time .canvas")
    canvas.focus()
    whole = canvas.inner_text()

    for _ in range(60):
        view.page.keyboard.press("+")

    time_labels = re.findall(r"^\d\.\d+$", canvas.inner_text(), re.MULTILINE)
    shown_duration = float(time_labels[-1]) - float(time_labels[-2])
    assert view.errors == []
    assert 0.001 < shown_duration < 0.05
    # Its curves are still there.
    for curve in canvas.locator("svg g path").all():
        assert "L" in curve.get_attribute("d")

    view.page.keyboard.press("-")
    assert canvas.inner_text() == whole


def test_drawings_are_named_by_sentences(opened):
    for canvas in opened("report").page.locator(".canvas").all():
        assert ".." not in canvas.get_attribute("aria-label")


def test_drawings_need_no_scripts(opened):
    page = opened("report", java_script_enabled=False).page

    page.locator("#joints summary").click()
    assert len(visible(page.locator("#time .static svg"))) == 1
    assert len(visible(page.locator("#joints .static svg"))) == 6


@pytest.mark.parametrize("name", ["report", "compare"])
def test_drawings_are_printed(opened, name):
    page = opened(name).page

    page.emulate_media(media="print")
    try:
        canvases = visible(page.locator(".canvas"))
        # Those that are folded on the screen, too.
        drawings = page.locator("#time .static .wide svg, #time .broad svg, #worst svg").all()
        hidden = [drawing for drawing in drawings if not drawing.is_visible()]
        printed = page.pdf()
    finally:
        page.emulate_media(media="screen")

    assert canvases == []
    assert hidden == []
    assert printed.startswith(b"%PDF")
    assert len(printed) > 20_000


def test_replay_opens_from_disk_and_plays(opened):
    view = opened("replay")

    view.page.wait_for_selector("canvas")
    assert "square_tracking_small on UR10" in view.page.locator("#legend").inner_text()
    view.page.wait_for_selector("input")
    assert view.page.evaluate("document.documentElement.scrollWidth") <= LAPTOP["width"]

    # It plays by itself, in a loop.
    slider = "document.querySelector('input').value"
    first = view.page.evaluate(slider)
    view.page.wait_for_function(f"{slider} !== '{first}'")
    assert view.errors == []
    assert view.requests_outside() == []
