"""The flags of each command, as dataclasses that tyro reads, and the registry of the commands.

Quick to import: neither NumPy nor pinocchio is loaded. `option_flags.py` adds the flags of options
and settings. The help shows the docstrings; tyro would keep the line breaks of a long one, which is
an argument of `arg` instead.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeAlias, get_args

from tyro.conf import OmitArgPrefixes, OmitSubcommandPrefixes, Positional, UseAppendAction, arg

from simbridge.backends import BACKENDS, ENGINES, LIVE_BACKENDS, SIMULATION
from simbridge.bench import Part
from simbridge.emulator.options import EmulatorOptions
from simbridge.experiments import Parameters as ExperimentParameters
from simbridge.experiments.flag_types import optional_arg, optional_reading
from simbridge.planning.link_choices import LinkName, RegisterRange
from simbridge.teleop import DEVICES
from simbridge.ur.tables import REST
from simbridge.ursim import ActionFlags

# Stands for the newest run in every flag that takes a run.
NEWEST_RUN = "last"
# Behind the help of a flag that may be given several times.
REPEATABLE = "(repeatable)"

AsJson: TypeAlias = Annotated[bool, arg(name="json", help="Print the result as JSON.")]
RunDirectory: TypeAlias = Annotated[
    Positional[str], arg(metavar="RUN", help="The run directory, or last for the newest one.")
]
Robot: TypeAlias = Annotated[str | None, optional_arg("NAME|FILE", "the cell's, else ur10")]
Verbose: TypeAlias = Annotated[bool, arg(help="Print everything, not only the result.")]
FigureFormat: TypeAlias = Annotated[str, arg(metavar="svg|pdf")]
OutDirectory: TypeAlias = Annotated[str | None, optional_arg("DIR", "one under runs/")]
LiveArm: TypeAlias = Annotated[
    str,
    arg(metavar="|".join(LIVE_BACKENDS), help="The arm: a simulation, URSim, or a real UR arm."),
]


@dataclass
class PlanFlags:
    """Flags of commands that make a plan, next to options of the run and settings of the solver."""

    scenario: Annotated[
        Positional[str],
        arg(
            metavar="SCENARIO",
            help="A name in scenarios/, a script (./mine.py), or a file of samples (TUM, CSV, "
            "Parquet, npz, ROS bag).",
        ),
    ]
    robot: Robot = None
    """A name in robots/ (see `simbridge robots`), or a URDF or TOML file."""
    solver: Annotated[
        str,
        optional_arg(
            "NAME",
            "the scenario's",
            help="Inverse-kinematics solver, or your own as module:function: (q, target) -> q, or "
            "(robot) -> such a function. --solver NAME --help lists its settings.",
        ),
    ] = ""
    home: Annotated[tuple[float, ...], optional_arg("RAD ...", "the robot's")] = ()
    """Joint positions from which the first target is solved, rad."""
    link_lengths: Annotated[tuple[float, ...], optional_arg("M ...", "the robot's")] = ()
    """Link lengths of a planar arm (planar2r, planar3r), m."""
    # Settings of the solver that flags name: filled in after reading, see `command_line.py`.
    solver_settings: dict[str, Any] = field(default_factory=dict, init=False)


@dataclass
class RunFlags(PlanFlags):
    """Run a scenario and measure how well it was tracked."""

    backend: Annotated[str, arg(metavar="|".join(BACKENDS))] = SIMULATION
    """Where to send setpoints: a simulation, URSim, or a real UR arm."""
    out: OutDirectory = None
    """The run directory to create."""
    repeat: Annotated[
        int,
        arg(
            metavar="N",
            help="Run the plan this many times, into DIR/01, DIR/02, ...; DIR gets ISO 9283-style "
            "figures for all of them.",
        ),
    ] = 1
    verbose: Verbose = False
    as_json: AsJson = False


@dataclass
class CheckFlags(PlanFlags):
    """Plan a scenario and check it; nothing moves."""

    verbose: Verbose = False
    as_json: AsJson = False


@dataclass
class InspectFlags:
    """Show a trajectory's rate, gaps, speeds, extents and reach; nothing is planned."""

    file: Annotated[Positional[str], arg(metavar="FILE")]
    """A file of samples (TUM, CSV, Parquet, npz, ROS bag), a scenario's name, or a script."""
    robot: Annotated[str, arg(metavar="NAME|FILE")] = "ur10"
    """The arm whose reach is checked."""
    out: Annotated[str | None, optional_arg("PICTURE", "none")] = None
    """Draw the trajectory into this file: .png, .svg or .pdf."""
    verbose: Verbose = False
    as_json: AsJson = False


