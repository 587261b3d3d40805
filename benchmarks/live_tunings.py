"""The table of docs/live.md: what each setting of a live session changes.

`python -m benchmarks.live_tunings FILE` writes it, in Markdown; each row changes one thing. The
simulated arm (UR's servo law on a clock of its own) gives the same numbers on every computer; a few
rows are repeated on the emulator, in real time.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

import simbridge
from simbridge.bench.live import emulator
from simbridge.evaluation.metrics.smoothness import sparc
from simbridge.files.writing import write_file
from simbridge.ik.forward_dynamics import ForwardDynamics
from simbridge.recording.run_directory import RunDirectory
from simbridge.recording.samples import LogColumns
from simbridge.robot.kinematics import tool_path
from simbridge.robot.load import load_robot
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.sessions.record import read_inputs
from simbridge.text import MINUS

# First scene: the target moves as a sine along y, with the noise of a hand or a tracker.
# Angular frequency of the sine, rad/s.
SINE_FREQUENCY = 2.0 * np.pi * 0.5
# Amplitude of the sine, m.
SINE_AMPLITUDE = 0.06
# Standard deviation of the noise, m.
NOISE = 0.0005
# Duration of the scene, s.
SINE_DURATION_S = 6.0
# Time at the beginning of the scene that is not measured, s.
UNMEASURED_S = 1.0

# How long the target rests between the scenes, s.
REST_S = 1.0

# Second scene: the target moves steadily along y, and stops suddenly.
# Speed of the target, m/s.
STEADY_SPEED = 0.2
# How long the target moves, s.
STEADY_DURATION_S = 0.6
# How long the target then stands still, s.
STANDSTILL_S = 1.0

# Rate of the inputs where a row does not change it, Hz.
DEFAULT_RATE = 20.0
# Largest delay of an input of the first scene, as a fraction of the time between two inputs.
MAX_JITTER = 0.3
# Highest frequency that the smoothness counts, Hz: faster motion is not seen as shaking.
SPARC_CUTOFF = 20.0
# Time from the command to engage until the arm's pose is read, s.
ENGAGING_S = 0.1
# When the first scene begins, s.
FIRST_SCENE_S = 0.2
# How long a session on the emulator takes to start before that, s.
EMULATOR_START_S = 3.0
# Samples farther apart than this many periods have others missing between them.
MAX_PERIODS_APART = 1.5


class Tuning(NamedTuple):
    """A row of the table.

    Attributes:
        change: What is changed.
        choices: The arguments of `live`.
        rate: The rate of the inputs, Hz.
        emulated: Whether the row is measured on the emulator, too.
    """

    change: str
    choices: dict[str, Any]
    rate: float = DEFAULT_RATE
    emulated: bool = False


class Scenes(NamedTuple):
    """What was measured in a session.

    Attributes:
        setpoint_delay: Delay from setpoint to arm, s.
        input_delay: Delay from input to arm, s.
        smoothness: SPARC of the tool's motion along the sine.
        acceleration: Largest joint acceleration in the first scene, rad/s^2.
        overshoot: How far the arm moved beyond its last position at the sudden stop, m.
    """

    setpoint_delay: float
    input_delay: float
    smoothness: float
    acceleration: float
    overshoot: float


def _tunings(robot: Robot) -> list[Tuning]:
    """Return the rows of the table."""

    def solver(**settings: Any) -> dict[str, Any]:
        return {"solver": ForwardDynamics(robot, **settings)}

    return [
        Tuning("the defaults: gain 2000, lookahead 0.03 s, 20 Hz", {}, emulated=True),
        Tuning(
            "gain 300, lookahead 0.1 s",
            {"servo_gain": 300.0, "servo_lookahead": 0.1},
            emulated=True,
        ),
        Tuning("gain 100, lookahead 0.2 s", {"servo_gain": 100.0, "servo_lookahead": 0.2}),
        Tuning("lookahead 0.1 s", {"servo_lookahead": 0.1}),
        Tuning("kp 5", solver(kp=5.0)),
        Tuning("iterations 10", solver(iterations=10)),
        Tuning("iterations 1", solver(iterations=1)),
        Tuning("inputs at 5 Hz", {}, 5.0),
        Tuning("inputs at 100 Hz", {}, 100.0),
        Tuning("hold zero-order", {"hold": "zero-order"}, emulated=True),
        Tuning("filter one-euro, 5 Hz", {"filter": "one-euro"}),
        Tuning("filter butterworth, 5 Hz", {"filter": "butterworth"}),
        Tuning("filter butterworth, 2 Hz", {"filter": "butterworth", "filter_cutoff": 2.0}),
        Tuning("lead", {"lead": True}, emulated=True),
    ]


def write(path: str) -> None:
    """Measure all tunings and write the table, in Markdown.

    Raises:
        OutputError: The file cannot be written.
    """
    robot = load_robot("ur10e")
    tunings = _tunings(robot)
    lines = [
        "| changed | setpoint to arm | input to arm | SPARC | peak joint acceleration "
        "| overshoot at a sudden stop |",
        "|---|---|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as directory:
        for number, tuning in enumerate(tunings):
            out = Path(directory) / str(number)
            _simulate(robot, tuning, out)
            lines.append(f"| {tuning.change} | {_cells(_measure(robot, out))} |")
        with emulator() as controller:
            for number, tuning in enumerate(tunings):
                if tuning.emulated:
                    out = Path(directory) / f"emulated{number}"
                    _emulate(robot, tuning, out, controller.host)
                    lines.append(f"| {tuning.change} (emulator) | {_cells(_measure(robot, out))} |")
    write_file(path, ("\n".join(lines) + "\n").encode())


def _simulate(robot: Robot, tuning: Tuning, out: Path) -> None:
    """Play both scenes in a stepped session on a simulated arm."""
    choices = tuning.choices
    with simbridge.live("pybullet", robot=robot, realtime=False, out=out, **choices) as session:
        now = 0.0

        def wait(until: float) -> None:
            nonlocal now
            count = round((until - now) / session.period)
            if count > 0:
                session.wait(count * session.period)
                now += count * session.period

        _play(session, tuning.rate, wait)


def _emulate(robot: Robot, tuning: Tuning, out: Path, host: str) -> None:
    """Play both scenes in a live session on an emulated controller."""
    with simbridge.live("ursim", robot=robot, host=host, out=out, **tuning.choices) as session:
        # To engage takes a second, in which the loop's process starts.
        begin = time.monotonic() + EMULATOR_START_S

        def wait(until: float) -> None:
            time.sleep(max(begin + until - time.monotonic(), 0.0))

        _play(session, tuning.rate, wait)


def _play(session: simbridge.LiveSession, rate: float, wait: Callable[[float], None]) -> None:
    """Play both scenes.

    Args:
        session: The session, not yet engaged.
        rate: Rate of the inputs, Hz.
        wait: Function that waits until an instant, s.
    """
    random_numbers = random.Random(0)
    session.engage()
    wait(ENGAGING_S)
    centre = session.tool

    def send_target(y: float) -> None:
        position = centre.translation + np.array([0.0, y, 0.0])
        session.pose(pin.SE3(centre.rotation, position))

    begin = FIRST_SCENE_S
    for time_in_scene in np.arange(0.0, SINE_DURATION_S, 1.0 / rate):
        wait(begin + time_in_scene + random_numbers.uniform(0.0, MAX_JITTER) / rate)
        sine = SINE_AMPLITUDE * np.sin(SINE_FREQUENCY * time_in_scene)
        send_target(sine + random_numbers.gauss(0.0, NOISE))

    # Back to the centre and at rest, before the second scene.
    begin += SINE_DURATION_S
    for time_at_rest in np.arange(0.0, REST_S, 1.0 / rate):
        wait(begin + time_at_rest)
        send_target(0.0)

    begin += REST_S
    session.note("second scene")
    duration = STEADY_DURATION_S + STANDSTILL_S
    for time_in_scene in np.arange(0.0, duration, 1.0 / rate):
        wait(begin + time_in_scene)
        send_target(STEADY_SPEED * min(time_in_scene, STEADY_DURATION_S))
    wait(begin + STEADY_DURATION_S + STANDSTILL_S)


def _measure(robot: Robot, out: Path) -> Scenes:
    """Measure a session from its run directory."""
    run = RunDirectory.open(out)
    log = run.log()
    period = float(np.median(np.diff(log.stamp)))
    now = log.live["now"]
    arm = tool_path(robot, log.position)[:, :3]
    setpoint = tool_path(robot, log.setpoint)[:, :3]

    inputs = read_inputs(out)
    sent = np.array([item.sent for item in inputs])
    input_y = np.array([item.values[1] for item in inputs])  # type: ignore[index]

    # The first scene, without its beginning.
    begin = sent[0] + UNMEASURED_S
    end = sent[0] + SINE_DURATION_S
    is_input = (sent > begin) & (sent < end)
    is_sample = (now > begin) & (now < end)

    # A state is that of the end of its period.
    arm_phase = _phase(now[is_sample] + period, arm[is_sample, 1])
    setpoint_phase = _phase(now[is_sample], setpoint[is_sample, 1])
    input_phase = _phase(sent[is_input], input_y[is_input])

    speed = np.linalg.norm(np.diff(arm[is_sample], axis=0), axis=1) / period
    smoothness = sparc(speed, 1.0 / period, cutoff=SPARC_CUTOFF) or 0.0

    # The second scene.
    stopping = arm[now > sent[0] + SINE_DURATION_S + REST_S, 1]
    overshoot = max(float((stopping - stopping[-1]).max()), 0.0)
    return Scenes(
        setpoint_delay=_delay(setpoint_phase, arm_phase),
        input_delay=_delay(input_phase, arm_phase),
        smoothness=smoothness,
        acceleration=_acceleration(log, is_sample, period),
        overshoot=overshoot,
    )


def _cells(scenes: Scenes) -> str:
    """Return the cells of a row, in Markdown."""
    cells = (
        f"{1e3 * scenes.setpoint_delay:.0f} ms",
        f"{1e3 * scenes.input_delay:.0f} ms",
        f"{scenes.smoothness:.2f}",
        f"{scenes.acceleration:.1f} rad/s²",
        f"{1e3 * scenes.overshoot:.1f} mm",
    )
    return " | ".join(cells).replace("-", MINUS)


def _acceleration(log: LogColumns, is_counted: Array, period: float) -> float:
    """Return the largest acceleration of a joint, rad/s^2.

    It is measured from three consecutive samples; where one is missing, on a busy computer, nothing
    is measured.

    Args:
        log: The session's log of T samples.
        is_counted: Which samples count (T,).
        period: Control period, s.
    """
    has_gap = np.diff(log.stamp[is_counted]) > MAX_PERIODS_APART * period
    joint_targets = log.controller_target[is_counted]
    changes = np.abs(np.diff(joint_targets, n=2, axis=0)).max(axis=1)
    return float(changes[~(has_gap[1:] | has_gap[:-1])].max()) / period**2


def _delay(earlier: float, later: float) -> float:
    """Return the time between two phases of the sine, s; a phase is known up to a whole turn."""
    difference = earlier - later
    return float(np.arctan2(np.sin(difference), np.cos(difference))) / SINE_FREQUENCY


def _phase(times: Array, values: Array) -> float:
    """Return the phase of the first scene's sine in values, rad.

    Args:
        times: Instants (K,), s.
        values: Values (K,) at the instants.
    """
    angle = SINE_FREQUENCY * times
    design = np.column_stack([np.sin(angle), np.cos(angle), np.ones_like(angle)])
    sine, cosine, _ = np.linalg.lstsq(design, values, rcond=None)[0]
    return float(np.arctan2(cosine, sine))


if __name__ == "__main__":
    write(sys.argv[1])
