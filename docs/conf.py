"""The documentation as a site: `make docs` builds it into build/docs.

Every warning is an error.

The pages are the Markdown files of the repository, at their places: they read the same on GitHub,
and links between them are the same. docs/index.md lists them; its lists are the site's table of
contents. Nothing is fetched from other hosts, neither by the build nor by the pages.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(CHECKOUT), str(CHECKOUT / "docs")]

from simbridge import __version__  # noqa: E402 (found by the line above)

project = "simbridge"
author = "the simbridge developers"
project_copyright = author
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "reference"]
root_doc = "docs/index"
include_patterns = [
    "docs/*.md",
    "*/README.md",
    "tests/data/ur3e_moves/README.md",
    "tests/data/ur5_movej/README.md",
    "tests/data/ur5_speedj/README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
]
exclude_patterns = [".*", "build", "dist", "runs"]

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
napoleon_use_ivar = True
# A single backtick is code in docstrings, too.
default_role = "code"
# What all solvers have is said of `Solver`; what settings share is a setting of each.
autodoc_default_options = {"members": True, "inherited-members": "Solver,BaseException,object"}
autodoc_type_aliases = {
    name: name for name in ("Array", "ArrayLike", "Ask", "Facts", "Flags", "StepFunction")
}
autodoc_member_order = "bysource"
python_use_unqualified_type_names = True
toc_object_entries = False

html_theme = "furo"
html_title = f"simbridge {release}"
html_copy_source = False
html_show_sourcelink = False


def contents(text: str) -> Iterator[str]:
    """The tables of contents of docs/index.md: one for each heading, of the links below it."""
    for section in text.split("\n## ")[1:]:
        caption, _, body = section.partition("\n")
        links = re.findall(r"\[([^\]]+)\]\(([^):#]+)\.md\)", body)
        pages = [
            f"{name} <{re.sub(r'^/docs/[.][.]/', '/', f'/docs/{page}')}>" for name, page in links
        ]
        yield "\n".join([f"```{{toctree}}\n:hidden:\n:caption: {caption}\n", *pages, "```\n"])


def add_contents(app: object, name: str, source: list[str]) -> None:
    """Sphinx calls this with the text of each page."""
    if name == root_doc:
        source[0] += "\n" + "\n".join(contents(source[0]))


def add_entrance(app: object, error: Exception | None) -> None:
    """The site's own first page is below docs/: its folder opens there."""
    if error is None:
        redirect = f'<meta http-equiv="refresh" content="0; url={root_doc}.html">'
        page = f"<!doctype html>{redirect}<title>{project}</title>"
        Path(app.outdir, "index.html").write_text(page, encoding="utf-8")  # type: ignore[attr-defined]


def name_aliases(
    app: object, what: str, name: str, of: object, options: object, *parts: str | None
) -> tuple[Any, ...]:
    """Return a signature and its result with the names of aliases.

    Sphinx prints the representation of an alias in a union, not its name.
    """
    return tuple(part and re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", part) for part in parts)


def setup(app: object) -> None:
    """Connect the functions above to Sphinx, which calls this."""
    app.connect("autodoc-process-signature", name_aliases)  # type: ignore[attr-defined]
    app.connect("source-read", add_contents)  # type: ignore[attr-defined]
    app.connect("build-finished", add_entrance)  # type: ignore[attr-defined]
