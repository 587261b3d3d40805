"""A page as tests read it, the numbers in its sentences, and pages without drawings."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from markupsafe import Markup

from simbridge.report import run_page
from simbridge.report.rendering import CaptionedDrawing

VOID_ELEMENTS = {"meta", "link", "br", "hr", "img", "input"}


class Page(HTMLParser):
    """A page's text by element, and its elements; an element that is not nested properly fails.

    Attributes:
        source: The page as HTML.
        elements: Names and attributes of all elements, in order.
    """

    def __init__(self, source: str) -> None:
        super().__init__()
        self.source = source
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        # The elements that are open: tag, and id or class.
        self._open: list[tuple[str, str | None]] = []
        # Each text with the names of the elements around it.
        self._texts: list[tuple[tuple[str, ...], str]] = []
        self.feed(source)
        self.close()
        assert self._open == [], f"never closed: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open an element, unless it is one that holds nothing."""
        attributes = dict(attrs)
        self.elements.append((tag, attributes))
        if tag not in VOID_ELEMENTS:
            name = attributes.get("id") or attributes.get("class") or tag
            self._open.append((tag, name))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep an element that is closed at once."""
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        """Close the innermost element, which must be this one."""
        assert self._open and self._open[-1][0] == tag, f"</{tag}> closes {self._open[-1:]}"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        """Keep a text with the names of the elements around it."""
        if data.strip():
            names = tuple(name or tag for tag, name in self._open)
            self._texts.append((names, data))

    def text(self, name: str) -> str:
        """Return the text inside of the elements with this id, class or tag, with plain spaces."""
        inside = []
        for element_names, data in self._texts:
            if any(name in element.split() for element in element_names):
                inside.append(data)
        return " ".join(plain_spaces(" ".join(inside)).split())

    def has(self, name: str) -> bool:
        """Return whether there is an element with this id or class."""
        for _, attributes in self.elements:
            names = f"{attributes.get('id') or ''} {attributes.get('class') or ''}"
            if name in names.split():
                return True
        return False

    @property
    def ids(self) -> list[str]:
        """The ids of all elements, in order."""
        return [attributes["id"] or "" for _, attributes in self.elements if "id" in attributes]

    @property
    def links(self) -> list[str | None]:
        """Addresses of all links, in order."""
        return [attributes["href"] for tag, attributes in self.elements if tag == "a"]

    def rows(self, section: str) -> dict[str, list[str]]:
        """Return the cells of a section's first table, by the name of their row."""
        table = self.source.split(f'<section id="{section}">')[1].split("</table>")[0]
        return table_rows(table)


def read_page(run: Path) -> Page:
    """Return the report in a run's directory."""
    return Page((run / "report.html").read_text(encoding="utf-8"))


def leave_out_drawings(patch: pytest.MonkeyPatch) -> None:
    """Leave the drawings out of the reports of runs: they take most of a page's time.

    That of the servo loop, and those of a live session's inputs, remain.
    """
    nothing = CaptionedDrawing("", Markup())
    patch.setattr(run_page, "errors_over_time", lambda *_: ((), Markup()))
    patch.setattr(run_page, "contour_chart", lambda *_: Markup())
    patch.setattr(run_page, "joint_chart", lambda *_: Markup())
    patch.setattr(run_page, "three_views", lambda *_: [])
    patch.setattr(run_page, "error_map", lambda *_: nothing)
    patch.setattr(run_page, "worst_sample", lambda *_, **__: nothing)


def table_rows(table: str) -> dict[str, list[str]]:
    """Return the cells of a table (HTML), by the name of their row without its tags."""
    rows = re.findall(r'<tr[^>]*><th scope="row"[^>]*>(.*?)</th>(.*?)</tr>', table, re.S)
    cells_by_name = {}
    for name, cells in rows:
        cells_by_name[re.sub("<.*?>", "", name)] = re.findall(r"<td[^>]*>(.*?)</td>", cells)
    return cells_by_name


def plain_spaces(text: str) -> str:
    """Return a text with plain spaces where it has no-break spaces."""
    return text.replace("\u00a0", " ")


def numbers(text: str) -> list[float]:
    """Return the unsigned decimal numbers of a text."""
    return [float(number) for number in re.findall(r"\d+(?:\.\d+)?", text)]
