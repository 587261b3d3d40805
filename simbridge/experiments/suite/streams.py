"""Streams: targets as a device for teleoperation sends them, held until the next one comes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from simbridge.errors import TargetOutOfReach
from simbridge.experiments.layout import step_target
from simbridge.experiments.suite.hand_motions import (
    HAND_MOTION_DURATION,
    HAND_MOTIONS,
    intended_motion,
    tremor,
)
from simbridge.experiments.suite.motion import Motion
from simbridge.experiments.suite.shapes import SIZES
from simbridge.experiments.suite.stage import (
    Stage,
    attains_all,
    smooth_step,
    turn_poses,
)
from simbridge.robot import pose
from simbridge.robot.kinematics import tool_path
from simbridge.robot.pose import Array
from simbridge.text import significant
from simbridge.trajectory.sampling import Sampling
from simbridge.trajectory.trajectory import Trajectory

# Duration of the smooth motion that devices sample, s, and of its rise from rest, s.
SWAY_DURATION = 4.0
RISE_TIME = 1.0
# Its amplitudes on an arm of scale 1, m; and about the axes of base_link, rad.
SHIFT_AMPLITUDES = np.array([0.05, 0.09, 0.03])
TURN_AMPLITUDES = np.array([0.1, 0.1, 0.3])
# Its frequencies along and about the three axes, Hz.
SHIFT_FREQUENCIES = np.array([0.7, 0.4, 0.9])
TURN_FREQUENCIES = np.array([0.5, 0.8, 0.6])

# The devices that sample it, by the name of the motion, with a description.
DEVICES: Mapping[str, tuple[Sampling, str]] = {
    "stream_30_hz": (
        Sampling(rate=30.0, jitter=0.005),
        "A smooth motion, by targets that come at 30 Hz with a jitter of 5 ms.",
    ),
    "stream_10_hz": (
        Sampling(rate=10.0, jitter=0.015),
        "The same motion, by targets that come at 10 Hz with a jitter of 15 ms.",
    ),
    "stream_5_hz": (
        Sampling(rate=5.0, jitter=0.03),
        "The same motion, by targets that come at 5 Hz with a jitter of 30 ms.",
    ),
    "dropouts": (
        Sampling(rate=30.0, jitter=0.005, dropout=0.6),
        "The same motion at 30 Hz, but three of five targets are lost.",
    ),
    "noise": (
        Sampling(rate=30.0, jitter=0.005, noise=(0.001, math.radians(0.2))),
        "The same motion at 30 Hz, with noise of 1 mm and 0.2 degrees RMS on each axis.",
    ),
}
# A tracker of a hand-held device.
TRACKER = Sampling(rate=90.0, jitter=0.001, noise=(2e-4, 1e-3))

# When the target steps, s, and when the motion ends, s.
STEP_AT = 0.2
STEP_DURATION = 3.0

# Angles of the tool about its own axis from which and to which it turns, rad: the largest rotations
# first. The first that the arm can follow is chosen.
LARGE_TURNS = (
    (-0.75 * math.pi, 0.75 * math.pi),
    (0.0, 1.5 * math.pi),
    (0.0, -1.5 * math.pi),
    (0.55 * math.pi, -0.55 * math.pi),
    (0.0, 1.1 * math.pi),
    (0.0, -1.1 * math.pi),
)
LARGE_TURN_DURATION = 4.0
# How far the tool moves meanwhile on an arm of scale 1, m.
LARGE_TURN_SHIFT = 0.1

# Samples of a smooth motion from one that is tried to the next.
COARSE_STEP = 25


def make_streams(stage: Stage, seed: int, notes: list[str]) -> list[Motion]:
    """Return the streams that an arm can follow.

    Args:
        stage: The arm.
        seed: Seed of jitter, dropouts, noise and hand motions.
        notes: A sentence is added for each stream that is left out.
    """
    makers: dict[str, Callable[[Stage, str, int], Motion | str]] = {}
    makers |= dict.fromkeys(DEVICES, _sway)
    makers["far_step"] = _far_step
    makers["turn_beyond_pi"] = _large_turn
    makers |= dict.fromkeys(HAND_MOTIONS, _hand_motion)

    motions = []
    for name, make_motion in makers.items():
        motion = make_motion(stage, name, seed)
        if isinstance(motion, str):
            notes.append(f"{name} is left out: {motion}.")
        else:
            motions.append(motion)
    return motions


def _sway(stage: Stage, name: str, seed: int) -> Motion | str:
    """Return a smooth motion along and about all axes, as a device samples it."""
    sampling, description = DEVICES[name]
    times = stage.instants(SWAY_DURATION)
    rise = smooth_step(times / RISE_TIME)[:, None]
    shifts = rise * SHIFT_AMPLITUDES * np.sin(2.0 * math.pi * SHIFT_FREQUENCIES * times[:, None])
    turns = rise * TURN_AMPLITUDES * np.sin(2.0 * math.pi * TURN_FREQUENCIES * times[:, None])

    for size in SIZES:
        place = stage.shrink(size)
        reference = place.displace(shifts, turns)
        samples = _held(reference, times, replace(sampling, seed=seed))
        targets = place.restrict(samples)
        start = _start(stage, reference, targets)
        if start is not None:
            return _stream(name, description, targets, reference=reference, start=start)
    return _cannot_attain(stage)


def _hand_motion(stage: Stage, name: str, seed: int) -> Motion | str:
    """Return a motion of a hand, as a tracker samples it; the reference has no tremor."""
    motion = HAND_MOTIONS[name](np.random.default_rng([seed, 0]))
    times = stage.instants(HAND_MOTION_DURATION)
    shifts, turns = intended_motion(motion, times)
    tremor_shifts, tremor_turns = tremor(times, np.random.default_rng([seed, 1]))
    for size in SIZES:
        place = stage.shrink(size)
        reference = place.displace(shifts, turns)
        trembling = place.displace(shifts + tremor_shifts, turns + tremor_turns)
        targets = place.restrict(_held(trembling, times, replace(TRACKER, seed=seed)))
        start = _start(stage, reference, targets)
        if start is not None:
            return _stream(name, motion.description, targets, reference=reference, start=start)
    return _cannot_attain(stage)


def _far_step(stage: Stage, name: str, seed: int) -> Motion | str:
    """Return the far step of the paper's experiment B, from home."""
    robot = stage.robot
    try:
        target, _ = step_target(robot)
    except TargetOutOfReach:
        return _cannot_attain(stage)

    home = tool_path(robot, robot.home[None])[0]
    has_stepped = stage.instants(STEP_DURATION) >= STEP_AT
    targets = np.where(has_stepped[:, None], target, home)
    distance = significant(1e3 * float(np.linalg.norm(target[:3] - home[:3])))
    description = f"The target steps by {distance} mm at once, from home, and stays there."
    return Motion(
        name=name,
        # As for the corners of the square, the target itself is what is asked for.
        group="tracking",
        description=description,
        targets=targets,
        start=robot.home.copy(),
        in_reach=np.ones(len(targets), dtype=bool),
    )


