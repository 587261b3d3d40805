"""The command line: flags in, a command's function called, errors told in one paragraph.

Only what is needed to read flags is imported here; each command imports its own tools when it is called.
"""

from __future__ import annotations

import os
import signal
import sys
import textwrap
import threading
import traceback
import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro
from tyro.conf import Positional, arg, subcommand
from tyro.constructors import PrimitiveConstructorSpec

from simbridge.emulator.errors import EmulatorBroken
from simbridge.errors import InvalidParameter, ScenarioError, SimbridgeError, UnknownName
from simbridge.ik.parameters import SOLVERS, ForwardDynamicsParameters

if TYPE_CHECKING:
    from simbridge.options import Options
    from simbridge.surroundings import Floor


def _given(metavar: str, otherwise: str) -> Any:
    """A flag's value as the help shows it, and what holds without the flag."""
    return arg(metavar=metavar, help_behavior_hint=f"(default: {otherwise})")


def _optional(count: int, *choices: str) -> PrimitiveConstructorSpec[Any]:
    """How a flag that may be left out is read: as `count` numbers, or as one of the choices.

    Tyro's own reading of such a type offers None as a value, and complains in terms of Python's types.
    """

    def read(words: list[str]) -> Any:
        if choices:
            return words[0]
        numbers = tuple(map(float, words))
        return numbers if count > 1 else numbers[0]

    return PrimitiveConstructorSpec(
        nargs=count,
        metavar="",
        instance_from_str=read,
        is_instance=lambda value: True,
        str_from_instance=lambda value: [str(value)] * count,
        choices=choices or None,
    )


Six = tuple[float, float, float, float, float, float]


@dataclass
class _Planned:
    scenario: Positional[str]
    """A name in scenarios/, a script (./mine.py), or a file of samples (TUM or CSV)."""
    robot: Annotated[str | None, _given("NAME|FILE", "the cell's, else ur10")] = None
    """A name in robots/ (see `simbridge robots`), or a URDF or TOML file."""
    cell: Annotated[str | None, _given("FILE", "a floor, and nothing else")] = None
    """How the arm stands, what it carries and what is around it (TOML, docs/cell.md)."""
    solver: Annotated[str, _given("NAME", "the scenario's")] = ""
    """Inverse-kinematics solver; its own settings are --solver.NAME."""
    speed_scale: float = 1.0
    """0.2 plays the trajectory at a fifth of its speed."""
    tcp: Annotated[Six | None, _optional(6), _given("X Y Z RX RY RZ", "the cell's, else tool0")] = None
    """Tool centre point in tool0: x y z in m, rotation vector rx ry rz in rad."""
    payload: Annotated[float | None, _optional(1), _given("KG", "the cell's, else none")] = None
    """Mass at the TCP that the controller is told of, kg."""
    frame: Literal["base_link", "base"] = "base_link"
    """Frame of the poses: base_link (x forward, ROS) or base (as the pendant shows)."""
    hold: Annotated[
        Literal["linear", "zero-order"] | None,
        _optional(1, "linear", "zero-order"),
        _given("linear|zero-order", "the scenario's"),
    ] = None
    """The target between two samples: interpolated, or the last one held."""
    on_limits: Annotated[
        Literal["refuse", "limit"] | None, _optional(1, "refuse", "limit"), _given("refuse|limit", "the scenario's")
    ] = None
    """Setpoints past velocity, acceleration or tool speed: refuse the plan, or limit them."""
    period: Annotated[float | None, _optional(1), _given("S", "the robot's")] = None
    """Control period, s."""
    home: Annotated[tuple[float, ...], _given("RAD ...", "the robot's")] = ()
    """Joint positions from which the first target is solved, rad."""
    floor: Annotated[str | None, _given("M|none", "the cell's, else 0")] = None
    """Height of the floor in base_link, m; none for no floor."""
    max_tool_speed: Annotated[float | None, _optional(1), _given("M/S", "the robot's")] = None
    """Largest speed of the TCP, m/s."""
    plan: Annotated[str | None, _given("RUN", "solve anew")] = None
    """A run directory whose plan is replayed instead of solving anew."""
    kinematics: Annotated[str | None, _given("nominal|FILE", "the controller's own; nominal in simulation")] = None
    """Kinematics: nominal, or those of one very arm from a calibration file or a run."""
    json: bool = False
    """Print the result as JSON, for machines."""
    parameters: Annotated[ForwardDynamicsParameters, arg(name="solver")] = field(
        default_factory=ForwardDynamicsParameters
    )

    def options(self) -> Options:
        from simbridge.cell import load_cell
        from simbridge.options import Options

        return Options(
            cell=None if self.cell is None else load_cell(self.cell),
            tcp=self.tcp or (),
            payload=self.payload,
            frame=self.frame,
            period=self.period,
            hold=self.hold,
            on_limits=self.on_limits,
            speed_scale=self.speed_scale,
            max_tool_speed=self.max_tool_speed,
            floor=None if self.floor is None else _floor(self.floor),
            plan=self.plan,
            kinematics=self.kinematics,
        )


