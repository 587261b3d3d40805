"""The most important settings of a run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from simbridge.ik.callable_solver import RECORDED_JOINTS
from simbridge.recording.kinematics_record import describe_kinematics, summarize_kinematics
from simbridge.recording.run_record import (
    BackendRecord,
    ControllerRecord,
    Record,
    ScenarioRecord,
    SessionRecord,
)
from simbridge.recording.settings_file import as_table
from simbridge.recording.settings_text import setting_text
from simbridge.text import NO_BREAK, counted, plain
from simbridge.ur.tables import controller_kind, is_emulator

SHOWN_PACKAGES = ("python", "simbridge", "numpy", "pin", "pybullet", "pybullet-arm64", "mujoco")
"""The packages whose versions are in the short list."""

HOLDS = {
    "linear": "interpolated between samples",
    "zero-order": "the last sample, held (zero-order)",
}
"""The target between two samples, in words."""

ANSWERS_TO_LIMITS = {"refuse": "refuse the plan", "limit": "limit the setpoints"}
"""Treatments of setpoints past a limit, in words."""


def important_settings(record: Record, samples: int) -> list[tuple[str, str]]:
    """Return the names and values of the short list.

    Args:
        record: The record of the run.
        samples: How many samples its log has.
    """
    scenario = record.scenario
    robot = record.robot
    backend = record.backend

    joints = counted(len(robot.joint_names), "joint")
    rows = [("Robot", f"{robot.title} ({robot.name}), {joints}")]
    if record.cell is not None:
        rows.append(("Cell", record.cell.file or "defined by the calling program"))
    kinematics = summarize_kinematics(record.kinematics)
    rows.append(("Kinematics", describe_kinematics(kinematics)))
    if scenario.reference:
        rows.append(("Errors measured from", _reference(scenario)))
    if scenario.plan:
        rows.append(("Plan", f"replayed from {scenario.plan}"))

    solver = record.solver
    if solver.name == RECORDED_JOINTS:
        rows.append(("Joint positions", "as recorded"))
    else:
        rows.append(("Solver", f"{solver.name}: {_parameters(solver.parameters)}"))
    time = "simulated" if backend.simulated_time else "real"
    rows.append(("Backend", f"{backend.name}, in {time} time"))
    if record.controller is not None:
        rows.append(("Controller", _controller(record.controller)))
        if backend.link is not None:
            rows.append(("Link", _link(backend)))
        rows.append(("Servo", _servo(backend)))
    period = f"{plain(1e3 * backend.period)}{NO_BREAK}ms"
    rows.append(("Control period", f"{period}, {counted(samples, 'sample')}"))

    if isinstance(record, SessionRecord):
        rows.append(("Inputs", _parameters(as_table(record.live))))
    else:
        answer = ANSWERS_TO_LIMITS.get(scenario.on_limits, scenario.on_limits)
        rows.append(("Target", HOLDS.get(scenario.hold, scenario.hold)))
        rows.append(("Beyond the limits", answer))
        rows.append(("Speed scale", plain(scenario.speed_scale)))

    rows.append(("TCP in tool0", _tcp(robot.tcp)))
    payload = f"{plain(robot.payload)}{NO_BREAK}kg configured on the controller"
    rows.append(("Payload", f"{payload}, {_unmodelled(backend)}"))
    versions = [
        f"{package} {version}"
        for package, version in record.versions.items()
        if package in SHOWN_PACKAGES
    ]
    rows.append(("Versions", ", ".join(versions)))
    return rows


def _reference(scenario: ScenarioRecord) -> str:
    """Return the file of the true motion, with what is added to its times."""
    offset = scenario.reference_offset
    shift = "" if offset is None else f", {plain(offset)} s added to its times"
    return f"{scenario.reference}{shift}"


def _controller(controller: ControllerRecord) -> str:
    """Return the controller's model, kind, version and address."""
    emulated = bool(controller.emulated) or is_emulator(controller.serial_number)
    kind = controller_kind(emulated=emulated, ursim=bool(controller.ursim))
    if kind == "real arm":
        kind = f"serial number {controller.serial_number or 'unknown'}"

    model = controller.model or "unknown model"
    version = "unknown" if controller.polyscope is None else controller.polyscope
    host = "unknown host" if controller.host is None else controller.host
    return f"{model}, {kind}, PolyScope {version}, {host}"


def _link(backend: BackendRecord) -> str:
    """Return whose client commanded a controller, and through which registers."""
    client = "simbridge's own RTDE client" if backend.link == "rtde" else backend.link
    numbers = "24 to 47" if backend.registers == "upper" else "0 to 23"
    return f"{client}, registers {numbers}"


def _servo(backend: BackendRecord) -> str:
    """Return servoj's tuning on a controller."""
    if backend.servo_gain is None or backend.servo_lookahead is None:
        return "of unknown tuning"
    gain = plain(backend.servo_gain)
    lookahead = plain(float(f"{1e3 * backend.servo_lookahead:.6g}"))
    scaling = "followed" if backend.on_scaling == "follow" else "refused"
    return f"servoj, gain {gain}, lookahead {lookahead}{NO_BREAK}ms; speed scaling {scaling}"


def _parameters(parameters: Mapping[str, Any]) -> str:
    """Return parameters with their values, separated by commas."""
    texts = [f"{name} {setting_text(value)}" for name, value in parameters.items()]
    return ", ".join(texts) or "no parameters"


def _tcp(tcp: Sequence[float]) -> str:
    """Return the tool centre point in mm and degrees."""
    if not any(tcp):
        return "none: the TCP is tool0"
    position = ", ".join(plain(float(f"{length * 1e3:.6g}")) for length in tcp[:3])
    rotation = ", ".join(plain(float(f"{math.degrees(angle):.6g}")) for angle in tcp[3:])
    return f"({position}){NO_BREAK}mm, rotation vector ({rotation})°"


def _unmodelled(backend: BackendRecord) -> str:
    """Return the mass that the controller does not know of."""
    mass = backend.unmodelled_payload
    return f"{plain(mass)}{NO_BREAK}kg unmodelled" if mass else "nothing unmodelled"
