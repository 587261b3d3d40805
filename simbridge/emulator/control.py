"""The control socket: faults and questions, a JSON object a line each way (the commands: docs/emulator.md)."""

from __future__ import annotations

import json
import math
import os
import socketserver
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from simbridge.emulator.running import RunningController
from simbridge.emulator.servers import DASHBOARD, PRIMARY, REALTIME, RTDE, SECONDARY
from simbridge.emulator.state import RobotMode, RuntimeState, SafetyMode
from simbridge.errors import SimbridgeError

CONTROL_PORT = 30020
PORTS = (DASHBOARD, PRIMARY, SECONDARY, REALTIME, RTDE)
_MAX_LINE = 1 << 16


class Control:
    """What the control socket understands: every public method is a command, its arguments the object's other fields.

    Args:
        running: The controller it acts on.
    """

    def __init__(self, running: RunningController) -> None:
        self._running, self._controller = running, running.controller

    def answer(self, line: bytes) -> dict[str, Any]:
        """Carry out one line and say how it went: {"ok": true, "value": ...} or {"ok": false, "error": ...}."""
        try:
            request = json.loads(line)
            name = request.pop("do")
            command = getattr(self, name) if name in self.commands() else None
            if command is None:
                return {"ok": False, "error": f"there is no command {name!r}; known: {', '.join(self.commands())}"}
            return {"ok": True, "value": command(**request)}
        except (SimbridgeError, ValueError, KeyError, TypeError, AttributeError, OSError) as error:
            return {"ok": False, "error": f"{type(error).__name__}: {error}"}

    def commands(self) -> list[str]:
        """The names of all commands."""
        return sorted(name for name in dir(self) if not name.startswith("_") and name != "answer")

    def _locked(self, act: Callable[[], Any]) -> Any:
        with self._running.lock:
            return act()

    def state(self) -> dict[str, Any]:
        """The controller as it is now."""
        with self._running.lock:
            s = self._controller.state
            return {
                "timestamp": s.timestamp,
                "tick": s.tick,
                "robot_mode": RobotMode(s.robot_mode).name,
                "safety_mode": SafetyMode(s.safety_mode).name,
                "runtime_state": RuntimeState(s.runtime_state).name,
                "speed_slider": s.speed_slider,
                "speed_scaling": s.speed_scaling,
                "target_q": s.target_q.tolist(),
                "actual_q": s.actual_q.tolist(),
                "actual_qd": s.actual_qd.tolist(),
                "tcp_offset": s.tcp_offset.tolist(),
                "payload": s.payload,
                "moving": bool(s.actual_qd.any()),
            }

    def power_on_and_release(self) -> None:
        """Power on and release the brakes, as a person at the pendant."""
        self._locked(self._controller.brake_release)

    def protective_stop(self) -> None:
        """As the safety system does."""
        self._locked(self._controller.protective_stop)

    def unlock_protective_stop(self) -> str:
        """As a person at the pendant; refused for the first 5 s."""
        return str(self._locked(self._controller.unlock_protective_stop))

    def emergency_stop(self) -> None:
        """As the button does."""
        self._locked(self._controller.emergency_stop)

    def safeguard_stop(self) -> None:
        """As an opened safeguard does."""
        self._locked(self._controller.safeguard_stop)

    def release_safety(self) -> None:
        """Pull the button out, or close the safeguard."""
        self._locked(self._controller.release_safety)

    def freeze(self, seconds: float) -> None:
        """Stand still: no tick, no answer; what is asked here of the controller waits too."""
        self._running.freeze(_not_negative("seconds", seconds))

    def drop(self, port: int, client: int | None = None) -> None:
        """Cut every connection of a port (by its standard number), or one: 0 is the one that has been there longest."""
        self._running.servers.drop(_port(port), client)

    def mute(self, port: int, muted: bool = True) -> None:
        """Accept connections on a port, and say nothing."""
        self._running.servers.mute(_port(port), bool(muted))

    def refuse(self, port: int, refused: bool = True) -> None:
        """Refuse new connections on a port."""
        self._running.servers.refuse(_port(port), bool(refused))

    def delay(self, port: int, seconds: float, jitter: float = 0.0) -> None:
        """Send everything on a port late."""
        self._running.servers.delay(_port(port), _not_negative("seconds", seconds), _not_negative("jitter", jitter))

    def slider(self, fraction: float) -> None:
        """Move the speed slider, 0..1."""
        value = _not_negative("fraction", fraction)
        self._locked(lambda: self._controller.set_speed_slider(value))

    def stop_program(self) -> None:
        """As a person at the pendant."""
        self._locked(self._controller.stop_program)

    def pause_program(self) -> None:
        """As a person at the pendant."""
        self._locked(self._controller.pause_program)

    def play_program(self) -> bool:
        """Resume, as a person at the pendant."""
        return bool(self._locked(self._controller.play_program))

    def take_registers(self, names: list[str]) -> list[str]:
        """Hold RTDE inputs as another client would: whoever asks is answered IN_USE. Returns those taken already."""
        return list(self._locked(lambda: self._running.servers.take_inputs(tuple(names))))

    def release_registers(self) -> None:
        """Give the inputs of `take_registers` back."""
        self._locked(self._running.servers.release_inputs)

    def remote_control(self, on: bool) -> None:
        """Switch remote control on or off."""
        self._controller.remote_control = bool(on)

    def run_script(self, source: str) -> None:
        """Run a program, as if it came from the pendant."""
        self._locked(lambda: self._controller.load_script(source))

    def timing(self) -> dict[str, list[float]]:
        """Periods and work of the ticks so far, s."""
        timing = self._running.timing()
        return {"period": timing.period.tolist(), "work": timing.work.tolist()}

    def save_record(self, path: str) -> None:
        """Write the record as npz: tick, setpoint (nan without servoj), target_q, actual_q; input_tick, inputs."""
        with self._running.lock:
            ticks = list(self._controller.record.ticks)
            inputs = list(self._controller.record.inputs)
        rest = np.full(self._controller.robot.n, np.nan)
        np.savez(
            path,
            tick=np.array([t for t, *_ in ticks]),
            setpoint=np.array([rest if s is None else s for _, s, _, _ in ticks]),
            target_q=np.array([q for _, _, q, _ in ticks]),
            actual_q=np.array([q for *_, q in ticks]),
            input_tick=np.array([t for t, _, _ in inputs]),
            inputs=json.dumps([[list(names), list(values)] for _, names, values in inputs]),
        )

    def kill(self) -> None:
        """End the process at once, as a power cut does."""
        os._exit(9)


def _port(port: Any) -> int:
    """A standard port number of the controller.

    Raises:
        ValueError: It has no such port.
    """
    if port not in PORTS:
        raise ValueError(f"the controller has no port {port}; it has {', '.join(map(str, PORTS))}")
    return int(port)


def _not_negative(name: str, value: Any) -> float:
    number = float(value)
    if not (math.isfinite(number) and number >= 0.0):
        raise ValueError(f"{name} is {value}, it must be a number, not negative")
    return number


class ControlServer(socketserver.ThreadingTCPServer):
    """Serves the control socket in threads of its own: it takes commands also while the controller is frozen."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, running: RunningController, host: str, port: int) -> None:
        self.control = Control(running)
        super().__init__((host, port), _Handler)

    def __enter__(self) -> ControlServer:
        threading.Thread(
            target=self.serve_forever, args=(0.05,), name="simbridge-emulator-control", daemon=True
        ).start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self.shutdown()
        self.server_close()


class _Handler(socketserver.StreamRequestHandler):
    server: ControlServer

    def handle(self) -> None:
        while line := self.rfile.readline(_MAX_LINE):
            self.wfile.write(json.dumps(self.server.control.answer(line)).encode() + b"\n")
