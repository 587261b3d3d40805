"""The command `simbridge emulate`: a controller until Ctrl-C, and its control socket for faults and questions.

The control socket takes one JSON object per line and answers with one (docs/emulator.md lists the commands).
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import ipaddress
import json
import os
import signal
import socket
import socketserver
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_type_hints

import msgspec
import numpy as np

from simbridge.emulator.browser_guard import BrowserGuard
from simbridge.emulator.emulated_controller import Controller
from simbridge.emulator.errors import CannotListen, ProtocolViolation
from simbridge.emulator.program import ScriptProgram, check_files, known_functions, warm_up
from simbridge.emulator.running import RunningController
from simbridge.emulator.servers import MAX_CLIENTS, Servers
from simbridge.emulator.settings import check_pair, kinematics_of, speed_limits, start_joints
from simbridge.emulator.state import Event, profile
from simbridge.emulator.traffic import Traffic
from simbridge.errors import InputFileError, InvalidParameter, SimbridgeError
from simbridge.lifeline import end_with_parent
from simbridge.robot.load import load_robot
from simbridge.scheduling import ask_for_priority
from simbridge.ur.tables import PORT_NAMES, RobotMode, RuntimeState, SafetyMode

_MAX_LINE = 1 << 16
MAX_SPEED = 100.0  # times real time
_PIECE, _PAUSE = 250, 0.001  # packages that are converted at once, and the pause after them, s
# From the first signal until the system ends the process, s.
END_TIMEOUT = 10
_MAX_FAULT = 3600.0  # s, of a delay or a frozen controller


def emulate(
    robot: str,
    polyscope: str,
    host: str,
    calibration: str | None,
    boot_time: float,
    programs: str | None,
    start_pose: str,
    joint_speed_limit: str | None,
    control_port: int,
    realtime_priority: int,
    speed: float,
    record: str | None,
    verbose: bool,
    check: tuple[str, ...],
    as_json: bool,
) -> int:
    """Run an emulated controller until SIGINT or SIGTERM, or check URScript files without one.

    Returns:
        The exit status: 1 if a check has failed, else 0. A server has no other end than being stopped, so that is not a
        failure (as with nginx or PostgreSQL), and a service manager or a CI script need not make an exception for it.

    Raises:
        CannotListen: A port is in use.
        EmulatorBroken: It has ended because of a bug.
        UnknownName, InputFileError: A name or file that cannot be used.
        InvalidParameter: The robot is not a UR arm, or its controllers do not run this version.
    """
    # Started by a test, or as one of several arms: it then ends as by SIGTERM when its parent has gone.
    end_with_parent(signal.SIGTERM)
    if check:
        return check_files(check, known_functions(), as_json)
    if not 0 <= realtime_priority <= 99:
        raise InvalidParameter(
            "real-time priority", realtime_priority, "from 1 to 99, or 0 for none"
        )
    if not 1.0 <= speed <= MAX_SPEED:
        raise InvalidParameter("speed", speed, f"from 1 to {MAX_SPEED:g} times real time")
    arm, software = load_robot(robot), profile(polyscope)
    check_pair(arm, software)
    dh, checksum = (None, None) if calibration is None else kinematics_of(arm, Path(calibration))
    compiler = warm_up()
    q = start_joints(arm, start_pose)
    controller = Controller(
        arm, software, ScriptProgram, boot_time=boot_time, dh=dh, checksum=checksum, q=q
    )
    if joint_speed_limit is not None:
        limits = speed_limits(arm, joint_speed_limit)
        controller.settings = controller.settings.changed({"joint_speed_limit": limits})
    if programs is not None:
        controller.programs = Path(programs)
        if not controller.programs.is_dir():
            raise InputFileError(controller.programs, "it is not a folder of programs")
    stop = _stop_on_signals()
    traffic = Traffic(None if record is None else Path(record), verbose, host)
    running = RunningController(
        controller, host, speed=speed, on_exchange=traffic.note if record or verbose else None
    )
    try:
        control = ControlServer(running, host, control_port)
    except OSError as error:
        raise CannotListen(host, control_port, error.errno or 0) from None
    with traffic, running, control:
        if realtime_priority:
            for note in ask_for_priority(realtime_priority):
                print(note, file=sys.stderr)
        if warning := reach_warning(running.servers.address):
            print(warning, file=sys.stderr)
        compiler.join()  # what is said to be ready runs a program at once; the servers answer before
        ports = ", ".join(f"{name} {number}" for number, name in PORT_NAMES.items())
        mode = RobotMode(controller.state.robot_mode).name.lower().replace("_", " ")
        print(
            f"{controller.model_name} with PolyScope {software.polyscope} on {host}: {ports}; faults on "
            f"{control_port}. It is {mode}. Ctrl-C ends it.",
            flush=True,
        )
        alive = True
        while alive:
            alive = not stop.wait(0.2) and running.alive
            while running.log:
                print(running.log.popleft(), file=sys.stderr, flush=True)
    signal.alarm(0)
    return 0


def _stop_on_signals() -> threading.Event:
    """An event that SIGINT and SIGTERM set. Whatever happens then, the process ends.

    Its ordinary end waits for the tick under way. Should that not come back, an alarm of the system ends the process;
    a second signal ends it at once. The system needs nothing of this program for either.
    """
    stop = threading.Event()

    def end(*_: object) -> None:
        stop.set()
        signal.alarm(END_TIMEOUT)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    return stop


def reach_warning(address: str) -> str:
    """A warning if others can reach what listens on this address; else empty."""
    if ipaddress.ip_address(address).is_loopback:
        return ""
    risk = (
        "no password is asked: anyone who reaches it can run programs in the emulator, and end it"
    )
    return f"Listening on {address}, not only for this computer; {risk}."


def _action(method: Callable[..., Any]) -> Callable[..., Any]:
    """A command that calls a method of the controller with the lock held."""

    @functools.wraps(method)
    def act(self: Control, **arguments: Any) -> Any:
        with self._running.lock:
            return method(self._controller, **arguments)

    return act


def _fault(method: Callable[..., Any]) -> Callable[..., Any]:
    """A command that calls a method of the servers."""

    @functools.wraps(method)
    def act(self: Control, **arguments: Any) -> Any:
        return method(self._running.servers, **arguments)

    return act


def _checked(command: Callable[..., Any], given: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a command, of the types that it declares; else a TypeError or a ValueError."""
    inspect.signature(command).bind(**given)
    types, checked = get_type_hints(command), {}
    for name, value in given.items():
        try:
            checked[name] = msgspec.convert(
                value, types.get(name, Any)
            )  # `set` takes any name, and checks it itself
        except msgspec.ValidationError as error:
            raise ValueError(f"{name} is {repr(value)[:100]}: {error}") from None
    return checked


