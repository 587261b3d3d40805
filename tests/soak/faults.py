"""Faults that may happen to a run on a controller, and the causes with which it may end because of
them.
"""

from __future__ import annotations

import contextlib
import functools
import os
import random
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simbridge.__main__ import main
from tests.backends.trial import ProcessTrial
from tests.controllers import run_secondary_program
from tests.patience import PATIENCE
from tests.soak import hostile_solver
from tests.soak.station import OTHER_CALIBRATION, OTHER_VERSION, Station

# Without a compiler no clock jumps.
COMPILER = shutil.which("cc")


class Trial(ProcessTrial):
    """A run that is disturbed.

    Attributes:
        station: The controller.
        chance: The trial's random numbers.
    """

    station: Station
    chance: random.Random

    def during(self, phase: str, seconds: float) -> None:
        """Wait until so long after the start of a phase, or until the run has ended."""
        begin = {
            "starting": lambda: True,
            "script starts": lambda: self.controller.state()["runtime_state"] == "PLAYING",
            "approach": lambda: self.joint_travel() > 0.002,
            "streaming": lambda: self.joint_travel() > 0.05,
            "ending": lambda: self.joint_travel() > 0.15,
        }[phase]
        deadline = time.monotonic() + PATIENCE
        while not self.has_ended and time.monotonic() < deadline:
            with contextlib.suppress(Exception):
                if begin():
                    break
            time.sleep(0.002)
        time.sleep(seconds)


@dataclass
class Fault:
    """A fault.

    Attributes:
        name: Its name.
        act: What it does to a trial.
        causes: With which the run may end, as in summary.json.
        network: Whether it needs the faulty network.
        brakes: Whether the controller brakes the arm then, as hard as it likes.
        e_series: Whether it needs an e-Series controller.
        link: The only link with which it is possible; "" for all.
        hostile: What the run's solver does, of `hostile_solver`; "" for a good one.
    """

    name: str
    act: Callable[[Trial], None]
    causes: tuple[str, ...]
    network: bool = False
    brakes: bool = False
    e_series: bool = False
    link: str = ""
    hostile: str = ""

    @property
    def delays(self) -> bool:
        """Whether commands or states are late, and the run may go on."""
        return set(LATE) <= set(self.causes)


def _do(command: str, **arguments: Any) -> Callable[[Trial], None]:
    return lambda trial: trial.controller.do(command, **arguments)


def _replace(trial: Trial) -> None:
    with socket.create_connection((trial.controller.host, 30001), 2.0) as client:
        client.sendall(b"def other():\n  while True:\n    sleep(0.1)\n  end\nend\n")
        time.sleep(0.2)


def _power_off(trial: Trial) -> None:
    if trial.station.is_polyscope_x:
        with socket.create_connection((trial.controller.host, 30001), 2.0) as client:
            client.sendall(b"power off\n")
            client.recv(1000)
        return
    with socket.create_connection((trial.controller.host, 29999), 2.0) as client:
        client.recv(1000)
        client.sendall(b"power off\n")
        client.recv(1000)


def _pause_and_play(trial: Trial) -> None:
    trial.controller.do("pause_program")
    time.sleep(0.6)
    trial.controller.do("play_program")


def _restart(**changes: Any) -> Callable[[Trial], None]:
    return lambda trial: trial.station.restart(**changes)


def _servo(
    number: signal.Signals, then: signal.Signals | None = None, after: float = 0.0
) -> Callable[[Trial], None]:
    def act(trial: Trial) -> None:
        trial.wait_until_connecting()
        os.kill(trial.servo, number)
        if then is not None:
            time.sleep(after)
            with contextlib.suppress(ProcessLookupError):
                os.kill(trial.servo, then)

    return act


def _parent(
    number: signal.Signals, then: signal.Signals | None = None, after: float = 0.0
) -> Callable[[Trial], None]:
    def act(trial: Trial) -> None:
        trial.signal(number)
        if then is not None:
            time.sleep(after)
            trial.signal(then)

    return act


def _no_act(_trial: Trial) -> None:
    """The solver of the run is the fault."""


def _give_up(trial: Trial) -> None:
    """Press Ctrl-C when a plan has taken too long."""
    time.sleep(trial.chance.uniform(2.0, 5.0))
    trial.signal(signal.SIGINT)


