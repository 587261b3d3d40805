"""A worker: what it is sent once, what each point gets anew, and when it returns."""

from __future__ import annotations

import sys

import pytest

from simbridge.sweeps import worker
from simbridge.sweeps.grid import Point
from simbridge.sweeps.identity import made_by
from simbridge.sweeps.job import forget_files, job_of
from simbridge.sweeps.worker import WorkItem, work

pytestmark = pytest.mark.slow

# A step that does not come back to where it began: it counts its calls.
COUNTING = """
import simbridge

class Step:
    def __init__(self):
        self.calls = 0
        self.solver = None

    def __call__(self, q, target):
        self.calls += 1
        self.solver = self.solver or simbridge.ForwardDynamics(simbridge.load_robot("ur10"))
        self.solver.reset(q)
        q = self.solver.step(target)
        q[5] += 1e-6 * self.calls
        return q

step = Step()
"""

SCENARIO = """
from simbridge import Scenario
from simbridge.trajectory import square

def scenario(robot):
    return Scenario(square(side=0.02), solver=step, on_limits="limit")
"""


@pytest.fixture(autouse=True)
def _new_worker(monkeypatch):
    monkeypatch.setattr(worker, "_contents", {})
    # On a busy computer one point may take longer than a task should.
    monkeypatch.setattr(worker, "TASK_DURATION_S", 600.0)
    forget_files()
    yield
    forget_files()


def items_of(jobs):
    return [WorkItem(job.order, tuple(job.contents)) for job in jobs]


def jobs_of(scenario, *gains, **values):
    points = [Point(str(scenario), {"servo-gain": gain, **values}) for gain in gains]
    return [job_of(point, plan_only=True) for point in points]


def test_a_worker_asks_once_for_what_points_share(line):
    first, second = jobs_of(line, "500", "600")

    assert work(items_of([first]), {}, made_by()) is None

    (result,) = work(items_of([first]), first.contents, made_by())
    (known,) = work(items_of([second]), {}, made_by())

    assert result.outcome == known.outcome == "planned"


def test_a_worker_keeps_what_was_used_last(line, monkeypatch):
    monkeypatch.setattr(worker, "MAX_CONTENTS", 2)
    (job,) = jobs_of(line, "500")
    work(items_of([job]), job.contents, made_by())
    work([], {"first": b"", "second": b""}, made_by())
    assert work(items_of([job]), {}, made_by()) is None

    work(items_of([job]), job.contents, made_by())
    work([], {"third": b""}, made_by())

    assert work(items_of([job]), {}, made_by()) is not None


def test_a_worker_keeps_contents_up_to_a_size(line, monkeypatch):
    monkeypatch.setattr(worker, "MAX_CONTENT_BYTES", 10)
    (job,) = jobs_of(line, "500")
    work([], {"first": b"12345"}, made_by())

    work(items_of([job]), job.contents, made_by())

    # What is larger than all that may be kept stays as long as it is needed.
    assert worker._contents.keys() == job.contents.keys()
    assert work(items_of([job]), {}, made_by()) is not None


def test_a_task_returns_when_its_time_is_up(line, monkeypatch):
    monkeypatch.setattr(worker, "TASK_DURATION_S", 0.0)
    jobs = jobs_of(line, "500", "600")

    results = work(items_of(jobs), jobs[0].contents, made_by())

    assert len(results) == 1


def test_each_point_gets_a_copy_of_a_function(line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "counting_of_sweeps.py").write_text(COUNTING)
    jobs = jobs_of(line, "500", "600", solver="counting_of_sweeps:step")

    first, second = work(items_of(jobs), jobs[0].contents, made_by())
    sys.modules.pop("counting_of_sweeps", None)

    assert first.outcome == second.outcome == "planned"
    assert first.figures == second.figures


def test_each_point_gets_a_copy_of_a_scenarios_function(tmp_path):
    script = tmp_path / "counted.py"
    script.write_text(COUNTING + SCENARIO)
    jobs = jobs_of(script, "500", "600")

    first, second = work(items_of(jobs), jobs[0].contents, made_by())

    assert first.outcome == second.outcome == "planned"
    assert first.figures == second.figures


def test_an_unforeseen_error_is_the_result_of_its_point(line, monkeypatch):
    figures = worker.measure_plan
    measured = []

    def measure(prepared):
        measured.append(prepared)
        if len(measured) == 1:
            raise OSError("no space left on device")
        return figures(prepared)

    monkeypatch.setattr(worker, "measure_plan", measure)
    jobs = jobs_of(line, "500", "600")

    first, second = work(items_of(jobs), jobs[0].contents, made_by())

    assert (first.outcome, first.reason) == ("failed", "OSError: no space left on device")
    assert second.outcome == "planned"
