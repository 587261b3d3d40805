"""Every file appears whole or not at all: a full disk, an error, Ctrl-C or a second program leaves the earlier one."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import resource
import signal
import stat
import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest

from simbridge.errors import OutputError
from simbridge.evaluation.evaluation import Evaluation
from simbridge.experiments.experiment import write_results
from simbridge.experiments.outcome import Outcome, Plot
from simbridge.files import mapped_arrays
from simbridge.files.writing import replacing, write_file
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
    found = dict.fromkeys(("joint_servo", "payload_kg", "friction", "robot")) | {
        "servoj": servoj,
        "cycle_s": 0.002,
    }
    write_plant(folder / "plant.toml", found, recording)


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


@contextlib.contextmanager
def largest_file(size):
    """No file of this process grows beyond `size` bytes, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def content(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("name", [*WRITERS, *NEW])
def test_a_file_that_does_not_fit_leaves_the_earlier_one_and_no_other(name, line_run, tmp_path):
    write = (WRITERS | NEW)[name]
    if name == "rosbag2":
        (tmp_path / name).mkdir()
    if name in WRITERS:
        (tmp_path / name / "old" if name == "rosbag2" else tmp_path / name).write_bytes(b"earlier")
    before = content(tmp_path)
    with largest_file(700), pytest.raises(OutputError, match=re.escape(name)) as caught:
        write(tmp_path, line_run)
    assert caught.value.path == tmp_path / name and caught.value.reason
    assert content(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir()] == ([name] if name in WRITERS else [])
    # With space again, the same call succeeds.
    write(tmp_path, line_run)
    assert content(tmp_path) != before


def test_a_refusal_says_how_much_is_missing(tmp_path):
    with largest_file(1000), pytest.raises(OutputError) as caught:
        write_file(tmp_path / "file", b"x" * 2500)
    assert (caught.value.missing, caught.value.errno) == (1500, errno.EFBIG)
    assert str(caught.value) == (
        f"{tmp_path / 'file'} cannot be written: File too large; 1500 of its 2500 bytes are missing."
    )


def test_no_module_writes_files_in_another_way():
    # Those that write something that is not a result: a closed stream, growing logs, a cache,
    # shared memory, temporary files, a line of a shell's start-up file.
    others = {
        "cli/command_line.py",
        "cli/streams.py",
        "recording/log_writer.py",
        "sessions/channel.py",
        "sessions/driver.py",
        "sessions/record.py",
        "files/writing.py",
        "kernels/cache.py",
        "trajectory/bag_reader.py",
        "sweeps/results.py",
    }
    writers = (
        r"(?<!new)\.write_(?:text|bytes)\(|(?:savez|savefig|np\.save)\((?!new|buffer)"
        r"|(?<!new\.)open\([^)]*\"[wxa]"
    )
    found = {}
    for path in PACKAGE.rglob("*.py"):
        name, lines = (
            path.relative_to(PACKAGE).as_posix(),
            path.read_text(encoding="utf-8").splitlines(),
        )
        if name not in others and not name.startswith(("backends/", "emulator/")):
            found[name] = [line.strip() for line in lines if re.search(writers, line)]
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
@pytest.mark.parametrize("earlier", ["file", "directory", "nothing"])
def test_what_is_interrupted_while_it_is_written_leaves_the_earlier_one(tmp_path, error, earlier):
    target = tmp_path / "out"
    if earlier == "directory":
        target.mkdir()
        (target / "old").write_text("old")
    elif earlier == "file":
        target.write_text("old")
    before = content(tmp_path)
    with pytest.raises(error), replacing(target) as new:
        if earlier == "directory":
            new.mkdir()
        (new / "part" if earlier == "directory" else new).write_text("half of")
        raise error
    assert content(tmp_path) == before
    assert list(tmp_path.iterdir()) == ([] if earlier == "nothing" else [target])


def test_an_export_that_ctrl_c_ends_at_any_instant_is_the_earlier_or_the_new_one(
    line_run, tmp_path
):
    samples = Evaluation.read(line_run).samples
    path, active, ends = tmp_path / "samples.csv", [], set()

    def write():
        EXPORTERS["csv"](tmp_path, samples)

    def interrupt(*_):
        if active:
            raise KeyboardInterrupt

    write()
    new, before = path.read_bytes(), signal.signal(signal.SIGALRM, interrupt)
    try:
        for k in range(60):
            path.write_bytes(b"earlier")
            with contextlib.suppress(KeyboardInterrupt):
                # This also ends a timer that the write before was faster than.
                signal.setitimer(signal.ITIMER_REAL, 0.0002 * (k + 1))
                active.append(True)
                write()
                active.clear()
            active.clear()
            ends.add(path.read_bytes())
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    assert ends <= {b"earlier", new} and b"earlier" in ends


def test_ctrl_c_stays_ctrl_c_where_cleaning_up_after_it_fails(tmp_path, monkeypatch):
    close = os.close

    def interrupted(descriptor):
        close(descriptor)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), replacing(tmp_path / "a.csv") as new:
        new.write_text("new")
        monkeypatch.setattr(os, "close", interrupted)


