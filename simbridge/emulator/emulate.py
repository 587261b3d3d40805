"""One emulated controller in this process, until Ctrl-C: `simbridge emulate` for a single arm."""

from __future__ import annotations

import gc
import ipaddress
import signal
import sys
import threading
from pathlib import Path

from simbridge.emulator.arm_options import check_pair, kinematics_of, speed_limits, start_joints
from simbridge.emulator.control_server import ControlServer
from simbridge.emulator.emulated_controller import EmulatedController
from simbridge.emulator.errors import CannotListen
from simbridge.emulator.options import EmulatorOptions
from simbridge.emulator.program import ScriptProgram, warm_up
from simbridge.emulator.running import RunningController
from simbridge.emulator.services import closed_ports
from simbridge.emulator.state import profile
from simbridge.emulator.traffic import Traffic
from simbridge.emulator.urscript.compilation import Compilation
from simbridge.errors import InputFileError, InvalidParameter
from simbridge.lifeline import end_with_parent
from simbridge.robot.load import load_ur_arm
from simbridge.scheduling import ask_for_priority
from simbridge.ur.tables import PORT_NAMES, REST, RobotMode

# The largest speed of a controller's clock, in multiples of real time.
MAX_SPEED = 100.0
# Time from the first signal until the system ends the process, s.
END_TIMEOUT_S = 10
# Interval at which the log is printed, s.
LOG_POLL_S = 0.2
# How many new objects there are before Python searches them for garbage: few, since a tick waits
# for it.
NEW_OBJECTS = 700


def run_controller(options: EmulatorOptions) -> int:
    """Run an emulated controller until SIGINT or SIGTERM.

    Args:
        options: The options; the number of arms is not used.

    Returns:
        The exit status, 0. A server has no other end than being stopped, so that is not a failure
        (as with nginx or PostgreSQL), and a service manager or a CI script need not make an
        exception for it.

    Raises:
        CannotListen: A port is in use.
        EmulatorBroken: The emulator has ended because of a bug.
        UnknownName, InputFileError: A name or a file cannot be used.
        InvalidParameter: The robot is not a UR arm, or its controllers do not run this version.
    """
    # Started by a test, or as one of several arms: it then ends as by SIGTERM when its parent has
    # gone.
    end_with_parent(signal.SIGTERM)

    _check_numbers(options)
    arm = load_ur_arm(options.robot)
    software = profile(options.polyscope)
    check_pair(arm, software)
    dh = None
    checksum = None
    if options.calibration is not None:
        dh, checksum = kinematics_of(arm, Path(options.calibration))

    compiler = warm_up()
    controller = EmulatedController(
        arm,
        software,
        ScriptProgram,
        boot_time=options.boot_time,
        dh=dh,
        checksum=checksum,
        q=start_joints(arm, options.start_pose),
    )
    if options.joint_speed_limit is not None:
        limits = speed_limits(arm, options.joint_speed_limit)
        controller.settings = controller.settings.changed({"joint_speed_limit": limits})
    if options.programs is not None:
        controller.programs = Path(options.programs)
        if not controller.programs.is_dir():
            raise InputFileError(controller.programs, "it is not a folder of programs")

    _serve(controller, options, compiler)
    return 0


def _check_numbers(options: EmulatorOptions) -> None:
    """Raise InvalidParameter for a priority or a speed that is not possible."""
    if not 0 <= options.realtime_priority <= 99:
        needed = "from 1 to 99, or 0 for none"
        raise InvalidParameter("real-time priority", options.realtime_priority, needed)
    if not 1.0 <= options.speed <= MAX_SPEED:
        raise InvalidParameter("speed", options.speed, f"from 1 to {MAX_SPEED:g} times real time")


def _serve(controller: EmulatedController, options: EmulatorOptions, compiler: Compilation) -> None:
    """Run a controller with its servers and its control socket until a signal.

    Args:
        controller: The controller, complete and not yet running.
        options: Options of the servers, the clock and the traffic.
        compiler: The compiler of scripts, which is still starting.
    """
    stop = _stop_on_signals()

    record = None if options.record is None else Path(options.record)
    traffic = Traffic(record, options.verbose, options.host)
    is_traffic_used = bool(options.record) or options.verbose
    running = RunningController(
        controller,
        options.host,
        {REST: options.rest_port},
        speed=options.speed,
        on_exchange=traffic.note if is_traffic_used else None,
        closed=closed_ports(controller.profile, options.services),
    )
    try:
        control = ControlServer(running, options.host, options.control_port)
    except OSError as error:
        raise CannotListen(options.host, options.control_port, error.errno or 0) from None

    gc.set_threshold(NEW_OBJECTS)
    with traffic, running, control:
        if options.realtime_priority:
            for note in ask_for_priority(options.realtime_priority):
                print(note, file=sys.stderr)
        warning = reach_warning(running.servers.address)
        if warning:
            print(warning, file=sys.stderr)

        # The servers answer already, but a controller that is said to be ready runs a program at
        # once.
        compiler.join()
        _report_ready(running, options)

        # Print the log until a signal comes, or the controller has ended because of a bug.
        is_alive = True
        while is_alive:
            is_alive = not stop.wait(LOG_POLL_S) and running.alive
            while running.log:
                print(running.log.popleft(), file=sys.stderr, flush=True)
    # The controller has ended in time: the alarm of `_stop_on_signals` is not needed.
    signal.alarm(0)


def _report_ready(running: RunningController, options: EmulatorOptions) -> None:
    """Print where the controller is, and in which mode."""
    controller = running.controller
    closed = closed_ports(controller.profile, options.services)
    ports = ", ".join(
        f"{PORT_NAMES[number]} {actual}{' (switched off)' if number in closed else ''}"
        for number, actual in running.servers.ports.items()
    )
    mode = RobotMode(controller.state.robot_mode).name.lower().replace("_", " ")
    software = f"PolyScope {controller.profile.polyscope}"
    print(
        f"{controller.robot.title} with {software} on {options.host}: {ports}; faults on "
        f"{options.control_port}. It starts in mode {mode}. Press Ctrl-C to stop.",
        flush=True,
    )


def _stop_on_signals() -> threading.Event:
    """Return an event that SIGINT and SIGTERM set. Whatever happens then, the process ends.

    Its ordinary end waits for the tick under way. Should that not come back, an alarm of the system
    ends the process; a second signal ends it at once. The system needs nothing of this program for
    either.
    """
    stop = threading.Event()

    def end(*_: object) -> None:
        stop.set()
        signal.alarm(END_TIMEOUT_S)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    return stop


def reach_warning(address: str) -> str:
    """Return a warning if others can reach what listens on this address; else an empty text."""
    if ipaddress.ip_address(address).is_loopback:
        return ""
    risk = (
        "no password is required: anyone who can reach it can run programs in the "
        "emulator, and stop it"
    )
    return f"Listening on {address}, which other computers can reach; {risk}."
