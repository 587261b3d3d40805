"""Speed of the studio in a browser.

Measured are the time from a drag to new joint positions, the loop's deadlines, and what the page
costs at rest.

`python -m benchmarks.studio PORT` serves the page in a process of its own, and prints its address;
and at the end, as JSON, when its loop began each pass and when it sent other joint positions.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import Any

import numpy as np

from simbridge.bench import Row
from simbridge.bench.live import missed_fraction
from simbridge.bench.measuring import client, timer
from simbridge.browser.setup import StudioSetup
from simbridge.browser.studio import FRAME_S, Studio
from simbridge.lifeline import end_with_parent
from simbridge.robot.pose import Array
from tests.chromium import chromium
from tests.ports import free_port

SIZE = {"width": 1280, "height": 800}
# Time for which the goal is dragged, s.
DRAG_S = 20.0
# Time between two moves of the drag, s.
DRAG_INTERVAL_S = 0.25
# Time for which the page rests before its load is measured, s.
SETTLING_S = 8.0
# Time over which the load of the resting page is measured, s.
REST_S = 10.0
# Number of single moves from rest, for the delay.
MOVES_FROM_REST = 15
# Time between two of these moves, s.
MOVE_INTERVAL_S = 2.0
# Distance of a move, pixels.
MOVE_PX = 25.0
# Time within which the page appears, ms.
PAGE_TIMEOUT_MS = 60_000.0


def measure() -> list[Row]:
    """The figures of docs/studio.md; one row with the reason where no browser can be driven."""
    with chromium() as browser:
        if browser is None:
            return [("studio", "skipped", "what is missing", "chromium or the package playwright")]
        return _measure(browser, free_port())


def _measure(browser: Any, port: int) -> list[Row]:
    with client("benchmarks.studio", port) as served:
        assert served.stdout is not None
        url = served.stdout.readline().strip()
        page = browser.new_page(viewport=SIZE)
        begin = time.monotonic()
        page.goto(url)
        page.get_by_role("tab", name="Goal").wait_for(timeout=PAGE_TIMEOUT_MS)
        usable = time.monotonic() - begin
        time.sleep(2.0)
        with timer(DRAG_S, FRAME_S) as bare:
            dragged, frames = _drag(page)
            woken = np.array(json.loads(bare.communicate()[0]))[:, 1]
        moves = _moves_from_rest(page)
        page.mouse.up()
        time.sleep(SETTLING_S)
        at_rest = _processor_load(served.pid, REST_S)
        page.close()
        recorded = json.loads(served.communicate("\n")[0])
    begun = _within(recorded["begun"], dragged)
    sent = np.array(recorded["sent"])
    places = np.searchsorted(sent, moves)
    delays = [
        1e3 * float(sent[k] - moved)
        for k, moved in zip(places, moves, strict=True)
        if k < len(sent)
    ]
    ours = missed_fraction(begun, FRAME_S)
    theirs = missed_fraction(woken, FRAME_S)
    rate = len(_within(recorded["sent"], dragged)) / DRAG_S
    return [
        (
            "studio: drag to joint positions, median",
            f"{np.median(delays):.0f} ms",
            "required, at most",
            "100 ms",
        ),
        (
            "studio: drag to joint positions, p95",
            f"{np.quantile(delays, 0.95):.0f} ms",
            "the median's bound",
            "100 ms",
        ),
        (
            "studio: frames drawn per second",
            f"{frames:.0f}",
            "states sent per second",
            f"{rate:.0f}",
        ),
        (
            "studio: periods missed",
            f"{ours:.2%}",
            "a bare timer's, and 1 %",
            f"{theirs + 0.01:.2%}",
        ),
        ("studio: at rest, of a core", f"{at_rest:.1%}", "required, below", "15 %"),
        ("studio: usable after", f"{usable:.1f} s", "required, at most", "3 s"),
    ]


def _within(times: list[float], span: tuple[float, float]) -> Array:
    return np.array([time for time in times if span[0] < time < span[1]])


# Where the first camera sees the tip of the frame's first arrow.
_ARROW = 344.0, 451.0


def _drag(page: Any) -> tuple[tuple[float, float], float]:
    """Drag the goal's frame to and fro by an arrow, and keep it grasped.

    Returns:
        When the drag began and ended, s, and the frames drawn a second.
    """
    page.evaluate(
        "() => { window.drawn = 0;"
        " const f = () => { window.drawn++; requestAnimationFrame(f) }; f() }"
    )
    x, y = _ARROW
    page.mouse.move(x, y)
    page.mouse.down()
    begin = time.monotonic()
    first = page.evaluate("window.drawn")
    count = 0
    while time.monotonic() - begin < DRAG_S:
        count += 1
        time.sleep(DRAG_INTERVAL_S)
        page.mouse.move(x + MOVE_PX * (-1) ** count, y)
    end = time.monotonic()
    return (begin, end), (page.evaluate("window.drawn") - first) / (end - begin)


def _moves_from_rest(page: Any) -> list[float]:
    """Move the grasped arrow again and again while the arm rests.

    What changes after such a move, changes for it.

    Returns:
        When the page had the drag's events, s.
    """
    page.evaluate(
        """() => { window.moved = []; const t = () => performance.timeOrigin + performance.now();
                   addEventListener("pointermove", () => window.moved.push(1e-3 * t()), true) }"""
    )
    moves = []
    page.mouse.move(*_ARROW)
    for count in range(MOVES_FROM_REST):
        time.sleep(MOVE_INTERVAL_S)
        known = page.evaluate("window.moved.length")
        page.mouse.move(_ARROW[0] - MOVE_PX * (-1) ** count, _ARROW[1])
        page.wait_for_function(f"window.moved.length > {known}")
        moves.append(page.evaluate(f"window.moved[{known}]") - (time.time() - time.monotonic()))
    return moves


def _processor_load(pid: int, seconds: float) -> float:
    def used() -> float:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    before = used()
    time.sleep(seconds)
    return (used() - before) / seconds


def _serve(port: int) -> None:
    """A studio whose loop's passes and answers are recorded, until standard input has a line."""
    begun: list[float] = []
    sent: list[float] = []
    with Studio(StudioSetup(), port=port) as served:
        workspace = served.workspace
        advance = workspace.advance
        draw = workspace.draw
        shown = np.empty(0)

        def advanced(seconds: float) -> None:
            begun.append(time.monotonic())
            advance(seconds)

        def drawn() -> None:
            nonlocal shown
            draw()
            if not np.array_equal(q := workspace.arm.q, shown):
                sent.append(time.monotonic())
                shown = q

        workspace.advance = advanced  # type: ignore[method-assign]
        workspace.draw = drawn  # type: ignore[method-assign]

        def close_when_told() -> None:
            sys.stdin.readline()
            served.close()

        threading.Thread(target=close_when_told).start()
        print(served.url, flush=True)
        served.run()
    print(json.dumps({"begun": begun, "sent": sent}))


if __name__ == "__main__":
    end_with_parent()
    _serve(int(sys.argv[1]))
