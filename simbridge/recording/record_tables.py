"""The tables of a new record, from what a run or a live session was resolved to."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from importlib import metadata
from typing import cast

from simbridge.ik.solver import Solver
from simbridge.planning.option_field import record_options
from simbridge.planning.options import Options
from simbridge.recording.run_record import (
    BackendRecord,
    CellRecord,
    ControllerRecord,
    RobotRecord,
    ShapeRecord,
    SolverRecord,
    ToleranceRecord,
)
from simbridge.robot import Task
from simbridge.robot.arm_drawing import describe_shapes
from simbridge.robot.cell_file import cell_values
from simbridge.robot.robot import Robot
from simbridge.servo.plant import controller_cycle
from simbridge.ur.controller_facts import ControllerFacts

RESULT_PACKAGES = (
    "simbridge",
    "numpy",
    "pin",
    "numba",
    "ruckig",
    "mcap",
    "pybullet",
    "pybullet-arm64",
    "mujoco",
)
"""Packages that a result depends on."""


def record_robot(robot: Robot, options: Options) -> RobotRecord:
    """Return the table [robot].

    Args:
        robot: The arm, with its TCP and payload.
        options: The TCP as it was given, and the largest tool speed.
    """
    file_home = None if robot.file_home is None else robot.file_home.tolist()
    payload_cog = None if robot.payload_cog is None else robot.payload_cog.tolist()
    return RobotRecord(
        name=robot.name,
        title=robot.title,
        source="" if robot.source is None else str(robot.source),
        base=robot.base,
        tip=robot.tip,
        package=list(robot.packages) or None,
        xacro_arg=list(robot.xacro_args) or None,
        notes=list(robot.notes) or None,
        joint_names=list(robot.joint_names),
        home=robot.home.tolist(),
        file_home=file_home,
        position_min=robot.position_min.tolist(),
        position_max=robot.position_max.tolist(),
        max_velocity=robot.max_velocity.tolist(),
        max_effort=robot.max_effort.tolist(),
        max_velocity_jump=robot.max_velocity_jump,
        max_acceleration=robot.max_acceleration,
        max_tool_speed=options.max_tool_speed or robot.max_tool_speed,
        tcp=list(options.tcp) or [0.0] * 6,
        payload=robot.payload,
        gravity=robot.gravity.tolist(),
        payload_cog=payload_cog,
    )


def record_solver(solver: Solver, period: float, notes: Iterable[str]) -> SolverRecord:
    """Return the table [solver].

    Args:
        solver: The solver.
        period: Control period, s.
        notes: How the solver treats the targets, as sentences (see `Solver.notes`).
    """
    return SolverRecord(
        name=solver.name,
        task=cast(Task, solver.task),
        parameters=solver.parameters,
        predicted_lag_s=solver.lag(period),
        notes=list(notes) or None,
    )


def record_backend(
    name: str,
    robot: Robot,
    options: Options,
    *,
    period: float,
    simulated_time: bool,
    effort_unit: str,
) -> BackendRecord:
    """Return the table [backend].

    Args:
        name: A name in `BACKENDS`.
        robot: The arm; its own period is the cycle of its controller.
        options: The servo's tuning, and how a controller is commanded.
        period: Control period, s.
        simulated_time: Whether the arm is simulated.
        effort_unit: Unit of a revolute joint's effort: "N m" or "A".
    """
    record = BackendRecord(
        name=name,
        period=period,
        simulated_time=simulated_time,
        effort_unit=effort_unit,
        **record_options(options, "backend"),
    )

    # A controller's servo is servoj; a simulated arm may have an ideal one.
    if simulated_time and options.servo_of(robot) == "ideal":
        record.servo = "ideal"
    else:
        # A plant that states no acceleration lag has that of the arm's series.
        plant = options.plant_model.with_series(robot.series)
        record.servo = "servoj"
        record.servo_lookahead = plant.lookahead
        record.servo_gain = plant.gain
        # A control period that is no multiple of the controller's own cycle replaces it.
        record.cycle = controller_cycle(robot.period, period)
        record.phase = plant.phase
        record.joint_lag = plant.joint_lag
        record.acceleration_lag = plant.acceleration_lag
        if plant.source:
            record.plant_file = plant.source
            record.plant_robot = plant.robot or None
            record.plant_not_simulated = plant.not_simulated
            record.gain_deviation = plant.gain_deviation
            record.lookahead_deviation = plant.lookahead_deviation
            record.plant_replaced = list(plant.replaced) or None

    # Only a controller scales the speed, pauses, and is commanded through a link.
    if not simulated_time:
        record.on_scaling = options.on_scaling
        record.on_pause = options.on_pause
        record.link = options.link
        record.registers = options.registers
    return record


def record_controller(facts: ControllerFacts | None) -> ControllerRecord | None:
    """Return the table [controller]; None in simulation."""
    if facts is None:
        return None
    return ControllerRecord(
        host=facts.host,
        model=facts.model,
        serial_number=facts.pendant.serial_number or "",
        polyscope=".".join(map(str, facts.state.version)),
        ursim=facts.ursim,
        emulated=facts.emulated,
        kinematics_checksum=[int(word) for word in facts.arm.checksum],
    )


def record_cell(options: Options) -> CellRecord | None:
    """Return the table [cell]; None without a cell."""
    cell = options.cell
    if cell is None:
        return None
    file = "" if cell.source is None else str(cell.source.resolve())
    return CellRecord(file, cell_values(cell))


def record_tolerance(options: Options) -> ToleranceRecord | None:
    """Return the table [tolerance]; None if no verdict is wanted."""
    return None if options.tolerance is None else ToleranceRecord(*options.tolerance)


def record_shapes(robot: Robot) -> dict[str, list[ShapeRecord]] | None:
    """Return the table [shapes]; None for an arm whose links have no shapes."""
    if not any(link.shapes for link in robot.links):
        return None
    return record_bodies(robot)


def record_bodies(robot: Robot) -> dict[str, list[ShapeRecord]]:
    """Return the shapes of base_link and of every link, by name."""
    records = {}
    for body, shapes in describe_shapes(robot).items():
        records[body] = [ShapeRecord(**shape) for shape in shapes]
    return records


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that a result depends on."""
    known = {name: version for name, version in installed(RESULT_PACKAGES).items() if version}
    return {"python": platform.python_version(), "simbridge": "unknown"} | known


def installed(names: Iterable[str]) -> dict[str, str]:
    """Return the version of each package; "" for one that is not installed."""
    package_versions = {}
    for name in names:
        distribution = next(iter(metadata.distributions(name=name)), None)
        package_versions[name] = "" if distribution is None else distribution.version
    return package_versions
