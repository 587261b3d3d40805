"""The pages for every reader: dark and light, keyboard and screen reader, phone, paper."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe

from simbridge.cli.command_line import main
from simbridge.report.repeats_page import repeats_page
from simbridge.sweeps.sweep_page import sweep_page
from tests.properties import variants
from tests.report.test_repeats_page import one_run, summary_of
from tests.sweeps.rows import made_rows

pytestmark = pytest.mark.shares_setup

NAMES = (
    "report",
    "session",
    "compare",
    "compare of four",
    "repeats",
    "sweep of lines",
    "sweep of maps",
    "sweep of many parameters",
)
TRIED = variants(NAMES, "report", "compare", "sweep of maps")
PHONE = {"width": 390, "height": 844}
# Contrast of each text of the drawings with the page behind it, as WCAG 2.1 defines it.
LEAST_CONTRAST = """() => {
    const numbers = (colour) => colour.match(/[\\d.]+/g).slice(0, 3).map(Number);
    const linear = (c) => c <= 10.31 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4;
    const share = [0.2126, 0.7152, 0.0722];
    const luminance = (colour) => numbers(colour).map(linear).reduce((sum, c, k) => sum + share[k] * c, 0);
    const ground = luminance(getComputedStyle(document.body).backgroundColor);
    const texts = [...document.querySelectorAll("svg:not(.paper) text")].filter((text) => !text.matches(".mark"));
    return Math.min(...texts.map((text) => {
        const found = luminance(getComputedStyle(text).fill);
        return (Math.max(found, ground) + 0.05) / (Math.min(found, ground) + 0.05);
    }));
}"""

SCROLLED = """() => [...document.querySelectorAll(".scroll")].filter((one) => one.scrollWidth > one.clientWidth)
    .map((one) => one.ariaLabel)"""
# Tables whose first heading is not above their first column.
SHIFTED = """() => [...document.querySelectorAll("table.numbers")].filter((table) => {
    const left = (row) => [...row.children].find((cell) => cell.offsetParent).getBoundingClientRect().left;
    return table.offsetParent && left(table.tHead.rows[table.tHead.rows.length - 1]) !== left(table.tBodies[0].rows[0]);
}).map((table) => table.caption.textContent)"""
UNNAMED = """() => [...document.querySelectorAll(".scroll tbody td:not(.words)")]
    .filter((cell) => cell.textContent && ["none", '""'].includes(getComputedStyle(cell, "::before").content))
    .map((cell) => cell.outerHTML)"""


@pytest.fixture(scope="module")
def pages(
    line_run: Path, live_run: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    directory = tmp_path_factory.mktemp("pages")
    run, other = (shutil.copytree(line_run, directory / name) for name in ("run", "other"))
    assert main(["report", str(run)]) == 0
    assert main(["compare", str(run), str(other), "--out", str(directory)]) == 0
    four = [
        run,
        other,
        *(shutil.copytree(line_run, directory / name) for name in ("third", "fourth")),
    ]
    assert main(["compare", *map(str, four), "--out", str(directory / "four")]) == 0
    made = {
        "repeats": repeats_page(summary_of(one_run(1, 1e-4), one_run(2, 2e-4)), None),
        "sweep of lines": sweep_page(
            made_rows(lambda kp, seed: kp + seed, kp=(1, 2), sample_seed=(0, 1)), "mine"
        ),
        "sweep of maps": sweep_page(
            made_rows(lambda kp, n: kp + n, kp=(1, 2), servo_gain=(500, 900)), "mine"
        ),
        "sweep of many parameters": sweep_page(
            made_rows(
                lambda a, b, c: a + b + c, kp=range(9), servo_gain=range(500, 509), payload=range(9)
            ),
            "mine",
        ),
    }
    for name, text in made.items():
        (directory / f"{name}.html").write_text(text, encoding="utf-8")
    named = {name: directory / f"{name}.html" for name in made}
    return named | {
        "report": run / "report.html",
        "session": live_run / "report.html",
        "compare": directory / "compare.html",
        "compare of four": directory / "four/compare.html",
    }


@pytest.fixture
def open_page(browser: Any, pages: dict[str, Path]) -> Any:
    """Opens one of the pages in a context of its own."""
    contexts = []

    def opened(name: str, **context: Any) -> Any:
        contexts.append(browser.new_context(bypass_csp=True, **context))
        page = contexts[-1].new_page()
        page.goto(pages[name].as_uri())
        return page

    yield opened
    for context in contexts:
        context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", TRIED)
def test_a_page_has_no_serious_finding_of_axe_and_legible_drawings(
    open_page: Any, name: str, scheme: str
) -> None:
    page = open_page(name, color_scheme=scheme)
    violations = Axe().run(page).response["violations"]
    serious = [one for one in violations if one["impact"] in ("serious", "critical")]
    assert [(one["id"], [node["html"] for node in one["nodes"][:3]]) for one in serious] == []
    assert page.locator("svg").count() == 0 or page.evaluate(LEAST_CONTRAST) >= 4.5


@pytest.mark.parametrize("name", TRIED)
def test_a_page_fits_a_phone_without_scrolling_sideways_anywhere(open_page: Any, name: str) -> None:
    page = open_page(name, viewport=PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert page.evaluate(SCROLLED) == []
    # Where a table has become cards, each number has its heading.
    assert page.evaluate(UNNAMED) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_small_and_says_in_words_what_its_drawings_show(
    pages: dict[str, Path], name: str
) -> None:
    text = pages[name].read_text(encoding="utf-8")
    assert len(text.encode()) < 3_000_000
    drawings = re.findall(r"<svg[^>]*", text)
    assert all(re.search(r'role="img" aria-label="[^"]*\d', drawing) for drawing in drawings)


def test_a_page_asks_no_host_for_anything(browser: Any, pages: dict[str, Path]) -> None:
    context = browser.new_context(offline=True)
    try:
        for path in (pages["report"], pages["report"].with_name("replay.html"), pages["compare"]):
            page, asked, errors = context.new_page(), [], []
            page.on("request", lambda request, asked=asked: asked.append(request.url))
            page.on("pageerror", lambda error, errors=errors: errors.append(str(error)))
            page.goto(path.as_uri())
            page.wait_for_timeout(300)
            assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
            assert errors == []
    finally:
        context.close()


def test_on_a_phone_the_numbers_of_a_group_stand_beside_its_heading(open_page: Any) -> None:
    page = open_page("report", viewport=PHONE)
    tracking = page.locator(".budget tr.whole")
    headings = tracking.locator("td[data-group]")
    assert [headings.nth(k).get_attribute("data-group") for k in range(2)] == [
        "position, mm",
        "rotation, °",
    ]
    position, rotation = (headings.nth(k).bounding_box() for k in range(2))
    assert position["x"] == rotation["x"] and position["y"] < rotation["y"]
    largest = tracking.locator("td").nth(3).bounding_box()
    assert largest["y"] == position["y"] and largest["x"] + largest["width"] <= PHONE["width"]


@pytest.mark.parametrize("name", TRIED)
def test_a_printed_number_is_below_its_heading(open_page: Any, name: str) -> None:
    page = open_page(name)
    page.emulate_media(media="print")
    assert page.evaluate(SHIFTED) == []


def test_a_report_with_several_notices_and_long_values_of_four_runs_are_printed_on_two_sheets(
    open_page: Any,
) -> None:
    notice = (
        "The limiter changed 12 of 2001 setpoints. There the arm was not sent the solver's solution. "
        * 2
    )
    for count in (1, 2, 3):
        page, every = open_page("report"), count * notice_of(notice)
        page.evaluate(
            f"document.querySelector('.headline').insertAdjacentHTML('afterend', `{every}`)"
        )
        assert sheets(page) <= 2
    page = open_page("compare of four")
    row = "<tr><th>scenario.description</th>" + 4 * f"<td>{notice}</td>" + "</tr>"
    settings = f"<table class='differences'><thead><tr>{5 * '<th>Setting</th>'}</tr></thead><tbody>{60 * row}"
    page.evaluate(f"document.querySelector('#settings p').outerHTML = `{settings}`")
    assert page.locator("#iso").count() == 1 and sheets(page) <= 2
    # Of runs with a notice there are no ISO 9283-style figures.
    page.evaluate("document.querySelector('#iso').remove()")
    page.evaluate(
        f"document.querySelector('.headline').insertAdjacentHTML('afterend', `{3 * notice_of(notice)}`)"
    )
    assert sheets(page) <= 2


def test_a_printed_report_keeps_what_explains_its_axes(open_page: Any) -> None:
    page = open_page("report")
    page.emulate_media(media="print")
    assert page.get_by_text("Logarithmic axes: a division is a factor of ten.").is_visible()
    assert page.get_by_text("A limit that is too far away to be drawn").is_visible()


@pytest.mark.parametrize(
    ("count", "words"), [(5, "none"), (15, "none"), (16, '"The whole table is in compare.html."')]
)
def test_a_printed_table_of_settings_names_the_page_only_where_rows_are_left_out(
    open_page: Any, count: int, words: str
) -> None:
    page = open_page("compare")
    rows = count * "<tr><th>period</th><td>0.008</td><td>0.002</td></tr>"
    table = f"<div class='scroll'><table class='differences'><tbody>{rows}</tbody></table></div>"
    page.evaluate(f"document.querySelector('#settings p').outerHTML = `{table}`")
    page.emulate_media(media="print")
    shown = "getComputedStyle(document.querySelector('#settings .scroll'), '::after').content"
    assert page.evaluate(shown) == words
    assert page.evaluate(
        "document.querySelector('.differences').offsetWidth < document.body.offsetWidth / 2"
    )


def notice_of(text: str) -> str:
    return f'<p class="notice caution">{text}</p>'


def sheets(page: Any) -> int:
    return len(re.findall(rb"/Type\s*/Page\b(?!s)", page.pdf(prefer_css_page_size=True)))


@pytest.mark.parametrize("name", TRIED)
def test_a_page_is_printed_dark_on_white_and_on_two_sheets(open_page: Any, name: str) -> None:
    page = open_page(name, color_scheme="dark")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate(LEAST_CONTRAST) >= 4.5 if page.locator("svg").count() else True
    assert sheets(page) <= 2
