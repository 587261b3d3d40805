"""The flags of each command, as dataclasses that tyro reads, and the registry of the commands.

Quick to import: the options of a run, and with them numpy and pinocchio, are imported once a command that has them is
chosen.
"""

from __future__ import annotations

import importlib
from dataclasses import Field, dataclass, field, fields, make_dataclass
from typing import Annotated, Any, Literal, TypeAlias, get_args, get_origin, get_type_hints

from tyro.conf import OmitArgPrefixes, OmitSubcommandPrefixes, Positional, UseAppendAction, arg, subcommand

from simbridge.backends.registry import BACKENDS, SIMULATION
from simbridge.bench import Part
from simbridge.errors import InvalidParameter
from simbridge.experiments import Parameters as ExperimentParameters
from simbridge.experiments import given, optional
from simbridge.ik.settings import SOLVERS, FunctionParameters, check_solver, is_function, unknown_setting
from simbridge.planning.live.options import LIVE, SIMULATED
from simbridge.teleop import DEVICES

AsJson: TypeAlias = Annotated[bool, arg(name="json", help="Print the result as JSON.")]


RunDirectory: TypeAlias = Annotated[Positional[str], arg(metavar="RUN")]
Robot: TypeAlias = Annotated[str | None, given("NAME|FILE", "the cell's, else ur10")]
OutDirectory: TypeAlias = Annotated[str | None, given("DIR", "one under runs/")]


@dataclass
class Plan:
    """The flags of the commands that make a plan, next to the options of the run and the solver's settings."""

    scenario: Annotated[Positional[str], arg(metavar="SCENARIO")]
    """A name in scenarios/, a script (./mine.py), or a file of samples (TUM, CSV, ROS bag)."""
    robot: Robot = None
    """A name in robots/ (see `simbridge robots`), or a URDF or TOML file."""
    solver: Annotated[str, given("NAME", "the scenario's")] = ""
    """Inverse-kinematics solver, or a custom one as module:function; --solver NAME --help lists its settings."""
    home: Annotated[tuple[float, ...], given("RAD ...", "the robot's")] = ()
    """Joint positions from which the first target is solved, rad."""
    link_lengths: Annotated[tuple[float, ...], given("M ...", "the robot's")] = ()
    """Link lengths of a planar arm (planar2r, planar3r), m."""


@dataclass
class Run(Plan):
    """Run a scenario and measure how well it was tracked."""

    backend: Annotated[str, arg(metavar="|".join(BACKENDS))] = SIMULATION
    """Receiver of the setpoints: a simulation, URSim, or a real UR arm."""
    out: OutDirectory = None
    """The run directory to create."""
    repeat: Annotated[int, arg(metavar="N")] = 1
    """Run the plan this many times, into DIR/01, DIR/02, ..., with figures as in ISO 9283 for all of them in DIR."""
    as_json: AsJson = False


@dataclass
class Check(Plan):
    """Plan a scenario and check it; nothing moves."""

    as_json: AsJson = False


@dataclass
class Inspect:
    """Show a trajectory's rate, gaps, speeds, extents and reach; nothing is planned."""

    file: Annotated[Positional[str], arg(metavar="FILE")]
    """A file of samples (TUM, CSV, ROS bag), a scenario's name, or a script."""
    robot: Annotated[str, arg(metavar="NAME|FILE")] = "ur10"
    """The arm whose reach is checked."""
    out: Annotated[str | None, given("PICTURE", "none")] = None
    """Draw the trajectory into this file: .png, .svg or .pdf."""
    as_json: AsJson = False


@dataclass
class Robots:
    """List the robots."""

    as_json: AsJson = False


@dataclass
class Scenarios:
    """List the scenarios."""

    as_json: AsJson = False


@dataclass
class Export:
    """Write a run in a format for other tools, into its directory."""

    run: RunDirectory
    """The run directory."""
    to: Annotated[str, arg(metavar="FORMAT")]
    """csv: samples.csv; tum: {reference,target,setpoint,attained}.tum; mcap: samples.mcap; bag: rosbag2/ (ROS 2)."""
    as_json: AsJson = False


@dataclass
class Report:
    """Write report.html and replay.html (3D) again from the log; exits as `run` does."""

    run: RunDirectory
    """The run directory."""
    as_json: AsJson = False


@dataclass
class Compare:
    """Compare two or more runs of one scenario: a table, and compare.html."""

    runs: Annotated[Positional[tuple[str, ...]], arg(metavar="RUN", help_behavior_hint="(two or more)")]
    """Run directories; one made by --repeat stands for its runs."""
    out: OutDirectory = None
    """Where compare.html is written."""
    as_json: AsJson = False


