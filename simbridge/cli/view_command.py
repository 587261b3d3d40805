"""The command `simbridge view`: the page of a run, of repeats, or of a sweep."""

from __future__ import annotations

import os
import sys
import webbrowser
from pathlib import Path

from simbridge.cli.flags import ViewFlags
from simbridge.cli.listed_runs import settings_of_repeats
from simbridge.errors import NotARun, Refusal
from simbridge.quoting import shell_quoted

# Names of pages in a directory; the first that is there is opened.
PAGES = ("report.html", "sweep.html", "compare.html")
# On Linux, a desktop or a browser is there if one of these variables is set.
DESKTOP_VARIABLES = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")


class NoPage(Refusal, LookupError):
    """A directory has no page to be shown.

    Attributes:
        path: Path of the directory.
    """

    def __init__(self, path: Path, reason: str) -> None:
        self.path = path
        super().__init__(f"{path} has no page: {reason}.")


def view(flags: ViewFlags) -> int:
    """Print the path of a directory's page, and open it where there is a browser.

    Returns:
        The exit status, 0.

    Raises:
        NotARun, NoPage: There is no such directory, or no page in it.
    """
    path = Path(flags.run)
    if not path.is_dir():
        raise NotARun(path, "", "directory not found")

    page = _find_page(path)
    print(page)
    if has_desktop() and not flags.no_browser:
        webbrowser.open(page.resolve().as_uri())
    return 0


def _find_page(directory: Path) -> Path:
    """Return the page of a directory.

    Raises:
        NoPage: There is none.
    """
    for name in PAGES:
        page = directory / name
        if page.is_file():
            return page

    reason = "it is not the directory of a run or a sweep"
    if (directory / "settings.toml").is_file() or settings_of_repeats(directory):
        reason = f"`simbridge report {shell_quoted(directory)}` writes it"
    raise NoPage(directory, reason)


def has_desktop() -> bool:
    """Return whether there is a screen: without one, Python would open a browser for terminals."""
    if sys.platform == "darwin":
        return True
    return any(os.environ.get(name) for name in DESKTOP_VARIABLES)
