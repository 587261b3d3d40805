"""`simbridge sweep`, as its user sees it: the rows, what is refused, and that a sweep goes on where
it was ended.
"""

from __future__ import annotations

import dataclasses
import fcntl
import inspect
import json
import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import BrokenExecutor
from pathlib import Path

import numpy as np
import pytest

import simbridge
from simbridge.cli.flags import SweepFlags
from simbridge.errors import InvalidParameter, UnknownName
from simbridge.kernels.compile import PYTHON_SWITCH
from simbridge.sweeps import engine
from simbridge.sweeps.grid import Grid, GridFile, read_grid
from simbridge.sweeps.identity import made_by
from simbridge.sweeps.job import forget_files, job_of
from simbridge.sweeps.parameters import parameters
from simbridge.sweeps.worker import WorkItem, figures_of, work
from tests.patience import PATIENCE
from tests.sweeps.executors import InThisProcess
from tests.sweeps.rows import compared, rows_of

pytestmark = [pytest.mark.slow, pytest.mark.shares_setup]

DATA = Path(__file__).parents[1] / "data"


@pytest.fixture
def swept(cli, tmp_path, line, at_once):
    """Sweeps `line` with arguments into a directory; returns the rows."""

    def call(*arguments, out="sweep"):
        answer = cli("sweep", line, *arguments, "--out", tmp_path / out)
        assert answer.status == 0, answer.err
        return list(rows_of(tmp_path / out).values())

    return call


def test_each_combination_is_a_row(swept, line, tmp_path, short_pages):
    rows = swept("--grid", "solver.kp=5,20", "--grid", "servo-gain=500", "--keep", "none")

    assert [(row["solver.kp"], row["servo-gain"], row["outcome"]) for row in rows] == [
        ("5", "500", "completed"),
        ("20", "500", "completed"),
    ]

    alone = simbridge.run(
        line,
        solver=simbridge.ForwardDynamics(simbridge.load_robot("ur10"), kp=20.0),
        options=simbridge.Options(servo_gain=500.0),
        out=tmp_path / "alone",
    )
    figures = {
        name: float(text) for name, text in rows[1].items() if name in figures_of(alone.summary)
    }

    # The scenario's solver has settings of its own besides.
    assert figures.keys() == figures_of(alone.summary).keys()
    assert (
        float(rows[1]["plant_error.position_m.rms"])
        == alone.summary["plant_error"]["position_m"]["rms"]
    )


def test_a_plan_has_figures(swept, cli, line):
    (row,) = swept("--plan-only", "--grid", "solver.kp=5")
    facts = json.loads(cli("check", line, "--solver.kp", 5, "--json").out)

    assert float(row["peak_joint_velocity"]) == max(facts["peak_joint_velocity"])
    assert row["outcome"] == "planned"
    assert float(row["solver_error.position_m.rms"]) > 0.0


def test_values_stand_for_what_their_flags_stand_for(swept, cli, line):
    (row,) = swept(
        "--plan-only", "--points", points_file(line.parent, "sample-noise,on-limits", "1 0.1,limit")
    )
    words = ("--sample-noise", 1, 0.1, "--on-limits", "limit")

    facts = json.loads(cli("check", line, *words, "--json").out)

    assert float(row["peak_tool_speed"]) == facts["peak_tool_speed"]


def points_file(directory, header, *lines):
    path = directory / "points.csv"
    path.write_text("\n".join((header, *lines)) + "\n", encoding="utf-8")
    return path


def test_listed_points_are_run_as_they_are(swept, tmp_path):
    rows = swept(
        "--plan-only", "--points", points_file(tmp_path, "solver.kp,solver", "5,", ",closed-form")
    )

    assert [(row["solver.kp"], row["solver"]) for row in rows] == [("5", ""), ("", "closed-form")]


def test_known_points_are_not_made_again(swept, monkeypatch):
    swept("--plan-only", "--grid", "solver.kp=5,10")
    finished = []
    monkeypatch.setattr(
        engine, "work", lambda *given, work=engine.work: finished.append(given) or work(*given)
    )

    assert len(swept("--plan-only", "--grid", "solver.kp=5.0,10")) == 2
    assert not finished

    # The default under its own name is the point without it.
    rows = swept("--plan-only", "--grid", "solver.kp=5", "--grid", "speed-scale=1,0.5")

    assert len(finished) == 1
    assert len(rows) == 3
    assert [(row["solver.kp"], row["speed-scale"]) for row in rows] == [
        ("5", "1"),
        ("10", ""),
        ("5", "0.5"),
    ]


