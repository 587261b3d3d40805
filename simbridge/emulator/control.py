"""The commands of the control socket: faults, what an operator does, and questions.

docs/emulator_reference.md lists them. A command is a JSON object such as
{"do": "slider", "fraction": 0.5}.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import json
import os
from collections.abc import Callable
from typing import Any, get_type_hints

import msgspec

from simbridge.emulator.record_file import new_record_path, write_record
from simbridge.emulator.running import RunningController
from simbridge.errors import SimbridgeError
from simbridge.ur.tables import RobotMode, RuntimeState, SafetyMode

# The longest delay, and the longest time for which a controller is frozen or its tool pushed, s.
MAX_FAULT_S = 3600.0
# Characters that an error shows of a value.
MAX_SHOWN_CHARACTERS = 100
DIGITAL_PINS = 18

# Exceptions of a command that are due to its arguments or to the controller's state.
REFUSALS = (
    SimbridgeError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    OSError,
    OverflowError,
)


class Control:
    """The commands for a controller, each with its name in the JSON object, `do`.

    A command's arguments are the other fields of the object.

    Args:
        running: The controller, and its servers.
    """

    def __init__(self, running: RunningController) -> None:
        self._running = running
        self._controller = running.controller

        controller = running.controller
        servers = running.servers
        self._commands: dict[str, Callable[..., Any]] = {
            # Actions of the operator at the pendant, or of the safety system
            "power_on_and_release": self._locked(controller.brake_release),
            "protective_stop": self._locked(controller.protective_stop),
            "emergency_stop": self._locked(controller.emergency_stop),
            "safeguard_stop": self._locked(controller.safeguard_stop),
            "release_safety": self._locked(controller.release_safety),
            "stop_program": self._locked(controller.stop_program),
            "pause_program": self._locked(controller.pause_program),
            "play_program": self._locked(controller.play_program),
            # Refused for `Settings.unlock_delay`.
            "unlock_protective_stop": self._locked(controller.unlock_protective_stop),
            "run_script": self._locked(controller.load_script),
            "push": self.push,
            "slider": self.slider,
            "set": self.set,
            "remote_control": self.remote_control,
            # Network faults
            "freeze": self.freeze,
            "drop": servers.drop,
            "mute": servers.mute,
            "refuse": servers.refuse,
            "delay": self.delay,
            "take_registers": self.take_registers,
            "release_registers": self.release_registers,
            "kill": self.kill,
            # Questions
            "commands": self.commands,
            "state": self.state,
            "timing": self.timing,
            "save_record": self.save_record,
        }

    def _locked(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """Return a command that calls a method of the controller with the lock held."""

        @functools.wraps(method)
        def call(**arguments: Any) -> Any:
            with self._running.lock:
                return method(**arguments)

        return call

    def answer(self, line: bytes) -> dict[str, Any]:
        """Carry out one line.

        Returns:
            {"ok": true, "value": ...} or {"ok": false, "error": ...}.
        """
        try:
            request = json.loads(line)
            if not isinstance(request, dict):
                raise ValueError('a line is an object such as {"do": "state"}')

            name = request.pop("do")
            names = self.commands()
            if name not in names:
                text = f"there is no command {name!r}; known: {', '.join(names)}"
                return {"ok": False, "error": text}

            # Check everything before doing anything.
            command = self._commands[name]
            arguments = convert_arguments(command, request)
            return {"ok": True, "value": command(**arguments)}
        except RecursionError:
            return {"ok": False, "error": "ValueError: too many lists or objects are nested"}
        except REFUSALS as error:
            return {"ok": False, "error": f"{type(error).__name__}: {error}"}

    def commands(self) -> list[str]:
        """Return the names of all commands."""
        return sorted(self._commands)

    # Actions of the operator at the pendant, or of the safety system

    def push(self, wrench: tuple[float, float, float, float, float, float], seconds: float) -> None:
        """Push the tool for a time.

        Args:
            wrench: Force and torque at the TCP (6,), N and N m, along the axes of the base.
            seconds: Duration, s.
        """
        with self._running.lock:
            duration = check_range("seconds", seconds, MAX_FAULT_S)
            self._controller.drive.contact.push(wrench, duration)

    def slider(self, fraction: float) -> None:
        """Move the speed slider, 0..1."""
        value = check_range("fraction", fraction, 1.0)
        with self._running.lock:
            self._controller.set_speed_slider(value)

    def set(self, **settings: Any) -> None:
        """Change settings (`Settings`) and parts of the state (`STATE`) by name, all or none."""
        with self._running.lock:
            self._controller.set(settings)

    def remote_control(self, on: bool) -> None:
        """Switch remote control on or off, as at the pendant of an e-Series."""
        self._controller.remote_control = on

    # Network faults

    def freeze(self, seconds: float) -> None:
        """Stop everything: no tick, no answer. Commands that need the controller wait too."""
        self._running.freeze(check_range("seconds", seconds, MAX_FAULT_S))

    def delay(self, port: int, seconds: float, jitter: float = 0.0) -> None:
        """Send everything on a port late.

        Args:
            port: Standard number of the port.
            seconds: Duration, s.
            jitter: Largest variation of the delay to either side, s.
        """
        delay = check_range("seconds", seconds, MAX_FAULT_S)
        spread = check_range("jitter", jitter, MAX_FAULT_S)
        self._running.servers.delay(port, delay, spread)

    def take_registers(self, names: list[str]) -> list[str]:
        """Claim RTDE inputs as another client would, so that other clients get IN_USE.

        Returns:
            The inputs that are already claimed.
        """
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
        """Return the state of the last tick, in SI units."""
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
                "digital_inputs": _bits(s.digital_inputs),
                "digital_outputs": _bits(s.digital_outputs),
                "analog_inputs": s.analog_inputs.copy(),
                "analog_outputs": s.analog_outputs.copy(),
                "program": self._controller.program_name,
                "popup": self._controller.popup_text,
                "moving": bool(s.actual_qd.any()),
                "settings": dataclasses.asdict(self._controller.settings),
            }

    def timing(self) -> dict[str, list[float]]:
        """Return the periods and the work of the ticks so far, s."""
        period, work = self._running.timing()
        return {"period": period.tolist(), "work": work.tolist()}

    def save_record(self, path: str, after: int = -1) -> None:
        """Write the record as npz (`write_record`).

        Args:
            path: A new file under the temporary directory or the working directory.
            after: The tick after which the record begins.
        """
        file = new_record_path(path)
        record = self._controller.record
        with self._running.lock:
            ticks = record.ticks(after)
            inputs = [package for package in record.inputs if package[0] > after]
        write_record(file, ticks, inputs)


def convert_arguments(command: Callable[..., Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a command with the types that it declares.

    Raises:
        TypeError: An argument is missing, or the command does not have it.
        ValueError: An argument is of another type.
    """
    inspect.signature(command).bind(**arguments)

    types = get_type_hints(command)
    converted = {}
    for name, value in arguments.items():
        # `set` takes any name, and checks it itself.
        kind = types.get(name, Any)
        try:
            converted[name] = msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            shown = repr(value)[:MAX_SHOWN_CHARACTERS]
            raise ValueError(f"{name} is {shown}: {error}") from None
    return converted


def check_range(name: str, value: float, maximum: float) -> float:
    """Return a value from 0 to the maximum; raise ValueError for any other."""
    if not 0.0 <= value <= maximum:
        raise ValueError(f"{name} must be a number from 0 to {maximum:g}; got {value}")
    return value


def _bits(number: int) -> list[bool]:
    """Return the levels of the digital pins from a number whose bit i is pin i."""
    return [bool(number >> i & 1) for i in range(DIGITAL_PINS)]
