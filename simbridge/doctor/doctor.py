"""The command `simbridge doctor`: which checks a backend needs, and the exit status."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from simbridge.backends import SIMULATION, backend_class
from simbridge.backends.backend import Backend
from simbridge.backends.controller_backend import ControllerBackend
from simbridge.backends.link_choice import default_link
from simbridge.backends.registers import REGISTERS
from simbridge.doctor import (
    calibration_checks,
    computer_checks,
    controller_checks,
    findings,
    installation_checks,
    network_checks,
    polyscope_x_checks,
)
from simbridge.doctor.cell_start import start_cell
from simbridge.doctor.findings import Finding
from simbridge.errors import InvalidParameter
from simbridge.json_output import print_json
from simbridge.kernels.cache import cache_directory
from simbridge.planning.link_choices import LinkName, RegisterRange
from simbridge.recording.record_tables import installed
from simbridge.robot.calibration_file import read_calibration
from simbridge.robot.cell import Cell
from simbridge.robot.cell_file import load_cell
from simbridge.robot.controller_calibration_file import (
    add_to_nominal,
    is_controller_calibration,
    read_controller_calibration,
)
from simbridge.robot.load import load_robot
from simbridge.robot.robot import Robot
from simbridge.robot.ros_calibration_file import is_ros_calibration, read_ros_calibration
from simbridge.ur.controller_facts import Survey
from simbridge.ur.errors import ControllerError, UnsupportedController
from simbridge.ur.primary import is_ursim
from simbridge.ur.survey import claimed_registers
from simbridge.ur.survey import survey as survey_controller
from simbridge.ur.tables import REALTIME, REST, RTDE

# The arm where neither a flag nor a cell names one.
DEFAULT_ROBOT = "ur10"


@dataclass(frozen=True)
class RunConnection:
    """How a run would connect to a controller: the values of its flags.

    Attributes:
        rest_port: Port of the Robot API, if the controller has PolyScope X.
        link: The link through which it is commanded; None for the default.
        registers: The half of the registers that carries the commands.
    """

    rest_port: int = REST
    link: LinkName | None = None
    registers: RegisterRange = "lower"


def doctor(
    backend: str | None = None,
    *,
    host: str | None = None,
    robot: str | None = None,
    cell: str | None = None,
    write_cell: str | None = None,
    connection: RunConnection | None = None,
    json: bool = False,
) -> int:
    """Run the checks, print the findings, and start a cell file if requested.

    The arguments are the command's flags; `connection` holds those of how a run would connect.

    Returns:
        The exit status: 0 if no check failed, else 2.

    Raises:
        UnknownName, InvalidParameter, InputFileError: An argument is invalid.
        OutputError: The cell file cannot be written.
        ControllerError: A fact for the cell file could not be read.
    """
    known_cell = None if cell is None else load_cell(cell)
    if known_cell is not None:
        host = known_cell.resolve("host", host)
        robot = known_cell.resolve("robot", robot)
    robot = robot or DEFAULT_ROBOT
    connection = connection or RunConnection()

    kind = None if backend is None else backend_class(backend)
    address = _controller_address(backend, kind, host)
    if address is None:
        if write_cell is not None:
            needed = "the address of a controller: the cell file is filled in from what it reports"
            raise InvalidParameter("host", "none", needed)
        simulator = backend or SIMULATION
        title = f"simbridge for simulation with {installation_checks.simulator_title(simulator)}"
        results = check_simulation(robot, simulator, connection.link)
        _print(title, results, as_json=json)
    else:
        survey = survey_controller(address, rest_port=connection.rest_port)
        ursim = _is_for_ursim(kind, survey)
        title = f"The controller at {address} for --backend {'ursim' if ursim else 'real'}"
        arm = load_robot(robot)
        results = check_controller(survey, arm, known_cell, connection, ursim=ursim)
        _print(title, results, as_json=json)
        if write_cell is not None:
            _write_cell(write_cell, survey, arm, quiet=json)

    has_failures = any(finding.status == "fail" for finding in results)
    return 2 if has_failures else 0


def _controller_address(
    backend: str | None, kind: type[Backend] | None, host: str | None
) -> str | None:
    """Return the address of the controller; None for a simulation.

    Args:
        backend: Name of the backend; None if none was named.
        kind: Class of the backend; None if no backend was named.
        host: The host that a flag or a cell names.

    Raises:
        InvalidParameter: The backend needs an address, and there is none; or it is neither a
            simulation nor the controller of a UR arm.
    """
    if kind is None:
        return host
    if kind.capabilities.simulated_time:
        return None
    if not issubclass(kind, ControllerBackend):
        needed = "a simulation or the controller of a UR arm: only these can be checked"
        raise InvalidParameter("backend", backend, needed)
    address = host or kind.default_host
    if address is None:
        needed = "the address of the controller: --host, or host in the cell file"
        raise InvalidParameter("host", "none", needed)
    return address


def _is_for_ursim(kind: type[Backend] | None, survey: Survey) -> bool:
    """Return whether the checks are those for URSim, by the backend or else the controller."""
    if kind is None:
        # Whatever its checksum, PolyScope X is only driven as a real arm.
        is_simulated = survey.arm is not None and is_ursim(survey.arm.checksum)
        return is_simulated and not survey.is_polyscope_x
    return issubclass(kind, ControllerBackend) and kind.ursim


def _print(title: str, results: Sequence[Finding], *, as_json: bool) -> None:
    if as_json:
        print_json(findings.as_facts(title, results))
    else:
        findings.show(title, results)


def _write_cell(path: str, survey: Survey, robot: Robot, *, quiet: bool) -> None:
    """Start a cell file from what the controller says, for the chosen arm where it may be."""
    files = start_cell(Path(path), survey.complete(), robot)
    if not quiet:
        names = ", ".join(map(str, files))
        print(f"Written: {names}. Check it, and add what cannot be read from a controller.")


def check_simulation(
    robot: str, backend: str = SIMULATION, link: LinkName | None = None
) -> list[Finding]:
    """Run the checks for runs in simulation.

    Args:
        robot: Name of the arm.
        backend: Name of a simulation.
        link: The link that runs on a controller choose; None for the default.
    """
    return [
        installation_checks.check_python(),
        installation_checks.check_packages(installed(installation_checks.PACKAGES)),
        installation_checks.check_kernel_cache(cache_directory()),
        installation_checks.check_simulation(robot, backend),
        installation_checks.check_link(link),
    ]


def check_controller(
    survey: Survey, robot: Robot, cell: Cell | None, connection: RunConnection, *, ursim: bool
) -> list[Finding]:
    """Run the checks for runs on a controller: of the controller, the connection and this computer.

    Args:
        survey: The controller's answers on its ports.
        robot: The arm that is expected.
        cell: The cell file's content, if there is one.
        connection: How a run would connect.
        ursim: Whether the backend is that of URSim.
    """
    registers = _check_registers(survey, connection)
    network = _measure_network(survey)
    realtime_error = survey.lost.get(REALTIME)
    return [
        *_check_ports(survey, robot, connection.link, ursim=ursim),
        *polyscope_x_checks.check_robot_api(survey),
        *_check_arm(survey, robot, cell, registers=registers, ursim=ursim),
        installation_checks.check_link(connection.link, survey.version, realtime_error),
        network_checks.check_round_trip(network),
        network_checks.check_jitter(network),
        network_checks.check_arrival(network),
        *_check_computer(),
    ]


def _check_ports(
    survey: Survey, robot: Robot, link: LinkName | None, *, ursim: bool
) -> list[Finding]:
    """Check the ports that a run needs, and the real-time port by its link."""
    results = []
    for port in survey.needed_ports:
        if port == REALTIME:
            finding = controller_checks.check_realtime_port(survey, robot, link, ursim=ursim)
        else:
            finding = controller_checks.check_port(survey, port, robot, ursim=ursim)
        results.append(finding)
    return results


def _check_registers(survey: Survey, connection: RunConnection) -> Finding:
    """Check that the controller has the registers that a run would write, and that they are free.

    Args:
        survey: The controller's answers on its ports.
        connection: How the run would connect.
    """
    if survey.state is None:
        return findings.unknown("registers", RTDE)
    link = connection.link or default_link(survey.version, survey.lost.get(REALTIME))
    inputs = REGISTERS[connection.registers].inputs_of(link)
    try:
        occupied = claimed_registers(survey.host, inputs)
    except UnsupportedController as error:
        seen = f"this software does not have those of --registers {connection.registers}"
        return findings.failure("registers", seen, error.reason)
    except ControllerError:
        return findings.unknown("registers", RTDE)
    return controller_checks.check_registers(occupied, connection.registers)


def _measure_network(survey: Survey) -> network_checks.NetworkFacts | None:
    """Return the timing of the connection; None if the controller does not answer."""
    if survey.state is None or survey.pendant is None:
        return None
    with contextlib.suppress(ControllerError):
        return network_checks.measure_network(survey.host, has_dashboard=not survey.is_polyscope_x)
    return None


def _check_arm(
    survey: Survey,
    robot: Robot,
    cell: Cell | None,
    *,
    registers: Finding,
    ursim: bool,
) -> list[Finding]:
    """Check the controller's state, and that its arm is the expected one; see `check_controller`.

    Args:
        survey: The controller's answers on its ports.
        robot: The arm that is expected.
        cell: The cell file's facts; None if there is none.
        registers: The finding about the registers.
        ursim: Whether the controller is expected to be URSim.
    """
    expected = cell or Cell()
    # URSim's serial number is invented.
    serial_number = None if ursim else expected.serial_number
    results = [
        controller_checks.check_software(survey),
        controller_checks.check_kind(survey, ursim=ursim),
        controller_checks.check_model(survey, robot),
        controller_checks.check_serial_number(survey, serial_number),
        controller_checks.check_remote_control(survey),
        controller_checks.check_robot_mode(survey, ursim=ursim),
        controller_checks.check_safety_mode(survey),
        controller_checks.check_program(survey),
        registers,
        controller_checks.check_slider(survey),
        controller_checks.check_tcp(survey, expected.tcp),
        controller_checks.check_payload(survey, expected.payload, expected.centre_of_gravity),
    ]
    if cell is not None:
        results.append(controller_checks.check_mounting(cell))

    results.append(calibration_checks.check_calibration(survey, robot))
    if cell is not None and cell.calibration is not None:
        results.append(_check_calibration_file(survey, robot, cell.calibration))
    return results


def _check_calibration_file(survey: Survey, robot: Robot, path: Path) -> Finding:
    """Check that the cell's calibration file, simbridge's, ROS's or UR's, is that of the arm."""
    if is_ros_calibration(path):
        calibration = read_ros_calibration(path)
        return calibration_checks.check_ros_calibration_file(survey, path, calibration)
    if is_controller_calibration(path):
        table = add_to_nominal(path, read_controller_calibration(path), robot)
        return calibration_checks.check_table_of_file(survey, path, table)
    _, checksum = read_calibration(path)
    return calibration_checks.check_calibration_file(survey, path, checksum)


def _check_computer() -> list[Finding]:
    """Check the properties of this computer that affect timing."""
    facts = computer_checks.read_computer()
    return [
        computer_checks.check_kernel(facts),
        computer_checks.check_priority(facts),
        computer_checks.check_governor(facts),
        computer_checks.check_cores(facts),
    ]
