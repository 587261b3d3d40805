"""The pages for every reader: dark and light, keyboard and screen reader, phone, paper."""

from __future__ import annotations

import functools
import re
import shutil
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe

from simbridge.cli.command_line import main
from simbridge.report.repeats_page import repeats_page
from simbridge.sweeps.sweep_page import sweep_page
from tests.chromium import patient_context
from tests.properties import variants
from tests.report.repeats import one_run, summary_of
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
    "judged log",
)
TESTED = variants(NAMES, "report", "compare", "sweep of maps", "judged log")
RECORDING = Path(__file__).parents[1] / "data" / "ur3e_moves" / "moves.csv.gz"
PHONE = {"width": 390, "height": 844}
MIN_CONTRAST = 4.5
NOTICE = (
    "The limiter changed 12 of 2001 setpoints. In these, the arm was not sent the "
    "solver's solution. "
) * 2

# Contrast of each text of the drawings with the page behind it, as WCAG 2.1 defines it.
LEAST_CONTRAST = """() => {
    const numbers = (colour) => colour.match(/[\\d.]+/g).slice(0, 3).map(Number);
    const linear = (c) => c <= 10.31 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4;
    const weights = [0.2126, 0.7152, 0.0722];
    const luminance = (colour) =>
        numbers(colour).map(linear).reduce((sum, c, k) => sum + weights[k] * c, 0);
    const ground = luminance(getComputedStyle(document.body).backgroundColor);
    const texts = [...document.querySelectorAll("svg:not(.paper) text")]
        .filter((text) => !text.matches(".mark"));
    return Math.min(...texts.map((text) => {
        const ink = luminance(getComputedStyle(text).fill);
        return (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05);
    }));
}"""
# Parts that have to be scrolled sideways.
SCROLLED = """() => [...document.querySelectorAll(".scroll")]
    .filter((part) => part.scrollWidth > part.clientWidth)
    .map((part) => part.ariaLabel)"""
# Tables whose first heading is not above their first column.
SHIFTED = """() => [...document.querySelectorAll("table.numbers")].filter((table) => {
    const firstCell = (row) => [...row.children].find((cell) => cell.offsetParent);
    const leftEdge = (row) => firstCell(row).getBoundingClientRect().left;
    const headings = table.tHead.rows[table.tHead.rows.length - 1];
    return table.offsetParent && leftEdge(headings) !== leftEdge(table.tBodies[0].rows[0]);
}).map((table) => table.caption.textContent)"""
# Cells of numbers without a heading.
UNNAMED = """() => [...document.querySelectorAll(".scroll tbody td:not(.words)")]
    .filter((cell) => cell.textContent
        && ["none", '""'].includes(getComputedStyle(cell, "::before").content))
    .map((cell) => cell.outerHTML)"""


def made_up_page(name):
    """Return a page of made-up repeats, or of a made-up sweep."""
    if name == "repeats":
        return repeats_page(summary_of(one_run(1, 1e-4), one_run(2, 2e-4)), None)
    if name == "sweep of lines":
        rows = made_rows(lambda kp, seed: kp + seed, kp=(1, 2), sample_seed=(0, 1))
    elif name == "sweep of maps":
        rows = made_rows(lambda kp, n: kp + n, kp=(1, 2), servo_gain=(500, 900))
    else:
        rows = made_rows(
            lambda a, b, c: a + b + c, kp=range(9), servo_gain=range(500, 509), payload=range(9)
        )
    return sweep_page(rows, "mine")


@pytest.fixture(scope="module")
def page_file(request, line_run, tmp_path_factory):
    """Returns the file of a page by its name: made up, or of a command.

    A page is made when it is first asked for.
    """
    directory = tmp_path_factory.mktemp("pages")

    @functools.cache
    def run(number):
        return shutil.copytree(line_run, directory / f"run{number}")

    def compare(count):
        out = directory / f"{count} runs"
        assert main(["compare", *(str(run(k)) for k in range(count)), "--out", str(out)]) == 0
        return out / "compare.html"

    @functools.cache
    def make(name):
        if name == "report":
            assert main(["report", str(run(0))]) == 0
            return run(0) / "report.html"
        if name == "session":
            session = shutil.copytree(request.getfixturevalue("live_run"), directory / "session")
            assert main(["report", str(session)]) == 0
            return session / "report.html"
        if name.startswith("compare"):
            return compare(4 if name == "compare of four" else 2)

        path = directory / f"{name}.html"
        if name == "judged log":
            assert main(["judge", str(RECORDING), "--page", str(path)]) == 0
        else:
            path.write_text(made_up_page(name), encoding="utf-8")
        return path

    return make


@pytest.fixture
def open_page(browser, page_file):
    """Opens one of the pages in a context of its own."""
    contexts = []

    def open_in_context(name, **options):
        context = patient_context(browser, bypass_csp=True, **options)
        contexts.append(context)
        page = context.new_page()
        page.goto(page_file(name).as_uri())
        return page

    yield open_in_context
    for context in contexts:
        context.close()


def as_notice(text):
    """Return a notice as HTML."""
    return f'<p class="notice caution">{text}</p>'


def insert_notices(page, count):
    """Put notices below the headline of a page."""
    page.evaluate(
        "document.querySelector('.headline')"
        f".insertAdjacentHTML('afterend', `{count * as_notice(NOTICE)}`)"
    )


def replace_settings(page, html):
    """Put HTML in the place of the sentence that the settings do not differ."""
    page.evaluate(f"document.querySelector('#settings p').outerHTML = `{html}`")


