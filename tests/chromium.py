"""The browser in which tests, benchmarks and drawings look at pages."""

from __future__ import annotations

import contextlib
import importlib
import resource
import shutil
from collections.abc import Iterator
from typing import Any

from tests.patience import PATIENCE

_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
# It draws in software.
_BROWSER_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
]


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """Yield Playwright's browser; None where Chromium or playwright is not installed."""
    path = next(filter(None, map(shutil.which, _BROWSERS)), None)
    try:
        sync_playwright = importlib.import_module("playwright.sync_api").sync_playwright
    except ImportError:
        path = None
    if path is None:
        yield None
        return
    # Chromium reserves more addresses than `make soak` allows its own processes.
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (limits[1], limits[1]))
    with sync_playwright() as player:
        resource.setrlimit(resource.RLIMIT_AS, limits)
        browser = player.chromium.launch(executable_path=path, args=_BROWSER_FLAGS)
        try:
            yield browser
        finally:
            browser.close()


def patient_context(browser: Any, **options: Any) -> Any:
    """Return a new context of the browser, whose pages wait as long as a busy computer may need."""
    context = browser.new_context(**options)
    context.set_default_timeout(1e3 * PATIENCE)
    return context
