"""A live session on a simulated controller and clock: the servo loop as in its process, faults as a
test wants them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from simbridge.backends.servo_loop import ServoLoop
from simbridge.backends.state_ring import MAX_ROWS, StateRing
from simbridge.errors import SimbridgeError
from simbridge.planning.guard import Guard
from simbridge.robot.pose import Array
from simbridge.servo.law import ServojLaw
from simbridge.sessions import setup as live_setup
from simbridge.sessions.channel import LiveChannel
from simbridge.sessions.driver import SteppedDriver
from simbridge.sessions.loop import LiveLoop, OrderRequest
from simbridge.sessions.phases import Order
from simbridge.sessions.session import LiveSession
from tests.backends.fake_link import FakeLink, VirtualClock

MOTIONS: dict[str, Any] = {}


class VirtualController(SteppedDriver):
    """A driver whose loop is the servo loop, with a fake controller.

    Args:
        setup: Of the session.
        lateness: How much longer than requested each wait takes, s.
        faults: Of `FakeLink`: changes, freezes, delay, lag.
    """

    def __init__(self, setup: Any, lateness: Callable[[], float], **faults: Any) -> None:
        super().__init__(setup)
        self._late = lateness
        self._faults = faults
        self.link: FakeLink | None = None

    def begin(self) -> None:
        if self.link is not None:
            return
        setup = self.setup
        robot = self.setup.robot
        motion = setup.make_motion(setup.solver)
        law = ServojLaw(setup.period) if setup.servo is None else setup.servo.law
        clock = VirtualClock(self._late)
        self.link = FakeLink(clock, robot.home, setup.period, law=law, **self._faults)
        guard = Guard(robot, setup.period, law.lookahead)
        self.channel = LiveChannel(None, robot.n)
        self.subjects = motion.subjects
        memory = os.memfd_create("simbridge-states")
        self.ring = StateRing.create(Path(f"/proc/self/fd/{memory}"), robot.n, MAX_ROWS)
        os.close(memory)
        self.loop_ = ServoLoop(self.link, guard, "arm", law, clock=clock)
        motion.rest_at(self.loop_.measured)
        self._live = LiveLoop(motion, self.channel, setup.period, clock.monotonic, timed=False)
        self.loop_.play(self._live, self.ring.write)

    def step(self) -> None:
        try:
            self.loop_.run_period()
        except SimbridgeError as error:
            self._stopped = error

    def order(self, order: Order, engagement: int = 0, upto: int = 0, value: float = 0.0) -> None:
        self._live.requests.append(OrderRequest(order, engagement, upto, value))

    def poll(self, states: list[Any]) -> SimbridgeError | None:
        if self._stopped is not None:
            raise self._stopped
        return None

    def end(self) -> None:
        self.link = None

    @property
    def targets(self) -> Array:
        """The controller's joint targets (T, n), rad, one a cycle since the first command."""
        assert self.link is not None
        return np.array([motion.q for motion in self.link.motions])

    @property
    def setpoints(self) -> Array:
        """servoj's in force (T, n), rad, in the same cycles."""
        assert self.link is not None
        first = self.link.sent[0].tick + 1
        received = np.full((len(self.link.motions), self.setup.robot.n), np.nan)
        for sent in self.link.sent:
            received[sent.tick + 1 - first :] = sent.setpoint
        return received


def virtual_session(
    out: Path,
    robot: Any = "ur10e",
    *,
    lateness: Callable[[], float] = lambda: 0.0,
    faults: Mapping[str, Any] | None = None,
    **choices: Any,
) -> tuple[LiveSession, VirtualController]:
    """A live session on a simulated controller, and that controller.

    Args:
        out: The run directory to create.
        robot: As for `live`.
        lateness: How much longer than requested each wait takes, s.
        faults: Of `FakeLink`.
        choices: As for `live`.
    """
    session = live_setup.live("pybullet", robot=robot, realtime=False, out=out, **choices)
    driver = VirtualController(session._driver.setup, lateness, **(faults or {}))
    session._driver = driver
    return session, driver