@dataclass
class RobotsFlags:
    """List the robots."""

    as_json: AsJson = False


@dataclass
class ScenariosFlags:
    """List the scenarios."""

    as_json: AsJson = False


@dataclass
class RunsFlags:
    """List runs, repeats, live sessions and sweeps."""

    directory: Annotated[Positional[str], arg(metavar="DIR")] = "runs"
    """The directory that holds them."""
    filters: Annotated[
        UseAppendAction[tuple[str, ...]],
        arg(
            name="filter",
            metavar="COLUMN=VALUE",
            help_behavior_hint=REPEATABLE,
            help="Only runs with this label, scenario, robot, solver, outcome or kind; * matches "
            "any text.",
        ),
    ] = ()
    sort: Annotated[str, arg(metavar="COLUMN")] = "age"
    """The column to sort by: label, scenario, robot, solver, error, outcome or age."""
    limit: Annotated[int, arg(metavar="N")] = 0
    """Maximum number of entries; 0 for all."""
    as_json: AsJson = False


@dataclass
class ViewFlags:
    """Open the page of a run, of repeats, or of a sweep, and print its path."""

    run: RunDirectory
    no_browser: bool = False
    """Only print the path; do not open the page."""


@dataclass
class ExportFlags:
    """Write a run in a format for other tools, into its directory."""

    run: RunDirectory
    to: Annotated[
        str,
        arg(
            metavar="FORMAT",
            help="csv, parquet, mat (MATLAB), mcap, rerun (.rrd): samples.*; tum: four files of "
            "poses; bag: rosbag2/ (ROS 2).",
        ),
    ]
    as_json: AsJson = False


@dataclass
class ReportFlags:
    """Write report.html and replay.html (3D) again from the log; exits as `run` does."""

    run: RunDirectory
    figures: Annotated[
        str | None,
        optional_arg(
            "DIR",
            "none",
            help="Also write figures for a paper to DIR: errors, contour, map and path, 88 mm "
            "wide with 8-point text.",
        ),
    ] = None
    format: FigureFormat = "svg"
    """Format of the figures."""
    as_json: AsJson = False


@dataclass
class CompareFlags:
    """Compare runs of one scenario, or two sweeps: a table, and compare.html."""

    runs: Annotated[
        Positional[tuple[str, ...]],
        arg(
            metavar="RUN",
            help_behavior_hint="(two or more)",
            help="Run directories, or last; one made by --repeat stands for its runs. Or two "
            "directories of sweeps.",
        ),
    ]
    out: OutDirectory = None
    """Directory to write compare.html to."""
    figures: Annotated[
        str | None,
        optional_arg(
            "DIR",
            "none",
            help="Also write figures of the runs for a paper to DIR: errors, contour, separation "
            "and path, 88 mm wide with 8-point text.",
        ),
    ] = None
    format: FigureFormat = "svg"
    """Format of the figures."""
    verbose: Verbose = False
    as_json: AsJson = False


@dataclass
class EvaluateFlags:
    """Compare a run with an external measurement, such as a laser tracker's."""

    run: Annotated[
        Positional[str],
        arg(
            metavar="RUN",
            help="The run directory, or last; of one made by --repeat, all runs are measured "
            "together, as in ISO 9283.",
        ),
    ]
    attained: Annotated[
        UseAppendAction[tuple[str, ...]],
        arg(
            metavar="FILE",
            help_behavior_hint="(required; repeatable)",
            help="Its recording, in any frame, on any clock: a file as for `run`; for repeats one,"
            " or one per completed run.",
        ),
    ]
    topic: Annotated[str | None, optional_arg("NAME", "the only one")] = None
    """Topic of a ROS bag (/tf:child for a tf frame), rigid body of motion capture, or array of
    pose matrices in an npz file."""
    columns: Annotated[str | None, optional_arg("ROLE[UNIT]=NAME,...", "by their names")] = None
    """Columns and units of a table, as for `run`."""
    rate: Annotated[float | None, optional_arg("HZ", "none")] = None
    """Samples per second, for a file without times."""
    find_marker: Annotated[bool, arg(name="marker")] = False
    """The recording shows a marker away from the TCP: estimate where (the tool must rotate)."""
    as_json: AsJson = False


