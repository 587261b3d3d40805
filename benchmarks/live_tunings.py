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

# First scene, a sine along y: its angular frequency, rad/s; its amplitude, m; the noise of a hand
# or tracker, m; its duration, s; and the time at its beginning that is not measured, s.
_PULSE = 2.0 * np.pi * 0.5
_AMPLITUDE = 0.06
_NOISE = 0.0005
_SCENE = 6.0
_SETTLING = 1.0
# Second scene: the speed of the target, m/s; how long it moves, s; and how long it then stands, s.
_SPEED = 0.2
_MOVING = 0.6
_STANDING = 1.0
_RATE = 20.0
# Cut-off of the smoothness, Hz: of what is seen as shaking.
_CUTOFF = 20.0


class _Tuning(NamedTuple):
    """One row of the table.

    Attributes:
        words: What is changed.
        choices: The arguments of `live`.
        rate: The rate of the inputs, Hz.
        emulated: Whether the row is measured on the emulator, too.
    """

    words: str
    choices: dict[str, Any]
    rate: float = _RATE
    emulated: bool = False


def _tunings(robot: Robot) -> list[_Tuning]:
    def solver(**settings: Any) -> dict[str, Any]:
        return {"solver": ForwardDynamics(robot, **settings)}

    return [
        _Tuning("the defaults: gain 2000, lookahead 0.03 s, 20 Hz", {}, emulated=True),
        _Tuning(
            "gain 300, lookahead 0.1 s",
            {"servo_gain": 300.0, "servo_lookahead": 0.1},
            emulated=True,
        ),
        _Tuning("gain 100, lookahead 0.2 s", {"servo_gain": 100.0, "servo_lookahead": 0.2}),
        _Tuning("lookahead 0.1 s", {"servo_lookahead": 0.1}),
        _Tuning("kp 5", solver(kp=5.0)),
        _Tuning("iterations 10", solver(iterations=10)),
        _Tuning("iterations 1", solver(iterations=1)),
        _Tuning("inputs at 5 Hz", {}, 5.0),
        _Tuning("inputs at 100 Hz", {}, 100.0),
        _Tuning("hold zero-order", {"hold": "zero-order"}, emulated=True),
        _Tuning("filter one-euro, 5 Hz", {"filter": "one-euro"}),
        _Tuning("filter butterworth, 5 Hz", {"filter": "butterworth"}),
        _Tuning("filter butterworth, 2 Hz", {"filter": "butterworth", "filter_cutoff": 2.0}),
        _Tuning("lead", {"lead": True}, emulated=True),
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
            lines.append(f"| {tuning.words} | {_figures(robot, out)} |")
        with emulator() as controller:
            for number, tuning in enumerate(tunings):
                if tuning.emulated:
                    out = Path(directory) / f"emulated{number}"
                    _emulate(robot, tuning, out, controller.host)
                    lines.append(f"| {tuning.words} (emulator) | {_figures(robot, out)} |")
    write_file(path, ("\n".join(lines) + "\n").encode())


def _simulate(robot: Robot, tuning: _Tuning, out: Path) -> None:
    with simbridge.live(
        "pybullet", robot=robot, realtime=False, out=out, **tuning.choices
    ) as session:
        now = 0.0

        def wait(until: float) -> None:
            nonlocal now
            if (count := round((until - now) / session.period)) > 0:
                session.wait(count * session.period)
                now += count * session.period

        _play(session, tuning.rate, wait)


def _emulate(robot: Robot, tuning: _Tuning, out: Path, host: str) -> None:
    with simbridge.live("ursim", robot=robot, host=host, out=out, **tuning.choices) as session:
        begin = time.monotonic()
        # To engage takes a second, in which the loop's process starts.
        _play(
            session,
            tuning.rate,
            lambda until: time.sleep(max(begin + 3.0 + until - time.monotonic(), 0.0)),
        )


def _play(session: simbridge.LiveSession, rate: float, wait: Callable[[float], None]) -> None:
    """A sine with noise, and then a steady motion that stops suddenly."""
    chance = random.Random(0)
    session.engage()
    wait(0.1)
    centre = session.tool
    begin = 0.2

    def give(y: float) -> None:
        session.pose(pin.SE3(centre.rotation, centre.translation + np.array([0.0, y, 0.0])))

    for at in np.arange(0.0, _SCENE, 1.0 / rate):
        wait(begin + at + chance.uniform(0.0, 0.3) / rate)
        give(_AMPLITUDE * np.sin(_PULSE * at) + chance.gauss(0.0, _NOISE))
    # Back to the centre and at rest, before the second scene.
    begin += _SCENE
    for at in np.arange(0.0, _SETTLING, 1.0 / rate):
        wait(begin + at)
        give(0.0)
    begin += _SETTLING
    session.note("second scene")
    for at in np.arange(0.0, _MOVING + _STANDING, 1.0 / rate):
        wait(begin + at)
        give(_SPEED * min(at, _MOVING))
    wait(begin + _MOVING + _STANDING)


def _figures(robot: Robot, out: Path) -> str:
    """Return the cells of a row.

    They are two delays, the smoothness, the largest acceleration of a joint, and the overshoot.
    """
    run = RunDirectory.open(out)
    log = run.log()
    inputs = read_inputs(out)
    sent = np.array([one.sent for one in inputs])
    given = np.array([one.values[1] for one in inputs])  # type: ignore[index]
    period = float(np.median(np.diff(log.stamp)))
    now = log.live["now"]
    arm = tool_path(robot, log.position)[:, :3]
    setpoint = tool_path(robot, log.setpoint)[:, :3]
    first = sent[0] + _SETTLING, sent[0] + _SCENE
    moving = (sent > first[0]) & (sent < first[1])
    seen = (now > first[0]) & (now < first[1])
    # A state is that of the end of its period.
    arm_phase = _phase(now[seen] + period, arm[seen, 1])
    setpoint_phase = _phase(now[seen], setpoint[seen, 1])
    delays = (
        _delay(setpoint_phase, arm_phase),
        _delay(_phase(sent[moving], given[moving]), arm_phase),
    )
    speed = np.linalg.norm(np.diff(arm[seen], axis=0), axis=1) / period
    smoothness = sparc(speed, 1.0 / period, cutoff=_CUTOFF) or 0.0
    stop = now > sent[0] + _SCENE + _SETTLING
    overshoot = max(float((arm[stop, 1] - arm[stop][-1, 1]).max()), 0.0)
    cells = (
        *(f"{1e3 * delay:.0f} ms" for delay in delays),
        f"{smoothness:.2f}",
        f"{_acceleration(log, seen, period):.1f} rad/s²",
        f"{1e3 * overshoot:.1f} mm",
    )
    return " | ".join(cells).replace("-", MINUS)


def _acceleration(log: LogColumns, seen: Array, period: float) -> float:
    """Return the largest of three samples in a row: some may be missing on a busy computer."""
    gaps = np.diff(log.stamp[seen]) > 1.5 * period
    steps = np.abs(np.diff(log.controller_target[seen], n=2, axis=0)).max(axis=1)
    return float(steps[~(gaps[1:] | gaps[:-1])].max()) / period**2


def _delay(earlier: float, later: float) -> float:
    """The time between two phases, s; a phase is known up to a whole turn."""
    return float(np.arctan2(np.sin(earlier - later), np.cos(earlier - later))) / _PULSE


def _phase(times: Array, values: Array) -> float:
    """The phase of the first scene's sine in these values (K,), rad; times in s."""
    angle = _PULSE * times
    design = np.column_stack([np.sin(angle), np.cos(angle), np.ones_like(angle)])
    sine, cosine, _ = np.linalg.lstsq(design, values, rcond=None)[0]
    return float(np.arctan2(cosine, sine))


if __name__ == "__main__":
    write(sys.argv[1])