class Control:
    """The commands of the control socket: every public method is one, its arguments are the object's other fields."""

    def __init__(self, running: RunningController) -> None:
        self._running, self._controller = running, running.controller

    def answer(self, line: bytes) -> dict[str, Any]:
        """Carry out one line and return {"ok": true, "value": ...} or {"ok": false, "error": ...}."""
        try:
            request = json.loads(line)
            if not isinstance(request, dict):
                raise ValueError('a line is an object such as {"do": "state"}')
            name = request.pop("do")
            if name not in self.commands():
                return {
                    "ok": False,
                    "error": f"there is no command {name!r}; known: {', '.join(self.commands())}",
                }
            command = getattr(self, name)
            # Nothing is done before all of it is known to be in order.
            return {"ok": True, "value": command(**_checked(command, request))}
        except RecursionError:
            return {"ok": False, "error": "ValueError: too many lists or objects are nested"}
        except (
            SimbridgeError,
            ValueError,
            LookupError,
            TypeError,
            AttributeError,
            OSError,
            OverflowError,
        ) as error:
            return {"ok": False, "error": f"{type(error).__name__}: {error}"}

    def commands(self) -> list[str]:
        """The names of all commands."""
        return sorted(name for name in dir(self) if not name.startswith("_") and name != "answer")

    # As by the operator at the pendant, or by the safety system

    power_on_and_release = _action(Controller.brake_release)
    protective_stop = _action(Controller.protective_stop)
    emergency_stop = _action(Controller.emergency_stop)
    safeguard_stop = _action(Controller.safeguard_stop)
    release_safety = _action(Controller.release_safety)
    stop_program = _action(Controller.stop_program)
    pause_program = _action(Controller.pause_program)
    play_program = _action(Controller.play_program)
    unlock_protective_stop = _action(
        Controller.unlock_protective_stop
    )  # refused for `unlock_delay`
    run_script = _action(Controller.load_script)

    def push(self, wrench: tuple[float, float, float, float, float, float], seconds: float) -> None:
        """Push the tool for some seconds: force and torque at the TCP, N and N m, along the axes of the base."""
        with self._running.lock:
            self._controller.drive.contact.push(wrench, _within("seconds", seconds, _MAX_FAULT))

    def slider(self, fraction: float) -> None:
        """Move the speed slider, 0..1."""
        value = _within("fraction", fraction, 1.0)
        with self._running.lock:
            self._controller.set_speed_slider(value)

    def set(self, **settings: Any) -> None:
        """Change settings of the controller (`Settings`) and parts of its state (`STATE`), by name, all or none."""
        with self._running.lock:
            self._controller.set(settings)

    def remote_control(self, on: bool) -> None:
        """Switch remote control on or off, as at the pendant of an e-Series."""
        self._controller.remote_control = on

    # Network faults

    def freeze(self, seconds: float) -> None:
        """Stop everything: no tick, no answer. Commands that need the controller wait too."""
        self._running.freeze(_within("seconds", seconds, _MAX_FAULT))

    drop = _fault(Servers.drop)
    mute = _fault(Servers.mute)
    refuse = _fault(Servers.refuse)

    def delay(self, port: int, seconds: float, jitter: float = 0.0) -> None:
        """Send everything on a port late."""
        late, spread = (
            _within("seconds", seconds, _MAX_FAULT),
            _within("jitter", jitter, _MAX_FAULT),
        )
        self._running.servers.delay(port, late, spread)

    def take_registers(self, names: list[str]) -> list[str]:
        """Claim RTDE inputs as another client would: other clients get IN_USE. Returns those already claimed."""
        with self._running.lock:
            return list(self._running.servers.take_inputs(tuple(names)))

    def release_registers(self) -> None:
        """Release the inputs of `take_registers`."""
        with self._running.lock:
            self._running.servers.release_inputs()

    def kill(self) -> None:
        """End the process at once, as a power cut does."""
        os._exit(9)

    # Questions

    def state(self) -> dict[str, Any]:
        """The state of the last tick, in SI units (docs/emulator.md lists its parts)."""
        with self._running.lock:
            s = self._controller.state
            return {
                "timestamp": s.timestamp,
                "tick": s.tick,
                "speed": self._running.speed,
                "robot_mode": RobotMode(s.robot_mode).name,
                "safety_mode": SafetyMode(s.safety_mode).name,
                "runtime_state": RuntimeState(s.runtime_state).name,
                "speed_slider": s.speed_slider,
                "speed_scaling": s.speed_scaling,
                "target_q": s.target_q.tolist(),
                "actual_q": s.actual_q.tolist(),
                "actual_qd": s.actual_qd.tolist(),
                "tcp_pose": s.actual_tcp_pose.tolist(),
                "tcp_offset": s.tcp_offset.tolist(),
                "payload": s.payload,
                "payload_cog": s.payload_cog.tolist(),
                "payload_inertia": s.payload_inertia.tolist(),
                "digital_inputs": [bool(s.digital_inputs >> i & 1) for i in range(18)],
                "digital_outputs": [bool(s.digital_outputs >> i & 1) for i in range(18)],
                "analog_inputs": s.analog_inputs.copy(),
                "analog_outputs": s.analog_outputs.copy(),
                "program": self._controller.program_name,
                "popup": self._controller.popup_text,
                "moving": bool(s.actual_qd.any()),
                "settings": dataclasses.asdict(self._controller.settings),
            }

    def timing(self) -> dict[str, list[float]]:
        """Periods and work of the ticks so far, s."""
        period, work = self._running.timing()
        return {"period": period.tolist(), "work": work.tolist()}

    def save_record(self, path: str, after: int = -1) -> None:
        """Write the record after a tick as npz; see `_save`."""
        file, record = _new_record(path), self._controller.record
        with self._running.lock:
            ticks, inputs = (
                record.ticks(after),
                [entry for entry in record.inputs if entry[0] > after],
            )
        _save(file, ticks, inputs)


