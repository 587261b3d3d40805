"""Draw docs/studio.png and docs/studio_phone.png: the studio while its goal is dragged.

It needs chromium.

python -m tools.draw_studio [DIRECTORY]
"""

from __future__ import annotations

import math
import sys
import time
from pathlib import Path

from playwright.sync_api import Browser, Page

import simbridge
from tests.chromium import chromium
from tests.ports import free_port

# Sizes of the browser's window, pixels.
DESKTOP = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}
# An arrow of the goal's frame as the first camera sees it on a desktop, and how far it is dragged,
# pixels.
ARROW = (344.0, 451.0)
DRAG = (-70.0, -14.0)
# How long the page takes to draw its scene, s.
DRAWING_S = 6.0


def open_page(browser: Browser, url: str, size: dict[str, int]) -> Page:
    """Return the page with its scene, without the note on drawing in software."""
    page = browser.new_page(viewport=size)  # type: ignore[arg-type]
    page.goto(url)
    page.get_by_role("tab", name="Goal").wait_for()
    time.sleep(DRAWING_S)
    note = page.get_by_text("Software WebGL rendering detected")
    if note.count():
        note.locator("xpath=ancestor::*[.//button][1]//button").first.click()
    return page


def main() -> None:
    """Photograph the studio on a desktop and on a phone."""
    directory = Path(sys.argv[1] if len(sys.argv) > 1 else "docs")
    studio = simbridge.studio(port=free_port())
    with chromium() as browser:
        if browser is None:
            sys.exit("chromium or the package playwright is not installed")
        _draw_desktop(browser, studio.url, directory / "studio.png")
        _draw_phone(browser, studio.url, directory / "studio_phone.png")
    studio.close()


def _draw_desktop(browser: Browser, url: str, path: Path) -> None:
    """Photograph the page while the goal is dragged to and fro."""
    page = open_page(browser, url, DESKTOP)
    page.get_by_role("tab", name="Solver").click()
    time.sleep(1.0)

    page.mouse.move(*ARROW)
    page.mouse.down()
    for step in range(60):
        fraction = math.sin(0.08 * step) ** 2
        page.mouse.move(ARROW[0] + fraction * DRAG[0], ARROW[1] + fraction * DRAG[1])
        time.sleep(0.03)
    page.screenshot(path=path)
    page.mouse.up()
    page.close()


def _draw_phone(browser: Browser, url: str, path: Path) -> None:
    """Photograph the page's figures in its dark colours."""
    page = open_page(browser, url, PHONE)
    page.get_by_text("dark", exact=True).click()
    page.get_by_role("tab", name="Figures").click()
    time.sleep(1.0)

    # Scroll to the figures.
    page.mouse.move(260.0, 600.0)
    page.mouse.wheel(0.0, 420.0)
    time.sleep(1.0)
    page.screenshot(path=path)


if __name__ == "__main__":
    main()