@dataclass
class IdentifyFlags:
    """What a recording or a run shows of its arm: servoj, joints, payload and more."""

    recording: Annotated[Positional[str], arg(metavar="RECORDING|RUN")]
    """A recording of RTDE outputs (CSV with UR's field names), or a run directory, or last."""
    commands: Annotated[str | None, optional_arg("FILE", "a run's own")] = None
    """The joint targets that were sent, in order: a file of the same kind, or a run directory."""
    robot: Annotated[
        str | None, optional_arg("NAME|FILE", "the run's, else the one that fits best")
    ] = None
    """The arm."""
    kinematics: Annotated[str | None, optional_arg("FILE", "nominal, else estimated")] = None
    """The arm's own kinematics, as for `run`."""
    out: Annotated[str | None, optional_arg("FILE", "none")] = None
    """Write plant.toml, for `run --plant`."""
    verbose: Verbose = False
    as_json: AsJson = False


@dataclass
class JudgeFlags:
    """What an arm did in any log, and why it deviated (docs/judge.md)."""

    logs: Annotated[
        Positional[tuple[str, ...]],
        arg(
            metavar="LOG",
            help_behavior_hint="(one or more)",
            help="A recording of RTDE outputs (CSV with UR's field names), a ROS bag, the "
            "directory of a run or a live session, or last.",
        ),
    ]
    robot: Annotated[
        str | None, optional_arg("NAME|FILE", "a run's, else the one that fits best")
    ] = None
    """The arm."""
    prefix: Annotated[str | None, optional_arg("TEXT", "the only one")] = None
    """Beginning of the arm's joint names, or of its topics (/left), in a bag with several arms."""
    path_tolerance: Annotated[
        float | None, optional_reading(1, float), optional_arg("RAD", "the goals'")
    ] = None
    """Path tolerance of a trajectory controller: when would it have given up, and why?"""
    goal_tolerance: Annotated[
        float | None, optional_reading(1, float), optional_arg("RAD", "the goals'")
    ] = None
    """Goal tolerance of a trajectory controller, at the end of each trajectory."""
    goals: Annotated[
        str | None,
        optional_arg(
            "FILE",
            "the log's own",
            help="What was sent, by the log's clock: trajectories with time_from_start, or joint "
            "commands; or the directory of the run that sent it.",
        ),
    ] = None
    columns: Annotated[
        str | None,
        optional_arg(
            "NAME,...",
            "the file's header",
            help="Names of all columns of a recording without a header: RTDE fields, each for "
            "all its columns, `time`, `skip` or `skip*N`.",
        ),
    ] = None
    page: Annotated[str | None, optional_arg("FILE.html", "none")] = None
    """Write a page with plots, like a run's report; for one log."""
    verbose: Annotated[
        bool, arg(help="Show all motions, the parts of each error, the evidence and the events.")
    ] = False
    as_json: AsJson = False


@dataclass
class TeleopFlags:
    """Move an arm live: SpaceMouse, gamepad, keyboard, network (docs/teleop.md)."""

    device: Annotated[Positional[str], arg(metavar="|".join(DEVICES))]
    """The input device; nothing moves until it engages."""
    robot: Robot = None
    """A name in robots/ (see `simbridge robots`), or a URDF or TOML file."""
    solver: Annotated[str | None, optional_arg("NAME", "forward-dynamics")] = None
    """Inverse-kinematics solver, or a custom one as module:function."""
    backend: LiveArm = SIMULATION
    out: OutDirectory = None
    """The run directory to create."""
    view: bool = False
    """Show the arm in the browser, in the scene of the studio."""


