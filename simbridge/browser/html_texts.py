"""The studio's sentences and tables as HTML.

viser shows Markdown and HTML as they are, scripts included, so no name, path or message may become
part of them. The studio's texts are therefore HTML made by templates of markupsafe, which escape
every value that is not HTML itself; the reports are made in the same way. Labels, hints, choices
and plots of viser are plain text: they take texts as they are.
"""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

# Style of the texts; each page takes it once.
STYLE = Markup(
    "<style>\n"
    ".studio-text { padding: 0 0.75rem 0.6rem; font-size: 0.875rem; line-height: 1.5; "
    "overflow-wrap: anywhere }\n"
    ".studio-text p { margin: 0 0 0.4rem }\n"
    ".studio-text code { padding: 0 0.3em; border-radius: 3px; background: #8883 }\n"
    ".studio-text table { width: 100%; border-collapse: collapse }\n"
    ".studio-text th, .studio-text td { padding: 0.25rem 0.5rem; border: 1px solid #8884; "
    "text-align: left }\n"
    ".studio-text td:not(:first-child), .studio-text th { overflow-wrap: normal }\n"
    "</style>"
)

_TEXT = Markup('<div class="studio-text">{}</div>')
_PARAGRAPH = Markup("<p>{}</p>")
_BOLD = Markup("<b>{}</b>")
_TABLE = Markup("<table><thead>{}</thead><tbody>{}</tbody></table>")
_ROW = Markup("<tr>{}</tr>")
_HEADING = Markup("<th>{}</th>")
_CELL = Markup("<td>{}</td>")


def text(*paragraphs: str) -> Markup:
    """Return paragraphs as an element of the panel.

    Empty ones are left out, and nothing remains of no paragraphs.
    """
    elements = [_PARAGRAPH.format(paragraph) for paragraph in paragraphs if paragraph]
    if not elements:
        return Markup()
    return _TEXT.format(Markup().join(elements))


def bold(sentence: str) -> Markup:
    """Return a sentence in bold."""
    return _BOLD.format(sentence)


def table(rows: Sequence[Sequence[str]], head: Sequence[str]) -> Markup:
    """Return a table as an element of the panel.

    Args:
        rows: Cells of each row.
        head: Headings of the columns.
    """
    headings = Markup().join(_HEADING.format(name) for name in head)
    body = Markup()
    for row in rows:
        cells = Markup().join(_CELL.format(cell) for cell in row)
        body += _ROW.format(cells)
    return _TEXT.format(_TABLE.format(_ROW.format(headings), body))


def question(facts: Sequence[tuple[str, str]], sentence: str) -> Markup:
    """Return what is asked before a real arm moves, below the facts that the answer needs.

    Args:
        facts: Name and value of each.
        sentence: The question.
    """
    return table(facts, ("found", "value")) + text(bold(sentence))
