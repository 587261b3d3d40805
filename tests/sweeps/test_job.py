"""Jobs: what points share, and what is loaded for each of them."""

from __future__ import annotations

import pytest

from simbridge.sweeps import job
from simbridge.sweeps.grid import Point
from simbridge.sweeps.job import forget_files, job_of
from tests.properties import variants

pytestmark = pytest.mark.slow


@pytest.fixture
def loaded(monkeypatch):
    """The names of the scenarios that were loaded."""
    forget_files()
    names = []

    def load(name, *arguments, original=job.load_scenario):
        names.append(name)
        return original(name, *arguments)

    monkeypatch.setattr(job, "load_scenario", load)
    yield names
    forget_files()


def jobs_of(line, **parameters):
    """The job of each value, in turn, of one parameter."""
    ((name, values),) = parameters.items()
    points = [Point(str(line), {name.replace("_", "-"): value}) for value in values]
    return [job_of(point, plan_only=True) for point in points]


@pytest.mark.parametrize("name", ["servo_gain", "sample_seed", "speed_scale", "max_tool_speed"])
def test_one_scenario_serves_many_values(line, loaded, name):
    values = [str(number) for number in range(101, 201)]

    jobs = jobs_of(line, **{name: values * 2})

    assert len(loaded) == 1
    assert len({key for each in jobs for key in each.contents}) == 1


@pytest.mark.parametrize("name", variants(["tcp", "payload"], "payload"))
def test_more_than_64_tools_are_loaded_once_each(line, loaded, name):
    tools = [f"{0.001 * number:g}" for number in range(1, 71)]
    if name == "tcp":
        tools = [f"0 0 {height} 0 0 0" for height in tools]

    jobs_of(line, **{name: tools * 2})

    assert len(loaded) == 70


def test_a_file_read_for_many_tools_is_sent_once(line, loaded):
    jobs = jobs_of(line, payload=["0.5", "1", "1.5"])

    assert len({each.identity for each in jobs}) == 3
    assert len({key for each in jobs for key in each.contents}) == 1


def test_another_home_is_another_context(line, loaded):
    home = "0 -1.6 1.6 -1.6 -1.6 0"

    jobs = jobs_of(line, home=["", home])

    assert len(loaded) == 2
    assert jobs[0].contents.keys() != jobs[1].contents.keys()


@pytest.mark.parametrize(("name", "zero"), [("payload", "0"), ("tcp", "0 0 0.1 0 0 0")])
def test_both_zeros_are_the_same_value(line, loaded, name, zero):
    forward = jobs_of(line, **{name: [zero, f"-{zero}"]})
    forget_files()
    backward = jobs_of(line, **{name: [f"-{zero}", zero]})

    assert len({each.identity for each in forward + backward}) == 1


def test_a_function_travels_apart_from_the_arm(line, loaded, my_solvers):
    jobs = jobs_of(line, solver=["", f"{my_solvers}:mine", f"{my_solvers}:deadly"])
    context, *others = (set(each.contents) for each in jobs)

    assert len(loaded) == 1
    assert [len(other - context) for other in others] == [1, 1]
    assert all(context < other for other in others)


def test_contents_are_kept_up_to_a_size(line, loaded, monkeypatch):
    monkeypatch.setattr(job, "MAX_SHARED_BYTES", 1)
    home = "0 -1.6 1.6 -1.6 -1.6 0"

    jobs = jobs_of(line, home=["", home, "", home])

    assert len(loaded) == 4
    assert len(job._shared) == 1
    identities = [each.identity for each in jobs]
    assert identities[:2] == identities[2:]
