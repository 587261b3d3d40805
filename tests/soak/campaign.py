"""A campaign of random faults: runs on an emulated controller are disturbed, and judged by the controller's own record.

`python -m tests.soak.campaign --seed 1 --count 100 --host 127.0.0.81 --results faults.jsonl` appends one line per
trial. A trial is one run, one or two faults at random instants of a random phase, and what was found: the cause that
summary.json gives, the violations, and the largest step of a setpoint as a share of its limit. The same seed gives the
same faults.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from simbridge.emulator.handle import Emulator
from simbridge.recording.run_directory import RunDirectory
from simbridge.robot import load_robot
from simbridge.servo.feedforward import MAX_ACCELERATION
from tests.backends.trial import ProcessTrial, line
from tests.controllers import HOME, REALTIME, SERVO_PRIORITY

ROBOT = load_robot("ur10e")
PERIOD = 0.002
PHASES = ("starting", "script starts", "approach", "streaming", "ending")
# A joint slower than this is at rest, rad/s.
REST = 1e-3
# An arm rests after this long, s of the controller's clock, whatever happens: watchdog, then braking.
RESTS = 1.5


@dataclass
class Fault:
    """A fault, and the causes with which a run may end because of it.

    Attributes:
        name: Its name.
        act: What it does to a trial.
        causes: As in summary.json; None for a summary that cannot be written.
    """

    name: str
    act: Callable[[Trial], None]
    causes: tuple[str, ...]


class Trial(ProcessTrial):
    """A run that is disturbed."""

    def during(self, phase: str, seconds: float) -> None:
        """Wait until so long after the begin of a phase, or until the run has ended."""
        begin = {
            "starting": lambda: True,
            "script starts": lambda: self.controller.state()["runtime_state"] == "PLAYING",
            "approach": lambda: self._moved() > 0.002,
            "streaming": lambda: self._moved() > 0.05,
            "ending": lambda: self._moved() > 0.15,
        }[phase]
        deadline = time.monotonic() + 30.0
        while not self._ended() and time.monotonic() < deadline:
            with contextlib.suppress(Exception):
                if begin():
                    break
            time.sleep(0.002)
        time.sleep(seconds)

    def _moved(self) -> float:
        return float(np.abs(np.array(self.controller.state()["target_q"]) - self._begin).max())


def _do(command: str, **arguments: Any) -> Callable[[Trial], None]:
    return lambda trial: trial.controller.do(command, **arguments)


def _replace(trial: Trial) -> None:
    with socket.create_connection((trial.controller.host, 30002), 2.0) as client:
        client.sendall(b"def other():\n  while True:\n    sleep(0.1)\n  end\nend\n")
        time.sleep(0.2)


def _servo(number: signal.Signals, then: signal.Signals | None = None, after: float = 0.0) -> Callable[[Trial], None]:
    def act(trial: Trial) -> None:
        trial.connecting()
        os.kill(trial.servo, number)
        if then is not None:
            time.sleep(after)
            with contextlib.suppress(ProcessLookupError):
                os.kill(trial.servo, then)

    return act


def _parent(number: signal.Signals, then: signal.Signals | None = None, after: float = 0.0) -> Callable[[Trial], None]:
    def act(trial: Trial) -> None:
        trial.signal(number)
        if then is not None:
            time.sleep(after)
            trial.signal(then)

    return act


def _pause_and_play(trial: Trial) -> None:
    trial.controller.do("pause_program")
    time.sleep(0.6)
    trial.controller.do("play_program")


def _power_off(trial: Trial) -> None:
    with socket.create_connection((trial.controller.host, 29999), 2.0) as client:
        client.recv(1000)
        client.sendall(b"power off\n")
        client.recv(1000)


def _load(trial: Trial) -> None:
    burn = "import time\nend = time.time() + 0.5\nwhile time.time() < end: pass"
    busy = [subprocess.Popen([sys.executable, "-c", burn]) for _ in range(4)]
    for process in busy:
        process.wait()


BUSY = ("completed", "program_stopped", "stale_state")
FAULTS = [
    Fault("protective stop", _do("protective_stop"), ("protective_stop",)),
    Fault("emergency stop", _do("emergency_stop"), ("emergency_stop",)),
    Fault("safeguard stop", _do("safeguard_stop"), ("safeguard_stop",)),
    Fault("program stopped", _do("stop_program"), ("program_stopped",)),
    Fault("program paused and resumed", _pause_and_play, ("completed", "program_paused")),
    Fault("program replaced", _replace, ("program_replaced", "program_stopped")),
    Fault("remote control lost", _do("remote_control", on=False), ("completed", "remote_control_lost", "refused")),
    Fault("power off", _power_off, ("power_off",)),
    Fault("states' connection reset", _do("drop", port=30004, client=0), ("connection_lost", "servo_process_lost")),
    Fault("commands' connection reset", _do("drop", port=30004, client=1), ("connection_lost", "servo_process_lost")),
    Fault("all connections reset", _do("drop", port=30004), ("connection_lost", "servo_process_lost")),
    Fault("half open", _do("mute", port=30004), ("stale_state", "connection_lost", "program_stopped")),
    Fault("packets delayed", _do("delay", port=30004, seconds=0.02, jitter=0.01), BUSY),
    Fault("controller frozen briefly", _do("freeze", seconds=0.05), BUSY),
    Fault("controller frozen", _do("freeze", seconds=1.0), (*BUSY, "connection_lost", "program_replaced")),
    Fault("controller killed", _do("kill"), ("connection_lost", "stale_state")),
    Fault("servo process killed", _servo(signal.SIGKILL), ("servo_process_lost",)),
    Fault(
        "servo process suspended",
        _servo(signal.SIGSTOP, signal.SIGCONT, 0.5),
        ("program_stopped", "stale_state", "completed"),
    ),
    Fault("Ctrl-C", _parent(signal.SIGINT), ("interrupted",)),
    Fault("SIGTERM", _parent(signal.SIGTERM), ("terminated",)),
    Fault("SIGHUP", _parent(signal.SIGHUP), ("hangup",)),
    Fault("program halted", _parent(signal.SIGSTOP, signal.SIGCONT, 1.5), ("parent_lost", "completed")),
    Fault("host loaded", _load, BUSY),
]
# With these the controller brakes the arm, by as much as it likes.
BRAKED = {
    "protective stop", "emergency stop", "safeguard stop", "program stopped", "program paused and resumed",
    "program replaced", "power off", "controller killed",
}  # fmt: skip


@dataclass
class Result:
    """What a trial showed."""

    seed: int
    faults: list[str]
    phase: str
    cause: str | None = None
    violations: list[str] = field(default_factory=list)
    step_share: float = 0.0
    evidence: list[str] = field(default_factory=list)


def run_trial(seed: int, controller: Emulator, directory: Path) -> Result:
    """One run with one or two random faults."""
    chance = random.Random(seed)
    faults = [chance.choice(FAULTS) for _ in range(chance.choice((1, 1, 2)))]
    phase, delays = chance.choice(PHASES), [chance.uniform(0.0, 0.5), chance.expovariate(5.0)]
    result = Result(seed, [fault.name for fault in faults], phase)
    begin = int(controller.state()["tick"])
    scenario = line(directory, 1.5)
    flags = ("--robot", "ur10e", "--backend", "ursim", *(("--feedforward", "on") if chance.random() < 0.3 else ()))
    with Trial(controller, directory, scenario, *flags) as trial:
        with contextlib.suppress(AssertionError):
            trial.connecting()
        trial.during(phase, delays[0])
        for fault, delay in zip(faults, [*delays[1:], 0.0], strict=False):
            with contextlib.suppress(Exception):
                fault.act(trial)
            time.sleep(delay)
        try:
            _, message = trial.end()
        except AssertionError as error:
            result.violations.append(f"the run did not end in one paragraph: {error}"[:2000])
            return result
        result.evidence.append(message)
        judge(result, trial, controller, begin, faults)
    return result


def judge(result: Result, trial: Trial, controller: Emulator, begin: int, faults: list[Fault]) -> None:
    """Find what must not be."""
    summary: dict[str, Any] = {}
    with contextlib.suppress(Exception):
        summary = RunDirectory.open(trial.out).summary()
    ended_by = summary.get("ended_by")
    if ended_by is None:
        # Nothing had begun: the message says why.
        ended_by = {"cause": None, "arm_at_rest": None, "evidence": []}
    result.cause = ended_by["cause"]
    result.evidence += ended_by["evidence"]
    allowed = {"completed", None} | {cause for fault in faults for cause in fault.causes} | {"refused"}
    if result.cause not in allowed:
        result.violations.append(f"the cause is {result.cause}")
    if (
        hasattr(trial, "servo")
        and Path(f"/proc/{trial.servo}").exists()
        and "servo_process" in (Path(f"/proc/{trial.servo}/cmdline").read_text())
    ):
        result.violations.append("the servo process is left")
    try:
        state = controller.state()
    except Exception:
        return  # killed: there is no record
    end = int(state["tick"])
    ours_may_play = "program replaced" in result.faults
    if state["runtime_state"] != "STOPPED" and not ours_may_play:
        result.violations.append(f"a program is left: {state['runtime_state']}")
    while int(controller.state()["tick"]) < end + 500:
        time.sleep(0.05)
    record = controller.record()
    mine = record.tick > begin
    tick, target, setpoint = record.tick[mine], record.target_q[mine], record.setpoint[mine]
    speed = np.abs(np.diff(target, axis=0)) / PERIOD
    if len(speed) and speed[tick[1:] > end].max(initial=0.0) > REST:
        result.violations.append("the arm moves after the end")
    share = float((speed / ROBOT.max_velocity).max(initial=0.0))
    if share > 1.0 + 1e-6:
        result.violations.append(f"the arm moved at {share:.3f} of its velocity limit")
    sent = np.isfinite(setpoint).all(axis=1)
    both = sent[1:] & sent[:-1]
    steps = np.abs(np.diff(setpoint, axis=0))[both] / (PERIOD * ROBOT.max_velocity)
    # With feedforward commands may step; the arm may not.
    result.step_share = float(steps.max(initial=0.0))
    acceleration = np.abs(np.diff(target, n=2, axis=0)).max(axis=1) / PERIOD**2
    servoed = both[1:] & both[:-1]
    if (
        not BRAKED.intersection(result.faults)
        and len(acceleration)
        and acceleration[servoed].max(initial=0.0) > 1.05 * MAX_ACCELERATION
    ):
        result.violations.append(f"the arm accelerated by {acceleration[servoed].max():.0f} rad/s^2 under servoj")
    if ended_by["arm_at_rest"] and speed[tick[1:] >= end].max(initial=0.0) > REST:
        result.violations.append("summary.json says that the arm is at rest")
    at = summary.get("ended_by", {}).get("at_s")
    if at is not None and summary.get("samples") and sent.any():
        log = RunDirectory.open(trial.out).log()
        last = np.flatnonzero(sent)[-1]
        found = np.flatnonzero((np.abs(setpoint - log.command[-1]) < 1e-6).all(axis=1) & sent)
        if len(found) and (tick[last] - tick[found[-1]]) * PERIOD > 0.5 and result.cause != "completed":
            result.violations.append(
                f"the log ends {(tick[last] - tick[found[-1]]) * PERIOD:.2f} s before the last setpoint"
            )


class Host:
    """An emulator that is begun again when a trial has killed it, and put in order before each."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._emulator: Emulator | None = None

    def ready(self) -> Emulator:
        """The controller, as at the beginning."""
        for _ in range(3):
            try:
                return self._ordered()
            except Exception:
                self.close()
        return self._ordered()

    def _ordered(self) -> Emulator:
        if self._emulator is None:
            priority = SERVO_PRIORITY + 10 if REALTIME else 0
            emulator = Emulator("ur10e", polyscope="5.12", host=self._host, realtime_priority=priority)
            self._emulator = emulator.__enter__()
        emulator = self._emulator
        emulator.do("mute", port=30004, muted=False)
        emulator.do("delay", port=30004, seconds=0.0)
        emulator.do("remote_control", on=True)
        if emulator.state()["safety_mode"] == "PROTECTIVE_STOP":
            raise RuntimeError("begin again: five seconds are longer than a start")
        emulator.do("release_safety")
        emulator.do("stop_program")
        emulator.do("power_on_and_release")
        deadline = time.monotonic() + 15.0
        while emulator.state()["robot_mode"] != "RUNNING":
            if time.monotonic() > deadline:
                raise RuntimeError("not ready")
            time.sleep(0.02)
        if np.abs(np.array(emulator.state()["target_q"]) - HOME).max() > 1e-3:
            emulator.do("run_script", source=f"movej({HOME.tolist()}, a=10, v=3)\n")
            while np.abs(np.array(emulator.state()["actual_q"]) - HOME).max() > 1e-3 or emulator.state()["moving"]:
                if time.monotonic() > deadline:
                    raise RuntimeError("not at home")
                time.sleep(0.02)
            emulator.do("stop_program")
        return emulator

    def close(self) -> None:
        """End the emulator."""
        emulator, self._emulator = self._emulator, None
        if emulator is not None:
            with contextlib.suppress(Exception):
                emulator.__exit__(None, None, None)


def campaign(first: int, count: int, host: str, results: Path, seconds: float = float("inf")) -> int:
    """Run trials with consecutive seeds; the number of those with a violation."""
    bad, deadline = 0, time.monotonic() + seconds
    controller = Host(host)
    try:
        for seed in range(first, first + count):
            if time.monotonic() > deadline:
                break
            directory = Path(tempfile.mkdtemp(prefix="simbridge-fault-"))
            result = run_trial(seed, controller.ready(), directory)
            bad += bool(result.violations)
            with results.open("a") as file:
                file.write(json.dumps(vars(result)) + "\n")
            shutil.rmtree(directory, ignore_errors=True)
    finally:
        controller.close()
    return bad


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--host", default="127.0.0.81")
    parser.add_argument("--results", type=Path, default=Path("faults.jsonl"))
    parser.add_argument("--seconds", type=float, default=float("inf"))
    given = parser.parse_args()
    sys.exit(bool(campaign(given.seed, given.count, given.host, given.results, given.seconds)))
