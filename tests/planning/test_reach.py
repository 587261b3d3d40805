"""The search of the targets' postures: which searches are made, and which are known."""

from __future__ import annotations

import numpy as np
import pytest

from simbridge import ForwardDynamics, load_robot
from simbridge.errors import TargetOutOfReach
from simbridge.ik.constrained import Constrained
from simbridge.ik.pseudoinverse import Pseudoinverse
from simbridge.ik.rows import Rows
from simbridge.planning import reach
from simbridge.planning.reach import check_reach
from simbridge.recent import Recent
from simbridge.trajectory import Trajectory


@pytest.fixture(scope="module")
def ur10():
    return load_robot("ur10")


@pytest.fixture
def searches(monkeypatch):
    """The solvers that searched, and a memory that is empty at the beginning."""
    made = []
    monkeypatch.setattr(reach, "_attained", Recent(reach.MAX_ATTAINED))
    for kind in (ForwardDynamics, Pseudoinverse, Constrained):

        def search(self, poses, start, original=kind.solve_each):
            made.append(self)
            return original(self, poses, start)

        monkeypatch.setattr(kind, "solve_each", search)
    return made


def line(shift=0.0):
    points = np.array([[0.7, 0.164, 0.3], [0.71 + shift, 0.164, 0.3]])
    return Trajectory(
        np.array([0.0, 0.1]), np.column_stack([points, np.tile([1, 0, 0, 0], (2, 1))])
    )


def search(solver, trajectory=None, start=None):
    trajectory = line() if trajectory is None else trajectory
    start = solver.robot.home if start is None else start
    check_reach(solver, trajectory, trajectory.poses, times=trajectory.times, start=start)


def test_gains_and_iterations_need_no_other_search(ur10, searches):
    for settings in ({"kp": 10.0}, {"kp": 20.0}, {"iterations": 7}):
        search(ForwardDynamics(ur10, **settings))

    assert len(searches) == 1


def test_iterations_of_other_solvers_need_none_either(ur10, searches):
    for settings in ({}, {"iterations": 3}, {"cutoff": 1e-3}):
        search(Pseudoinverse(ur10, **settings))

    assert len(searches) == 2


@pytest.mark.python_kernels
def test_what_decides_a_search_makes_it_another(ur10, searches):
    search(ForwardDynamics(ur10))
    search(ForwardDynamics(ur10), line(shift=0.001))
    search(ForwardDynamics(ur10), start=ur10.home + 0.01)
    search(ForwardDynamics(ur10, link_mass=0.1))
    search(ForwardDynamics(ur10, task="position"))
    search(ForwardDynamics(load_robot("ur10e")))

    assert len(searches) == 6


def test_an_equal_arm_is_the_same(ur10, searches):
    search(ForwardDynamics(ur10))
    search(ForwardDynamics(load_robot("ur10")))

    assert len(searches) == 1


def test_a_users_class_searches_each_time(ur10, searches):
    class Mine(ForwardDynamics):
        pass

    for _ in range(2):
        search(Mine(ur10))

    assert len(searches) == 2


def test_a_users_rows_are_searched_each_time(ur10, searches):
    rows = Rows(np.eye(6)[:1], np.zeros(1))

    for _ in range(2):
        search(Constrained(ur10, strict=rows, task="position"))

    assert len(searches) == 2


def test_targets_out_of_reach_are_refused_each_time(ur10, searches):
    for _ in range(2):
        with pytest.raises(TargetOutOfReach):
            search(ForwardDynamics(ur10), line(shift=5.0))
