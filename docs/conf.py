"""The documentation as a site: `make docs` builds it into build/docs, and every warning is an error.

The pages are the Markdown files of the repository, at their places: they read the same on GitHub, and links between
them are the same. docs/index.md lists them; its lists are the site's table of contents. Nothing is fetched from other
hosts, neither by the build nor by the pages.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(CHECKOUT), str(CHECKOUT / "docs")]

from sphinx.util.inspect import TypeAliasForwardRef  # noqa: E402

from simbridge import __version__  # noqa: E402 (found by the line above)

# In a union Sphinx prints the representation of an alias, where it should print its name.
TypeAliasForwardRef.__repr__ = lambda self: self.name  # type: ignore[method-assign]

project = "simbridge"
author = "the simbridge developers"
project_copyright = author
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "reference"]
root_doc = "docs/index"
include_patterns = ["docs/*.md", "*/README.md", "tests/data/ur3e_moves/README.md", "CHANGELOG.md", "CONTRIBUTING.md"]
exclude_patterns = [".*", "build", "dist", "runs"]

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
napoleon_use_ivar = True
# A single backtick is code in docstrings, too.
default_role = "code"
# What all solvers have is said of `Solver`; what settings share is a setting of each.
autodoc_default_options = {"members": True, "inherited-members": "Solver,BaseException,object"}
autodoc_type_aliases = {name: name for name in ("Array", "ArrayLike", "Ask", "Facts", "Flags", "StepFunction")}
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
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
        pages = [f"{name} <{re.sub(r'^/docs/[.][.]/', '/', f'/docs/{page}')}>" for name, page in links]
        yield "\n".join([f"```{{toctree}}\n:hidden:\n:caption: {caption}\n", *pages, "```\n"])


def add_contents(app: object, name: str, source: list[str]) -> None:
    """Sphinx calls this with the text of each page."""
    if name == root_doc:
        source[0] += "\n" + "\n".join(contents(source[0]))


def add_entrance(app: object, error: Exception | None) -> None:
    """The site's own first page is below docs/: its folder opens there."""
    if error is None:
        page = f'<!doctype html><meta http-equiv="refresh" content="0; url={root_doc}.html"><title>{project}</title>'
        Path(app.outdir, "index.html").write_text(page, encoding="utf-8")  # type: ignore[attr-defined]


def setup(app: object) -> None:
    app.connect("source-read", add_contents)  # type: ignore[attr-defined]
    app.connect("build-finished", add_entrance)  # type: ignore[attr-defined]
