"""The settings of a run: the most important ones, all of them, and the command that repeats it."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from simbridge.planning.options import Options
from simbridge.recording.kinematics_record import kinematics_summary, kinematics_words
from simbridge.resources import robot_files, scenario_files
from simbridge.text import NO_BREAK, counted, plain
from simbridge.trajectory.files import ReadOptions
from simbridge.ur.tables import EMULATOR_SERIAL_NUMBER

_COMMON = ("python", "simbridge", "numpy", "pin", "pybullet", "pybullet-arm64")


def important_settings(settings: Mapping[str, Any], samples: int) -> list[tuple[str, str]]:
    """The short list: names and values."""
    scenario, robot, solver, backend = (
        settings[key] for key in ("scenario", "robot", "solver", "backend")
    )
    hold = {
        "linear": "interpolated between samples",
        "zero-order": "the last sample, held (zero-order)",
    }
    on_limits = {"refuse": "refuse the plan", "limit": "limit the setpoints"}
    rows = [
        (
            "Robot",
            f"{robot['title']} ({robot['name']}), {counted(len(robot['joint_names']), 'joint')}",
        )
    ]
    if "cell" in settings:
        rows.append(("Cell", settings["cell"]["file"] or "defined by the calling program"))
    rows.append(("Kinematics", kinematics_words(kinematics_summary(settings["kinematics"]))))
    if scenario.get("plan"):
        rows.append(("Plan", f"replayed from {scenario['plan']}"))
    rows += [
        ("Solver", f"{solver['name']}: {_parameters(solver['parameters'])}"),
        (
            "Backend",
            f"{backend['name']}, in {'simulated' if backend['simulated_time'] else 'real'} time",
        ),
    ]
    if "controller" in settings:
        rows += [("Controller", _controller(settings["controller"])), ("Servo", _servo(backend))]
    rows += [
        (
            "Control period",
            f"{plain(1e3 * backend['period'])}{NO_BREAK}ms, {counted(samples, 'sample')}",
        )
    ]
    if "live" in settings:
        rows.append(("Inputs", _parameters(settings["live"])))
    else:
        rows += [
            ("Target", hold.get(scenario["hold"], scenario["hold"])),
            ("Beyond the limits", on_limits.get(scenario["on_limits"], scenario["on_limits"])),
            ("Speed scale", plain(scenario["speed_scale"])),
        ]
    rows += [
        ("TCP in tool0", _tcp(robot["tcp"])),
        (
            "Payload",
            f"{plain(robot['payload'])}{NO_BREAK}kg configured on the controller, {_unmodelled(backend)}",
        ),
        (
            "Versions",
            ", ".join(f"{k} {v}" for k, v in settings["versions"].items() if k in _COMMON),
        ),
    ]
    return rows


def _controller(controller: Mapping[str, Any]) -> str:
    serial_number = controller.get("serial_number") or "unknown"
    kind = f"serial number {serial_number}"
    if controller.get("ursim"):
        kind = "URSim"
    if serial_number == EMULATOR_SERIAL_NUMBER:
        kind = "emulator"

    model = controller.get("model") or "unknown model"
    version = controller.get("polyscope", "unknown")
    host = controller.get("host", "unknown host")
    return f"{model}, {kind}, PolyScope {version}, {host}"


def _servo(backend: Mapping[str, Any]) -> str:
    if "servo_gain" not in backend or "servo_lookahead" not in backend:
        return "of unknown tuning"
    lookahead = plain(float(f"{1e3 * backend['servo_lookahead']:.6g}"))
    scaling = "followed" if backend.get("on_scaling") == "follow" else "refused"
    return f"servoj, gain {plain(backend['servo_gain'])}, lookahead {lookahead}{NO_BREAK}ms; speed scaling {scaling}"


def _parameters(parameters: Mapping[str, Any]) -> str:
    return (
        ", ".join(f"{name} {_value(value)}" for name, value in parameters.items())
        or "no parameters"
    )


def _tcp(tcp: Sequence[float]) -> str:
    if not any(tcp):
        return "none: the TCP is tool0"
    place = ", ".join(plain(float(f"{v * 1e3:.6g}")) for v in tcp[:3])
    turn = ", ".join(plain(float(f"{math.degrees(v):.6g}")) for v in tcp[3:])
    return f"({place}){NO_BREAK}mm, rotation vector ({turn})°"


def _unmodelled(backend: Mapping[str, Any]) -> str:
    mass = backend.get("unmodelled_payload", 0.0)
    return f"{plain(mass)}{NO_BREAK}kg unmodelled" if mass else "nothing unmodelled"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.10g}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_value(v) for v in value)}]"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_value(part)}" for key, part in value.items())
    return str(value)


def all_settings(
    settings: Mapping[str, Any], name: str = ""
) -> list[tuple[str, list[tuple[str, str]]]]:
    """Every table of settings.toml, by its full name such as "solver.parameters", with names and values as text."""
    own = [
        (key, _value(value)) for key, value in settings.items() if not isinstance(value, Mapping)
    ]
    found = [(name, own)] if own else []
    for key, value in settings.items():
        if isinstance(value, Mapping):
            found += all_settings(value, f"{name}.{key}" if name else key)
    return found


def flattened(settings: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Every setting under its full name, such as "robot.tcp", as text."""
    return [
        (f"{table}.{key}" if table else key, text)
        for table, rows in all_settings(settings)
        for key, text in rows
    ]


