"""The examples of README.md and docs/ work: Python blocks are run, and every command line is read.

Commands that only look (check, inspect, robots, scenarios) are run, too. Not run are the pages
whose examples other tests follow: architecture and internals, the emulator's, and the tutorial.
"""

from __future__ import annotations

import errno
import re
import shlex
import signal
import tempfile
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple, get_args

import numpy as np
import pinocchio as pin
import pytest
import tyro

import simbridge
from simbridge.backends.backend import Ending as SeenAtTheEnd
from simbridge.backends.backend import cause_of
from simbridge.backends.operator_confirmation import confirm_motion
from simbridge.cli.error_reporting import print_error
from simbridge.cli.option_flags import any_command, command_types
from simbridge.errors import (
    Cause,
    GuardViolation,
    InternalError,
    Interrupted,
    LogWriteError,
    OutputError,
    SimbridgeError,
)
from simbridge.planning.guard import Guard
from simbridge.planning.options import Options
from simbridge.planning.planner import make_plan
from simbridge.robot.kinematics import tool_path
from simbridge.running import run_ending
from simbridge.running.arm_and_solver import choose_solver
from simbridge.running.signals import SignalReceived
from simbridge.sessions.session import LiveSession
from simbridge.trajectory import square, write_csv, write_tum
from simbridge.ur import errors
from tests.backends.controller_facts import FACTS
from tests.ports import free_port

pytestmark = pytest.mark.slow

CHECKOUT = Path(__file__).parents[2]
PAGES = [CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").glob("*.md"))]
# What commands are run, if their inputs exist.
LOOKING = ("check", "inspect", "robots", "scenarios")


def blocks(page, language):
    return re.findall(
        rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )


def command_lines(page):
    """The words of every line that calls simbridge, without its comment."""
    for block in blocks(page, "sh"):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line.partition(";")[0], comments=True)
            if words and words[0] == "simbridge":
                yield words[1:]


COMMAND_LINES = {" ".join(words): words for page in PAGES for words in command_lines(page)}


ELSEWHERE = ("architecture", "internals", "emulator", "emulator_reference", "tutorial")
PYTHON_PAGES = {
    page.name: page for page in PAGES if page.stem not in ELSEWHERE and blocks(page, "python")
}


@pytest.mark.parametrize("line", COMMAND_LINES)
def test_a_command_line_is_one_that_the_program_reads(line):
    words = [word.rstrip(".") if word.startswith("RUN") else word for word in COMMAND_LINES[line]]
    kind = any_command(command_types(words))
    flags = tyro.cli(kind, args=words, prog="simbridge", config=(tyro.conf.FlagCreatePairsOff,))
    assert type(flags).__name__.lower().removesuffix("flags") == words[0]


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    """A directory with the files that the examples name."""
    folder = tmp_path_factory.mktemp("docs")
    path = square(side=0.1)
    write_tum(folder / "recording.tum", path.times, path.poses)
    pendant = path.from_pendant_base()
    write_csv(folder / "recording.csv", pendant.times, pendant.poses)
    (cell,) = blocks(CHECKOUT / "docs" / "cell.md", "toml")
    (folder / "lab.toml").write_text(cell.replace('calibration = "ur10e_calibration.toml"\n', ""))
    return folder


@pytest.fixture
def small_squares(monkeypatch):
    """Scenarios and examples trace their squares once, with a tenth of the sides."""

    def small_square(side, **facts):
        return square(0.1 * side, **{**facts, "laps": 1})

    monkeypatch.setattr(simbridge.trajectory, "square", small_square)


@pytest.mark.usefixtures("small_squares")
@pytest.mark.parametrize(
    "line", [line for line, words in COMMAND_LINES.items() if words[0] in LOOKING]
)
def test_a_command_that_only_looks_runs(line, cli, workplace, monkeypatch):
    monkeypatch.chdir(workplace)
    words = COMMAND_LINES[line]
    files = [word for word in words if Path(word).suffix and not (workplace / word).exists()]
    if files:
        pytest.skip(f"needs {files[0]}")
    answer = cli(*words)
    assert answer.status == 0, answer.err