def test_ctrl_c_while_the_temporary_directory_is_removed_does_not_leave_it_behind(
    tmp_path, monkeypatch
):
    rmdir, calls = os.rmdir, []

    def interrupted(*place, **more):
        calls.append(place)
        if len(calls) == 1:
            raise KeyboardInterrupt
        rmdir(*place, **more)

    monkeypatch.setattr(os, "rmdir", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_file(tmp_path / "a.csv", b"new")
    assert content(tmp_path) == {"a.csv": b"new"} and list(tmp_path.iterdir()) == [
        tmp_path / "a.csv"
    ]


def test_what_cannot_be_written_after_ctrl_c_is_reported(tmp_path):
    with pytest.raises(OutputError, match="No such file or directory"):
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            write_file(tmp_path / "gone" / "a.csv", b"new")


def test_an_interrupted_exchange_of_directories_puts_the_earlier_one_back(tmp_path, monkeypatch):
    target = tmp_path / "bag"
    target.mkdir()
    (target / "old").write_text("old")
    replace, calls = os.replace, []

    def interrupted(*paths):
        calls.append(paths)
        if len(calls) == 2:
            raise KeyboardInterrupt
        replace(*paths)

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt), replacing(target) as new:
        new.mkdir()
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")] == [
        "bag",
        "bag/old",
    ]


def test_a_file_is_stored_before_it_gets_its_name_and_the_folder_after(tmp_path, monkeypatch):
    events = []
    fsync, replace = os.fsync, os.replace

    def stored(descriptor):
        events.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", stored)
    monkeypatch.setattr(os, "replace", lambda *paths: (events.append("named"), replace(*paths)))
    write_file(tmp_path / "file", b"text")
    assert events == ["file", "named", "folder"]


def test_a_link_stays_one_and_devices_and_pipes_are_written_themselves(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link.txt").symlink_to(tmp_path / "elsewhere" / "file.txt")
    write_file(tmp_path / "link.txt", b"text")
    assert (tmp_path / "link.txt").is_symlink() and (
        tmp_path / "elsewhere" / "file.txt"
    ).read_text() == "text"
    write_file("/dev/null", b"text")
    assert Path("/dev/null").is_char_device()
    with pytest.raises(
        OutputError, match="/dev/full cannot be written: No space left on device; 4 of its 4 bytes"
    ):
        write_file("/dev/full", b"text")
    reading, writing = os.pipe()
    write_file(f"/dev/fd/{writing}", b"text")
    assert os.read(reading, 10) == b"text"
    os.close(reading)
    os.close(writing)


def test_a_file_has_the_permissions_of_any_other_file(tmp_path):
    (tmp_path / "plain").touch()
    write_file(tmp_path / "written", b"text")
    assert (tmp_path / "written").stat().st_mode == (tmp_path / "plain").stat().st_mode


def at_once(count, call):
    """The errors of these calls, each in a thread of its own, begun together; None for those that succeeded."""
    barrier, found = threading.Barrier(count), []

    def work(number):
        barrier.wait()
        try:
            call(number)
            found.append(None)
        except OutputError as error:
            found.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_of_two_runs_at_once_in_one_directory_the_second_is_refused(tmp_path):
    found = at_once(8, lambda _: RunDirectory.create(tmp_path / "a" / "out", "mine"))
    assert found.count(None) == 1
    assert all("exists already" in str(error) for error in found if error is not None)


def test_runs_that_begin_at_once_without_a_name_all_get_their_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for _ in range(5):
        assert at_once(8, lambda _: RunDirectory.create(None, "mine")) == [None] * 8
    assert len(list(Path("runs").iterdir())) == 40


def test_of_two_cells_written_at_once_to_one_name_the_second_is_refused(tmp_path):
    found = at_once(
        8, lambda number: write_cell(tmp_path / "lab.toml", Cell(payload=float(number)))
    )
    assert found.count(None) == 1 and [path.name for path in tmp_path.iterdir()] == ["lab.toml"]


def test_exports_at_once_leave_one_whole_bag(line_run, tmp_path):
    for _ in range(3):
        found = at_once(4, lambda _: export("bag", tmp_path, line_run))
        assert None in found
        assert [path.name for path in tmp_path.iterdir()] == ["rosbag2"]
        assert len(read_bag(tmp_path / "rosbag2", "/attained/pose")[0].times) > 1


@pytest.mark.parametrize(
    "fault", [FileNotFoundError(errno.ENOENT, "no directory"), OSError(errno.EMFILE, "too many")]
)
def test_arrays_that_no_file_can_hold_are_in_memory(fault, monkeypatch):
    def refuse(*_, **__):
        raise fault

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    monkeypatch.setattr(mapped_arrays, "MIN_MAPPED_BYTES", 8)
    found = mapped_arrays.MappedArrays().gather(
        3, [{"a": np.array([1.0, 2.0])}, {"a": np.array([3.0])}]
    )
    assert found["a"].tolist() == [1.0, 2.0, 3.0] and not found["a"].flags.writeable