@dataclass
class StudioFlags:
    """A page in the browser: drag the goal, watch the error (docs/studio.md)."""

    scenario: Annotated[Positional[str], arg(metavar="SCENARIO|FILE")] = "circle"
    """The scenario that *Play* runs: a name in scenarios/, a script, or a file of samples."""
    robot: Robot = None
    """A name in robots/ (see `simbridge robots`), or a URDF or TOML file."""
    backend: LiveArm = SIMULATION
    solver: Annotated[str, arg(metavar="NAME")] = "forward-dynamics"
    """The inverse-kinematics solver to start with, or your own as module:function."""
    second_solver: Annotated[str, optional_arg("NAME", "none")] = ""
    """A second solver on the same goal, or your own as module:function; in simulation."""
    listen: Annotated[str, arg(metavar="ADDRESS")] = "127.0.0.1"
    """Address to listen on; connections from other computers are not encrypted (docs/studio.md)."""
    port: Annotated[int, arg(metavar="PORT")] = 8080
    """Port of the page."""
    no_browser: bool = False
    """Do not open the page in a browser."""


@dataclass
class SweepFlags:
    """Run scenarios for many values of options and settings (docs/sweeps.md)."""

    scenarios: Annotated[
        Positional[tuple[str, ...]],
        arg(metavar="SCENARIO", help_behavior_hint="(one or more, or a grid's TOML)"),
    ]
    """Names in scenarios/, scripts, or files of samples; or a sweep.toml of an earlier sweep."""
    grid: Annotated[
        UseAppendAction[tuple[str, ...]],
        arg(
            metavar="NAME=A,B,...",
            help_behavior_hint=REPEATABLE,
            help='Values of an option of `run` or of a setting, as "sample-noise=0 0,1 0.1"; all '
            "combinations are run.",
        ),
    ] = ()
    random: Annotated[
        UseAppendAction[tuple[str, ...]],
        arg(metavar="NAME=LOW:HIGH[:log]", help_behavior_hint=REPEATABLE),
    ] = ()
    """Random values within a range, the same each time."""
    samples: Annotated[int, arg(metavar="N")] = 0
    """Number of random values of each parameter."""
    points: Annotated[str | None, optional_arg("FILE.csv", "none")] = None
    """A list of points instead of a grid: a header of names, and a line for each point."""
    seeds: Annotated[int, arg(metavar="N")] = 1
    """Number of noise seeds for each point."""
    jobs: Annotated[int | None, optional_arg("N", "one for each core")] = None
    """Number of processes on this computer."""
    cluster: Annotated[str | None, optional_arg("ADDRESS", "none: this computer")] = None
    """Address of a Dask scheduler, whose workers run the points."""
    out: Annotated[str | None, optional_arg("DIR", "a new one under runs/")] = None
    """Directory of the sweep; points already in it are not run again."""
    plan_only: bool = False
    """Only plan and check, without simulating."""
    keep: Literal["none", "extremes", "all"] = "extremes"
    """Which runs to keep with their report: none, the five best and the five worst, or all."""
    backend: Annotated[str, arg(metavar="|".join(ENGINES))] = SIMULATION
    """The simulation; sweeps do not run on controllers."""
    verbose: Verbose = False
    as_json: Annotated[bool, arg(name="json", help="Print one line of JSON per point.")] = False


@dataclass
class DoctorFlags:
    """Check whether a run would work here; nothing moves (docs/hardware.md)."""

    backend: Annotated[
        str | None, optional_arg("|".join(BACKENDS), f"the one at the host, else {SIMULATION}")
    ] = None
    """The backend to check."""
    host: Annotated[str | None, optional_arg("ADDRESS", "the cell's; 127.0.0.1 for ursim")] = None
    """Address of the controller."""
    robot: Robot = None
    """The expected arm."""
    cell: Annotated[str | None, optional_arg("FILE", "none")] = None
    """A cell file to compare the controller with (docs/cell.md)."""
    write_cell: Annotated[str | None, optional_arg("FILE", "none")] = None
    """Write a new cell file from what the controller reports."""
    rest_port: Annotated[int, arg(metavar="PORT")] = REST
    """Port of the Robot API (REST) of a controller with PolyScope X."""
    link: Annotated[
        LinkName | None,
        optional_reading(1, str, get_args(LinkName)),
        optional_arg(
            "ur_rtde|rtde",
            "ur_rtde if it is installed and the controller has what it needs, else rtde",
        ),
    ] = None
    """RTDE client that a run would use: ur_rtde's, or simbridge's own (rtde)."""
    registers: RegisterRange = "lower"
    """RTDE registers that a run would use: 0 to 23 (lower), or 24 to 47 (upper)."""
    json: AsJson = False


