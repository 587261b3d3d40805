"""A long stream at the controller's rate, judged by the controller's own record, of which it keeps
the last minutes.
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path

import numpy as np

from simbridge.robot import load_robot
from simbridge.servo.feedforward import MAX_ACCELERATION
from tests.backends.trial import ProcessTrial
from tests.soak.faults import Trial
from tests.soak.station import Station

CIRCLES = """
import numpy as np
from simbridge import Robot, Scenario
from simbridge.robot.kinematics import tool_path
from simbridge.trajectory import Trajectory

# Ramps at both ends, 8 s for each circle of 0.1 m between them.
def scenario(robot: Robot) -> Scenario:
    times = np.arange(0.0, {seconds}, 0.02)
    speed = np.interp(times, [0.0, 2.0, times[-1] - 2.0, times[-1]], [0.0, 1.0, 1.0, 0.0])
    travelled = np.cumsum(0.5 * (speed[1:] + speed[:-1]) * np.diff(times))
    angle = 2.0 * np.pi / 8.0 * np.concatenate(([0.0], travelled))
    poses = np.tile(tool_path(robot, robot.home[None])[0], (len(times), 1))
    poses[:, 1] += 0.1 * np.sin(angle)
    poses[:, 2] += 0.1 * (np.cos(angle) - 1.0)
    return Scenario(Trajectory(times, poses))
"""
# How often the record is read, s.
EVERY = 30.0


def _memory(pid: int) -> float:
    """Resident memory of a process, MB; 0 if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next(
        (float(line.split()[1]) / 1024.0 for line in lines if line.startswith("VmRSS")), 0.0
    )


def stream(seconds: float, host: str, robot_name: str, results: Path) -> list[str]:
    """Stream for a time; what must not be.

    Args:
        seconds: How long.
        host: A loopback address for the emulated controller.
        robot_name: "ur10e" or "ur10".
        results: Takes a line for each piece of the record.
    """
    robot = load_robot(robot_name)
    violations = []
    newest = -1
    directory = Path(tempfile.mkdtemp(prefix="simbridge-stream-"))
    scenario = directory / "circles.py"
    scenario.write_text(CIRCLES.format(seconds=seconds))
    station = Station(host, robot_name)
    station.ready(network=False)
    try:
        with Trial(
            station, directory, scenario, "--robot", robot_name, "--backend", "ursim"
        ) as trial:  # type: ignore[arg-type]
            trial.wait_until_connecting()
            while not trial.has_ended:
                begin = time.monotonic()
                while not trial.has_ended and time.monotonic() - begin < EVERY:
                    time.sleep(0.2)
                piece, newest = _piece(station, trial, robot.max_velocity, robot.period, newest)
                with results.open("a") as file:
                    file.write(json.dumps(piece) + "\n")
                violations += piece["violations"]
            status, message = trial.wait_for_end()
            summary = trial.summary() if status == 0 else {}
            ended = {
                "status": status,
                "message": message,
                "cause": summary.get("ended_by"),
                "loop": summary.get("loop"),
            }
            with results.open("a") as file:
                file.write(json.dumps(ended) + "\n")
            if status != 0:
                violations.append(f"the run did not complete: {message}")
            if station.state()["runtime_state"] != "STOPPED":
                violations.append("a program is left")
    finally:
        station.close()
    return violations


def _piece(
    station: Station, trial: ProcessTrial, most: np.ndarray, period: float, after: int
) -> tuple[dict, int]:
    """Return figures of the record from a tick on, and its newest tick."""
    record = station.record(after - 1)
    sent = np.isfinite(record.setpoint).all(axis=1)
    steps = np.abs(np.diff(record.setpoint, axis=0))[sent[1:] & sent[:-1]] / (period * most)
    speed = np.abs(np.diff(record.target_q, axis=0)) / (period * most)
    acceleration = np.abs(np.diff(record.target_q, n=2, axis=0)) / period**2
    piece = {
        "ticks": len(record.tick),
        "with_setpoint": int(sent.sum()),
        "repeated": int((steps.max(axis=1, initial=0.0) == 0.0).sum()),
        "step_share": float(steps.max(initial=0.0)),
        "speed_share": float(speed.max(initial=0.0)),
        "acceleration": float(acceleration.max(initial=0.0)),
        "memory_mb": [round(_memory(trial.pid), 1), round(_memory(getattr(trial, "servo", 0)), 1)],
        "violations": [],
    }
    if piece["step_share"] > 1.0 + 1e-6 or piece["speed_share"] > 1.0 + 1e-6:
        piece["violations"].append(
            f"a step of {max(piece['step_share'], piece['speed_share']):.3f} of the limit"
        )
    if piece["acceleration"] > MAX_ACCELERATION:
        piece["violations"].append(f"the arm accelerated by {piece['acceleration']:.0f} rad/s^2")
    return piece, int(record.tick[-1])
