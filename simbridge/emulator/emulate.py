"""The command `simbridge emulate`: a controller until Ctrl-C."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

from simbridge.emulator.calibration import read_calibration
from simbridge.emulator.control import ControlServer
from simbridge.emulator.controller import Controller
from simbridge.emulator.profile import profile
from simbridge.emulator.program import compile_program
from simbridge.emulator.running import RunningController
from simbridge.emulator.state import RobotMode
from simbridge.errors import CannotListen
from simbridge.robot import load_robot


def emulate(robot: str, polyscope: str, host: str, calibration: str | None, boot_time: float, control_port: int) -> int:
    """Run an emulated controller until SIGINT or SIGTERM.

    Raises:
        CannotListen: A port is in use.
        UnknownName, InputFileError: A name or file that cannot be used.
    """
    dh, checksum = (None, None) if calibration is None else read_calibration(Path(calibration))
    software = profile(polyscope)
    controller = Controller(load_robot(robot), software, compile_program, boot_time=boot_time, dh=dh, checksum=checksum)
    controller.warm_up()
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    running = RunningController(controller, host)
    try:
        control = ControlServer(running, host, control_port)
    except OSError as error:
        raise CannotListen(host, control_port, error.errno or 0) from None
    with running, control:
        print(
            f"{controller.model_name} with PolyScope {software.polyscope} on {host}: dashboard 29999, primary 30001, "
            f"secondary 30002, real-time 30003, RTDE 30004; faults on {control_port}. It is "
            f"{RobotMode(controller.state.robot_mode).name.lower().replace('_', ' ')}. Ctrl-C ends it.",
            flush=True,
        )
        while not stop.wait(0.2) and running.alive:
            pass
    return 0