def test_a_refusal_is_a_row(cli, tmp_path, line, at_once):
    answer = cli(
        "sweep", line, "--plan-only", "--grid", "solver.kp=5,1e6", "--out", tmp_path / "sweep"
    )
    rows = list(rows_of(tmp_path / "sweep").values())

    assert answer.status == 0
    assert "would diverge" in answer.out
    assert [row["outcome"] for row in rows] == ["planned", "refused"]
    assert "would diverge" in rows[1]["reason"]
    assert "would diverge" in (tmp_path / "sweep" / "sweep.html").read_text()


def test_a_sweep_without_a_figure_announces_no_table(cli, tmp_path, line, at_once):
    answer = cli("sweep", line, "--plan-only", "--grid", "solver.kp=1e6", "--out", tmp_path / "out")

    assert answer.out.startswith("1 point, none of which could be evaluated.\n1 point refused")


def test_the_table_is_also_written_as_parquet(swept, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = swept("--plan-only", "--grid", "solver.kp=5,10")

    columns = parquet.read_table(tmp_path / "sweep" / "results.parquet").to_pydict()

    assert columns["solver.kp"] == [5, 10]
    assert columns["outcome"] == ["planned", "planned"]
    assert columns["peak_tool_speed"] == [float(row["peak_tool_speed"]) for row in rows]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--grid", "servo-gian=5"), "Did you mean 'servo-gain'?"),
        (("--grid", "solver.kq=5"), "Did you mean 'solver.kp'?"),
        (("--grid", "servo-gain=fast"), "servo-gain must be one number; got 'fast'."),
        (("--grid", "servo-gain=200:800"), "--random servo-gain=LOW:HIGH"),
        (("--grid", "solver.kp=0.5:5"), "--random solver.kp=LOW:HIGH"),
        (("--grid", "solver.kp=5:10:1"), "--grid lists values, separated by commas"),
        (("--grid", "solver.kp=a"), "one number, or several separated by blanks; got 'a'."),
        (("--grid", "solver.iterations=1:3"), "--random solver.iterations=LOW:HIGH"),
        (("--grid", "solver.iterations=1.5"), "must be one whole number"),
        (("--grid", "servo=slow"), "servo must be servoj or ideal; got 'slow'."),
        (("--grid", "servo-gain=5"), "servoj"),
        (("--grid", "sample-noise=1"), "2 numbers, separated by blanks"),
        (("--grid", "host=10.0.0.1"), "sweeps run only in simulation"),
        (("--grid", "gui=true"), "sweeps do not open windows"),
        (("--grid", "plan=runs/one"), "it belongs to one run"),
        (("--backend", "real"), "sweeps run only in simulation"),
        (("--grid", "robot=ur10,ur99"), "There is no robot 'ur99'"),
        (
            ("--grid", "solver=closed-form", "--grid", "solver.kp=5"),
            "There is no setting 'kp' of closed-form",
        ),
        (("--random", "solver.kp=1:0", "--samples", "2"), "low:high"),
        (("--random", "solver.kp=1:2"), "number of samples must be positive"),
        (
            ("--random", "servo=1:2", "--samples", "2"),
            "random parameter must be a number; got servo",
        ),
        (
            ("--random", "solver.task=1:2", "--samples", "2"),
            "random parameter must be a number; got solver.task",
        ),
        (("--seeds", "3"), "no target is random"),
        (("--grid", "solver.kp"), "NAME=VALUES"),
        (("--grid", "solver.kp="), "NAME=VALUES"),
        (("--grid", "solver.task=pos"), "must be"),
        (("--jobs", "0"), "number of jobs must be 1 or more"),
    ],
)
def test_nonsense_is_refused_first(cli, line, tmp_path, arguments, said):
    answer = cli("sweep", line, *arguments, "--out", tmp_path / "sweep")

    assert answer.status == 2
    assert said in answer.message
    assert not (tmp_path / "sweep").exists()


def test_a_directory_of_something_else_is_left_alone(cli, line, tmp_path):
    (tmp_path / "mine").write_text("thesis")
    answer = cli("sweep", line, "--out", tmp_path)

    assert answer.status == 2
    assert "it is not the directory of a sweep" in answer.message


