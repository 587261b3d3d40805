"""Live sessions for tests, on a clock of their own."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from simbridge.backends import SIMULATION
from simbridge.errors import InvalidParameter
from simbridge.sessions.session import LiveSession
from simbridge.sessions.setup import live


def moved(pose: pin.SE3, *by: float) -> pin.SE3:
    """A pose, moved by (3,), m."""
    return pin.SE3(pose.rotation, pose.translation + np.array(by))


def stepped(out: Path, robot: str = "ur10e", **options: Any) -> LiveSession:
    """A session whose clock moves only by `wait`."""
    return live(SIMULATION, robot=robot, out=out, realtime=False, **options)


def every_input(session: LiveSession) -> None:
    """All kinds of input: in bursts and gaps, stale, refused, malformed, halted; and two
    engagements.
    """
    session.engage()
    session.wait(0.01)
    begin = session.tool
    for k in range(8):
        # The first of both is superseded.
        session.pose(moved(begin, 0.0, 0.004 * k, 0.002 * k))
        session.pose(moved(begin, 0.0, 0.005 * k, 0.0))
        session.wait(0.05 if k % 2 else 0.016)
    # Refused: too far.
    session.pose(moved(begin, 0.5, 0.0, 0.0))
    session.wait(0.016)
    for frame in ("base_link", "base", "tool"):
        session.twist([0.05, -0.05, 0.1, 0.0, 0.2, 0.0], frame=frame)  # type: ignore[arg-type]
        session.wait(0.08)
    # Stale after 0.2 s, and late.
    session.wait(0.4)
    for _ in range(2):
        session.jog([0.1, -0.2, 0.1, 0.0, 0.3, 4.0])
        session.wait(0.15)
    session.halt()
    session.wait(0.2)
    session.pose(begin.actInv(moved(session.tool, 0.02, 0.0, 0.02)), relative=True)
    session.wait(0.1)
    with contextlib.suppress(InvalidParameter):
        session.pose([np.nan] * 7)
    assert session.state is not None
    session.joints(session.state.q + 0.05)
    session.wait(0.1)
    session.disengage()
    session.wait(0.1)
    # Refused: not engaged.
    session.jog([1.0] * 6)
    session.wait(0.1)
    session.engage()
    session.wait(0.02)
    now = session.tool
    session.follow([0.05, 0.1, 0.2], [moved(now, 0.0, 0.0, 0.01 * k) for k in (1, 2, 3)])
    session.wait(0.12)
    session.follow([0.0, 0.2], [session.state.q, session.state.q + 0.02])
    session.note("button", number=2)
    session.wait(0.3)
    session.disengage()
    session.wait(0.1)


def make_killed(session: Path, out: Path) -> Path:
    """A copy of a session as kill -9 leaves it: no summary, no page, files that end anywhere, the
    log's first.
    """
    out.mkdir()
    for name, left in (("settings.toml", 0), ("inputs.jsonl", 5), ("events.jsonl", 5)):
        whole = (session / name).read_bytes()
        (out / name).write_bytes(whole[: len(whole) - left])
    whole = (session / "log.mcap").read_bytes()
    (out / "log.mcap").write_bytes(whole[: int(0.7 * len(whole))])
    return out


def make_never_engaged(out: Path) -> Path:
    """A session that refuses an input and moves nothing."""
    with stepped(out) as session:
        session.wait(0.1)
        session.jog([0.1] * 6)
        session.wait(0.1)
    return out


def lines(directory: Path, name: str) -> list[dict[str, Any]]:
    """The lines of inputs.jsonl or events.jsonl."""
    return [json.loads(line) for line in (directory / name).read_text().splitlines()]