def _load(_trial: Trial) -> None:
    burn = "import time\nend = time.time() + 0.5\nwhile time.time() < end: pass"
    busy = [subprocess.Popen([sys.executable, "-c", burn]) for _ in range(4)]
    for process in busy:
        process.wait()


def _hold(trial: Trial) -> None:
    trial.station.network.hold(trial.chance.uniform(0.02, 0.6))


def _cut(trial: Trial) -> None:
    to_client = trial.chance.random() < 0.7
    trial.station.network.cut(
        to_client=to_client, to_controller=not to_client or trial.chance.random() < 0.5
    )


def _garbage(trial: Trial) -> None:
    port = trial.chance.choice((29999, 30001, 30004, 30004, 30004))
    if trial.station.is_polyscope_x and port == 29999:
        port = 80
    to_client = trial.chance.random() < 0.7
    trial.station.network.garbage(port, to_client=to_client, seed=trial.chance.randrange(10**6))


def _bursts(least: float, most: float) -> Callable[[Trial], None]:
    """States that arrive together, every so many seconds."""
    return lambda trial: trial.station.network.bursts(trial.chance.uniform(least, most))


def _future(trial: Trial) -> None:
    """A state from the future, one alone or all from now on."""
    seconds = trial.chance.choice((0.25, 3.0, 5000.0, 9e8, 1e300, float("nan")))
    trial.station.network.shift_clock(seconds, trial.chance.choice((1, 10**9)))


def _clock_back(trial: Trial) -> None:
    trial.station.network.shift_clock(-trial.chance.uniform(0.5, 60.0), 10**9)


def _beside(call: str) -> Callable[[Trial], None]:
    """A statement of another client, beside the program that runs."""
    return lambda trial: run_secondary_program(trial.controller, call)


def _full_disk(trial: Trial) -> None:
    sizes = [path.stat().st_size for path in trial.out.rglob("*") if path.is_file()]
    most = max(sizes, default=4000) + trial.chance.randrange(20_000)
    resource.prlimit(trial.pid, resource.RLIMIT_FSIZE, (most, most))


def _jump(trial: Trial) -> None:
    for _ in range(3):
        set_clock(trial.directory, trial.chance.choice((-86400, -60, -1, 1, 60, 86400)))
        time.sleep(0.4)


def set_clock(directory: Path, seconds: int) -> Path:
    """By how much the wall clocks of a trial's processes are off, in a file."""
    file = directory.parent / f"{directory.name}.clock"
    with file.open("r+b" if file.exists() else "wb") as out:
        out.write(struct.pack("=q", seconds))
    return file


@functools.cache
def _library() -> Path:
    assert COMPILER is not None
    library = Path(tempfile.mkdtemp(prefix="simbridge-clock-")) / "jumping_clock.so"
    source = Path(__file__).with_name("jumping_clock.c")
    subprocess.run([COMPILER, "-shared", "-fPIC", "-O1", "-o", library, source], check=True)
    return library


def run_with_jumping_clock(file: Path, library: Path, _host: str) -> int:
    """`simbridge run`; its wall clock and that of the servo process, ur_rtde's included, are off by
    a file.
    """
    real = time.time
    time.time = lambda: real() + struct.unpack("=q", file.read_bytes())[0]
    os.environ |= {"LD_PRELOAD": str(library), "CLOCK_OFFSET_FILE": str(file)}
    return main()


def with_jumping_clock(directory: Path) -> Callable[[str], int]:
    """The program of a trial whose clock jumps."""
    return functools.partial(run_with_jumping_clock, set_clock(directory, 0), _library())


