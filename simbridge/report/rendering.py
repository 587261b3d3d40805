"""Pages from the templates in templates/: one HTML file each, which loads nothing else."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from simbridge.report.palette import on_page
from simbridge.text import (
    counted,
    degrees,
    displayed,
    fixed,
    millimetres,
    milliseconds,
    plain,
    significant,
    with_unit,
)

# The directory of templates, style and script.
PACKAGE = Path(__file__).parent


@dataclass(frozen=True)
class LegendEntry:
    """An entry of a legend.

    Attributes:
        name: The name of what has the colour.
        colour: The colour as CSS names it; "" for a swatch without one.
        kind: The kind of swatch: a class of page.css.
    """

    name: str
    colour: str = ""
    kind: str = ""


@dataclass(frozen=True)
class CaptionedDrawing:
    """A drawing of a page with the text around it.

    Attributes:
        caption: The text above the drawing.
        drawing: The drawing as HTML.
        notes: Sentences below the drawing.
    """

    caption: str
    drawing: Markup
    notes: Sequence[str] = ()


def with_heads(rows: str, heads: Sequence[str], groups: Sequence[tuple[str, int]] = ()) -> Markup:
    """Return the rows of a table with its column's heading on each cell.

    On a phone a row is a card that names its numbers. The first cell of a group has its heading,
    too, and how many columns the group has.

    Args:
        rows: The rows as HTML.
        heads: The headings of the columns.
        groups: Headings above groups of columns, each with the number of its columns.
    """
    # The attributes that each column's cells have for their group; the first column names it.
    group_attributes = []
    for name, columns in groups or [("", len(heads))]:
        if name:
            group_size = f' data-of="{columns}"'
            group_attributes.append(f' data-group="{escape(name)}"{group_size}')
            group_attributes += [group_size] * (columns - 1)
        else:
            group_attributes += [""] * columns

    # All attributes of each column's cells.
    attributes = []
    for group_attribute, head in zip(group_attributes, heads, strict=True):
        attributes.append(f'{group_attribute} data-head="{escape(head)}"')

    # The columns of the row in which the next cell is.
    columns_of_row = iter(attributes)

    def add_attributes(tag: re.Match[str]) -> str:
        """Return a tag of a row or a cell with its attributes."""
        nonlocal columns_of_row
        if tag[0].startswith("<tr"):
            columns_of_row = iter(attributes)
            return tag[0]
        return f"{tag[0]}{next(columns_of_row)}"

    return Markup(re.sub(r"<(?:tr|th|td)\b[^>]*", add_attributes, rows))


def link(path: str) -> str:
    """Return the address of a file below the page's directory.

    No path makes it an address elsewhere, or script.
    """
    return quote(path.lstrip("/"), errors="surrogateescape")


def render(template: str, **content: Any) -> str:
    r"""Return a page.

    Args:
        template: The page's file in templates/.
        content: The values that the template shows. Every text that is not `Markup` is escaped, and
            what UTF-8 cannot hold is shown as \xff.
    """
    page = _environment().get_template(template).render(content)
    # A file name may hold bytes that are not text.
    return page.encode(errors="backslashreplace").decode()


@cache
def _environment() -> Environment:
    """Return jinja2's environment of the templates, with the names that they use.

    These are the style, the script, functions, and filters: `{{ error | mm }}` writes millimetres.
    """
    environment = Environment(
        loader=FileSystemLoader(PACKAGE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )

    # The Content-Security-Policy of each page lets a browser load nothing, and run nothing but the
    # script with this hash.
    script = (PACKAGE / "interactive.js").read_text(encoding="utf-8")
    script_hash = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    environment.globals |= {
        "style": Markup((PACKAGE / "page.css").read_text(encoding="utf-8")),
        "script": Markup(script),
        "script_hash": script_hash,
        "with_unit": with_unit,
        "counted": counted,
        "displayed": displayed,
        "fixed": fixed,
        "plain": plain,
        "zip": zip,
    }
    environment.filters |= {
        "mm": millimetres,
        "deg": degrees,
        "ms": milliseconds,
        "significant": significant,
        "on_page": on_page,
        "link": link,
        "with_heads": with_heads,
    }
    return environment
