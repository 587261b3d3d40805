"""A terminal in which nothing that is printed is a command.

Names, file names and messages come from files, scripts and controllers. Printed as they are, a
control character in one could clear the screen, or write over what was printed before a question.
"""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from simbridge.quoting import visible
from simbridge.text import readable_width


class Terminal(Console):
    """rich's console, which shows control characters of texts in place of obeying them.

    Names are not emoji: `:x:` stays as it is. Numbers are not coloured. All texts and tables have
    one width (see `readable_width`).

    Args:
        more: rich's arguments.
    """

    def __init__(self, **more: Any) -> None:
        super().__init__(highlight=False, emoji=False, **more)
        self.width = readable_width(self)

    def render_str(self, text: str, **more: Any) -> Text:
        """Return rich's text of a string: of all that is printed, and of the cells of tables."""
        return super().render_str(visible(text, keep="\n\t"), **more)