@dataclass(frozen=True)
class EmulateFlags(EmulatorOptions):
    """Run an emulated UR controller for tests; exits with 0 at Ctrl-C and SIGTERM."""

    check: Annotated[
        tuple[str, ...],
        optional_arg(
            "FILE...",
            "none",
            help="Only check URScript files: whether they compile, and what would stop them at "
            "run time; exits with 1 if one fails.",
        ),
    ] = ()
    as_json: AsJson = False


@dataclass
class UrsimFlags:
    """UR's simulator of a controller, in a container here (docs/hardware.md)."""

    action: OmitArgPrefixes[OmitSubcommandPrefixes[ActionFlags]]


@dataclass
class ExperimentFlags:
    """The paper's experiments, and all solvers compared, for any arm (docs/paper.md)."""

    parameters: OmitArgPrefixes[OmitSubcommandPrefixes[ExperimentParameters]]


@dataclass
class BenchFlags:
    """Measure how this computer keeps time, with an emulated controller."""

    what: Positional[Literal["all"] | Part] = "all"
    """The servo loop, live sessions, or all (about five minutes)."""
    minutes: Annotated[float | None, optional_arg("M", "0.5")] = None
    """Duration of the live measurement; the figures in docs/live.md took ten minutes."""
    as_json: AsJson = False


@dataclass
class CompletionFlags:
    """Print a shell's script for the Tab key; docs/command_line.md says where it goes."""

    shell: Positional[Literal["bash", "zsh", "fish"]]
    """The shell."""


# Name of each command: its flags, and the function that takes them and returns the exit status.
COMMANDS: dict[str, tuple[type, str]] = {
    "run": (RunFlags, "simbridge.cli.run_command:run"),
    "check": (CheckFlags, "simbridge.cli.run_command:check"),
    "inspect": (InspectFlags, "simbridge.cli.inspect_command:inspect"),
    "robots": (RobotsFlags, "simbridge.cli.resources_commands:robots"),
    "scenarios": (ScenariosFlags, "simbridge.cli.resources_commands:scenarios"),
    "runs": (RunsFlags, "simbridge.cli.runs_command:runs"),
    "view": (ViewFlags, "simbridge.cli.view_command:view"),
    "export": (ExportFlags, "simbridge.cli.export_command:export"),
    "report": (ReportFlags, "simbridge.cli.report_command:report"),
    "compare": (CompareFlags, "simbridge.cli.compare_command:compare"),
    "evaluate": (EvaluateFlags, "simbridge.cli.evaluate_command:evaluate"),
    "identify": (IdentifyFlags, "simbridge.cli.identify_command:identify"),
    "judge": (JudgeFlags, "simbridge.cli.judge_command:judge"),
    "teleop": (TeleopFlags, "simbridge.cli.teleop_command:teleop"),
    "studio": (StudioFlags, "simbridge.cli.studio_command:studio"),
    "sweep": (SweepFlags, "simbridge.cli.sweep_command:sweep"),
    "doctor": (DoctorFlags, "simbridge.cli.room_commands:doctor"),
    "emulate": (EmulateFlags, "simbridge.cli.room_commands:emulate"),
    "ursim": (UrsimFlags, "simbridge.cli.room_commands:ursim"),
    "experiment": (ExperimentFlags, "simbridge.cli.room_commands:experiment"),
    "bench": (BenchFlags, "simbridge.cli.room_commands:bench"),
    "completion": (CompletionFlags, "simbridge.cli.command_line:completion"),
}
# Flags that take the directory of a run, or `NEWEST_RUN`.
RUN_FIELDS = (
    "run",
    "runs",
    "logs",
    "goals",
    "recording",
    "commands",
    "plan",
    "kinematics",
    "scenario",
)