def repeat_command(settings: Mapping[str, Any], run: Path) -> str | None:
    """The command that sends the same setpoints again, from any directory; None when scenario, robot or cell is neither
    built in nor from a file.

    The plan is replayed, so the solver's settings are not repeated. The command refuses if the scenario is another one
    by then, or was another one already.
    """
    scenario, robot, backend = settings["scenario"], settings["robot"], settings["backend"]
    built_in = (
        robot["name"] in robot_files() and Path(robot["source"]).name == f"{robot['name']}.toml"
    )
    arm = robot["name"] if built_in else robot["source"]
    path = scenario.get("file") or (
        scenario["name"] if scenario["name"] in scenario_files() else ""
    )
    cell, run = settings.get("cell"), run.resolve()
    path = str(run) if "live" in settings else path
    if not path or not arm or (cell is not None and not cell["file"]):
        return None
    words = ["simbridge", "run", path, "--plan", str(run), "--backend", backend["name"]]
    reading = {own.name for own in fields(ReadOptions)}
    given = {
        own.metadata.get("flag", own.name): value
        for own in fields(Options)
        if own.name in reading and (value := scenario.get(own.name, own.default)) != own.default
    }
    calibrated = kinematics_summary(settings["kinematics"])["calibrated"]
    watched = cell is not None or not backend["simulated_time"]
    ideal = backend.get("servo") == "ideal"
    given |= {
        "cell": None if cell is None else Path(cell["file"]).resolve(),
        "host": settings.get("controller", {}).get("host") if "host" not in (cell or {}) else None,
        "kinematics": run if calibrated else "nominal" if watched else None,
        "robot": arm,
        "period": backend["period"],
        "base": robot.get("base"),
        "tip": robot.get("tip"),
        "package": ",".join(robot["package"]) if "package" in robot else None,
        "home": robot["home"] if "file_home" in robot else None,
        "max-tool-speed": robot["max_tool_speed"],
        "floor": scenario.get("floor", "none"),
        "tcp": robot["tcp"] if any(robot["tcp"]) else None,
        "payload": robot["payload"] or None,
        "unmodelled-payload": backend.get("unmodelled_payload") or None,
        "servo": "ideal" if ideal else None,
        "servo-gain": None if ideal else backend.get("servo_gain"),
        "servo-lookahead": None if ideal else backend.get("servo_lookahead"),
        "plant": Path(backend["plant_file"]).resolve() if "plant_file" in backend else None,
        "feedforward": scenario.get("feedforward"),
        "corner-tolerance": 1e3 * scenario["corner_tolerance"]
        if "corner_tolerance" in scenario
        else None,
    }
    for flag, value in given.items():
        if value is not None:
            words += [f"--{flag}", *map(str, value if isinstance(value, list) else [value])]
    return shlex.join(words)