@dataclass
class Evaluate:
    """Compare a run with an external measurement, such as a laser tracker's."""

    run: RunDirectory
    """The run directory; of one made by --repeat, all runs are measured together, as in ISO 9283."""
    attained: Annotated[UseAppendAction[tuple[str, ...]], arg(metavar="FILE")]
    """Its recording, in any frame, on any clock: a file as for `run`; for repeats one, or one per completed run."""
    topic: Annotated[str | None, given("NAME", "the only one")] = None
    """Topic of a ROS bag; /tf:child for a frame of tf."""
    find_marker: Annotated[bool, arg(name="marker")] = False
    """The recording shows a marker away from the TCP: find its position (the tool must turn)."""
    as_json: AsJson = False


@dataclass
class Identify:
    """What a recording or a run shows of its arm: servoj, joints, payload and more."""

    recording: Annotated[Positional[str], arg(metavar="RECORDING|RUN")]
    """A recording of RTDE outputs (CSV with UR's field names), or a run directory."""
    commands: Annotated[str | None, given("FILE", "a run's own")] = None
    """The joint targets that were sent, in order: such a file, or a run directory."""
    robot: Annotated[str | None, given("NAME|FILE", "the run's, else the one that fits best")] = None
    """The arm."""
    kinematics: Annotated[str | None, given("FILE", "nominal, else estimated")] = None
    """The arm's own kinematics, as for `run`."""
    out: Annotated[str | None, given("FILE", "none")] = None
    """Write plant.toml, for `run --plant`."""
    as_json: AsJson = False


@dataclass
class Teleop:
    """Move an arm live: SpaceMouse, gamepad, keyboard, network (docs/teleop.md)."""

    device: Annotated[Positional[str], arg(metavar="|".join(DEVICES))]
    """The device; nothing moves before it engages."""
    robot: Robot = None
    """A name in robots/ (see `simbridge robots`), or a URDF or TOML file."""
    solver: Annotated[str | None, given("NAME", "forward-dynamics")] = None
    """Inverse-kinematics solver, or a custom one as module:function."""
    backend: Annotated[str, arg(metavar="|".join(BACKENDS))] = SIMULATION
    """The arm: a simulation, URSim, or a real UR arm."""
    out: OutDirectory = None
    """The run directory to create."""


@dataclass
class Studio:
    """A page in the browser: drag the goal, watch the error (docs/studio.md)."""

    scenario: Annotated[Positional[str], arg(metavar="SCENARIO|FILE")] = "circle"
    """What *Play* runs: a name in scenarios/, a script, or a file of samples."""
    robot: Robot = None
    """A name in robots/ (see `simbridge robots`), or a URDF or TOML file."""
    solver: Annotated[str, arg(metavar="NAME")] = "forward-dynamics"
    """The inverse-kinematics solver at the beginning."""
    listen: Annotated[str, arg(metavar="ADDRESS")] = "127.0.0.1"
    """Address of the page; beyond this computer a page acts only with the token that is printed."""
    port: Annotated[int, arg(metavar="PORT")] = 8080
    """Port of the page."""
    no_browser: bool = False
    """Do not open the page."""


@dataclass
class Doctor:
    """Check whether a run would work here; nothing moves (docs/hardware.md)."""

    backend: Annotated[str | None, given("|".join(BACKENDS), "the one at the host, else pybullet")] = None
    """The backend to check for."""
    host: Annotated[str | None, given("ADDRESS", "the cell's; 127.0.0.1 for ursim")] = None
    """Address of the controller."""
    robot: Robot = None
    """The arm that is expected."""
    cell: Annotated[str | None, given("FILE", "none")] = None
    """A cell file to compare the controller with (docs/cell.md)."""
    write_cell: Annotated[str | None, given("FILE", "none")] = None
    """Write a new cell file from what the controller reports."""
    json: AsJson = False