def assumed_names(robot):
    """Return the names that the examples of a page use: arm, solver, targets, a custom library."""
    solver = simbridge.ForwardDynamics(robot)
    user_solver = SimpleNamespace(
        ik=lambda matrix, q: solver.track(pin.SE3ToXYZQUAT(pin.SE3(matrix))[None], q)[0]
    )
    return {
        "__name__": "example",
        "simbridge": simbridge,
        "robot": robot,
        "solver": solver,
        "targets": np.repeat(tool_path(robot, robot.home[None]), 20, axis=0),
        "my_library": SimpleNamespace(
            ik=user_solver.ik,
            load=lambda urdf: user_solver,
        ),
    }


@pytest.mark.usefixtures("small_squares", "without_pages")
@pytest.mark.parametrize("name", PYTHON_PAGES)
def test_the_python_of_a_page_runs(name, workplace, monkeypatch):
    monkeypatch.chdir(workplace)
    # The studio's usual port may be in use on this computer.
    monkeypatch.setattr(simbridge, "studio", partial(simbridge.studio, port=free_port()))
    # Nothing that the examples show depends on the wall clock.
    monkeypatch.setattr(simbridge, "live", partial(simbridge.live, realtime=False))
    # Nor on how long they wait.
    wait = LiveSession.wait
    monkeypatch.setattr(LiveSession, "wait", lambda session, seconds: wait(session, seconds / 5))
    robot = simbridge.load_robot("ur10")
    names = assumed_names(robot)
    for code in blocks(PYTHON_PAGES[name], "python"):
        if "Emulator(" in code:
            # It keeps real time: tests/emulator/test_handle.py does the same.
            compile(code, name, "exec")
            continue
        exec(compile(code, name, "exec"), names)
        build = names.pop("scenario", None)
        if build is not None:
            scenario = build(robot)
            make_plan(robot, scenario, choose_solver(scenario, robot), Options())


# docs/stops.md, the table of what ends a run


class Ending(NamedTuple):
    """An error in the table: its first words, its class, its cause and its exit status."""

    words: str
    error: str
    cause: str
    status: int

    def is_of(self, error, printed, status):
        """Return whether an error that was printed so, with this exit status, is this one."""
        pattern = re.escape(self.words).replace(r"\ \.\.\.", ".*").replace(r"\.\.\.", ".*")
        return (self.error, self.cause, self.status) == (
            type(error).__name__, cause_of(error, SeenAtTheEnd()), status
        ) and bool(re.match(pattern, printed))  # fmt: skip


def rows_of_endings():
    """The cells of each row of the table."""
    section = (
        (CHECKOUT / "docs" / "stops.md").read_text(encoding="utf-8").partition("\n| printed |")[2]
    )
    for line in section.partition("\n\n")[0].splitlines()[2:]:
        yield [cell.strip() for cell in line.strip("|").split("|")]


def described_endings():
    """The errors that the table describes."""
    for printed, cause, statuses, *_ in rows_of_endings():
        for quoted, name in re.findall(r'((?:"[^"]+"(?:, )?)+) \(`(\w+)`', printed):
            for words in re.findall('"([^"]+)"', quoted):
                yield from (
                    Ending(words, name, cause.strip("`"), int(each))
                    for each in re.findall(r"\d+", statuses)
                )


def interrupted(line, number):
    """The error of a simulated run that a signal ends."""

    def receive(_state):
        raise SignalReceived(number)

    with pytest.raises(Interrupted) as raised:
        simbridge.run(line, progress=receive)
    return raised.value


def refused_setpoint():
    """The error of a setpoint that jumps."""
    robot = simbridge.load_robot("ur10e")
    guard = Guard(robot, robot.period)
    guard.reset(robot.home)
    with pytest.raises(GuardViolation) as raised:
        guard.check(robot.home + 1.0, robot.home)
    return raised.value


def unconfirmed(ask):
    """The error of a motion that nobody, or an operator, does not confirm."""
    with pytest.raises(errors.NotConfirmed) as raised:
        confirm_motion(
            FACTS, simbridge.load_robot("ur10e"), None, more_facts=(), ask=ask, cell_confirms=False
        )
    return raised.value


