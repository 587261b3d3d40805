"""Fixtures and hooks of all tests, and the settings of Hypothesis.

Hypothesis repeats the same examples in CI, and sets no deadline that a busy machine would miss.

The user's view is the command line, called in this process: `cli("run", "square_tracking", ...)`.
"""

from __future__ import annotations

import gc
import os
import re
import signal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from simbridge.__main__ import NEW_OBJECTS
from simbridge.cli import compare_command, report_command
from simbridge.cli.command_line import main
from simbridge.resources import SCENARIOS
from simbridge.running import run_ending
from simbridge.trajectory import Trajectory, write_tum
from simbridge.trajectory.shapes import TOOL_DOWN
from tests.chromium import chromium
from tests.controllers import REALTIME, calibrated, cb3, controllers, e_series  # noqa: F401 (fixtures)
from tests.plain_kernels import plain_kernels
from tests.program import Answer
from tests.report.pages import leave_out_drawings
from tests.stepped_sessions import every_input, make_killed, make_never_engaged, stepped
from tests.stolen_time import LONGEST_STOLEN, stolen_time
from tests.terminals import terminal  # noqa: F401 (fixture)

# The first call of a kernel compiles it, which takes seconds.
settings.register_profile(
    "local", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("ci", settings.get_profile("local"), derandomize=True, print_blob=True)
# `make soak` selects it, with --hypothesis-profile.
settings.register_profile("soak", settings.get_profile("local"), max_examples=1000)
settings.load_profile("ci" if os.environ.get("CI") else "local")
# pytest-xdist names a width of 80 columns, to which output would be broken.
os.environ.pop("COLUMNS", None)

KINDS = ("", "calibrated", "cb3", "e_series")
USER_TESTS = Path(__file__).parent / "user"
"""The tests there run whole commands: each of them is `slow`, unless its file is marked `quick`."""
SLOW_FIXTURES = {
    "browser",
    "cb3",
    "e_series",
    "emulated",
    "line_run",
    "live_run",
    "simbridge_emulator",
    "square_run",
}
"""A test with one of these is `slow`."""


def pytest_configure(config):
    """Let Ctrl-C interrupt what the tests call, and SIGTERM end a run on several workers as Ctrl-C.
    Let Python search for garbage as rarely as the program does.

    A shell starts what it puts in the background deaf to Ctrl-C. Without the second, the workers
    and what they started would outlive the run by some seconds.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.set_threshold(NEW_OBJECTS)

    is_worker = hasattr(config, "workerinput")
    if config.getoption("numprocesses", None) and not is_worker:
        signal.signal(signal.SIGTERM, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items):
    """Mark tests by what they use, and sort them.

    The tests that keep real time run on one worker of pytest-xdist, and come first: they take
    longest. They are sorted by the kind of controller, each of which takes two seconds to
    start. A test of real time that failed is made again, up to three times, if the host took the
    cores meanwhile. The tests of a file marked `shares_setup` run on one worker, too.
    """
    real_time = []
    others = []
    for item in items:
        if "controllers" in item.fixturenames:
            item.add_marker(pytest.mark.real_time)
        runs_commands = USER_TESTS in item.path.parents and not item.get_closest_marker("quick")
        if SLOW_FIXTURES.intersection(item.fixturenames) or runs_commands:
            item.add_marker(pytest.mark.slow)

        if item.get_closest_marker("real_time"):
            item.add_marker(pytest.mark.xdist_group("controller"))
            item.add_marker(pytest.mark.flaky(reruns=3, condition=_host_took_the_cores))
            real_time.append(item)
        else:
            if item.get_closest_marker("shares_setup"):
                item.add_marker(pytest.mark.xdist_group(str(item.path)))
            others.append(item)
    items[:] = [*sorted(real_time, key=_kind_of_controller), *others]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Run the kernels of a test marked `python_kernels` as plain Python."""
    if item.get_closest_marker("python_kernels") is None:
        return (yield)
    with plain_kernels():
        return (yield)


def pytest_collection_finish():
    """Freeze all imported and collected objects, which the garbage collector need not search."""
    gc.collect()
    gc.freeze()


_stolen_before = stolen_time()


def pytest_runtest_setup(item):
    global _stolen_before
    _stolen_before = stolen_time()


def _host_took_the_cores():
    """Return whether the host took the cores during the test, so that a failure says nothing."""
    return stolen_time() - _stolen_before > LONGEST_STOLEN


def pytest_runtest_teardown(item, nextitem):
    """An emulated controller takes a part of a core even when nothing asks it: it ends with the
    last test that does.
    """
    if "controllers" in item.funcargs and "controllers" not in getattr(
        nextitem, "fixturenames", ()
    ):
        item.funcargs["controllers"].close()


def _kind_of_controller(item):
    """A number for each kind of the shared controllers: 0 for a test that uses none, the last for
    one that kills it.
    """
    if item.get_closest_marker("kills_controller"):
        return len(KINDS)
    if "[CB3" in item.name:
        return KINDS.index("cb3")
    if "[e-Series" in item.name:
        return KINDS.index("e_series")
    return next((number for number, kind in enumerate(KINDS) if kind in item.fixturenames), 0)


def pytest_xdist_auto_num_workers(config):
    """One worker for each core with `-n logical`. With `-n auto`, one more where the tests that
    keep real time have a real-time priority: theirs mostly waits.
    """
    cores = len(os.sched_getaffinity(0))
    return cores if config.option.numprocesses == "logical" else cores + REALTIME


@pytest.fixture(scope="session")
def browser():
    """Chromium; tests that need it are skipped where it or playwright is not installed."""
    with chromium() as found:
        if found is None:
            pytest.skip("chromium or playwright is not installed")
        yield found


@pytest.fixture
def without_pages(monkeypatch):
    """Runs without their own report.html, which takes most of their time; repeats still write their
    common page.
    """
    monkeypatch.setattr(run_ending, "write_report", lambda *_: None)


@pytest.fixture
def without_drawings(monkeypatch):
    """Most drawings are left out of the reports of runs (`leave_out_drawings`)."""
    leave_out_drawings(monkeypatch)


@pytest.fixture(scope="session")
def write_short_page():
    """Writes a report.html of one word, in place of `write_report`."""
    return lambda evaluation, *_, **__: evaluation.directory.write_report("page")


@pytest.fixture
def short_pages(monkeypatch, write_short_page):
    """Each run's own report.html is one word long; replays and the common pages of repeats are
    whole.
    """
    for module in (run_ending, report_command):
        monkeypatch.setattr(module, "write_report", write_short_page)


@pytest.fixture
def short_comparisons(monkeypatch):
    """Each compare.html is one word long: its drawings take most of the command's time."""
    monkeypatch.setattr(compare_command, "compare_page", lambda *_: "page")


@pytest.fixture(scope="session")
def run_without_page():
    """`simbridge run` for fixtures of many tests, none of which reads the run's page; returns the
    exit status.
    """

    def call(*arguments: object) -> int:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(run_ending, "write_report", lambda *_: None)
            return main(["run", *map(str, arguments), "--json"])

    return call


@pytest.fixture
def cli(capsys):
    """Calls the program with arguments, and returns its `Answer`; flags that cannot be read count
    as status too.
    """

    def call(*arguments: object) -> Answer:
        capsys.readouterr()
        try:
            status = main([str(argument) for argument in arguments])
        except SystemExit as ended:
            status = ended.code
        return Answer(status, *capsys.readouterr())

    return call


def _line_of_targets(points: object, times: object) -> Trajectory:
    """A trajectory through points (T, 3) in m at times (T,) in s, tool down."""
    points = np.asarray(points, dtype=float)
    return Trajectory(
        np.asarray(times, dtype=float),
        np.column_stack([points, np.tile(TOOL_DOWN, (len(points), 1))]),
    )


@pytest.fixture(scope="session")
def through():
    """Makes a trajectory through points (T, 3) at times (T,), tool down."""
    return _line_of_targets


@pytest.fixture(scope="session")
def tum():
    """Writes a trajectory as a TUM file, and returns the path."""

    def write(path, trajectory):
        write_tum(path, trajectory.times, trajectory.poses)
        return path

    return write


@pytest.fixture(scope="session")
def line(tmp_path_factory, tum):
    """A TUM file: 0.4 s along x at 0.1 m/s in front of a UR10, a sample every 0.1 s."""
    k = np.arange(5)
    points = np.column_stack([0.7 + 0.01 * k, np.full(5, 0.164), np.full(5, 0.3)])
    return tum(tmp_path_factory.mktemp("line") / "line.tum", _line_of_targets(points, 0.1 * k))


@pytest.fixture(scope="session")
def short(tmp_path_factory):
    """The scripts of scenarios with one lap, by name: half as long, with the same speeds and
    corners.
    """
    directory = tmp_path_factory.mktemp("scenarios")
    scripts = {}
    for name, laps in {"circle": 2, "figure_eight": 2, "helix": 3, "square_tracking": 2}.items():
        scripts[name] = directory / f"{name}_once.py"
        text = (SCENARIOS / f"{name}.py").read_text(encoding="utf-8")
        once = re.sub(rf"(laps|turns)={laps}\b(\.0)?", r"\1=1", text)
        assert once != text
        scripts[name].write_text(once, encoding="utf-8")
    return scripts


@pytest.fixture(scope="session")
def small(short):
    """The scripts of a circle and of a square with one lap of a third of the size: a few seconds,
    with the same speeds and corners.
    """
    scripts = {}
    for name in ("circle", "square_tracking"):
        scripts[name] = short[name].with_name(f"{name}_small.py")
        text = short[name].read_text(encoding="utf-8")
        smaller = re.sub(r"(radius|side)=([\w.]+)", r"\1=\2 / 3", text)
        assert smaller != text
        scripts[name].write_text(smaller, encoding="utf-8")
    return scripts


@pytest.fixture(scope="session")
def line_run(tmp_path_factory, line):
    """The directory of a finished run of `line`."""
    out = tmp_path_factory.mktemp("run") / "line"
    assert main(["run", str(line), "--out", str(out), "--json"]) == 0
    return out


@pytest.fixture(scope="session")
def square_run(tmp_path_factory):
    """The directory of a finished run of the scenario square_tracking."""
    out = tmp_path_factory.mktemp("run") / "square"
    assert main(["run", "square_tracking", "--out", str(out), "--json"]) == 0
    return out


@pytest.fixture(scope="session")
def live_run(tmp_path_factory, write_short_page):
    """The directory of a live session with all kinds of input; its page is one word long."""
    out = tmp_path_factory.mktemp("session") / "hand"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_ending, "write_report", write_short_page)
        with stepped(out, filter="one-euro") as session:
            every_input(session)
    return out


@pytest.fixture(scope="session")
def never_engaged(tmp_path_factory):
    """The directory of a live session in which nothing moved."""
    return make_never_engaged(tmp_path_factory.mktemp("session") / "never")


@pytest.fixture(scope="session")
def killed_session(live_run, tmp_path_factory):
    """The directory of a live session that was killed."""
    return make_killed(live_run, tmp_path_factory.mktemp("session") / "killed")
