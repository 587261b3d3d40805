"""The directives of the reference: what the program and the package say of themselves.

    commands        the help of each command, of each experiment, and the settings of each solver
    public-names    each public name with its docstring

Both read the registries, so nothing is written a second time.
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterable, Iterator
from unittest import mock

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import simbridge
from simbridge.cli.command_line import main
from simbridge.cli.flags import COMMANDS
from simbridge.experiments import EXPERIMENTS
from simbridge.ik.settings import SOLVERS

# Characters of a line of help: what fits next to the site's table of contents.
_WIDTH = 92


def printed_help(*words: str) -> str:
    """What the program prints for a command line that ends in --help."""
    printed = io.StringIO()
    environment = {**os.environ, "COLUMNS": str(_WIDTH), "NO_COLOR": "1"}
    with mock.patch.dict(os.environ, environment), contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        main([*words, "--help"])
    return printed.getvalue()


def helps() -> Iterator[tuple[str, str]]:
    """A title and a text for each command, each experiment, and the settings of each solver that has some."""
    for name in COMMANDS:
        text = printed_help(name)
        yield f"simbridge {name}", text.partition("╭─ solver options")[0].rstrip()
        if name == "experiment":
            for experiment in EXPERIMENTS:
                yield f"simbridge experiment {experiment}", printed_help(name, experiment).rstrip()
    for solver in SOLVERS:
        _, panel, settings = printed_help("run", "--solver", solver).partition("╭─ solver options")
        if panel:
            yield f"--solver {solver}", panel + settings.rstrip()


class Commands(SphinxDirective):
    """`commands`: a section for each text of `helps`."""

    def run(self) -> list[nodes.Node]:
        sections: list[nodes.Node] = []
        for title, text in helps():
            section = nodes.section(ids=[nodes.make_id(title)], names=[nodes.fully_normalize_name(title)])
            section += [nodes.title(title, title), nodes.literal_block(text, text, language="text")]
            self.state.document.note_implicit_target(section, section)
            sections.append(section)
        return sections


def documented(names: Iterable[str]) -> Iterator[str]:
    """The directives of autodoc for public names, in reStructuredText."""
    for name in names:
        value = getattr(simbridge, name)
        if isinstance(value, type):
            kind = "autoexception" if issubclass(value, Exception) else "autoclass"
            yield f".. {kind}:: simbridge.{name}\n"
        elif callable(value):
            yield f".. autofunction:: simbridge.{name}\n"


class PublicNames(SphinxDirective):
    """`public-names`: functions first, then classes, each in alphabetical order."""

    def run(self) -> list[nodes.Node]:
        names = sorted(simbridge.__all__, key=lambda name: (isinstance(getattr(simbridge, name), type), name))
        return self.parse_text_to_nodes("\n".join(["```{eval-rst}", *documented(names), "```"]))


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("commands", Commands)
    app.add_directive("public-names", PublicNames)
    return {"parallel_read_safe": True}