def test_the_grids_file_makes_the_same_points(swept, cli, tmp_path, line):
    swept(
        "--plan-only", "--grid", "solver.kp=5,10", "--random", "speed-scale=0.5:1", "--samples", "2"
    )

    assert cli("sweep", tmp_path / "sweep" / "sweep.toml", "--out", tmp_path / "again").status == 0
    assert compared(tmp_path / "again") == compared(tmp_path / "sweep")
    assert list(read_grid(tmp_path / "again" / "sweep.toml")) == list(
        read_grid(tmp_path / "sweep" / "sweep.toml")
    )


def test_more_samples_extend_the_random_values(line):
    few, many = (Grid((str(line),), random={"solver.kp": "1:100:log"}, samples=n) for n in (3, 30))
    values = [float(point.values["solver.kp"]) for point in many]

    assert [point.values["solver.kp"] for point in few] == [
        point.values["solver.kp"] for point in many
    ][:3]
    assert min(values) >= 1.0
    assert max(values) <= 100.0
    assert 0.25 < np.mean(np.array(values) < 10.0) < 0.75


def test_seeds_differ_in_noise_alone(swept):
    rows = swept(
        "--plan-only",
        "--grid",
        "sample-noise=0.1 0.01",
        "--grid",
        "on-limits=limit",
        "--seeds",
        "3",
    )

    assert [row["sample-seed"] for row in rows] == ["0", "1", "2"]
    assert len({row["sampling_error.position_m.rms"] for row in rows}) == 3


def test_a_point_is_what_it_is_resolved_to(line, tmp_path):
    def identity(**values):
        return job_of(
            next(
                iter(
                    Grid(
                        (str(line),),
                        {name.replace("_", "-"): (text,) for name, text in values.items()},
                    )
                )
            )
        ).identity

    cell = tmp_path / "cell.toml"
    cell.write_text("payload = 1.0\n")
    first = identity(cell=str(cell))

    assert identity(**{"servo-gain": "2000"}) == identity() != identity(**{"servo-gain": "500"})

    second_file = tmp_path / "other.toml"
    second_file.write_text(cell.read_text())

    assert identity(cell=str(second_file)) == first

    cell.write_text("payload = 2.0\n")

    assert identity(cell=str(cell)) != first


def test_identity_ignores_where_files_are(line, tmp_path):
    def identity(scenario, calibration):
        forget_files()
        values = {"robot": ("ur10e",), "kinematics": (str(calibration),)}
        return job_of(next(iter(Grid((str(scenario),), values)))).identity

    calibration = tmp_path / "calibration.toml"
    calibration.write_text((DATA / "ur10e_calibration.toml").read_text())
    first = identity(line, calibration)

    assert identity(line, DATA / "ur10e_calibration.toml") == first

    calibration.write_text(calibration.read_text().replace("1.60233952386695", "1.60233952386696"))

    assert identity(line, calibration) != first

    scenario = tmp_path / "other" / line.name
    scenario.parent.mkdir()
    scenario.write_text(line.read_text())

    assert identity(scenario, DATA / "ur10e_calibration.toml") == first

    scenario.write_text(line.read_text().replace("0.1", "0.11", 1))

    assert identity(scenario, DATA / "ur10e_calibration.toml") != first


def test_no_figure_has_the_name_of_a_parameter(line_run):
    summary = json.loads((line_run / "summary.json").read_text())

    assert not parameters().keys() & figures_of(summary).keys()
    assert {"tracking_error.position_m.rms", "delay_s", "smoothness.tool.sparc"} <= figures_of(
        summary
    ).keys()


def test_best_and_worst_runs_are_kept(swept, tmp_path, short_pages, monkeypatch):
    monkeypatch.setattr("simbridge.sweeps.sweep.EXTREME_COUNT", 1)
    rows = swept("--grid", "solver.kp=5,10,20")
    kept = [row for row in rows if row["directory"]]

    assert [row["solver.kp"] for row in kept] == ["5", "20"]

    summary = json.loads((tmp_path / "sweep" / kept[0]["directory"] / "summary.json").read_text())

    assert summary["tracking_error"]["position_m"]["rms"] == float(
        kept[0]["tracking_error.position_m.rms"]
    )
    assert (tmp_path / "sweep" / kept[0]["directory"] / "report.html").is_file()


