"""The frame of every page: its head, its style, its one script, and the small pieces that all sections are made of."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from html import escape
from pathlib import Path

from simbridge.report.tables import swatch

# The policy lets a browser load nothing, and run nothing but the script with this hash: whatever a name in the settings
# may hold, the page stays by itself.
_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'sha256-{hash}'; \
style-src 'unsafe-inline'; img-src data:">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<main>
{sections}
</main>
<script>{script}</script>
</body>
</html>
"""


def document(title: str, sections: Sequence[str]) -> str:
    """A whole page of sections: one file that needs nothing else."""
    here = Path(__file__)
    script = here.with_name("interactive.js").read_text(encoding="utf-8")
    return _PAGE.format(
        title=escape(title),
        style=here.with_name("page.css").read_text(encoding="utf-8"),
        sections="\n".join(sections),
        script=script,
        hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def section(name: str, title: str, content: str) -> str:
    """A part of the page under a heading."""
    return f'<section id="{name}">\n<h2>{title}</h2>\n{content}\n</section>'


def legend(*entries: tuple[str, str, str]) -> str:
    """Names, colours and kinds of swatch."""
    items = "".join(f"<li>{swatch(colour, kind)}{escape(name)}</li>" for name, colour, kind in entries)
    return f'<ul class="legend">{items}</ul>'


def figure(caption: str, notes: Sequence[str], drawn: str) -> str:
    """A drawing with what it shows above it, and what to know about it below."""
    small = f'<p class="note">{escape(" ".join(notes))}</p>' if notes else ""
    return f"<figure><figcaption>{escape(caption)}</figcaption>{drawn}{small}</figure>"
