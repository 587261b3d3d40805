"""Draw docs/session.png, the report of the session that docs/live.md shows.

    python -m tools.draw_session [DIRECTORY]

It needs chromium, and half a minute.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

import simbridge
from simbridge.sessions.session import LiveSession
from tests.chromium import chromium

# Time between two inputs, s.
INPUT_INTERVAL_S = 0.05
# Of the browser's window, pixels.
SIZE = {"width": 1160, "height": 1605}


def main() -> None:
    """Record the session, and photograph its report."""
    directory = Path(sys.argv[1] if len(sys.argv) > 1 else "docs")
    with chromium() as browser, tempfile.TemporaryDirectory() as scratch:
        if browser is None:
            sys.exit("chromium or the package playwright is not installed")
        run = Path(scratch, "hand")
        with simbridge.live("pybullet", robot="ur10e", out=run, realtime=False) as session:
            drive(session)
        page = browser.new_page(viewport=SIZE)
        page.goto(f"file://{run / 'report.html'}")
        page.screenshot(path=directory / "session.png")


def drive(session: LiveSession) -> None:
    """Move the arm as the example of docs/live.md does, then into each kind of slow-down."""
    session.engage()
    give_twists(session, [0.0, 0.05, 0.0, 0.0, 0.0, 0.0], duration=2.0)

    # No input: the arm brakes and holds.
    session.wait(0.6)

    # Outwards, to a singularity, and back.
    give_twists(session, [0.25, 0.0, 0.0, 0.0, 0.0, 0.0], duration=3.0)
    give_twists(session, [-0.25, 0.0, 0.0, 0.0, 0.0, 0.0], duration=1.5)
    session.halt()
    session.wait(0.4)

    # A wrist at its limit of velocity.
    give_twists(session, [0.0, 0.0, 0.0, 0.0, 0.0, 6.0], duration=0.4)

    # A pose too far away is rejected.
    far = session.tool
    far.translation = far.translation + np.array([0.0, 0.4, 0.0])
    session.pose(far)
    session.wait(0.4)

    # Down to the floor.
    give_twists(session, [0.0, 0.0, -0.25, 0.0, 0.0, 0.0], duration=3.5)
    session.disengage()
    session.wait(0.5)

    session.engage()
    give_twists(session, [0.0, 0.0, 0.1, 0.0, 0.0, 0.0], duration=1.5)


def give_twists(session: LiveSession, twist: list[float], duration: float) -> None:
    """Give the session the same twist for a while.

    Args:
        session: The engaged session.
        twist: (6,), m/s and rad/s of the TCP, in the axes of base_link.
        duration: s.
    """
    for _ in range(round(duration / INPUT_INTERVAL_S)):
        session.twist(twist)
        session.wait(INPUT_INTERVAL_S)


if __name__ == "__main__":
    main()