def _large_turn(stage: Stage, name: str, seed: int) -> Motion | str:
    """Return a rotation of the tool by more than half a turn, at 30 Hz.

    A device may send a rotation as either of its two quaternions: here the sign is random.
    """
    if stage.robot.task != "pose":
        return f"{stage.robot.name} is not asked to turn its tool about its axis"
    times = stage.instants(LARGE_TURN_DURATION)
    axis = pose.rotate(stage.orientation, np.array([0.0, 0.0, 1.0]))
    random = np.random.default_rng([seed, 2])

    for first, last in LARGE_TURNS:
        angles = first + (last - first) * smooth_step(times / LARGE_TURN_DURATION)
        shifts = np.zeros((len(times), 3))
        shifts[:, 1] = LARGE_TURN_SHIFT * (smooth_step(times / LARGE_TURN_DURATION) - 0.5)
        centre = stage.displace(shifts, np.zeros((len(times), 3)))
        reference = turn_poses(centre, angles[:, None] * axis)
        targets = _held(reference, times, Sampling(rate=30.0, jitter=0.005, seed=seed))
        start = _start(stage, reference, targets)
        if start is not None:
            targets[:, 3:] *= _random_signs(targets, random)[:, None]
            description = (
                f"The tool turns about its axis by {abs(math.degrees(last - first)):.0f} degrees "
                "in all, at 30 Hz; quaternions come with either sign."
            )
            return _stream(name, description, targets, reference=reference, start=start)
    return _cannot_attain(stage)


def _cannot_attain(stage: Stage) -> str:
    """Return the reason for which a stream is left out, as a clause."""
    return f"{stage.robot.name} cannot attain all of its targets within its joint limits"


def _random_signs(targets: Array, random: np.random.Generator) -> Array:
    """Return a sign (T,) for each of some held targets (T, 7), which changes only with them."""
    is_new = np.any(np.diff(targets, axis=0, prepend=targets[:1]) != 0.0, axis=1)
    sample = np.cumsum(is_new)
    return random.choice([-1.0, 1.0], sample[-1] + 1)[sample]


def _held(path: Array, times: Array, sampling: Sampling) -> Array:
    """Return the targets (T, 7) that a device makes of a path, held from sample to sample.

    Args:
        path: Poses (T, 7).
        times: Their instants (T,), s.
        sampling: The device.
    """
    samples = sampling.of(Trajectory(times, path))
    return samples.target(times, "zero-order").copy()


def _start(stage: Stage, reference: Array, targets: Array) -> Array | None:
    """Return joint positions (n,) at the first target, or None where not all can be attained.

    Args:
        stage: The arm.
        reference: Poses (T, 7), which lead from one target to the next.
        targets: Poses (T, 7), each held for a while.
    """
    start = stage.solve(targets[0])
    if start is None or not attains_all(stage, reference[::COARSE_STEP], start):
        return None
    is_new = np.any(np.diff(targets, axis=0, prepend=np.nan) != 0.0, axis=1)
    return start if attains_all(stage, targets[is_new], start) else None


def _stream(
    name: str, description: str, targets: Array, *, reference: Array, start: Array
) -> Motion:
    """Return a stream of which every target can be attained."""
    return Motion(
        name=name,
        group="stream",
        description=description,
        targets=targets,
        reference=reference,
        start=start,
        in_reach=np.ones(len(targets), dtype=bool),
    )
