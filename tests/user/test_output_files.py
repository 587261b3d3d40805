"""Every result appears whole or not at all, whatever ends its writing: a full disk, Ctrl-C."""

from __future__ import annotations

import contextlib
import re
import signal
import threading
from pathlib import Path

import numpy as np
import pytest

from simbridge.errors import OutputError
from simbridge.evaluation.evaluation import Evaluation
from simbridge.experiments.experiment import write_results
from simbridge.experiments.outcome import Outcome, Plot
from simbridge.experiments.suite.csv_file import write_csv as write_csv_of_solvers
from simbridge.identification.data import write_plant
from simbridge.recording.export import EXPORTERS
from simbridge.recording.run_directory import RunDirectory
from simbridge.recording.settings_file import read_record
from simbridge.report.figure_files import draw_trajectory
from simbridge.robot import load_robot
from simbridge.robot.calibration import nominal_dh
from simbridge.robot.calibration_file import write_calibration
from simbridge.robot.cell import Cell
from simbridge.robot.cell_file import write_cell
from simbridge.trajectory import Trajectory, write_csv, write_tum
from simbridge.trajectory.bag_writer import write_bag
from simbridge.trajectory.files import read_bag
from tests.disk import contents, largest_file
from tests.experiments.suite.made_up_results import make_results
from tests.records import made_up_tables

PACKAGE = Path(__file__).parents[2] / "simbridge"
POSES = np.column_stack([np.linspace(0.5, 0.6, 2000), np.zeros((2000, 5)), np.ones(2000)])
TRAJECTORY = Trajectory(np.arange(2000) * 0.01, POSES)
PAGE = "page " * 2000


def export(name, folder, run):
    return EXPORTERS[name](folder, Evaluation.read(run).samples)


def plant(folder, _):
    recording = "recording " * 1000
    servoj = {
        "gain": 1.0,
        "lookahead_s": 0.1,
        "phase_s": None,
        "uncertainty": {"gain": 1.0, "lookahead_s": 0.1},
    }
    identified = dict.fromkeys(("joint_servo", "payload_kg", "friction", "robot"))
    identified |= {"servoj": servoj, "cycle_s": 0.002}
    write_plant(folder / "plant.toml", identified, recording)


def experiment(folder, _):
    write_results(folder, {"numbers": list(range(2000))}, Outcome({}, {}, [], {}, []))


# What writes a file or directory, by its name; each takes the folder, and a run.
WRITERS = {
    "settings.toml": lambda folder, _: RunDirectory(folder).write_settings(
        read_record(made_up_tables())
    ),
    "plan.npz": lambda folder, _: RunDirectory(folder).write_plan({"poses": POSES}),
    "summary.json": lambda folder, _: RunDirectory(folder).write_summary({"page": PAGE}),
    "evaluation.json": lambda folder, _: RunDirectory(folder).write_evaluation({"page": PAGE}),
    "report.html": lambda folder, _: RunDirectory(folder).write_report(PAGE),
    "replay.html": lambda folder, _: RunDirectory(folder).write_replay(PAGE),
    "samples.csv": lambda folder, run: export("csv", folder, run),
    "reference.tum": lambda folder, run: export("tum", folder, run),
    "samples.mcap": lambda folder, run: export("mcap", folder, run),
    "rosbag2": lambda folder, run: export("bag", folder, run),
    "samples.parquet": lambda folder, run: export("parquet", folder, run),
    "samples.mat": lambda folder, run: export("mat", folder, run),
    "samples.rrd": lambda folder, run: export("rerun", folder, run),
    "path.tum": lambda folder, _: write_tum(folder / "path.tum", TRAJECTORY.times, POSES),
    "path.csv": lambda folder, _: write_csv(folder / "path.csv", TRAJECTORY.times, POSES),
    "plant.toml": plant,
    "calibration.toml": lambda folder, _: write_calibration(
        folder / "calibration.toml", nominal_dh(load_robot("ur10e")), (1,) * 900
    ),
    "path.png": lambda folder, _: draw_trajectory(folder / "path.png", TRAJECTORY, None, "title"),
    "path.svg": lambda folder, _: draw_trajectory(folder / "path.svg", TRAJECTORY, None, "title"),
    "path.pdf": lambda folder, _: draw_trajectory(folder / "path.pdf", TRAJECTORY, None, "title"),
    "results.json": experiment,
    "results.csv": lambda folder, _: write_csv_of_solvers(folder, make_results()),
    "plot.png": lambda folder, _: Plot(3.0, 2.0, lambda figure: figure.suptitle("title")).save(
        folder / "plot.png"
    ),
}
# These replace nothing.
NEW = {
    "lab.toml": lambda folder, _: write_cell(folder / "lab.toml", Cell()),
    "bag": lambda folder, _: write_bag(folder / "bag", TRAJECTORY),
    "bag.bag": lambda folder, _: write_bag(folder / "bag.bag", TRAJECTORY),
    "bag.mcap": lambda folder, _: write_bag(folder / "bag.mcap", TRAJECTORY),
}


