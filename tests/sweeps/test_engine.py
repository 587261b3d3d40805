"""Sweeps on the workers of a Dask cluster: started by their own commands, or by `LocalCluster`."""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import subprocess
import sys
import threading
import time
from importlib.util import find_spec

import pytest

import simbridge
from simbridge.sweeps.engine import ClusterUnreachable
from tests.patience import PATIENCE
from tests.ports import free_port
from tests.sweeps.rows import compared

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(find_spec("distributed") is None, reason="distributed is not installed"),
]

WORKER = "simbridge.sweeps.worker"


@contextlib.contextmanager
def started_by_commands(directory):
    """A scheduler and two workers in a directory that has no file of the test; the address, and the
    three.
    """
    from distributed import Client

    address = f"tcp://127.0.0.1:{free_port()}"
    commands = [
        ["scheduler", "--host", "127.0.0.1", "--port", address.rpartition(":")[2], "--no-dashboard"]
    ]
    commands += [["worker", address, "--nthreads", "1", "--no-dashboard"]] * 2
    with contextlib.ExitStack() as stack:
        processes = []
        for kind, *words in commands:
            command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", *words]
            streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            process = stack.enter_context(
                subprocess.Popen(command, cwd=directory, start_new_session=True, **streams)
            )
            stack.callback(end, process)
            processes.append(process)
        with Client(address, timeout="60s") as client:
            client.wait_for_workers(2, timeout=PATIENCE)
        yield address, processes


def local_cluster(workers):
    """A cluster on this computer, which `with` ends."""
    from distributed import LocalCluster

    return LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None)


def end(process):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(PATIENCE)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture(params=["commands", "local"])
def cluster(request, tmp_path_factory):
    if request.param == "commands":
        with started_by_commands(tmp_path_factory.mktemp("elsewhere")) as (address, _):
            yield address
    else:
        with local_cluster(2) as local:
            yield local.scheduler_address


def test_its_rows_are_those_of_this_computer(cluster, tmp_path, line):
    grid = {"solver.kp": [5, 10], "servo-gain": [500, 2000]}
    simbridge.sweep(line, grid=grid, keep="none", jobs=2, out=tmp_path / "here")
    simbridge.sweep(line, grid=grid, keep="none", cluster=cluster, out=tmp_path / "there")

    assert compared(tmp_path / "there") == compared(tmp_path / "here")


def test_only_the_killing_point_fails(cluster, my_solvers, tmp_path, line):
    solvers = [f"{my_solvers}:deadly", f"{my_solvers}:mine", "forward-dynamics"]
    result = simbridge.sweep(
        line, grid={"solver": solvers}, plan_only=True, cluster=cluster, out=tmp_path / "sweep"
    )

    assert [row["outcome"] for row in result.rows("outcome")] == ["failed", "planned", "planned"]
    assert "KilledWorker" in result.rows("reason")[0]["reason"]


def test_a_worker_that_is_killed_costs_no_point(tmp_path, tmp_path_factory, line):
    grid = {"servo-gain": list(range(500, 1300, 100))}
    with started_by_commands(tmp_path_factory.mktemp("elsewhere")) as (address, (_, worker, _)):
        first_point = threading.Event()

        def kill():
            first_point.wait(PATIENCE)
            os.killpg(worker.pid, signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        simbridge.sweep(
            line,
            grid=grid,
            keep="none",
            cluster=address,
            out=tmp_path / "there",
            progress=lambda _: first_point.set(),
        )
        killer.join()
        time.sleep(0.1)
        assert worker.poll() is not None
    simbridge.sweep(line, grid=grid, keep="none", jobs=2, out=tmp_path / "here")

    assert compared(tmp_path / "there") == compared(tmp_path / "here")


def test_a_lost_scheduler_keeps_what_was_made(tmp_path, tmp_path_factory, line):
    grid = {"servo-gain": list(range(500, 1300, 100))}
    with started_by_commands(tmp_path_factory.mktemp("elsewhere")) as (address, (scheduler, *_)):

        def kill(_):
            if scheduler.poll() is None:
                os.killpg(scheduler.pid, signal.SIGKILL)

        with pytest.raises(ClusterUnreachable, match="Completed points are kept"):
            simbridge.sweep(
                line, grid=grid, keep="none", cluster=address, out=tmp_path / "there", progress=kill
            )

    assert 1 <= len(compared(tmp_path / "there")) < len(grid["servo-gain"])

    simbridge.sweep(line, grid=grid, keep="none", jobs=2, out=tmp_path / "there")
    simbridge.sweep(line, grid=grid, keep="none", jobs=2, out=tmp_path / "here")

    assert compared(tmp_path / "there") == compared(tmp_path / "here")


def test_every_run_of_a_cluster_can_be_kept(cluster, tmp_path, line):
    result = simbridge.sweep(
        line, grid={"solver.kp": [5, 10]}, keep="all", cluster=cluster, out=tmp_path / "sweep"
    )
    reports = [
        tmp_path / "sweep" / row["directory"] / "report.html" for row in result.rows("directory")
    ]

    assert len(reports) == 2
    assert all(report.is_file() for report in reports)


def test_a_killing_point_spoils_no_other_of_its_task(my_solvers, tmp_path, line):
    gains = [{"servo-gain": str(gain)} for gain in range(500, 600)]
    gains[80]["solver"] = f"{my_solvers}:deadly"
    with local_cluster(2) as local:
        result = simbridge.sweep(
            line,
            points=gains,
            plan_only=True,
            cluster=local.scheduler_address,
            out=tmp_path / "sweep",
        )

    outcomes = [row["outcome"] for row in result.rows("outcome")]
    assert outcomes == ["planned"] * 80 + ["failed"] + ["planned"] * 19


def test_a_worker_that_joins_late_is_sent_the_arm(tmp_path, line):
    from distributed import Client

    grid = {"servo-gain": list(range(500, 900)), "solver.kp": [10, 20]}
    with local_cluster(1) as local, Client(local) as client:

        def join(progress):
            if progress.done == 1:
                local.scale(2)

        result = simbridge.sweep(
            line,
            grid=grid,
            plan_only=True,
            cluster=local.scheduler_address,
            out=tmp_path / "sweep",
            progress=join,
        )
        sent = client.run(lambda: len(importlib.import_module(WORKER)._contents))

    assert list(sent.values()) == [1, 1]
    assert {row["outcome"] for row in result.rows("outcome")} == {"planned"}
