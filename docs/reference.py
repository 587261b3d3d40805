"""The directives of the reference: what the program and the package say of themselves.

    commands        the help of each command and subcommand, and the settings of each solver
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
from simbridge.cli.command_line import SUBCOMMANDS, main
from simbridge.cli.flags import COMMANDS
from simbridge.ik.settings import ALL_SOLVERS

PUBLIC = {name: getattr(simbridge, name).__module__ for name in simbridge.__all__}
"""The public names, and the modules that define them."""
# Characters of a line of help: what fits next to the site's table of contents.
_WIDTH = 92
# The heading of the part of the help that depends on the solver.
_SETTINGS = "\n solver options\n"


def printed_help(*words: str) -> str:
    """Return what the program prints for a command line that ends in --help."""
    printed = io.StringIO()
    environment = {**os.environ, "COLUMNS": str(_WIDTH), "NO_COLOR": "1"}
    with (
        mock.patch.dict(os.environ, environment),
        contextlib.redirect_stdout(printed),
        contextlib.suppress(SystemExit),
    ):
        main([*words, "--help"])
    return "\n".join(line.rstrip() for line in printed.getvalue().splitlines())


def helps() -> Iterator[tuple[str, str]]:
    """Yield titles and texts of help.

    There is one for each command and subcommand, and for each solver that has settings.
    """
    for name in COMMANDS:
        text = printed_help(name)
        yield f"simbridge {name}", text.partition(_SETTINGS)[0].rstrip()
        for subcommand in SUBCOMMANDS.get(name, {}):
            yield f"simbridge {name} {subcommand}", printed_help(name, subcommand).rstrip()
    for solver in ALL_SOLVERS:
        _, panel, settings = printed_help("run", "--solver", solver).partition(_SETTINGS)
        if panel:
            yield f"--solver {solver}", settings


class Commands(SphinxDirective):
    """`commands`: a section for each text of `helps`."""

    def run(self) -> list[nodes.Node]:
        sections: list[nodes.Node] = []
        for title, text in helps():
            section = nodes.section(
                ids=[nodes.make_id(title)], names=[nodes.fully_normalize_name(title)]
            )
            section += [nodes.title(title, title), nodes.literal_block(text, text, language="text")]
            self.state.document.note_implicit_target(section, section)
            sections.append(section)
        return sections


def documented(names: Iterable[str]) -> Iterator[str]:
    """The directives of autodoc for public names, in reStructuredText."""
    for name in names:
        value = getattr(simbridge, name)
        kind = "autofunction"
        if isinstance(value, type):
            kind = "autoexception" if issubclass(value, Exception) else "autoclass"
        yield f".. {kind}:: simbridge.{name}\n"


class PublicNames(SphinxDirective):
    """The directive `public-names PACKAGE ...`, which lists what these packages define.

    Functions come first, each in alphabetical order.
    """

    required_arguments, optional_arguments = 1, 99

    def run(self) -> list[nodes.Node]:
        chosen = [name for name, module in PUBLIC.items() if module.split(".")[1] in self.arguments]
        chosen.sort(key=lambda name: (isinstance(getattr(simbridge, name), type), name))
        return self.parse_text_to_nodes("\n".join(["```{eval-rst}", *documented(chosen), "```"]))


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directives to Sphinx, which calls this."""
    app.add_directive("commands", Commands)
    app.add_directive("public-names", PublicNames)
    return {"parallel_read_safe": True}