# Drawn by the function that draws path.svg.
ALIKE = ("path.png", "path.pdf")


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.soak] * (name in ALIKE)) for name in [*WRITERS, *NEW]],
)
def test_a_full_disk_leaves_the_earlier_file(name, line_run, tmp_path):
    write = (WRITERS | NEW)[name]
    names = []
    if name in WRITERS:
        names = [name]
        earlier = tmp_path / name
        if name == "rosbag2":
            earlier.mkdir()
            earlier /= "old"
        earlier.write_bytes(b"earlier")
    before = contents(tmp_path)

    with largest_file(700), pytest.raises(OutputError, match=re.escape(name)) as refusal:
        write(tmp_path, line_run)

    assert refusal.value.path == tmp_path / name
    assert refusal.value.reason
    assert contents(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir()] == names

    # With space again, the same call succeeds.
    write(tmp_path, line_run)

    assert contents(tmp_path) != before


def test_no_module_writes_files_directly():
    # Those that write something that is not a result: a closed stream, growing logs, a cache,
    # shared memory, temporary files.
    writers_of_other_files = {
        "cli/streams.py",
        "files/writing.py",
        "kernels/cache.py",
        "recording/log_writer.py",
        "robot/kinematic_urdf.py",
        "sessions/channel.py",
        "sessions/driver.py",
        "trajectory/bag_formats.py",
    }
    direct_writing = re.compile(
        r"(?<!new)\.write_(?:text|bytes)\(|(?:savez|savefig|np\.save)\((?!new|buffer)"
        r"|(?<!new\.)open\([^)]*\"[wxa]"
    )

    violations = []
    for path in PACKAGE.rglob("*.py"):
        name = path.relative_to(PACKAGE).as_posix()
        if name in writers_of_other_files or name.startswith(("backends/", "emulator/")):
            continue
        for line in path.read_text(encoding="utf-8").splitlines():
            if direct_writing.search(line):
                violations.append((name, line.strip()))

    assert violations == []


def test_ctrl_c_leaves_an_export_old_or_new(line_run, tmp_path):
    samples = Evaluation.read(line_run).samples
    path = tmp_path / "samples.csv"
    # Not an Event: an interrupt within it would leave its lock held.
    is_writing = False
    endings = set()

    def interrupt(*_):
        if is_writing:
            raise KeyboardInterrupt

    EXPORTERS["csv"](tmp_path, samples)
    new = path.read_bytes()
    handler_before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for k in range(60):
            path.write_bytes(b"earlier")
            with contextlib.suppress(KeyboardInterrupt):
                # This also ends a timer that the write before was faster than.
                signal.setitimer(signal.ITIMER_REAL, 0.0002 * (k + 1))
                is_writing = True
                EXPORTERS["csv"](tmp_path, samples)
                is_writing = False
            is_writing = False
            endings.add(path.read_bytes())
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, handler_before)

    assert endings <= {b"earlier", new}
    assert b"earlier" in endings


def call_at_once(count, call):
    """Call a function in threads that begin together.

    Returns:
        The error of each call; None for one that succeeded.
    """
    barrier = threading.Barrier(count)
    errors = []

    def work(number):
        barrier.wait()
        try:
            call(number)
            errors.append(None)
        except OutputError as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


def test_one_of_two_runs_gets_a_directory(tmp_path):
    errors = call_at_once(8, lambda _: RunDirectory.create(tmp_path / "a" / "out", "mine"))

    assert errors.count(None) == 1
    for error in errors:
        assert error is None or "already exists" in str(error)


def test_nameless_runs_each_get_a_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    for _ in range(5):
        errors = call_at_once(8, lambda _: RunDirectory.create(None, "mine"))

        assert errors == [None] * 8

    assert len(list(Path("runs").iterdir())) == 40


def test_one_of_two_cells_gets_a_name(tmp_path):
    def write(number):
        write_cell(tmp_path / "lab.toml", Cell(payload=float(number)))

    errors = call_at_once(8, write)

    assert errors.count(None) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["lab.toml"]


def test_exports_at_once_leave_one_bag(line_run, tmp_path):
    errors = call_at_once(4, lambda _: export("bag", tmp_path, line_run))

    assert None in errors
    assert [path.name for path in tmp_path.iterdir()] == ["rosbag2"]

    trajectory, *_ = read_bag(tmp_path / "rosbag2", "/attained/pose")

    assert len(trajectory.times) > 1
