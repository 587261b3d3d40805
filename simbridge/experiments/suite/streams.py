"""Makes streams: targets as a device for teleoperation sends them, held until the next one."""

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
from simbridge.experiments.suite.shapes import SIZES
from simbridge.experiments.suite.stage import (
    Stage,
    attains_all,
    smooth_step,
    turn_poses,
)
from simbridge.experiments.suite.suite_motion import SuiteMotion
from simbridge.robot import pose
from simbridge.robot.kinematics import tool_path
from simbridge.robot.pose import Array
from simbridge.text import significant
from simbridge.trajectory.sampling import Sampling
from simbridge.trajectory.trajectory import Trajectory

# Duration of the smooth motion that devices sample, s.
SWAY_DURATION = 4.0
# Time in which its amplitudes rise from zero, s.
RISE_TIME = 1.0
# Amplitudes of the smooth motion along the axes of base_link, m, on an arm of scale 1.
SHIFT_AMPLITUDES = np.array([0.05, 0.09, 0.03])
# Amplitudes of the smooth motion about the axes of base_link, rad.
TURN_AMPLITUDES = np.array([0.1, 0.1, 0.3])
# Frequencies of the smooth motion along the axes, Hz.
SHIFT_FREQUENCIES = np.array([0.7, 0.4, 0.9])
# Frequencies of the smooth motion about the axes, Hz.
TURN_FREQUENCIES = np.array([0.5, 0.8, 0.6])

# Devices that sample the smooth motion, each with the description of the stream, by its name.
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
# Sampling of a tracker of a hand-held device.
TRACKER = Sampling(rate=90.0, jitter=0.001, noise=(2e-4, 1e-3))

# Time at which the target of the far step steps, s.
STEP_AT = 0.2
# Duration of the far step, s.
STEP_DURATION = 3.0

# First and last angle of the tool in the large turn, about its own axis, rad; the largest turns
# come first. The first one that the arm can follow is chosen.
LARGE_TURNS = (
    (-0.75 * math.pi, 0.75 * math.pi),
    (0.0, 1.5 * math.pi),
    (0.0, -1.5 * math.pi),
    (0.55 * math.pi, -0.55 * math.pi),
    (0.0, 1.1 * math.pi),
    (0.0, -1.1 * math.pi),
)
# Duration of the large turn, s.
LARGE_TURN_DURATION = 4.0
# Distance that the tool moves during the large turn, m, on an arm of scale 1.
LARGE_TURN_SHIFT = 0.1
# Sampling of the device that sends the large turn.
LARGE_TURN_SAMPLING = Sampling(rate=30.0, jitter=0.005)

# Number of samples of an ideal motion between two of which it is checked that they are in reach.
COARSE_STEP = 25


def make_streams(stage: Stage, seed: int, notes: list[str]) -> list[SuiteMotion]:
    """Return the streams that an arm can follow.

    Args:
        stage: The arm.
        seed: Seed of jitter, dropouts, noise and hand motions.
        notes: List of notes, to which one is appended for each stream that is left out.
    """
    # Functions that return a stream, or the reason why it is left out, by the stream's name.
    makers: dict[str, Callable[[Stage, str, int], SuiteMotion | str]] = {}
    makers |= dict.fromkeys(DEVICES, _make_sway)
    makers["far_step"] = _make_far_step
    makers["turn_beyond_pi"] = _make_large_turn
    makers |= dict.fromkeys(HAND_MOTIONS, _make_hand_motion)

    motions = []
    for name, make_motion in makers.items():
        motion = make_motion(stage, name, seed)
        if isinstance(motion, str):
            notes.append(f"{name} is left out: {motion}.")
        else:
            motions.append(motion)
    return motions


def _make_sway(stage: Stage, name: str, seed: int) -> SuiteMotion | str:
    """Return a smooth motion along and about all axes, as a device samples it.

    Args:
        stage: The arm.
        name: Name of the stream.
        seed: Seed of the device's jitter, dropouts and noise.

    Returns:
        The stream, or a clause that says why it is left out.
    """
    sampling, description = DEVICES[name]
    times = stage.instants(SWAY_DURATION)
    rise = smooth_step(times / RISE_TIME)[:, None]
    shifts = rise * SHIFT_AMPLITUDES * np.sin(2.0 * math.pi * SHIFT_FREQUENCIES * times[:, None])
    turns = rise * TURN_AMPLITUDES * np.sin(2.0 * math.pi * TURN_FREQUENCIES * times[:, None])

    # The largest size that the arm can follow.
    for size in SIZES:
        small_stage = stage.shrink(size)
        reference = small_stage.displace(shifts, turns)
        samples = _sample_and_hold(reference, times, replace(sampling, seed=seed))
        targets = small_stage.restrict(samples)
        start = _find_start(stage, reference, targets)
        if start is not None:
            return _make_stream(name, description, targets, reference=reference, start=start)
    return _explain_omission(stage)


def _make_hand_motion(stage: Stage, name: str, seed: int) -> SuiteMotion | str:
    """Return a motion of a hand, as a tracker samples it; the ideal motion has no tremor.

    Args:
        stage: The arm.
        name: Name of the stream.
        seed: Seed of the motion, of its tremor, and of the tracker's jitter and noise.

    Returns:
        The stream, or a clause that says why it is left out.
    """
    motion = HAND_MOTIONS[name](np.random.default_rng([seed, 0]))
    times = stage.instants(HAND_MOTION_DURATION)
    shifts, turns = intended_motion(motion, times)
    tremor_shifts, tremor_turns = tremor(times, np.random.default_rng([seed, 1]))

    # The largest size that the arm can follow.
    for size in SIZES:
        small_stage = stage.shrink(size)
        reference = small_stage.displace(shifts, turns)
        trembling = small_stage.displace(shifts + tremor_shifts, turns + tremor_turns)
        samples = _sample_and_hold(trembling, times, replace(TRACKER, seed=seed))
        targets = small_stage.restrict(samples)
        start = _find_start(stage, reference, targets)
        if start is not None:
            return _make_stream(name, motion.description, targets, reference=reference, start=start)
    return _explain_omission(stage)


