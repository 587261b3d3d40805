"""Draw docs/studio.png and docs/studio_phone.png: the studio's page while its goal is dragged; needs chromium.

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

# An arrow of the goal's frame as the first camera sees it at this size, and how far it is dragged, pixels.
DESKTOP, ARROW, FAR = {"width": 1280, "height": 800}, (344.0, 451.0), (-70.0, -14.0)
PHONE = {"width": 390, "height": 844}


def opened(browser: Browser, url: str, size: dict[str, int]) -> Page:
    """The page, once it has drawn its scene, without the note on drawing in software."""
    page = browser.new_page(viewport=size)  # type: ignore[arg-type]
    page.goto(url)
    page.get_by_role("tab", name="Goal").wait_for()
    time.sleep(6.0)
    note = page.get_by_text("Software WebGL rendering detected")
    if note.count():
        note.locator("xpath=ancestor::*[.//button][1]//button").first.click()
    return page


def main() -> None:
    directory = Path(sys.argv[1] if len(sys.argv) > 1 else "docs")
    studio = simbridge.studio(port=free_port())
    with chromium() as browser:
        if browser is None:
            sys.exit("chromium or the package playwright is not installed")
        page = opened(browser, studio.url, DESKTOP)
        page.get_by_role("tab", name="Solver").click()
        time.sleep(1.0)
        page.mouse.move(*ARROW)
        page.mouse.down()
        for step in range(60):
            share = math.sin(0.08 * step) ** 2
            page.mouse.move(ARROW[0] + share * FAR[0], ARROW[1] + share * FAR[1])
            time.sleep(0.03)
        page.screenshot(path=directory / "studio.png")
        page.mouse.up()
        page.close()
        phone = opened(browser, studio.url, PHONE)
        phone.get_by_text("dark", exact=True).click()
        phone.get_by_role("tab", name="Figures").click()
        time.sleep(1.0)
        phone.mouse.move(260.0, 600.0)
        phone.mouse.wheel(0.0, 420.0)
        time.sleep(1.0)
        phone.screenshot(path=directory / "studio_phone.png")
    studio.close()


if __name__ == "__main__":
    main()
