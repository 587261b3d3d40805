"""The servo process of a live session: it makes the setpoints itself, from inputs that the parent posts.

It is a separate module because it loads solvers and collision shapes, which a replay does not need.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from simbridge.backends.live_channel import LiveChannel
from simbridge.backends.live_loop import LiveLoop, Request, unpickled
from simbridge.backends.loop_process import new_files_allowed
from simbridge.backends.servo_channel import Event, StateRing
from simbridge.backends.servo_loop import ServoLoop
from simbridge.backends.servo_process import Session, leave, main


class LiveServoSession(Session):
    """A session whose setpoints come from a live motion."""

    def _prepare(self) -> None:
        assert self._config.live is not None
        self._motion = unpickled(Path(self._config.live).read_bytes()).motion()
        self._live: LiveLoop | None = None

    def _take(self, loop: ServoLoop, request: dict[str, Any]) -> None:
        """Begin the session, or pass on an order."""
        if self._live is not None:
            self._live.requests.append(Request.received(request))
            return
        config, joints = self._config, len(self._config.limits.joint_names)
        self._motion.rest_at(loop.measured)
        with new_files_allowed():
            channel = LiveChannel(Path(request["channel"]), joints)
            ring = StateRing(Path(request["ring"]), joints, request["rows"])
        self._live = LiveLoop(self._motion, channel, config.period, time.monotonic, late=lambda: loop.slowed)
        self._parent.report(event="session", subjects=list(self._motion.subjects))
        loop.play(self._live, ring.write, feedforward=config.feedforward)
        self._on(Event.PLAY)


if __name__ == "__main__":
    leave(main(LiveServoSession))