def test_json_is_a_line_for_each_point(cli, tmp_path, line, at_once):
    answer = cli(
        "sweep",
        line,
        "--plan-only",
        "--grid",
        "solver.kp=5,10",
        "--json",
        "--out",
        tmp_path / "sweep",
    )
    first, second, last = map(json.loads, answer.out.splitlines())

    assert (first["solver.kp"], second["solver.kp"], last["points"]) == (5.0, 10.0, 2)


def test_an_unfinished_line_is_made_again(swept, tmp_path):
    swept("--plan-only", "--grid", "solver.kp=5,10")
    whole = compared(tmp_path / "sweep")
    file = tmp_path / "sweep" / "results.csv"
    file.write_bytes(file.read_bytes()[:-40])
    swept("--plan-only", "--grid", "solver.kp=5,10")

    assert compared(tmp_path / "sweep") == whole


def test_rows_of_other_versions_stay(swept, tmp_path, monkeypatch):
    swept("--plan-only", "--grid", "solver.kp=5")
    for module in ("sweep", "job", "worker"):
        monkeypatch.setattr(f"simbridge.sweeps.{module}.made_by", lambda: "simbridge 99")

    rows = swept("--plan-only", "--grid", "solver.kp=5")

    assert len(rows) == 2
    assert len({row["made_by"] for row in rows}) == 2
    assert (
        "1 row of results.csv made by other versions"
        in (tmp_path / "sweep" / "sweep.html").read_text()
    )


def test_a_worker_of_other_versions_makes_nothing(line, monkeypatch):
    job = job_of(next(iter(Grid((str(line),)))), plan_only=True)
    item = WorkItem(job.order, tuple(job.contents))
    (result,) = work([item], job.contents, "simbridge 99")

    assert result.outcome == "failed"
    assert "different versions" in result.reason


def test_two_sweeps_are_compared_point_by_point(swept, cli, tmp_path):
    swept("--plan-only", "--grid", "solver.kp=5,10")
    swept(
        "--plan-only", "--grid", "solver.kp=5,10,20", "--grid", "solver.iterations=30", out="other"
    )
    answer = cli(
        "compare", tmp_path / "sweep", tmp_path / "other", "--out", tmp_path / "page", "--json"
    )
    points = json.loads(answer.out)["points"]

    assert {point["solver.kp"] for point in points} == {"5", "10"}

    rows = {
        row["solver.kp"]: row["solver_error.position_m.rms"]
        for row in rows_of(tmp_path / "other").values()
    }

    assert all(point["second_m"] == float(rows[point["solver.kp"]]) for point in points)
    assert "1 point with figures only in other" in (tmp_path / "page" / "compare.html").read_text()


def test_a_sweep_and_a_run_are_not_compared(swept, cli, tmp_path, line_run):
    swept("--plan-only", "--grid", "solver.kp=5")
    answer = cli("compare", tmp_path / "sweep", line_run)

    assert answer.status == 2
    assert answer.message.endswith(": give two sweeps, or only runs.")


# test_only_the_guilty_point_of_a_task_fails (test_tasks.py) shows it with pools that break.
@pytest.mark.soak
def test_a_killing_point_spoils_no_other(my_solvers, tmp_path, line, monkeypatch):
    # Each process would compile what takes a second in plain Python.
    monkeypatch.setenv(PYTHON_SWITCH, "1")
    solvers = [f"{my_solvers}:{name}" for name in ("deadly", "mine")]
    result = simbridge.sweep(
        line, grid={"solver": solvers}, plan_only=True, jobs=2, out=tmp_path / "sweep"
    )

    rows = result.rows("solver", "outcome", "reason", "host_attempts")

    assert [row["outcome"] for row in rows] == ["failed", "planned"]
    assert rows[0]["host_attempts"] == "2"
    assert "killed" in rows[0]["reason"]


@pytest.mark.soak
def test_rows_do_not_depend_on_processes(tmp_path, line, at_once, monkeypatch):
    grid = {"solver.kp": [5, 10], "servo-gain": [500, 2000]}
    simbridge.sweep(line, grid=grid, keep="none", out=tmp_path / "here")
    monkeypatch.undo()

    for jobs in (1, 2):
        simbridge.sweep(line, grid=grid, keep="none", jobs=jobs, out=tmp_path / f"{jobs}")
        assert compared(tmp_path / f"{jobs}") == compared(tmp_path / "here")


