"""Models the motions of a hand that holds a tracked device.

People move their hands in overlapping submovements, each with minimum jerk (T. Flash and N. Hogan,
The coordination of arm movements, 1985): a long one that carries the hand most of the way, and
short ones that correct it. In addition an unsupported hand trembles at 8 to 12 Hz (physiological
tremor). Both are modelled here, in place of recordings; the amplitudes are chosen, not measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from simbridge.experiments.suite.stage import smooth_step
from simbridge.robot.pose import Array

# Duration of every motion, s.
HAND_MOTION_DURATION = 5.0
# Frequencies of the tremor, Hz.
TREMOR_FREQUENCIES = (8.0, 9.3, 10.1, 11.2, 12.0)
# RMS of the tremor along each axis, m.
TREMOR_SHIFT = 2e-4
# RMS of the tremor about each axis, rad.
TREMOR_TURN = 2e-3
# Fraction of the way by which a first submovement stops short, which a second one corrects.
UNDERSHOOT = 0.12
# Fraction of a submovement's duration after which its correction begins.
CORRECTION_BEGINS = 0.7
# Duration of a correction, s.
CORRECTION_TIME = 0.35
# Standard deviation by which goals differ from seed to seed, m.
PERSONAL_SHIFT = 0.01


@dataclass(frozen=True)
class Submovement:
    """A motion with minimum jerk, which adds to the submovements at the same time.

    Attributes:
        begin: Time at which it begins, s.
        duration: Duration, s.
        shift: Vector by which it moves the hand (3,), m, on an arm of scale 1.
        turn: Rotation vector by which it turns the hand (3,), rad.
    """

    begin: float
    duration: float
    shift: tuple[float, float, float]
    turn: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def progress(self, times: Array) -> Array:
        """Return the fraction of the submovement (T,), 0 to 1, that is done at instants (T,), s."""
        return smooth_step((times - self.begin) / self.duration)


@dataclass(frozen=True)
class HandMotion:
    """A motion of a hand.

    Attributes:
        description: Sentence that describes the motion.
        submovements: Submovements whose sum is the motion that the person intends.
    """

    description: str
    submovements: Sequence[Submovement]


def intended_motion(motion: HandMotion, times: Array) -> tuple[Array, Array]:
    """Return the motion of a hand that a person intends, without tremor.

    Args:
        motion: The motion.
        times: Instants (T,), s.

    Returns:
        Translations (T, 3) on an arm of scale 1, m, and rotation vectors (T, 3), rad.
    """
    shifts = np.zeros((len(times), 3))
    turns = np.zeros((len(times), 3))
    for submovement in motion.submovements:
        progress = submovement.progress(times)[:, None]
        shifts += progress * submovement.shift
        turns += progress * submovement.turn
    return shifts, turns


def tremor(times: Array, random: np.random.Generator) -> tuple[Array, Array]:
    """Return the tremor of a hand: a sum of sines with random phases.

    Args:
        times: Instants (T,), s.
        random: Generator of the phases.

    Returns:
        Translations (T, 3) on an arm of scale 1, m, and rotation vectors (T, 3), rad.
    """
    # Three axes of translation and three of rotation, each with all frequencies.
    frequencies = np.array(TREMOR_FREQUENCIES)
    phases = random.uniform(0.0, 2.0 * np.pi, (6, len(frequencies)))
    sines = np.sin(2.0 * np.pi * times[:, None, None] * frequencies + phases)
    # A sum of K sines of amplitude 1 has an RMS of sqrt(K / 2).
    unit_tremor = sines.sum(axis=2) / np.sqrt(0.5 * len(frequencies))
    return TREMOR_SHIFT * unit_tremor[:, :3], TREMOR_TURN * unit_tremor[:, 3:]


def _reach(begin: float, duration: float, shift: Array, turn: Array) -> list[Submovement]:
    """Return a submovement that stops short of its goal, and the one that corrects it.

    Args:
        begin: Time at which the first one begins, s.
        duration: Duration of the first one, s.
        shift: Vector by which both together move the hand (3,), m, on an arm of scale 1.
        turn: Rotation vector by which both together turn the hand (3,), rad.
    """
    main_part = 1.0 - UNDERSHOOT
    correction_begin = begin + CORRECTION_BEGINS * duration
    return [
        Submovement(begin, duration, tuple(main_part * shift), tuple(main_part * turn)),
        Submovement(
            correction_begin, CORRECTION_TIME, tuple(UNDERSHOOT * shift), tuple(UNDERSHOOT * turn)
        ),
    ]


def _transport(random: np.random.Generator) -> HandMotion:
    """Return a motion that reaches for something, lifts it and puts it down elsewhere."""
    # Positions of the hand, m: down to the thing, up with it, to another place, down there, and
    # back.
    goals = np.array(
        [
            [0.10, -0.14, -0.06],
            [0.10, -0.14, 0.06],
            [-0.06, 0.14, 0.08],
            [-0.06, 0.14, -0.06],
            [0.0, 0.0, 0.0],
        ]
    )
    # Rotation vectors of the hand at these positions, rad.
    rotations = np.array(
        [
            [0.0, 0.2, 0.3],
            [0.1, 0.1, 0.2],
            [-0.1, 0.0, -0.4],
            [0.0, 0.2, -0.4],
            [0.0, 0.0, 0.0],
        ]
    )
    # Times at which the hand sets out for each position, and durations of these motions, s.
    begins = (0.2, 1.15, 1.85, 2.95, 3.7)
    durations = (0.9, 0.6, 1.0, 0.6, 0.9)
    # All positions but the last, at which it ends, differ from seed to seed.
    goals[:-1] += random.normal(0.0, PERSONAL_SHIFT, (len(goals) - 1, 3))

    # A reach from each position to the next.
    shifts = np.diff(goals, axis=0, prepend=np.zeros((1, 3)))
    turns = np.diff(rotations, axis=0, prepend=np.zeros((1, 3)))
    submovements = []
    for begin, duration, shift, turn in zip(begins, durations, shifts, turns, strict=True):
        submovements += _reach(begin, duration, shift, turn)
    return HandMotion("A hand reaches for something, lifts it and puts it down.", submovements)


def _wiping(random: np.random.Generator) -> HandMotion:
    """Return strokes from side to side, each of which begins before the one before has ended."""
    submovements = []
    stroke_count = 8
    for stroke in range(stroke_count):
        side = 1.0 if stroke % 2 else -1.0
        # The first stroke leads from the middle, and the last one back to it.
        width = 0.11 if stroke in (0, stroke_count - 1) else 0.22
        # The hand goes forwards in the first half, and back in the second.
        forward = 0.02 if stroke < stroke_count // 2 else -0.02
        stroke_deviation = random.normal(0.0, 0.3 * PERSONAL_SHIFT, 3)
        shift = np.array([forward, side * width, 0.0]) + stroke_deviation
        # A stroke also turns the hand about z, by 1 rad per metre of its width.
        turn = np.array([0.0, 0.0, side * width])

        # A stroke begins every 0.52 s and lasts 0.6 s without its correction.
        begin = 0.2 + 0.52 * stroke
        duration = 0.6
        submovements += _reach(begin, duration, shift, turn)
    return HandMotion("A hand wipes from side to side.", submovements)


def _screwing(random: np.random.Generator) -> HandMotion:
    """Return a hand that turns something about its axis, and turns back, again and again."""
    submovements = []
    for turn in range(4):
        angle = 1.0 + random.normal(0.0, 0.05)
        wobble = random.normal(0.0, 0.5 * PERSONAL_SHIFT, 3)
        # The hand moves 4 mm down with each turn, and does not move up again when it turns back.
        lowering = np.array([0.0, 0.0, -0.004])
        rotation = np.array([0.05, 0.05, angle])

        # A turn begins every 1.1 s and lasts 0.5 s; the hand turns back 0.55 s later, in 0.45 s.
        # Neither duration includes the correction.
        begin = 0.2 + 1.1 * turn
        submovements += _reach(begin, 0.5, wobble + lowering, rotation)
        submovements += _reach(begin + 0.55, 0.45, -wobble, -rotation)
    return HandMotion("A hand turns a screw: it turns, and turns back, four times.", submovements)


# Functions that return the motions of a hand, by the motion's name.
HAND_MOTIONS: Mapping[str, Callable[[np.random.Generator], HandMotion]] = {
    "hand_transport": _transport,
    "hand_wiping": _wiping,
    "hand_screwing": _screwing,
}