def _save(file: Path, ticks: dict[str, Any], inputs: list[Any]) -> None:
    """Write parts of a record as npz: ticks; input_tick and inputs, the latter as JSON.

    In pieces with pauses: one holds Python's lock for a millisecond; and a thread with real-time priority that never
    pauses is stopped by the system, together with all others of that priority.
    """
    texts = []
    for at in range(0, len(inputs), _PIECE):
        texts.append(json.dumps([pair for _, *pair in inputs[at : at + _PIECE]])[1:-1].encode())
        time.sleep(_PAUSE)
    input_tick = np.array([tick for tick, *_ in inputs], dtype=np.int64)
    with file.open("xb") as output:
        np.savez(
            output,
            input_tick=input_tick,
            inputs=np.frombuffer(b",".join(texts), dtype=np.uint8),
            **ticks,
        )


def _new_record(path: str) -> Path:
    """The path of a record where one may be written; else a ValueError."""
    file = Path(path)
    folders = [Path(tempfile.gettempdir()).resolve(), Path.cwd().resolve()]
    if file.suffix != ".npz" or not any(
        file.resolve().is_relative_to(folder) for folder in folders
    ):
        raise ValueError(
            f"path is {path!r}; a record is a new .npz file under {' or '.join(map(str, folders))}"
        )
    return file.resolve()


