"""A page that shows the arm of a live session in the scene of the studio. It moves nothing."""

from __future__ import annotations

import threading

from simbridge.browser.drawn_arm import DrawnArm
from simbridge.browser.scene import draw_surroundings
from simbridge.report.guarded_viser import GuardedViserServer
from simbridge.report.page_gate import PageGate
from simbridge.robot.obstacles import CollisionScene
from simbridge.sessions.session import LiveSession

# The address on which the page is served: this computer only.
ADDRESS = "127.0.0.1"
# The first port that is tried; if it is in use, the next free one is taken.
FIRST_PORT = 8080
# How often the arm is drawn, s.
FRAME_S = 1.0 / 30.0


class SessionView:
    """The page of a session. A context manager: the page is served until it is left.

    Args:
        session: The session, which has begun.
        obstacles: The floor and the obstacles around the arm.

    Attributes:
        url: URL of the page. Its path is the token without which nobody sees it.
    """

    def __init__(self, session: LiveSession, obstacles: CollisionScene) -> None:
        self._session = session
        self._obstacles = obstacles
        # Set when the page is to end.
        self._closed = threading.Event()

    def __enter__(self) -> SessionView:
        gate = PageGate()
        self._server = GuardedViserServer(gate, ADDRESS, FIRST_PORT, "simbridge teleop")
        self.url = f"http://{ADDRESS}:{self._server.get_port()}/{gate.token}/"
        try:
            draw_surroundings(self._server, self._session.robot, self._obstacles)
            self._drawing = DrawnArm(self._server, self._session.robot, 0)
            self._draw()
        except BaseException:
            self._server.stop()
            raise
        self._thread = threading.Thread(
            target=self._keep_drawing, name="simbridge-view", daemon=True
        )
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        self._thread.join()
        self._server.stop()

    def _keep_drawing(self) -> None:
        """Draw the arm at intervals until the page ends (the view's thread)."""
        while not self._closed.wait(FRAME_S):
            self._draw()

    def _draw(self) -> None:
        """Draw the arm where it was measured last, and the solution that it follows as a ghost."""
        newest = self._session.newest
        state = self._session.state
        if state is not None:
            q = state.q
        elif newest is not None:
            q = newest.setpoint
        else:
            q = self._session.begins_at
        self._drawing.pose(q, q if newest is None else newest.solution)
