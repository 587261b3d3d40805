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

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class LegendEntry:
    """A name, its colour, and the kind of its swatch: a class of page.css."""

    name: str
    colour: str = ""
    kind: str = ""


@dataclass(frozen=True)
class Figure:
    """A drawing with its caption above it and notes, as sentences, below it."""

    caption: str
    drawing: Markup
    notes: Sequence[str] = ()


def with_heads(rows: str, heads: Sequence[str], groups: Sequence[tuple[str, int]] = ()) -> Markup:
    """The rows of a table, with its column's heading on each cell: on a phone a row is a card that names its numbers.

    The first cell of a group has its heading, too, and each how many columns the group has.

    Args:
        rows: As HTML.
        heads: Of the columns.
        groups: Headings above them, and how many columns each spans.
    """
    labels = []
    for name, columns in groups or [("", len(heads))]:
        group, size = (
            (f' data-group="{escape(name)}"', f' data-of="{columns}"') if name else ("", "")
        )
        labels += [f"{group}{size}", *[size] * (columns - 1)]
    names = [
        f'{label} data-head="{escape(head)}"' for label, head in zip(labels, heads, strict=True)
    ]
    row = iter(names)

    def named(tag: re.Match[str]) -> str:
        nonlocal row
        if tag[0].startswith("<tr"):
            row = iter(names)
            return tag[0]
        return f"{tag[0]}{next(row)}"

    return Markup(re.sub(r"<(?:tr|th|td)\b[^>]*", named, rows))


def link(path: str) -> str:
    """Return the address of a file below the page's directory; no path makes it an address elsewhere, or script."""
    return quote(path.lstrip("/"), errors="surrogateescape")


def render(template: str, **content: Any) -> str:
    """A page; every text in `content` that is not `Markup` is escaped, and what UTF-8 cannot hold is shown as \\xff."""
    page = _environment().get_template(template).render(content)
    # Bytes of a file name that are no text.
    return page.encode(errors="backslashreplace").decode()


@cache
def _environment() -> Environment:
    script = (_HERE / "interactive.js").read_text(encoding="utf-8")
    environment = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {
        "style": Markup((_HERE / "page.css").read_text(encoding="utf-8")),
        "script": Markup(script),
        # The policy lets a browser load nothing, and run nothing but the script with this hash.
        "script_hash": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
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