def _make_far_step(stage: Stage, name: str, seed: int) -> SuiteMotion | str:
    """Return the far step of the paper's experiment B, from home.

    Args:
        stage: The arm.
        name: Name of the motion.
        seed: Seed, which has no effect: nothing is random.

    Returns:
        The motion, or a clause that says why it is left out.
    """
    robot = stage.robot
    try:
        target, _ = step_target(robot)
    except TargetOutOfReach:
        return _explain_omission(stage)

    home = tool_path(robot, robot.home[None])[0]
    has_stepped = stage.instants(STEP_DURATION) >= STEP_AT
    targets = np.where(has_stepped[:, None], target, home)
    distance = significant(1e3 * float(np.linalg.norm(target[:3] - home[:3])))
    description = f"The target steps by {distance} mm at once, from home, and stays there."
    return SuiteMotion(
        name=name,
        # The target itself is the ideal motion, as with the corners of the square.
        group="tracking",
        description=description,
        targets=targets,
        start=robot.home.copy(),
        in_reach=np.ones(len(targets), dtype=bool),
    )


def _make_large_turn(stage: Stage, name: str, seed: int) -> SuiteMotion | str:
    """Return a rotation of the tool by more than half a turn, at 30 Hz.

    A device may send a rotation as either of its two quaternions: here the sign is random.

    Args:
        stage: The arm.
        name: Name of the stream.
        seed: Seed of the signs, and of the device's jitter.

    Returns:
        The stream, or a clause that says why it is left out.
    """
    if stage.robot.task != "pose":
        return f"{stage.robot.name} is not asked to turn its tool about its axis"

    # Meanwhile the tool moves sideways, through the centre.
    times = stage.instants(LARGE_TURN_DURATION)
    progress = smooth_step(times / LARGE_TURN_DURATION)
    shifts = np.zeros((len(times), 3))
    shifts[:, 1] = LARGE_TURN_SHIFT * (progress - 0.5)
    shifted_poses = stage.displace(shifts, np.zeros((len(times), 3)))

    tool_axis = pose.rotate(stage.orientation, np.array([0.0, 0.0, 1.0]))
    random = np.random.default_rng([seed, 2])
    for first, last in LARGE_TURNS:
        angles = first + (last - first) * progress
        reference = turn_poses(shifted_poses, angles[:, None] * tool_axis)
        targets = _sample_and_hold(reference, times, replace(LARGE_TURN_SAMPLING, seed=seed))
        start = _find_start(stage, reference, targets)
        if start is not None:
            targets[:, 3:] *= _draw_signs(targets, random)[:, None]
            description = (
                f"The tool turns about its axis by {abs(math.degrees(last - first)):.0f} degrees "
                "in all, at 30 Hz; quaternions come with either sign."
            )
            return _make_stream(name, description, targets, reference=reference, start=start)
    return _explain_omission(stage)


def _explain_omission(stage: Stage) -> str:
    """Return why a stream is left out, as a clause."""
    return f"{stage.robot.name} cannot attain all of its targets within its joint limits"


def _draw_signs(targets: Array, random: np.random.Generator) -> Array:
    """Return random signs (T,), one for each target that is held (T, 7) while it is held."""
    is_new = np.any(np.diff(targets, axis=0, prepend=targets[:1]) != 0.0, axis=1)
    # Number of the target that is held at each instant, from 0.
    number = np.cumsum(is_new)
    return random.choice([-1.0, 1.0], number[-1] + 1)[number]


def _sample_and_hold(path: Array, times: Array, sampling: Sampling) -> Array:
    """Return the targets (T, 7) that a device makes from a path, held from sample to sample.

    Args:
        path: Poses of the path (T, 7).
        times: Instants of the poses (T,), s.
        sampling: How the device samples the path.
    """
    samples = sampling.of(Trajectory(times, path))
    return samples.target(times, "zero-order").copy()


def _find_start(stage: Stage, reference: Array, targets: Array) -> Array | None:
    """Return joint positions (n,) at the first target; None if not all targets can be attained.

    Args:
        stage: The arm.
        reference: Poses of the ideal motion (T, 7), which leads from one target to the next.
        targets: Held targets (T, 7).
    """
    start = stage.solve(targets[0])
    if start is None or not attains_all(stage, reference[::COARSE_STEP], start):
        return None
    # Each target once: the first one differs from nan.
    is_new = np.any(np.diff(targets, axis=0, prepend=np.nan) != 0.0, axis=1)
    return start if attains_all(stage, targets[is_new], start) else None


def _make_stream(
    name: str, description: str, targets: Array, *, reference: Array, start: Array
) -> SuiteMotion:
    """Return a stream whose targets can all be attained.

    Args:
        name: Name of the stream.
        description: Sentence that describes the stream.
        targets: Held targets (T, 7).
        reference: Poses of the ideal motion (T, 7).
        start: Joint positions at the first target (n,).
    """
    return SuiteMotion(
        name=name,
        group="stream",
        description=description,
        targets=targets,
        reference=reference,
        start=start,
        in_reach=np.ones(len(targets), dtype=bool),
    )