@dataclass
class Emulate:
    """Run an emulated UR controller for tests; exits with 0 at Ctrl-C and SIGTERM."""

    robot: Annotated[str, arg(metavar="NAME")] = "ur10e"
    """A UR arm in robots/."""
    polyscope: Annotated[str, arg(metavar="VERSION")] = "5.12"
    """Software version: 3.15 (CB3, 125 Hz), 5.9, 5.12 or 5.25 (e-Series, 500 Hz)."""
    host: Annotated[str, arg(metavar="ADDRESS")] = "127.0.0.1"
    """Address to listen on; 127.0.0.2 and so on allow several emulators at once."""
    count: Annotated[int, arg(metavar="N")] = 1
    """How many arms: each is a process of its own, on the next address."""
    calibration: Annotated[str | None, given("FILE", "nominal kinematics, as URSim")] = None
    """Kinematics of an individual arm (TOML, or ROS's my_robot_calibration.yaml)."""
    boot_time: Annotated[float, arg(metavar="S")] = 0.5
    """From power on to idle, s."""
    programs: Annotated[str | None, given("DIR", "none")] = None
    """The controller's folder of programs (*.urp), which the dashboard loads."""
    start_pose: Annotated[str, arg(metavar="home|ursim|Q")] = "home"
    """Joints at the start: the robot's home, URSim's, or six numbers, rad, separated by commas."""
    joint_speed_limit: Annotated[str | None, given("V", "0.2 rad/s above the arm's own speeds")] = None
    """The safety system's, rad/s: one number, or six separated by commas; the default is as on UR's controllers."""
    control_port: Annotated[int, arg(metavar="PORT")] = 30020
    """Port for fault injection and queries."""
    realtime_priority: Annotated[int, arg(metavar="N")] = 0
    """Real-time priority of its ticks, 1 to 99; 0 for the ordinary scheduler."""
    speed: Annotated[float, arg(metavar="N")] = 1.0
    """The controller's time runs up to N times faster: for programs and moves, not for setpoints streamed to it."""
    record: Annotated[str | None, given("FILE", "not kept")] = None
    """A new file for all traffic with its clients: a JSON object per line."""
    verbose: bool = False
    """Print each message of its clients, and to them, in words."""
    check: Annotated[tuple[str, ...], given("FILE...", "none")] = ()
    """Only check URScript files: whether they compile, and which functions are unknown; exits with 1 if one fails."""
    as_json: AsJson = False


@dataclass
class Experiment:
    """The paper's experiments, and all solvers compared, for any arm (docs/paper.md)."""

    parameters: OmitArgPrefixes[OmitSubcommandPrefixes[ExperimentParameters]]


@dataclass
class Bench:
    """Measure speed, each figure compared with a requirement or a baseline."""

    what: Positional[Literal["all"] | Part] = "all"
    """The part to measure; all leaves out servo, emulator, live, recording and studio."""
    minutes: Annotated[float | None, given("M", "0.5")] = None
    """How long live measures; the figures of docs/live.md take ten."""
    tuning: Annotated[str | None, given("FILE", "none")] = None
    """With live: write a table of what the tunings of a session do (Markdown)."""
    as_json: AsJson = False


# Name of each command: its flags, and the function that it calls with them.
COMMANDS: dict[str, tuple[type, str]] = {
    "run": (Run, "simbridge.cli.commands:run"),
    "check": (Check, "simbridge.cli.commands:check"),
    "inspect": (Inspect, "simbridge.cli.commands:inspect"),
    "robots": (Robots, "simbridge.cli.listing:robots"),
    "scenarios": (Scenarios, "simbridge.cli.listing:scenarios"),
    "export": (Export, "simbridge.cli.commands:export"),
    "report": (Report, "simbridge.cli.report_command:report"),
    "compare": (Compare, "simbridge.cli.compare_command:compare"),
    "evaluate": (Evaluate, "simbridge.cli.evaluate_command:evaluate"),
    "identify": (Identify, "simbridge.cli.identify_command:identify"),
    "teleop": (Teleop, "simbridge.cli.teleop_command:teleop"),
    "studio": (Studio, "simbridge.cli.studio_command:studio"),
    "doctor": (Doctor, "simbridge.doctor.doctor:doctor"),
    "emulate": (Emulate, "simbridge.emulator.arms:emulate"),
    "experiment": (Experiment, "simbridge.experiments.experiment:run_experiment"),
    "bench": (Bench, "simbridge.bench.bench:bench"),
}


_OPTIONS = "simbridge.planning.options:Options"
_LIVE = {"teleop": LIVE, "studio": SIMULATED}
# The options that are flags of each command. They load NumPy and pinocchio: the other commands start without them.
OPTIONS: dict[str, tuple[str, ...]] = {
    "run": (_OPTIONS,),
    "check": (_OPTIONS,),
    "inspect": (_OPTIONS,),
    "studio": (_OPTIONS,),
    "teleop": ("simbridge.teleop.options:TeleopOptions", "simbridge.planning.live.options:LiveOptions", _OPTIONS),
}