LATE = ("completed", "program_stopped", "stale_state")
LOST = ("connection_lost", "servo_process_lost", "stale_state", "program_stopped")
JUMP = "clock jumps"
LOCAL = "remote control lost"
REPLACED = "program replaced"
FAULTS = [
    Fault("protective stop", _do("protective_stop"), ("protective_stop",), brakes=True),
    Fault("emergency stop", _do("emergency_stop"), ("emergency_stop",), brakes=True),
    Fault("safeguard stop", _do("safeguard_stop"), ("safeguard_stop",), brakes=True),
    Fault("program stopped", _do("stop_program"), ("program_stopped",), brakes=True),
    Fault(
        "program paused and resumed", _pause_and_play, ("completed", "program_paused"), brakes=True
    ),
    Fault(REPLACED, _replace, ("program_replaced", "program_stopped"), brakes=True),
    Fault(LOCAL, _do("remote_control", on=False), ("completed", "remote_control_lost", "refused")),
    Fault("power off", _power_off, ("power_off",), brakes=True),
    Fault("states' connection reset", _do("drop", port=30004, client=0), LOST),
    # simbridge's own link has one connection for states and commands.
    Fault("commands' connection reset", _do("drop", port=30004, client=1), LOST, link="ur_rtde"),
    Fault("all connections reset", _do("drop", port=30004), LOST),
    Fault("half open", _cut, LOST, network=True),
    Fault("muted", _do("mute", port=30004), LOST),
    Fault("packets delayed", _do("delay", port=30004, seconds=0.02, jitter=0.01), LATE),
    Fault("packets lost and sent again", _hold, LATE, network=True),
    Fault("states in short bursts", _bursts(0.004, 0.018), LATE, network=True),
    Fault("states in long bursts", _bursts(0.025, 0.09), (*LATE, "late_states"), network=True),
    Fault("state from the future", _future, ("implausible_state",), network=True),
    Fault("clock goes back", _clock_back, ("controller_restarted", "stale_state"), network=True),
    Fault(
        "TCP changed",
        _beside("set_tcp(p[0.0, 0.0, 0.05, 0.0, 0.0, 0.0])"),
        ("tool_changed", "arm_changed"),
    ),
    Fault(
        "payload changed",
        _beside("set_payload(2.0, [0.0, 0.0, 0.1])"),
        ("tool_changed", "arm_changed"),
    ),
    Fault("garbage", _garbage, (*LOST, "completed", "refused"), network=True),
    Fault("controller frozen briefly", _do("freeze", seconds=0.05), LATE),
    Fault(
        "controller frozen",
        _do("freeze", seconds=1.0),
        (*LATE, "connection_lost", "program_replaced"),
    ),
    Fault("controller killed", lambda trial: trial.station.kill(), LOST, brakes=True),
    Fault("controller restarted", _restart(), (*LOST, "controller_restarted"), brakes=True),
    Fault(
        "restarted with another calibration",
        _restart(**OTHER_CALIBRATION),
        (*LOST, "controller_restarted", "arm_changed"),
        brakes=True,
        e_series=True,
    ),
    Fault(
        "restarted with another version",
        _restart(**OTHER_VERSION),
        (*LOST, "controller_restarted", "arm_changed"),
        brakes=True,
        e_series=True,
    ),
    Fault("servo process killed", _servo(signal.SIGKILL), ("servo_process_lost",)),
    Fault("loop halted briefly", _servo(signal.SIGSTOP, signal.SIGCONT, 0.04), LATE),
    Fault("loop halted", _servo(signal.SIGSTOP, signal.SIGCONT, 0.5), LATE),
    Fault("loop halted for ever", _servo(signal.SIGSTOP), LOST),
    Fault("Ctrl-C", _parent(signal.SIGINT), ("interrupted",)),
    Fault("SIGTERM", _parent(signal.SIGTERM), ("terminated",)),
    Fault("SIGHUP", _parent(signal.SIGHUP), ("hangup",)),
    Fault("program halted briefly", _parent(signal.SIGSTOP, signal.SIGCONT, 0.3), LATE),
    Fault(
        "program halted", _parent(signal.SIGSTOP, signal.SIGCONT, 1.5), ("parent_lost", "completed")
    ),
    Fault("host loaded", _load, LATE),
    Fault(hostile_solver.NAN, _no_act, ("refused",), hostile=hostile_solver.NAN),
    Fault(hostile_solver.SHORT, _no_act, ("refused",), hostile=hostile_solver.SHORT),
    Fault(hostile_solver.RAISES, _no_act, ("refused",), hostile=hostile_solver.RAISES),
    Fault(hostile_solver.EXITS, _no_act, ("refused",), hostile=hostile_solver.EXITS),
    Fault(hostile_solver.HANGS, _give_up, ("interrupted",), hostile=hostile_solver.HANGS),
    Fault(hostile_solver.SLOW, _no_act, LATE, hostile=hostile_solver.SLOW),
    Fault("disk full", _full_disk, ("disk_full", "completed")),
]
if COMPILER is not None:
    FAULTS.append(Fault(JUMP, _jump, ("completed",)))
