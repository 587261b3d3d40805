"""Scripted dragging in the studio's page, for half an hour where there is time: its memory must not
grow.
"""

from __future__ import annotations

import math
import subprocess
import sys
import time
from pathlib import Path
from statistics import fmean
from typing import Any

from tests.chromium import chromium
from tests.ports import free_port

# Small: a page that is drawn without a graphics card takes a core.
SIZE = {"width": 640, "height": 480}
LONGEST = 1800.0
# Largest growth of the mean memory from the second third to the last, as a ratio.
_GROWTH = 0.05
# Time between two measurements of the resident memory, s.
_EVERY = 5.0
# Where the first camera of this page sees an arrow of the goal's frame, pixels.
_ARROW = (142.0, 270.5)
# Distance that the arrow is dragged, pixels.
_FAR = 30.0


def drag(seconds: float) -> list[str]:
    """Drag the goal to and fro for so long; what must not be."""
    port = free_port()
    command = [sys.executable, "-m", "simbridge", "studio", "--no-browser", "--port", str(port)]
    with chromium() as browser:
        if browser is None:
            print("Dragging in the studio is skipped: playwright or chromium is not installed.")
            return []
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as served:
            try:
                assert served.stdout is not None
                url = served.stdout.readline().removeprefix("Studio: ").strip()
                page = browser.new_page(viewport=SIZE)
                page.goto(url)
                measured, goals = _dragged(page, served.pid, seconds)
            finally:
                served.terminate()
    if goals < 2:
        return ["the drag moved no goal in the studio's page"]
    third = len(measured) // 3
    middle, last = (fmean(part) for part in (measured[third : 2 * third], measured[2 * third :]))
    print(
        f"Studio: {seconds / 60.0:.0f} minutes of dragging; resident {middle:.0f} MB, "
        f"in the last third {last:.0f} MB."
    )
    return (
        [f"the studio's memory grew from {middle:.0f} to {last:.0f} MB"]
        if last > (1.0 + _GROWTH) * middle
        else []
    )


def _dragged(page: Any, pid: int, seconds: float) -> tuple[list[float], int]:
    """Resident memory now and then, MB; and how many goals the page showed."""
    page.get_by_role("tab", name="Goal").wait_for(timeout=60_000.0)
    time.sleep(3.0)
    measured = []
    goals = set()
    begin = time.monotonic()
    page.mouse.move(*_ARROW)
    page.mouse.down()
    while (elapsed := time.monotonic() - begin) < seconds:
        page.mouse.move(_ARROW[0] + _FAR * math.sin(elapsed), _ARROW[1])
        time.sleep(0.03)
        if elapsed > _EVERY * (len(measured) + 1):
            measured.append(_resident(pid))
            goals.add(tuple(one.input_value() for one in page.locator("input").all()))
    page.mouse.up()
    return measured, len(goals)


def _resident(pid: int) -> float:
    """MB."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024.0
