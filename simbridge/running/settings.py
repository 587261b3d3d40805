"""settings.toml: everything a run was resolved to, enough to repeat it and to evaluate it again."""

from __future__ import annotations

import platform
from dataclasses import asdict
from importlib import metadata
from typing import Any

import numpy as np
import pinocchio as pin

from simbridge.backends.backend import Backend
from simbridge.planning.options import recorded_options
from simbridge.robot.cell import cell_values
from simbridge.robot.parts import Shape
from simbridge.robot.robot import Robot
from simbridge.running.run_setup import Prepared
from simbridge.ur.facts import ControllerFacts

_PACKAGES = ("simbridge", "numpy", "pin", "numba", "ruckig", "mcap")


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that a result depends on."""
    found = {"python": platform.python_version()}
    for package in (*_PACKAGES, "pybullet", "pybullet-arm64"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    found.setdefault("simbridge", "unknown")
    return found


def controller_settings(facts: ControllerFacts) -> dict[str, Any]:
    """What settings.toml keeps of the controller."""
    return {
        "host": facts.host,
        "model": facts.model or "",
        "serial_number": facts.serial_number or "",
        "polyscope": ".".join(map(str, facts.version)),
        "ursim": facts.ursim,
        "kinematics_checksum": [int(word) for word in facts.arm.checksum],
    }


def shapes_of(robot: Robot) -> dict[str, Any]:
    """What the arm looks like: the shapes of base_link and of every link, in m, in the frame of the link's joint."""
    found = {"base_link": [_shape(shape, pin.SE3.Identity()) for shape in robot.base_shapes]}
    return found | {link.name: [_shape(shape, link.placement) for shape in link.shapes] for link in robot.links}


def _shape(shape: Shape, placement: pin.SE3) -> dict[str, Any]:
    start, end = (placement.act(np.array(point)).round(9).tolist() for point in (shape.start, shape.end))
    return {"kind": shape.kind, "start": start, "end": end, "radius": shape.radius, "color": list(shape.color)}


def resolved_settings(prepared: Prepared, arm: Backend) -> dict[str, Any]:
    """The content of settings.toml (SI units)."""
    robot, scenario, options, plan = prepared.robot, prepared.scenario, prepared.options, prepared.plan
    lag = prepared.solver.lag(plan.period)
    settings: dict[str, Any] = {
        "scenario": {
            "name": scenario.name,
            "description": scenario.description,
            "source": plan.trajectory.source,
            "hold": plan.hold,
            "on_limits": options.on_limits or scenario.on_limits,
        },
        "robot": {
            "name": robot.name,
            "title": robot.title,
            "source": "" if robot.source is None else str(robot.source),
            "joint_names": list(robot.joint_names),
            "home": robot.home.tolist(),
            "position_min": robot.position_min.tolist(),
            "position_max": robot.position_max.tolist(),
            "max_velocity": robot.max_velocity.tolist(),
            "max_effort": robot.max_effort.tolist(),
            "max_velocity_jump": robot.max_velocity_jump,
            "max_acceleration": robot.max_acceleration,
            "max_tool_speed": options.max_tool_speed or robot.max_tool_speed,
            "tcp": list(options.tcp) or [0.0] * 6,
            "payload": robot.payload,
            "gravity": robot.gravity.tolist(),
        },
        "kinematics": {
            "checksum": robot.checksum,
            "placements": robot.placements.reshape(-1, 16).tolist(),
            "prismatic": robot.prismatic.tolist(),
        },
        "solver": {
            "name": prepared.solver.name,
            "task": prepared.solver.task,
            "parameters": prepared.solver.parameters,
        },
        "backend": {
            "name": prepared.backend,
            "period": plan.period,
            "simulated_time": arm.capabilities.simulated_time,
            "effort_unit": arm.capabilities.effort_unit,
            "servo": options.servo if prepared.controller is None else "servoj",
            **(
                {}
                if options.servo == "stiff" and prepared.controller is None
                else {"servo_lookahead": options.servo_lookahead, "servo_gain": options.servo_gain}
            ),
        },
        "versions": versions(),
    }
    if options.tolerance is not None:
        settings["tolerance"] = dict(zip(("position_m", "rotation_rad"), options.tolerance, strict=True))
    if any(link.shapes for link in robot.links):
        settings["shapes"] = shapes_of(robot)
    if prepared.controller is not None:
        settings["backend"]["on_scaling"] = options.on_scaling
        settings["controller"] = controller_settings(prepared.controller)
    if lag is not None:
        settings["solver"]["predicted_lag_s"] = lag
    notes = prepared.solver_notes
    if notes:
        settings["solver"]["notes"] = list(notes)
    floor = options.collision_scene.floor
    if floor is not None:
        settings["scenario"]["floor"] = floor
    if robot.calibration is not None:
        settings["kinematics"]["dh"] = asdict(robot.calibration)
    if robot.payload_cog is not None:
        settings["robot"]["payload_cog"] = robot.payload_cog.tolist()
    if options.cell is not None:
        source = options.cell.source
        settings["cell"] = {"file": "" if source is None else str(source.resolve()), **cell_values(options.cell)}
    sampling = options.sampling or scenario.sampling
    if sampling is not None:
        # TOML has no null: a rate that was not chosen is left out.
        kept = {name: value for name, value in asdict(sampling).items() if value is not None}
        settings["scenario"]["sampling"] = kept | {"noise": list(sampling.noise)}
    for table, values in recorded_options(options).items():
        settings[table] |= values
    return settings