def command_type(words: list[str]) -> Any:
    """The type that tyro reads the command line's words as: any of the commands, the chosen one with all its flags."""
    chosen = next(iter(words), "")
    kinds = {name: flags for name, (flags, _) in COMMANDS.items()}
    if chosen in OPTIONS:
        kinds[chosen] = _with_options(chosen, kinds[chosen], words)
    commands = [Annotated[kind, subcommand(name)] for name, kind in kinds.items()]  # type: ignore[valid-type]
    union = commands[0]
    for command in commands[1:]:
        union = union | command
    return union


def _with_options(name: str, base: type, words: list[str]) -> type:
    """A command's flags with those of its options, and of the chosen solver."""
    flags: list[Any] = []
    for place in OPTIONS[name]:
        module, _, options = place.partition(":")
        for own, kind in typed_fields(getattr(importlib.import_module(module), options)):
            if name not in own.metadata["commands"] and own.name not in _LIVE.get(name, ()):
                continue
            parts = typed_fields(get_args(kind)[0]) if "prefix" in own.metadata else [(own, kind)]
            flags += [_flag(own.metadata.get("prefix", "") + part.name, part, its_kind) for part, its_kind in parts]
    if issubclass(base, Plan):
        settings = _solver_flags(SOLVERS.get(chosen_solver(words), FunctionParameters))
        flags.append(("parameters", Annotated[settings, arg(name="solver")], field(default_factory=settings)))
    return make_dataclass(base.__name__, flags, bases=(base,), namespace={"__doc__": base.__doc__})


def _solver_flags(settings: type) -> Any:
    """A solver's settings as flags, unchecked: tyro would report a refused one in its own words.

    Where one is empty by default, the help shows what that stands for.
    """
    names: list[Any] = []
    for own, kind in typed_fields(settings):
        if unset := own.metadata.get("unset"):
            kind = Annotated[kind, given("NAME" if kind is str else "FLOAT ...", unset)]
        names.append((own.name, kind, field(default=getattr(settings(), own.name))))
    namespace = {"__doc__": settings.__doc__, "__post_init__": lambda _: None}
    return make_dataclass(settings.__name__, names, bases=(settings,), frozen=True, namespace=namespace)


def typed_fields(kind: Any) -> list[tuple[Field[Any], Any]]:
    """The fields of a dataclass, each with its type."""
    hints = get_type_hints(kind)
    return [(own, hints[own.name]) for own in fields(kind)]


def _flag(name: str, own: Field[Any], kind: Any) -> tuple[str, Any, Any]:
    """The flag of an option's field: name, annotated type, default."""
    about = own.metadata
    metavar = about.get("metavar") or None
    if own.default is not None and own.default not in ((), ""):
        default = own.default
        if isinstance(default, float) and "units" in about:
            # In the flag's unit, in which it is a round number.
            default = round(default / about["units"][0], 9)
        return name, Annotated[kind, arg(help=about["help"], metavar=metavar)], default
    choices = () if "read" in about else next((get_args(k) for k in get_args(kind) if get_origin(k) is Literal), ())
    inside = {part for k in get_args(kind) for part in (k, *get_args(k))}
    numbers = float in inside and "read" not in about
    reading = optional(len((metavar or "").split()) or 1, float if numbers else str, choices)
    unset = f"(default: {about.get('unset', 'none')})"
    metavar = metavar or "|".join(choices)
    shown = arg(name=about.get("flag"), help=about["help"], metavar=metavar, help_behavior_hint=unset)
    return name, Annotated[kind | None, reading, shown], None


def chosen_solver(words: list[str]) -> str:
    """The solver whose settings are flags: the named one, or the default of scenarios.

    Raises:
        UnknownName: There is no such solver, or it has no such setting.
        InvalidParameter: It is a function, which has no settings, and one is given.
    """
    name = "forward-dynamics"
    for position, word in enumerate(words):
        flag, equals, value = word.partition("=")
        if flag == "--solver":
            name = value if equals else words[position + 1] if position + 1 < len(words) else name
    check_solver(name)
    settings = given_settings(words)
    if is_function(name):
        if settings:
            raise InvalidParameter("solver's settings", ", ".join(settings), f"left out: {name} is a function")
        return name
    known = {own.name for own in fields(SOLVERS[name])}
    for setting in settings:
        if setting not in known:
            raise unknown_setting(name, setting)
    return name


def given_settings(words: list[str]) -> list[str]:
    """The solver's settings that are given as flags; the others are the scenario's."""
    prefix = "--solver."
    flags = (word.partition("=")[0] for word in words if word.startswith(prefix))
    return [flag.removeprefix(prefix).replace("-", "_") for flag in flags]
