"""settings.toml: everything a run was resolved to, enough to repeat it and to evaluate it again."""

from __future__ import annotations

import platform
from dataclasses import asdict
from importlib import metadata
from typing import TYPE_CHECKING, Any

from simbridge.backends import Backend
from simbridge.cell.writer import cell_values
from simbridge.ur.facts import ControllerFacts

if TYPE_CHECKING:
    from simbridge.runner import Prepared

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
            "speed_scale": options.speed_scale,
            "frame": options.frame,
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
        "solver": {"name": prepared.solver.name, "parameters": prepared.solver.parameters},
        "backend": {
            "name": prepared.backend,
            "period": plan.period,
            "simulated_time": arm.capabilities.simulated_time,
            "effort_unit": arm.capabilities.effort_unit,
            "unmodelled_payload": options.unmodelled_payload,
            "realtime": options.realtime,
            "servo": options.servo if prepared.controller is None else "servoj",
            **(
                {}
                if options.servo == "stiff" and prepared.controller is None
                else {"servo_lookahead": options.servo_lookahead, "servo_gain": options.servo_gain}
            ),
        },
        "versions": versions(),
    }
    if prepared.controller is not None:
        settings["backend"]["on_scaling"] = options.on_scaling
        settings["controller"] = controller_settings(prepared.controller)
    if lag is not None:
        settings["solver"]["predicted_lag_s"] = lag
    floor = options.surroundings.floor
    if floor is not None:
        settings["scenario"]["floor"] = floor
    if robot.calibration is not None:
        settings["kinematics"]["dh"] = asdict(robot.calibration)
    if robot.payload_cog is not None:
        settings["robot"]["payload_cog"] = robot.payload_cog.tolist()
    if options.cell is not None:
        source = options.cell.source
        settings["cell"] = {"file": "" if source is None else str(source.resolve()), **cell_values(options.cell)}
    if options.plan is not None:
        settings["scenario"]["plan"] = str(options.plan)
    return settings
