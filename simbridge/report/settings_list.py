"""What the run was made with: the few settings that matter most, all of them, and how to repeat it."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from simbridge.report.tables import facts_table
from simbridge.resources import robot_files, scenario_files
from simbridge.text import NO_BREAK, counted, plain

_COMMON = ("python", "simbridge", "numpy", "pin", "pybullet", "pybullet-arm64")


def important_settings(settings: Mapping[str, Any], samples: int) -> str:
    """The short list, as a table."""
    scenario, robot, solver, backend = (settings[key] for key in ("scenario", "robot", "solver", "backend"))
    held = {"linear": "interpolated between samples", "zero-order": "the last sample, held (zero-order)"}
    past = {"refuse": "refuse the plan", "limit": "limit the setpoints"}
    rows = [
        ("Robot", f"{robot['title']} ({robot['name']}), {counted(len(robot['joint_names']), 'joint')}"),
        ("Kinematics", "of this very arm (calibrated)" if "dh" in settings["kinematics"] else "nominal"),
        ("Solver", f"{solver['name']}: {_parameters(solver['parameters'])}"),
        ("Backend", f"{backend['name']}, in {'simulated' if backend['simulated_time'] else 'real'} time"),
        ("Control period", f"{plain(1e3 * backend['period'])}{NO_BREAK}ms, {counted(samples, 'sample')}"),
        ("Target", held.get(scenario["hold"], scenario["hold"])),
        ("Past the limits", past.get(scenario["on_limits"], scenario["on_limits"])),
        ("Speed scale", plain(scenario["speed_scale"])),
        ("TCP in tool0", _tcp(robot["tcp"])),
        ("Payload", f"{plain(robot['payload'])}{NO_BREAK}kg told to the controller, {_unmodelled(backend)}"),
        ("Versions", ", ".join(f"{k} {v}" for k, v in settings["versions"].items() if k in _COMMON)),
    ]
    if "controller" in settings:
        rows.insert(4, ("Controller", _controller(settings["controller"])))
        rows.insert(5, ("Servo", _servo(backend)))
    if "cell" in settings:
        rows.insert(1, ("Cell", settings["cell"]["file"] or "made by the program that ran it"))
    if scenario.get("plan"):
        rows.insert(2, ("Plan", f"replayed from {scenario['plan']}"))
    return facts_table("Settings that matter most", rows)


def _controller(controller: Mapping[str, Any]) -> str:
    kind = "URSim" if controller["ursim"] else f"serial number {controller['serial_number'] or 'not told'}"
    model, version = controller["model"] or "model not told", controller["polyscope"]
    return f"{model}, {kind}, PolyScope {version}, {controller['host']}"


def _servo(backend: Mapping[str, Any]) -> str:
    lookahead = plain(float(f"{1e3 * backend['servo_lookahead']:.6g}"))
    scaling = "followed" if backend["on_scaling"] == "follow" else "refused"
    return f"servoj, gain {plain(backend['servo_gain'])}, lookahead {lookahead}{NO_BREAK}ms; speed scaling {scaling}"


def _parameters(parameters: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {_value(value)}" for name, value in parameters.items()) or "no parameters"


def _tcp(tcp: Sequence[float]) -> str:
    if not any(tcp):
        return "none: the TCP is tool0"
    place = ", ".join(plain(float(f"{v * 1e3:.6g}")) for v in tcp[:3])
    turn = ", ".join(plain(float(f"{math.degrees(v):.6g}")) for v in tcp[3:])
    return f"({place}){NO_BREAK}mm, rotation vector ({turn})°"


def _unmodelled(backend: Mapping[str, Any]) -> str:
    mass = backend.get("unmodelled_payload", 0.0)
    return f"{plain(mass)}{NO_BREAK}kg not told" if mass else "none beside"


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


def all_settings(settings: Mapping[str, Any]) -> str:
    """Every setting in the words of settings.toml: SI units, radians."""
    # What the arm looks like is for the replay.
    shown = {name: value for name, value in settings.items() if name != "shapes"}
    return "".join(
        f"<h3>{table[0]}</h3>{table[1]}" if table[0] else table[1]
        for table in ((name, facts_table(name, rows)) for name, rows in _flattened(shown))
    )


def _flattened(settings: Mapping[str, Any], name: str = "") -> list[tuple[str, list[tuple[str, str]]]]:
    own = [(key, _value(value)) for key, value in settings.items() if not isinstance(value, Mapping)]
    found = [(name, own)] if own else []
    for key, value in settings.items():
        if isinstance(value, Mapping):
            found += _flattened(value, f"{name}.{key}" if name else key)
    return found


def flattened(settings: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Every setting under its full name, such as "robot.tcp", as text."""
    return [(f"{table}.{key}" if table else key, text) for table, rows in _flattened(settings) for key, text in rows]


def repeat_command(settings: Mapping[str, Any], run: Path) -> str | None:
    """The command that sends the same setpoints again; None when scenario, robot or cell cannot be named for sure.

    The plan is replayed, so the solver's settings need not be repeated. The command refuses if the scenario by that
    name is another one, now or already then.
    """
    scenario, robot, backend = settings["scenario"], settings["robot"], settings["backend"]
    own_robot = robot["name"] in robot_files() and Path(robot["source"]).name == f"{robot['name']}.toml"
    cell = settings.get("cell")
    if scenario["name"] not in scenario_files() or not own_robot or (cell is not None and not cell["file"]):
        return None
    words = ["simbridge", "run", scenario["name"], "--plan", str(run), "--backend", backend["name"]]
    words += ["--frame", scenario["frame"]] if scenario["frame"] != "base_link" else []
    words += [] if cell is None else ["--cell", cell["file"]]
    if "controller" in settings and "host" not in (cell or {}):
        words += ["--host", settings["controller"]["host"]]
    if "dh" in settings["kinematics"]:
        words += ["--kinematics", str(run)]
    elif cell is not None or not backend["simulated_time"]:
        words += ["--kinematics", "nominal"]
    words += ["--robot", robot["name"], "--period", repr(backend["period"])]
    words += ["--max-tool-speed", repr(robot["max_tool_speed"]), "--floor", str(scenario.get("floor", "none"))]
    if any(robot["tcp"]):
        words += ["--tcp", *(repr(v) for v in robot["tcp"])]
    if robot["payload"]:
        words += ["--payload", repr(robot["payload"])]
    if backend.get("unmodelled_payload"):
        words += ["--unmodelled-payload", repr(backend["unmodelled_payload"])]
    return shlex.join(words)