@dataclass
class _Run(_Planned):
    """Run a scenario and measure how well it was tracked."""

    backend: str = "pybullet"
    """What takes the setpoints: pybullet, ursim, or real (a UR arm)."""
    host: Annotated[str | None, _given("ADDRESS", "the cell's; 127.0.0.1 for ursim")] = None
    """Address of the controller, for ursim and real."""
    on_scaling: Literal["follow", "stop"] = "follow"
    """When the controller scales the speed: follow it in time, or stop the arm."""
    yes: bool = False
    """Let the cell file answer where a person is asked before a real arm moves; it must match the controller."""
    realtime_priority: int = 0
    """Of the process that sends setpoints to a controller, 1 to 99; 0 for the ordinary scheduler."""
    unmodelled_payload: float = 0.0
    """Mass at the TCP that the controller is not told of, kg (simulation only)."""
    out: Annotated[str | None, _given("DIR", "one under runs/")] = None
    """The run directory to make."""
    servo: Literal["stiff", "servoj"] = "stiff"
    """How the simulated controller follows setpoints: stiff, or a model of UR's servoj (not validated on a robot)."""
    servo_lookahead: float = 0.03
    """Of servoj: by how much a steady motion is trailed, 0.03 to 0.2 s."""
    servo_gain: float = 2000.0
    """Of servoj: stiffness, 100 to 2000."""
    realtime: bool = False
    """Pace the simulation by the wall clock."""
    gui: bool = False
    """Open the simulator's window (paced by the wall clock)."""
    tolerance: Annotated[tuple[float, float] | None, _optional(2), _given("MM DEG", "judge nothing")] = None
    """Largest RMS of the tracking error, mm and degrees; beyond it the exit status is 1."""

    def options(self) -> Options:
        import math

        judged = None if self.tolerance is None else (self.tolerance[0] * 1e-3, math.radians(self.tolerance[1]))
        return replace(
            super().options(),
            unmodelled_payload=self.unmodelled_payload,
            servo=self.servo,
            servo_lookahead=self.servo_lookahead,
            servo_gain=self.servo_gain,
            host=self.host,
            on_scaling=self.on_scaling,
            yes=self.yes,
            realtime_priority=self.realtime_priority,
            realtime=self.realtime,
            gui=self.gui,
            tolerance=judged,
        )


@dataclass
class _Check(_Planned):
    """Plan a scenario and check it; move nothing."""


@dataclass
class _Robots:
    """List the robots."""


@dataclass
class _Scenarios:
    """List the scenarios."""


@dataclass
class _Export:
    """Write a run in a format for other tools, into its directory."""

    run: Positional[str]
    """The run directory."""
    to: Literal["csv", "tum"]
    """csv: samples.csv; tum: reference.tum, target.tum, setpoint.tum and attained.tum."""


@dataclass
class _Doctor:
    """Look whether a run would work here, and how to mend it; move nothing (docs/hardware.md)."""

    backend: Annotated[
        Literal["pybullet", "ursim", "real"] | None,
        _optional(1, "pybullet", "ursim", "real"),
        _given("pybullet|ursim|real", "what answers at the host, else pybullet"),
    ] = None
    """For runs on what: the simulator, URSim, or a real arm."""
    host: Annotated[str | None, _given("ADDRESS", "the cell's; 127.0.0.1 for ursim")] = None
    """The controller to look at."""
    robot: Annotated[str | None, _given("NAME|FILE", "the cell's, else ur10")] = None
    """The arm that is expected."""
    cell: Annotated[str | None, _given("FILE", "none")] = None
    """A cell file to compare the controller with (docs/cell.md)."""
    write_cell: Annotated[str | None, _given("FILE", "none")] = None
    """Start a cell file from what the controller says."""
    json: bool = False
    """Print the result as JSON, for machines."""


@dataclass
class _Emulate:
    """Run an emulated UR controller, for tests of the software that talks to one (docs/emulator.md)."""

    robot: str = "ur10e"
    """A UR arm in robots/."""
    polyscope: str = "5.12"
    """Software version: 3.15 (CB3, 125 Hz), 5.12 or 5.25 (e-Series, 500 Hz)."""
    host: str = "127.0.0.1"
    """Address to listen on; 127.0.0.2 and so on let several run side by side."""
    calibration: Annotated[str | None, _given("FILE", "nominal kinematics, as URSim")] = None
    """Kinematics of one very arm (TOML)."""
    boot_time: float = 0.5
    """From power on to idle, s."""
    control_port: int = 30020
    """Where faults and questions are taken."""


@dataclass
class _Bench:
    """Measure speed, each figure beside what it is compared to."""

    what: Positional[Literal["all", "solvers", "run", "startup", "servo", "emulator"]] = "all"
    """Which part; all leaves out servo and emulator, which take minutes."""