def printed_sheets(page):
    """Return how many sheets a page is printed on."""
    return len(re.findall(rb"/Type\s*/Page\b(?!s)", page.pdf(prefer_css_page_size=True)))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", TESTED)
def test_axe_finds_nothing_serious(open_page, name, scheme):
    page = open_page(name, color_scheme=scheme)

    violations = Axe().run(page).response["violations"]

    serious = []
    for violation in violations:
        if violation["impact"] in ("serious", "critical"):
            elements = [node["html"] for node in violation["nodes"][:3]]
            serious.append((violation["id"], elements))
    assert serious == []
    if page.locator("svg").count():
        assert page.evaluate(LEAST_CONTRAST) >= MIN_CONTRAST


@pytest.mark.parametrize("name", TESTED)
def test_page_fits_a_phone(open_page, name):
    page = open_page(name, viewport=PHONE)

    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert page.evaluate(SCROLLED) == []
    # Where a table has become cards, each number has its heading.
    assert page.evaluate(UNNAMED) == []


@pytest.mark.parametrize("name", TESTED)
def test_page_is_small_and_describes_drawings(page_file, name):
    text = page_file(name).read_text(encoding="utf-8")

    assert len(text.encode()) < 3_000_000
    for drawing in re.findall(r"<svg[^>]*", text):
        assert re.search(r'role="img" aria-label="[^"]*\d', drawing)


def test_page_asks_no_host(browser, page_file):
    report = page_file("report")
    replay = report.with_name("replay.html")
    context = patient_context(browser, offline=True)
    try:
        for path in (report, replay, page_file("compare")):
            requests = []
            errors = []
            page = context.new_page()
            page.on("request", lambda request, urls=requests: urls.append(request.url))
            page.on("pageerror", lambda error, texts=errors: texts.append(str(error)))

            page.goto(path.as_uri())
            page.wait_for_timeout(300)

            assert all(url.startswith(("file:", "data:", "blob:")) for url in requests)
            assert errors == []
    finally:
        context.close()


def test_phone_shows_groups_beside_their_heading(open_page):
    page = open_page("report", viewport=PHONE)

    tracking = page.locator(".budget tr.whole")
    headings = tracking.locator("td[data-group]")
    groups = [headings.nth(k).get_attribute("data-group") for k in range(2)]
    position = headings.nth(0).bounding_box()
    rotation = headings.nth(1).bounding_box()
    largest = tracking.locator("td").nth(3).bounding_box()

    assert groups == ["position, mm", "rotation, °"]
    assert position["x"] == rotation["x"]
    assert position["y"] < rotation["y"]
    assert largest["y"] == position["y"]
    assert largest["x"] + largest["width"] <= PHONE["width"]


@pytest.mark.parametrize("name", TESTED)
def test_printed_numbers_are_below_their_headings(open_page, name):
    page = open_page(name)

    page.emulate_media(media="print")

    assert page.evaluate(SHIFTED) == []


def test_notices_and_long_values_fit_two_sheets(open_page):
    for count in (1, 2, 3):
        page = open_page("report")
        insert_notices(page, count)
        assert printed_sheets(page) <= 2

    # Four runs whose settings differ in many long values.
    page = open_page("compare of four")
    row = "<tr><th>scenario.description</th>" + 4 * f"<td>{NOTICE}</td>" + "</tr>"
    head = f"<thead><tr>{5 * '<th>Setting</th>'}</tr></thead>"
    replace_settings(page, f"<table class='differences'>{head}<tbody>{60 * row}")
    assert page.locator("#iso").count() == 1
    assert printed_sheets(page) <= 2

    # Of runs with a notice there are no ISO 9283-style figures.
    page.evaluate("document.querySelector('#iso').remove()")
    insert_notices(page, 3)
    assert printed_sheets(page) <= 2


def test_printed_report_explains_its_axes(open_page):
    page = open_page("report")

    page.emulate_media(media="print")

    assert page.get_by_text("Logarithmic axes: each division is a factor of ten.").is_visible()
    assert page.get_by_text("A limit outside the plotted range is stated").is_visible()


@pytest.mark.parametrize("content", ["#delay table", "#contour svg"])
def test_folded_sections_of_a_comparison_are_printed(open_page, content):
    page = open_page("compare")

    page.emulate_media(media="print")

    assert page.locator(content).first.is_visible()


@pytest.mark.parametrize(
    ("count", "reference"),
    [(5, "none"), (15, "none"), (16, '"The whole table is in compare.html."')],
)
def test_printed_settings_name_the_page_if_cut(open_page, count, reference):
    page = open_page("compare")
    rows = count * "<tr><th>period</th><td>0.008</td><td>0.002</td></tr>"
    table = f"<table class='differences'><tbody>{rows}</tbody></table>"
    replace_settings(page, f"<div class='scroll'>{table}</div>")

    page.emulate_media(media="print")

    scroll = "document.querySelector('#settings .scroll')"
    width = "document.querySelector('.differences').offsetWidth"
    assert page.evaluate(f"getComputedStyle({scroll}, '::after').content") == reference
    assert page.evaluate(f"{width} < document.body.offsetWidth / 2")


@pytest.mark.parametrize("name", TESTED)
def test_print_is_dark_on_white(open_page, name):
    page = open_page(name, color_scheme="dark")

    page.emulate_media(media="print")

    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == "rgb(255, 255, 255)"
    if page.locator("svg").count():
        assert page.evaluate(LEAST_CONTRAST) >= MIN_CONTRAST
    assert printed_sheets(page) <= 2
