"""Arms, solvers and checks that the tests of the paper's experiments share."""

from __future__ import annotations

from simbridge.experiments import (
    PAPER_SOLVERS,
)
from simbridge.experiments.arm import make_solver
from simbridge.experiments.layout import MovingSquare, choose_layout
from simbridge.robot import load_robot

UR10 = load_robot("ur10")
OTHERS = ("ur5e", "planar3r")


def assert_expected(figures, expected):
    for known in expected:
        measured = figures[known.figure]
        assert known.low <= measured <= known.high, f"{known.figure}: {measured}, {known.text}"


def around(robot):
    """The moving square, at 0.2 m/s on a UR10."""
    return MovingSquare.of(choose_layout(robot))


def papers_solvers(robot, **settings):
    return {name: make_solver(robot, name, **settings) for name in PAPER_SOLVERS}