Command = (
    Annotated[_Run, subcommand("run")]
    | Annotated[_Check, subcommand("check")]
    | Annotated[_Robots, subcommand("robots")]
    | Annotated[_Scenarios, subcommand("scenarios")]
    | Annotated[_Export, subcommand("export")]
    | Annotated[_Doctor, subcommand("doctor")]
    | Annotated[_Emulate, subcommand("emulate")]
    | Annotated[_Bench, subcommand("bench")]
)

_DESCRIPTION = """How well does an arm track a sampled motion, and who is to blame for the rest?

simbridge replays a Cartesian trajectory through an inverse-kinematics solver, sends the joint setpoints to an arm, and
measures the tracking error. Begin with: simbridge run square_tracking"""


def _floor(text: str) -> Floor:
    if text.lower() == "none":
        return "none"
    try:
        return float(text)
    except ValueError:
        raise InvalidParameter("floor", text, "a height in m, or none") from None


def main(arguments: list[str] | None = None) -> int:
    """The program `simbridge`.

    Returns:
        The exit status: 0 when all went well, 1 when a run missed its tolerance or the emulator broke, 2 for input
        that cannot be used, 130 after Ctrl-C.
    """
    given = sys.argv[1:] if arguments is None else arguments
    if given == ["--version"]:
        from simbridge import __version__

        print(f"simbridge {__version__}")
        return 0
    _end_runs_on_sigterm()
    try:
        command = tyro.cli(
            Command,  # type: ignore[arg-type]
            args=given or ["--help"],
            prog="simbridge",
            description=_DESCRIPTION,
            config=(tyro.conf.FlagCreatePairsOff,),
        )
        with warnings.catch_warnings():
            warnings.showwarning = _note
            return _dispatch(command, given)
    except SimbridgeError as error:
        return _told(error)
    except KeyboardInterrupt:
        _say("Interrupted; nothing is moving.")
        return 130
    except BrokenPipeError:
        # The reader of a pipe (such as head) has gone: nothing more can be said, not even by the interpreter's exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _end_runs_on_sigterm() -> None:
    """SIGTERM ends a run as Ctrl-C does: the arm is stopped and what there is gets measured."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)


def _dispatch(command: object, given: list[str]) -> int:
    from simbridge import commands

    if isinstance(command, _Run):
        return commands.run(command, solver_changes(command, given))
    if isinstance(command, _Check):
        return commands.check(command, solver_changes(command, given))
    if isinstance(command, _Robots):
        return commands.robots()
    if isinstance(command, _Scenarios):
        return commands.scenarios()
    if isinstance(command, _Export):
        return commands.export(Path(command.run), command.to)
    if isinstance(command, _Doctor):
        from simbridge.doctor import doctor

        return doctor(**vars(command))
    if isinstance(command, _Emulate):
        from simbridge.emulator.emulate import emulate

        return emulate(**vars(command))
    assert isinstance(command, _Bench)
    from simbridge.bench import bench

    return bench(command.what)


def solver_changes(command: _Planned, given: list[str]) -> dict[str, object]:
    """The solver's settings that were given as flags; the others are the scenario's.

    Raises:
        UnknownName: There is no such solver.
    """
    if command.solver and command.solver not in SOLVERS:
        raise UnknownName("solver", command.solver, SOLVERS)
    prefix = "--solver."
    flags = (word.partition("=")[0] for word in given if word.startswith(prefix))
    names = [flag.removeprefix(prefix).replace("-", "_") for flag in flags]
    return {name: getattr(command.parameters, name) for name in names}


def _told(error: SimbridgeError) -> int:
    kept = "" if error.run_directory is None else f" What was recorded until then is in {error.run_directory}"
    if isinstance(error, EmulatorBroken):
        traceback.print_exception(error.__cause__)
    _say(f"{error}{kept}")
    return 130 if isinstance(error, KeyboardInterrupt) else 1 if isinstance(error, EmulatorBroken) else 2


def _say(text: str) -> None:
    columns = min(os.get_terminal_size(2).columns if sys.stderr.isatty() else 100, 120)
    print(textwrap.fill(text, columns, break_long_words=False, break_on_hyphens=False), file=sys.stderr)


def _note(message: Warning | str, *_where: object, **_more: object) -> None:
    _say(f"Note: {message}")


def run_as_script(path: str) -> None:
    """What a scenario script ends in: `python scenarios/NAME.py` takes the flags of `simbridge run`.

    Raises:
        ScenarioError: It stands where it is also called when the script is only loaded.
    """
    from simbridge.scenario import is_being_loaded

    if is_being_loaded(path):
        raise ScenarioError(path, 'run_as_script(__file__) must stand under: if __name__ == "__main__":')
    sys.exit(main(["run", path, *sys.argv[1:]]))