@pytest.mark.soak
def test_sigkill_changes_no_row(tmp_path):
    gains = ",".join(map(str, range(500, 1700, 50)))
    words = [
        "sweep",
        "circle",
        "--grid",
        f"servo-gain={gains}",
        "--keep",
        "none",
        "--json",
        "--out",
    ]
    command = [sys.executable, "-m", "simbridge", *words]
    subprocess.run([*command, tmp_path / "whole"], check=True, capture_output=True)

    for seconds in np.random.default_rng(7).uniform(0.0, 1.0, 3):
        with subprocess.Popen(
            [*command, tmp_path / "killed"], stdout=subprocess.PIPE, start_new_session=True
        ) as ours:
            # The first point that it makes, however long the computer takes to start.
            assert b"servo-gain" in ours.stdout.readline()
            time.sleep(seconds)
            os.killpg(ours.pid, signal.SIGKILL)

    assert 3 <= len(rows_of(tmp_path / "killed")) < 24

    subprocess.run([*command, tmp_path / "killed"], check=True, capture_output=True)

    assert compared(tmp_path / "killed") == compared(tmp_path / "whole")


@pytest.mark.soak
def test_ctrl_c_leaves_no_scratch(tmp_path):
    gains = ",".join(map(str, range(500, 1700, 100)))
    command = [
        sys.executable,
        "-m",
        "simbridge",
        "sweep",
        "circle",
        "--grid",
        f"servo-gain={gains}",
        "--json",
    ]
    (tmp_path / "scratch").mkdir()
    with subprocess.Popen(
        [*command, "--keep", "none", "--out", "killed"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"TMPDIR": str(tmp_path / "scratch")},
    ) as ours:
        first = ours.stdout.readline()
        ours.send_signal(signal.SIGINT)
        _, said = ours.communicate(timeout=PATIENCE)

    assert "servo-gain" in first
    assert ours.returncode == 130
    assert said.startswith("The sweep was interrupted: ")
    assert " ".join(said.split()).endswith("`--out killed` continues.")
    assert list((tmp_path / "scratch").iterdir()) == []


def test_a_cluster_that_does_not_answer_is_named(monkeypatch):
    monkeypatch.setattr(engine, "ANSWER_TIMEOUT_S", 0.5)

    with pytest.raises(engine.ClusterUnreachable, match=r"tcp://127\.0\.0\.1:9"):
        engine.Cluster("tcp://127.0.0.1:9")


def test_a_silent_server_is_named(monkeypatch):
    monkeypatch.setattr(engine, "ANSWER_TIMEOUT_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"

        with pytest.raises(engine.ClusterUnreachable, match=r"no answer within 0\.5 s"):
            engine.Cluster(address)


def test_names_come_from_the_registries(monkeypatch):
    assert {
        "solver.kp",
        "servo-gain",
        "sample-noise",
        "robot",
        "unmodelled-payload",
        "speed-scale",
    } <= parameters().keys()

    with pytest.raises(UnknownName):
        Grid(("circle",), {"solver.nothing": ("1",)})
    with pytest.raises(InvalidParameter):
        Grid(("circle",), {"realtime": ("true",)})


def identity_of(line, solver):
    forget_files()
    return job_of(next(iter(Grid((str(line),), {"solver": (solver,)})))).identity


def test_identity_covers_a_users_modules(line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "helper_of_sweeps.py").write_text("GAIN = 1\n")
    mine = tmp_path / "mine_of_sweeps.py"
    known = set()
    mine.write_text("import helper_of_sweeps\nLAG = 1\ndef step(q, target):\n    return q\n")
    name = "mine_of_sweeps:step"
    known.add(identity_of(line, name))

    assert identity_of(line, name) in known

    mine.write_text(mine.read_text().replace("LAG = 1", "LAG = 22"))
    known.add(identity_of(line, name))
    (tmp_path / "helper_of_sweeps.py").write_text("GAIN = 22\n")
    known.add(identity_of(line, name))

    assert len(known) == 3


def test_a_scenarios_own_solver_is_its_script(tmp_path):
    script = tmp_path / "mine.py"
    known = set()
    for gain in (1, 2):
        script.write_text(
            "from simbridge import Scenario\nfrom simbridge.trajectory import square\n"
            f"GAIN = {gain}\n"
            "def scenario(robot):\n"
            "    return Scenario(square(side=0.1), solver=lambda q, target: q * GAIN)\n"
        )
        forget_files()
        known.add(job_of(next(iter(Grid((str(script),))))).identity)

    assert len(known) == 2


def test_a_plant_is_its_numbers_wherever_they_stand(line, tmp_path):
    def identity(plant):
        return job_of(next(iter(Grid((str(line),), {"plant": (str(plant),)})))).identity

    files = [tmp_path / name for name in ("one.toml", "two.toml", "other.toml")]
    for file, gain in zip(files, (500.0, 500.0, 600.0), strict=True):
        file.write_text(f"[servoj]\ngain = {gain}\nlookahead_s = 0.1\n")
    first, second, third = map(identity, files)

    assert first == second != third


def test_what_cannot_be_sent_is_named(line, tmp_path, monkeypatch, cli):
    monkeypatch.chdir(tmp_path)
    text = (
        "import threading\nLOCK = threading.Lock()\ndef step(q, target):\n    LOCK.locked()\n"
        "    return q\n"
    )
    (tmp_path / "locked_of_sweeps.py").write_text(text)

    answer = cli(
        "sweep", line, "--grid", "solver=locked_of_sweeps:step", "--out", tmp_path / "sweep"
    )

    assert answer.status == 2
    assert "cannot be sent to other processes" in answer.message


@pytest.mark.python_kernels
def test_a_solver_that_exits_fails(line, tmp_path, monkeypatch, at_once):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ending_of_sweeps.py").write_text(
        "import sys\ndef step(q, target):\n    sys.exit(3)\n"
    )

    result = simbridge.sweep(
        line, grid={"solver": ["ending_of_sweeps:step"]}, plan_only=True, out=tmp_path / "sweep"
    )

    assert result.rows("outcome")[0]["outcome"] in ("failed", "refused")


