"""The command `simbridge doctor`: which checks a backend needs, the exit status, and the cell file it can start."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import cast

from simbridge.backends import SIMULATION, backend_class
from simbridge.backends.controller_backend import ControllerBackend
from simbridge.doctor import computer_checks, controller_checks, findings
from simbridge.doctor.findings import Finding
from simbridge.errors import InvalidParameter, OutputError
from simbridge.kernels.compile import cache_directory
from simbridge.recording.record_tables import installed
from simbridge.resources import robot_files
from simbridge.robot import Six
from simbridge.robot.calibration_file import read_calibration, write_calibration
from simbridge.robot.cell import Cell
from simbridge.robot.cell_file import load_cell, write_cell
from simbridge.robot.load import load_robot
from simbridge.robot.robot import Robot
from simbridge.robot.ros_calibration_file import is_ros_calibration, read_ros_calibration
from simbridge.ur.controller_facts import ControllerFacts, Survey, registers_taken
from simbridge.ur.controller_facts import survey as survey_controller
from simbridge.ur.errors import ControllerError
from simbridge.ur.primary import is_ursim
from simbridge.ur.tables import BRIDGE_PORTS


def doctor(
    backend: str | None = None,
    host: str | None = None,
    robot: str | None = None,
    cell: str | None = None,
    write_cell: str | None = None,
    json: bool = False,
) -> int:
    """Run the checks, print the findings, and start a cell file if requested. The arguments are the command's flags.

    Returns:
        The exit status: 0 if no check failed, else 2.

    Raises:
        UnknownName, InvalidParameter, InputFileError: An argument is invalid.
        OutputError: The cell file cannot be written.
        ControllerError: A fact for the cell file could not be read.
    """
    known = None if cell is None else load_cell(cell)
    address = host if known is None else known.resolve("host", host)
    name = (robot if known is None else known.resolve("robot", robot)) or "ur10"
    kind = None if backend is None else backend_class(backend)
    if kind is not None and issubclass(kind, ControllerBackend):
        address = address or kind.default_host
        if address is None:
            needed = "the address of the controller: --host, or host in the cell file"
            raise InvalidParameter("host", "not given", needed)
    if backend == SIMULATION or address is None:
        if write_cell is not None:
            needed = "the address of a controller, from whose facts the cell file is started"
            raise InvalidParameter("host", "not given", needed)
        title = "simbridge for simulation with PyBullet"
        found = [
            computer_checks.check_python(),
            computer_checks.check_packages(installed(computer_checks.PACKAGES)),
            computer_checks.check_kernel_cache(cache_directory()),
            computer_checks.check_simulation(name),
        ]
    else:
        survey = survey_controller(address)
        if kind is None:
            ursim = survey.arm is not None and is_ursim(survey.arm.checksum)
        else:
            ursim = issubclass(kind, ControllerBackend) and kind.ursim
        title = f"The controller at {address} for --backend {'ursim' if ursim else 'real'}"
        found = check_controller(survey, load_robot(name), known, ursim=ursim)
    print(findings.as_json(title, found)) if json else findings.show(title, found)
    if write_cell is not None:
        written = start_cell(Path(write_cell), survey.complete())
        if not json:
            print(
                f"Written: {', '.join(map(str, written))}. Read it, and add what cannot be read from a controller."
            )
    return 2 if any(finding.status == "fail" for finding in found) else 0


def check_controller(
    survey: Survey, robot: Robot, cell: Cell | None, *, ursim: bool
) -> list[Finding]:
    """The checks for a run of this arm on a controller: of the controller, the connection and this computer."""
    known, here, file = (
        cell or Cell(),
        computer_checks.read_computer(),
        None if cell is None else cell.calibration,
    )
    taken, measured = None, None
    if survey.state is not None:
        with contextlib.suppress(ControllerError):
            taken = registers_taken(survey.host)
    if survey.state is not None and survey.dashboard is not None:
        with contextlib.suppress(ControllerError):
            measured = computer_checks.measure_network(survey.host)
    return [
        *(controller_checks.check_port(survey, port, robot, ursim=ursim) for port in BRIDGE_PORTS),
        controller_checks.check_software(survey),
        controller_checks.check_kind(survey, ursim=ursim),
        controller_checks.check_model(survey, robot),
        # URSim's serial number is invented.
        controller_checks.check_serial_number(survey, None if ursim else known.serial_number),
        controller_checks.check_remote_control(survey),
        controller_checks.check_robot_mode(survey, ursim=ursim),
        controller_checks.check_safety_mode(survey),
        controller_checks.check_program(survey),
        controller_checks.check_registers(taken),
        controller_checks.check_slider(survey),
        controller_checks.check_tcp(survey, known.tcp),
        controller_checks.check_payload(survey, known.payload, known.centre_of_gravity),
        *([] if cell is None else [controller_checks.check_mounting(cell)]),
        controller_checks.check_calibration(survey, robot),
        *([] if file is None else [_check_calibration_file(survey, file)]),
        computer_checks.check_round_trip(measured),
        computer_checks.check_jitter(measured),
        computer_checks.check_arrival(measured),
        computer_checks.check_kernel(here),
        computer_checks.check_priority(here),
        computer_checks.check_governor(here),
        computer_checks.check_cores(here),
    ]


def _check_calibration_file(survey: Survey, path: Path) -> Finding:
    if is_ros_calibration(path):
        return controller_checks.check_ros_calibration_file(
            survey, path, read_ros_calibration(path)
        )
    return controller_checks.check_calibration_file(survey, path, read_calibration(path)[1])


def start_cell(path: Path, facts: ControllerFacts) -> list[Path]:
    """Write a cell file from the controller's facts and, for a real arm, a calibration file next to it.

    The calibration file is named after the cell file: lab.toml and lab.calibration.toml. Mounting and obstacles cannot
    be read from a controller: those fields are left out. Returns the files written.

    Raises:
        OutputError: One of them exists already, or cannot be written.
    """
    calibration = None if facts.ursim else path.with_suffix(".calibration.toml")
    if calibration is not None and calibration.exists():
        raise OutputError(
            calibration, "it exists already and is not overwritten; choose another name"
        )
    model = (facts.model or "").lower().replace(" ", "")
    state = facts.state
    cell = Cell(
        host=facts.host,
        robot=model if model in robot_files() else None,
        serial_number=facts.dashboard.serial_number,
        tcp=cast(Six, tuple(facts.arm.tcp_offset.tolist())),
        payload=state.payload,
        payload_cog=state.payload_cog,
        calibration=calibration,
    )
    write_cell(path, cell)
    if calibration is None:
        return [path]
    write_calibration(calibration, facts.arm.kinematics, facts.arm.checksum)
    return [path, calibration]