def _within(name: str, value: float, largest: float) -> float:
    """The value, from 0 to the largest; else a ValueError."""
    if not 0.0 <= value <= largest:
        raise ValueError(f"{name} is {value}, it must be a number from 0 to {largest:g}")
    return value


class ControlServer(socketserver.ThreadingTCPServer):
    """Serves the control socket in its own threads: it takes commands also while the controller is frozen."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, running: RunningController, host: str, port: int) -> None:
        self._running = running
        self.control = Control(running)
        self._connected: list[Any] = []
        super().__init__((host, port), _Handler)

    def __enter__(self) -> ControlServer:
        threading.Thread(
            target=self.serve_forever, args=(0.05,), name="simbridge-emulator-control", daemon=True
        ).start()
        return self

    def process_request(self, request: Any, client_address: Any) -> None:
        # The oldest leaves: those that stay connected without a word cannot keep others out.
        self._connected = [other for other in self._connected if other.fileno() >= 0]
        if len(self._connected) >= MAX_CLIENTS:
            with contextlib.suppress(OSError):
                self._connected.pop(0).shutdown(socket.SHUT_RDWR)
        self._connected.append(request)
        super().process_request(request, client_address)

    def refused(self, violation: ProtocolViolation, data: bytes) -> None:
        """Log that a client was disconnected."""
        with self._running.lock:
            self._running.controller.on_event(Event("unknown", str(violation), data=data))

    def __exit__(self, *_exception: object) -> None:
        self.shutdown()
        self.server_close()


class _Handler(socketserver.StreamRequestHandler):
    server: ControlServer

    def handle(self) -> None:
        guard = BrowserGuard("control socket")
        with contextlib.suppress(OSError):  # the client has left before its answer
            while line := self.rfile.readline(_MAX_LINE):
                try:
                    guard.check(line)
                except ProtocolViolation as violation:
                    self.server.refused(violation, line)
                    return
                self.wfile.write(json.dumps(self.server.control.answer(line)).encode() + b"\n")
