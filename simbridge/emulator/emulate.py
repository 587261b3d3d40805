"""The command `simbridge emulate`: a controller until Ctrl-C."""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path

from simbridge.emulator.control import ControlServer
from simbridge.emulator.controller import Controller
from simbridge.emulator.errors import CannotListen
from simbridge.emulator.profile import PROFILES, Profile, profile
from simbridge.emulator.program import compile_program, warm_up
from simbridge.emulator.running import RunningController
from simbridge.emulator.state import RobotMode
from simbridge.errors import InputFileError, InvalidParameter
from simbridge.robot.calibration import read_calibration
from simbridge.robot.load import load_robot
from simbridge.robot.parts import DhTable
from simbridge.robot.robot import Robot
from simbridge.scheduling import ask_for_priority


def emulate(
    robot: str,
    polyscope: str,
    host: str,
    calibration: str | None,
    boot_time: float,
    control_port: int,
    realtime_priority: int,
) -> int:
    """Run an emulated controller until SIGINT or SIGTERM.

    Raises:
        CannotListen: A port is in use.
        EmulatorBroken: It has ended by itself, because of a mistake of its own.
        UnknownName, InputFileError: A name or file that cannot be used.
        InvalidParameter: No UR arm, or one that this software does not drive.
    """
    if not 0 <= realtime_priority <= 99:
        raise InvalidParameter("real-time priority", realtime_priority, "from 1 to 99, or 0 for none")
    arm, software = load_robot(robot), profile(polyscope)
    _check_pair(arm, software)
    warm_up()
    dh, checksum = (None, None) if calibration is None else _own_kinematics(Path(calibration))
    controller = Controller(arm, software, compile_program, boot_time=boot_time, dh=dh, checksum=checksum)
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
        if realtime_priority:
            for note in ask_for_priority(realtime_priority):
                print(note, file=sys.stderr)
        print(
            f"{controller.model_name} with PolyScope {software.polyscope} on {host}: dashboard 29999, primary 30001, "
            f"secondary 30002, real-time 30003, RTDE 30004; faults on {control_port}. It is "
            f"{RobotMode(controller.state.robot_mode).name.lower().replace('_', ' ')}. Ctrl-C ends it.",
            flush=True,
        )
        while not stop.wait(0.2) and running.alive:
            pass
    return 0


def _check_pair(arm: Robot, software: Profile) -> None:
    """Whether there is such a controller.

    Raises:
        InvalidParameter: The arm is none of UR's, or its controllers run other software.
    """
    if arm.n != 6:
        raise InvalidParameter("emulated arm", arm.name, f"a UR arm: it has {arm.n} joints, and they have six")
    fitting = [name for name, other in PROFILES.items() if other.series == arm.series]
    if fitting and software.series != arm.series:
        needed = f"{' or '.join(fitting)} for the {arm.title}, whose controller is of the {arm.series} (--polyscope)"
        raise InvalidParameter("PolyScope version", software.polyscope, needed)


def _own_kinematics(path: Path) -> tuple[DhTable, tuple[int, ...]]:
    """Of a calibration file, which must not say that there is no real arm.

    Raises:
        InputFileError: The file is no calibration, or its checksum is URSim's.
    """
    table, checksum = read_calibration(path)
    if set(checksum) == {0xFFFFFFFF}:
        raise InputFileError(path, "all ones say that this is URSim, without a calibration", field="checksum")
    return table, checksum