HOST = "192.0.2.7"
STOPS = [
    errors.ProtectiveStop,
    errors.EmergencyStop,
    errors.SafeguardStop,
    errors.SafetyFault,
    errors.ArmNotReady,
    errors.ProgramStopped,
    errors.ProgramPaused,
    errors.ProgramReplaced,
]


@pytest.fixture
def ended(line, tmp_path, monkeypatch, without_pages):
    """An error of each kind that the table describes."""
    monkeypatch.chdir(tmp_path)
    # The traceback of a bug.
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return [
        *(kind(HOST, 7, 3, 1) for kind in STOPS),
        errors.ConnectionLost(HOST, 30004, "the connection has ended"),
        errors.ConnectionLost(HOST, 30004, "Connection refused", was_connected=False),
        errors.StaleState(HOST, 12.0, 0.1),
        errors.LateStates(
            HOST, fraction=0.8, window=2.0, interval=0.05, longest_interval=0.06, period=0.002
        ),
        errors.ImplausibleState(
            HOST, "timestamp", "5000.000 s", "4990.000 s after the state before"
        ),
        errors.ToolChanged(HOST, "payload", "2 kg", "1 kg"),
        errors.RemoteControlDisabled(HOST),
        errors.ArmChanged(HOST, "software", actual="5.13", expected="5.12", remedy="Start again."),
        errors.ModelMismatch(
            HOST,
            "serial number",
            actual="1",
            expected="2",
            remedy="This is not the arm of the cell file.",
        ),
        refused_setpoint(),
        *(
            interrupted(line, n)
            for n in (signal.SIGINT, signal.SIGTSTP, signal.SIGTERM, signal.SIGHUP)
        ),
        errors.ParentLost(1.1),
        errors.ServoProcessLost(HOST, "was killed by SIGKILL"),
        run_ending.EndNotVerified(run_ending.Ending()),
        LogWriteError(tmp_path / "log.mcap", 1000, errno.ENOSPC),
        LogWriteError(tmp_path / "log.mcap", 1000, errno.EIO),
        OutputError(tmp_path / "summary.json", "No space left on device", errno.ENOSPC),
        InternalError("servo process", "ValueError: 1"),
        errors.SpeedScaled(HOST, 0.3),
        errors.SpeedScaled(HOST, 0.3, moving=False),
        errors.ScriptNotStarted(HOST, 5.0),
        errors.StartNotReached(HOST, "elbow_joint", 0.1),
        errors.FullTurn(HOST, "wrist_3_joint", 4.0),
        errors.RegistersInUse(HOST, ("input_double_register_4",)),
        errors.ProgramRunning(HOST, 2, "glue.urp"),
        errors.ProgramRunning(HOST, 4),
        unconfirmed(None),
        unconfirmed(lambda shown, question: False),
        errors.NotURSim(HOST, (1, 2, 3, 4, 5, 6)),
        errors.UnsupportedController(HOST, "1.8", "It is older than PolyScope 3; update it."),
    ]


def test_the_table_of_endings_is_right(ended, capsys):
    """It has the message, the cause and the exit status of each."""
    described = set(described_endings())
    found = set()
    for error in ended:
        status = print_error(error)
        printed = " ".join(capsys.readouterr().err.split())
        fits = {ending for ending in described if ending.is_of(error, printed, status)}
        assert fits, printed
        found |= fits

    assert found == described


def test_the_table_of_endings_has_every_cause():
    assert {cause.strip("`") for _, cause, *_ in rows_of_endings()} == set(get_args(Cause))


def all_errors(kind=SimbridgeError):
    """Every class of error."""
    return {kind}.union(*(all_errors(each) for each in kind.__subclasses__()))


def test_every_error_with_a_cause_is_listed():
    described = {(ending.error, ending.cause) for ending in described_endings()}
    causes = {
        (kind.__name__, kind.cause)
        for kind in all_errors()
        if kind.cause not in ("refused", "unknown")
    }

    assert causes <= described
    assert {cause for _, cause in causes} <= set(get_args(Cause))