def test_a_run_without_row_is_made_again(swept, tmp_path, short_pages):
    rows = swept("--grid", "solver.kp=5", "--keep", "all")

    assert (tmp_path / "sweep" / rows[0]["directory"] / "report.html").is_file()

    file = tmp_path / "sweep" / "results.csv"
    file.write_bytes(file.read_bytes().splitlines(keepends=True)[0])

    (again,) = swept("--grid", "solver.kp=5", "--keep", "all")

    assert again["outcome"] == "completed"
    assert again["directory"] == rows[0]["directory"]


def test_two_sweeps_do_not_write_into_one_directory(swept, cli, line, tmp_path):
    swept("--plan-only", "--grid", "solver.kp=5")
    descriptor = os.open(tmp_path / "sweep", os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    answer = cli(
        "sweep", line, "--plan-only", "--grid", "solver.kp=10", "--out", tmp_path / "sweep"
    )
    os.close(descriptor)

    assert answer.status == 2
    assert "another sweep is writing to it" in answer.message
    assert len(rows_of(tmp_path / "sweep")) == 1


def test_edited_results_are_refused_with_the_row(swept, cli, line, tmp_path):
    (row,) = swept("--plan-only", "--grid", "solver.kp=5")
    file = tmp_path / "sweep" / "results.csv"
    file.write_bytes(file.read_bytes().rstrip(b"\n") + b",mine\n")

    answer = cli("sweep", line, "--plan-only", "--grid", "solver.kp=5", "--out", tmp_path / "sweep")

    assert answer.status == 2
    assert row["identity"] in answer.message
    assert "the file was edited" in answer.message


def test_a_broken_pool_costs_no_point(line):
    class Broken(InThisProcess):
        def submit(self, call, /, *arguments, **more):
            raise BrokenExecutor

    class Pools(engine.Cores):
        opened = 0

        def open(self):
            self.opened += 1
            return Broken() if self.opened == 1 else InThisProcess()

        def open_single(self, count):
            return [InThisProcess()] * count

        def end_single(self, executors):
            pass

    job = job_of(next(iter(Grid((str(line),)))), plan_only=True)
    tasks = [engine.PointTask(f"{number}", job.order, job.contents) for number in range(3)]
    results = list(engine.make_points(tasks, Pools(1), made_by(), count=3))

    assert [(identity, result.outcome) for identity, result, _ in results] == [
        (f"{k}", "planned") for k in range(3)
    ]


def test_flags_and_file_name_what_a_grid_has():
    names = {field.name for field in dataclasses.fields(Grid)}

    flags = {field.name for field in dataclasses.fields(SweepFlags)}

    assert set(GridFile.__struct_fields__) == names
    assert names <= flags
    assert names <= set(inspect.signature(simbridge.sweep).parameters)
