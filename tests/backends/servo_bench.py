"""A servo loop on a simulated controller and clock, and the motions that tests let it play."""

from __future__ import annotations

import numpy as np
import pytest

from simbridge.backends.servo_loop import ServoLoop
from simbridge.planning.guard import Guard
from simbridge.robot import load_robot
from simbridge.servo.law import ServojLaw
from tests.backends.fake_link import FakeLink, VirtualClock

UR10 = load_robot("ur10")
HOME = UR10.home
# How fast the joints of the tests' motions are, as a fraction of the fastest one.
JOINT_RATIOS = np.array([1.0, 0.5, -0.5, 0.3, -0.8, 0.6])
CB3_PERIOD = 0.008  # s
E_SERIES_PERIOD = 0.002  # s
PERIODS = pytest.mark.parametrize("period", [CB3_PERIOD, E_SERIES_PERIOD])

# What the loop records of a sample, in this order.
SCALARS = (
    "sequence",
    "position",
    "sent",
    "received",
    "timestamp",
    "scaling",
    "robot",
    "safety",
    "runtime",
)
VECTORS = (
    "q",
    "qd",
    "effort",
    "controller_target",
    "target velocity",
    "target acceleration",
    "setpoint",
)
MAX_SLOTS = 200_000


class Bench:
    """A servo loop, its fake controller, and the states that were recorded.

    Args:
        period: Control period, s.
        clock: The host's clock.
        follow: If the loop follows the controller's speed.
        wait_in_pause: If the loop waits while the program is paused.
        controller: Arguments of `FakeLink`.

    Attributes:
        period: Control period, s.
        clock: The host's clock.
        link: The fake controller.
        loop: The loop.
        states: The scalars and vectors of the samples that were recorded.
    """

    def __init__(
        self, period=CB3_PERIOD, *, clock=None, follow=True, wait_in_pause=True, **controller
    ):
        self.period = period
        self.clock = clock or VirtualClock()
        self.link = FakeLink(self.clock, HOME, period, **controller)
        law = controller.get("law") or ServojLaw(period)
        self.loop = ServoLoop(
            self.link,
            Guard(UR10, period, law.lookahead),
            "arm",
            law,
            follow_scaling=follow,
            wait_in_pause=wait_in_pause,
            clock=self.clock,
        )
        self.states = []

    def play(self, motion, **options):
        """Begin a motion."""
        self.loop.play(
            motion, lambda scalars, vectors: self.states.append((scalars, vectors)), **options
        )

    def run(self, motion, slots=None, **options):
        """Play a motion for so many periods, or to its end; return this bench."""
        self.play(motion, **options)
        if slots is None:
            count = 0
            while not self.loop.idle:
                self.loop.run_period()
                count += 1
                assert count < MAX_SLOTS, "the motion does not end"
        else:
            for _ in range(slots):
                self.loop.run_period()
        return self

    def run_until_error(self, kind, motion, slots=2000):
        """Play a motion that ends in an error of exactly this kind, and return the error."""
        with pytest.raises(kind) as raised:
            self.run(motion, slots)
        assert type(raised.value) is kind
        return raised.value

    @property
    def wire(self):
        """The setpoints that left (K, n), rad."""
        return np.array([sent.setpoint for sent in self.link.sent])

    @property
    def sent_at(self):
        """The times at which they left (K,), s."""
        return np.array([sent.time for sent in self.link.sent])

    @property
    def sent_ticks(self):
        """The controller's newest ticks at those times (K,)."""
        return np.array([sent.tick for sent in self.link.sent])

    @property
    def speeds(self):
        """Speeds of the first joint on the wire (K - 1,), rad/s."""
        return np.diff(self.wire[:, 0]) / self.period

    @property
    def accelerations(self):
        """Magnitudes of an obedient arm's accelerations (T, n), rad/s^2."""
        return np.abs([motion.qdd for motion in self.link.motions])

    def recorded(self, name):
        """A field of the recorded samples (K,) or (K, n), by its name."""
        if name in SCALARS:
            index = SCALARS.index(name)
            return np.array([scalars[index] for scalars, _ in self.states])
        index = VECTORS.index(name)
        return np.array([vectors[index] for _, vectors in self.states])


class Nap:
    """The lateness of waits of which one takes longer.

    Args:
        length: How much longer it takes, s.
        at: Which wait it is, from 1.
    """

    def __init__(self, length, at=300):
        self._length = length
        self._remaining = at

    def __call__(self):
        self._remaining -= 1
        return 0.0 if self._remaining else self._length


class Still:
    """A motion that never ends and never moves."""

    finished = False
    payload_may_change = False

    def next(self, rate):
        return HOME, 0.0


class Scripted:
    """A motion that returns the given objects, which need not be setpoints."""

    finished = False
    slows_in_gaps = False
    payload_may_change = False

    def __init__(self, setpoints):
        self._setpoints = iter(setpoints)

    def pause(self, q):
        return 0.0

    def next(self, rate):
        return next(self._setpoints), 0.0

    def lead_back(self, q, hold, period):
        return [next(self._setpoints)]


def glide(count, speed=0.3, period=CB3_PERIOD):
    """Return setpoints (count, n) from home, which accelerate to a constant speed within 0.3 s."""
    time = np.arange(count) * period
    travel = speed * np.where(time < 0.3, time**2 / 0.6, time - 0.15)
    return HOME + travel[:, np.newaxis] * JOINT_RATIOS


def minimum_jerk(u):
    """Return the fraction of a minimum-jerk motion that is done at fractions u of its duration."""
    return u**3 * (10.0 - 15.0 * u + 6.0 * u**2)


def silent_from(tick):
    """Return a delay with which no state arrives from a tick on."""
    return lambda k: None if k >= tick else 0.0
