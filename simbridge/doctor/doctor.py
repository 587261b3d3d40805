"""The command: what is looked at for which backend, and what the exit status says."""

from __future__ import annotations

from pathlib import Path

from simbridge.doctor import arm, computer, controller, installation, network, show
from simbridge.doctor.finding import Finding
from simbridge.doctor.start_cell import start_cell
from simbridge.errors import InvalidParameter, UnknownName
from simbridge.ik.kernels.cache import cache_directory
from simbridge.robot.calibration import read_calibration
from simbridge.robot.cell import Cell
from simbridge.robot.cell_file import load_cell
from simbridge.robot.load import load_robot
from simbridge.robot.robot import Robot
from simbridge.ur.controller import registers_taken, survey
from simbridge.ur.errors import ControllerError
from simbridge.ur.facts import PORTS, Survey
from simbridge.ur.primary import is_ursim

BACKENDS = ("pybullet", "ursim", "real")
_LOOPBACK = "127.0.0.1"


def doctor(
    backend: str | None = None,
    host: str | None = None,
    robot: str | None = None,
    cell: str | None = None,
    write_cell: str | None = None,
    json: bool = False,
) -> int:
    """Check, print, and start a cell file if asked to.

    Args:
        backend: One of BACKENDS. Without it: pybullet when no host is known, else what answers there.
        host: Of the controller; the cell's by default, 127.0.0.1 for ursim.
        robot: A name or a file; the cell's, else ur10.
        cell: A cell file to compare with.
        write_cell: The cell file to start from what was read.
        json: Print JSON, for machines.

    Returns:
        The exit status: 0 when nothing failed, else 2.

    Raises:
        UnknownName, InvalidParameter, InputFileError: An argument cannot be used.
        OutputError: The cell file cannot be written.
        ControllerError: The controller did not tell what a cell file needs.
    """
    known = None if cell is None else load_cell(cell)
    if backend is not None and backend not in BACKENDS:
        raise UnknownName("backend", backend, BACKENDS)
    address = host if known is None else known.resolve("host", host)
    name = (robot if known is None else known.resolve("robot", robot)) or "ur10"
    if backend == "ursim":
        address = address or _LOOPBACK
    if backend == "real" and address is None:
        raise InvalidParameter("host", "not given", "the address of the controller: --host, or host in the cell file")
    if backend == "pybullet" or address is None:
        if write_cell is not None:
            raise InvalidParameter("host", "not given", "that of a controller, whose facts a cell file is started from")
        title, findings = "simbridge for simulation with PyBullet", check_installation(name)
    else:
        read = survey(address)
        ursim = backend == "ursim" or (backend is None and read.arm is not None and is_ursim(read.arm.checksum))
        title = f"The controller at {address} for --backend {'ursim' if ursim else 'real'}"
        findings = check_controller(read, load_robot(name), known, ursim=ursim)
    print(show.as_json(title, findings)) if json else show.show(title, findings)
    if write_cell is not None:
        written = start_cell(Path(write_cell), read.complete())
        if not json:
            print(f"Written: {', '.join(map(str, written))}. Read it, and fill in what a controller cannot know.")
    return 2 if any(finding.status == "fail" for finding in findings) else 0


def check_installation(robot: str) -> list[Finding]:
    """What a run in simulation needs."""
    return [
        installation.check_python(),
        installation.check_packages(installation.installed()),
        installation.check_kernel_cache(cache_directory()),
        installation.check_simulation(robot),
    ]


def check_controller(read: Survey, robot: Robot, cell: Cell | None, *, ursim: bool) -> list[Finding]:
    """What a run on a controller needs, of the controller and of this computer.

    Args:
        read: What was read of the controller.
        robot: The arm of the run.
        cell: To compare with.
        ursim: Whether the run would be on URSim.
    """
    known = cell or Cell()
    measured = _measured(read)
    here = computer.read_computer()
    return [
        *(controller.check_port(read, port, robot, ursim=ursim) for port in PORTS),
        controller.check_software(read),
        controller.check_kind(read, ursim=ursim),
        arm.check_model(read, robot),
        # URSim makes its serial number up.
        arm.check_serial_number(read, None if ursim else known.serial_number),
        controller.check_remote_control(read),
        controller.check_robot_mode(read, ursim=ursim),
        controller.check_safety_mode(read),
        controller.check_program(read),
        controller.check_registers(_taken(read)),
        controller.check_slider(read),
        arm.check_tcp(read, known.tcp),
        arm.check_payload(read, known.payload, known.centre_of_gravity),
        *([] if cell is None else [arm.check_mounting(cell)]),
        arm.check_calibration(read, robot),
        *_calibration_file(read, known.calibration),
        network.check_round_trip(measured),
        network.check_jitter(measured),
        computer.check_kernel(here),
        computer.check_priority(here),
        computer.check_governor(here),
        computer.check_cores(here),
    ]


def _taken(read: Survey) -> tuple[str, ...] | None:
    if read.state is None:
        return None
    try:
        return registers_taken(read.host)
    except ControllerError:
        return None


def _measured(read: Survey) -> network.NetworkFacts | None:
    if read.state is None or read.dashboard is None:
        return None
    try:
        return network.measure_network(read.host)
    except ControllerError:
        return None


def _calibration_file(read: Survey, path: Path | None) -> list[Finding]:
    if path is None:
        return []
    return [arm.check_calibration_file(read, path, read_calibration(path)[1])]
