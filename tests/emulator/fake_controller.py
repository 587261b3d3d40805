"""A controller that only counts its ticks and records calls.

Servers stand around it or around a real one.
"""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from simbridge.emulator.emulated_controller import EmulatedController
from simbridge.emulator.program import ScriptProgram
from simbridge.emulator.servers import Servers
from simbridge.emulator.settings import Settings
from simbridge.emulator.state import ControllerEvent, ControllerState, profile
from simbridge.robot import Robot, load_robot
from simbridge.ur.tables import PORT_NAMES, RobotMode, RuntimeState

UR10_D = (0.1273, 0.0, 0.0, 0.163941, 0.1157, 0.0922)
UR10_A = (0.0, -0.612, -0.5723, 0.0, 0.0, 0.0)
UR10_ALPHA = (np.pi / 2, 0.0, 0.0, np.pi / 2, -np.pi / 2, 0.0)


def write_program(path: Path, *nodes: str, once: bool = True) -> Path:
    """Write a program of the pendant, with these nodes in its main program."""
    main = (
        f'<MainProgram runOnlyOnce="{str(once).lower()}"><children>{"".join(nodes)}</children>'
        "</MainProgram>"
    )
    text = (
        f'<URProgram name="{path.stem}"><children><InitVariablesNode/>{main}</children></URProgram>'
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()))
    return path


class FakeController:
    """The part of an `EmulatedController` that servers use; `calls` lists the calls in order."""

    robot: Robot = load_robot("ur10")
    joint_speed_limits = robot.max_velocity

    def __init__(self, polyscope: str = "5.12") -> None:
        self.state = ControllerState(robot_mode=RobotMode.RUNNING)
        self.state.actual_q = np.array([0.1, -1.2, 1.3, -1.4, -1.5, 0.6])
        self.profile = profile(polyscope)
        self.settings = Settings()
        self.model_name = "UR10"
        self.robot_type = 2
        self.serial_number = "20261234567"
        self.remote_control = True
        self.programs: Path | None = None
        self.own_ports: dict[tuple[str, int], tuple[str, int]] = {}
        self.kinematics_checksum: tuple[int, ...] = (0xFFFFFFFF,) * 6
        self.dh = ((0.0,) * 6, UR10_A, UR10_D, UR10_ALPHA)
        self.calls: list[tuple[object, ...]] = []
        self.inputs: list[tuple[tuple[str, ...], tuple[object, ...]]] = []
        self.events: list[ControllerEvent] = []
        self.on_event = self.events.append

    def tick(self) -> int:
        self.state.tick += 1
        self.state.timestamp = self.state.tick * self.profile.period
        return self.state.tick

    def load_script(self, source: str) -> None:
        self.calls.append(("load_script", source))
        self.state.runtime_state = RuntimeState.PLAYING

    def _change(self, name: str, needed: tuple[RuntimeState, ...], then: RuntimeState) -> bool:
        self.calls.append((name,))
        done = self.state.runtime_state in needed
        if done:
            self.state.runtime_state = then
        return done

    def stop_program(self) -> bool:
        return self._change(
            "stop_program", (RuntimeState.PLAYING, RuntimeState.PAUSED), RuntimeState.STOPPED
        )

    def pause_program(self) -> bool:
        return self._change("pause_program", (RuntimeState.PLAYING,), RuntimeState.PAUSED)

    def play_program(self) -> bool:
        return self._change(
            "play_program", (RuntimeState.PAUSED, RuntimeState.STOPPED), RuntimeState.PLAYING
        )

    def power_on(self) -> None:
        self.calls.append(("power_on",))
        self.state.robot_mode = RobotMode.IDLE

    def power_off(self) -> None:
        self.calls.append(("power_off",))
        self.state.robot_mode = RobotMode.POWER_OFF

    def brake_release(self) -> None:
        self.calls.append(("brake_release",))
        self.state.robot_mode = RobotMode.RUNNING

    def unlock_protective_stop(self) -> str:
        self.calls.append(("unlock_protective_stop",))
        return "Protective stop releasing"

    def release_protective_stop(self) -> None:
        self.calls.append(("release_protective_stop",))

    def restart_safety(self) -> str:
        self.calls.append(("restart_safety",))
        return "Restarting safety"

    def popup(self, text: str) -> None:
        self.calls.append(("popup", text))

    def close_popup(self) -> None:
        self.calls.append(("close_popup",))

    def record_input(self, names: tuple[str, ...], values: tuple[object, ...]) -> None:
        self.inputs.append((names, values))


class RealController(EmulatedController):
    """The emulator's controller; ticks are called as the fake one's."""

    def __init__(self, robot: str, polyscope: str) -> None:
        super().__init__(load_robot(robot), profile(polyscope), ScriptProgram, boot_time=0.0)
        self.brake_release()
        while self.state.robot_mode != RobotMode.RUNNING:
            self.tick()


class Stand:
    """A controller with its servers; `tick` is called by hand, or by a thread after `run`."""

    def __init__(self, controller: Any, host: str, ports: Mapping[int, int] | None) -> None:
        self.controller = controller
        self.lock = threading.Lock()
        self.host = host
        self.servers = Servers(self.controller, self.lock, host=host, ports=ports)
        self._running = False
        self._thread = threading.Thread(target=self._run, daemon=True)

    def tick(self, times: int = 1) -> None:
        for _ in range(times):
            with self.lock:
                self.controller.tick()
                self.servers.send_due(self.controller.state.tick)

    def run(self) -> None:
        self._running = True
        self._thread.start()

    def _run(self) -> None:
        due = time.monotonic()
        while self._running:
            self.tick()
            due += self.controller.profile.period
            time.sleep(max(0.0, due - time.monotonic()))

    def stop(self) -> None:
        if self._running:
            self._running = False
            self._thread.join()
        self.servers.stop()


ANY_PORTS = dict.fromkeys(PORT_NAMES, 0)


@contextmanager
def stand(
    polyscope: str = "5.12",
    host: str = "127.0.0.1",
    ports: Mapping[int, int] | None = None,
    *,
    run: bool = False,
    controller: EmulatedController | None = None,
) -> Iterator[Stand]:
    """Servers on free ports by default, with a clock if `run` is set.

    A bug in the emulator fails the test.
    """
    served = Stand(
        controller or FakeController(polyscope), host, ANY_PORTS if ports is None else ports
    )
    served.servers.start()
    if run:
        served.run()
    try:
        yield served
    finally:
        served.stop()
