"""`simbridge.run` from Python: what is chosen by name, and what a run shows at a prompt."""

from __future__ import annotations

import numpy as np
import pytest

import simbridge
from simbridge.errors import InvalidParameter, UnknownName
from simbridge.running import run_ending
from simbridge.trajectory import square

pytestmark = [pytest.mark.usefixtures("without_pages"), pytest.mark.slow]

SMALL = simbridge.Scenario(square(side=0.03, laps=1), name="small")


@pytest.fixture(scope="module")
def named_run(tmp_path_factory, write_short_page):
    """A run whose solver and options were given by name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_ending, "write_report", write_short_page)
        return simbridge.run(
            SMALL,
            robot="ur5e",
            solver="damped-least-squares",
            feedforward="on",
            corner_tolerance=2e-3,
            label="mine",
            out=tmp_path_factory.mktemp("named") / "run",
        )


@pytest.mark.shares_setup
def test_solver_and_options_are_given_by_name(named_run):
    summary = named_run.summary

    assert summary["solver"] == "damped-least-squares"
    assert summary["feedforward"] is True
    assert summary["label"] == "mine"


@pytest.mark.shares_setup
def test_a_run_is_shown_in_one_line(named_run):
    shown = repr(named_run)

    rms = named_run.summary["tracking_error"]["position_m"]["rms"]
    assert shown.startswith("<Run of small on ur5e with damped-least-squares: completed, ")
    assert shown.endswith(f" mm RMS, in {named_run.directory}>")
    assert float(shown.split("completed, ")[1].split()[0]) == pytest.approx(1e3 * rms, rel=0.01)


@pytest.mark.shares_setup
@pytest.mark.parametrize("kind", [str, lambda path: path])
def test_an_evaluation_is_read_from_a_path(named_run, kind):
    evaluation = simbridge.Evaluation.of(kind(named_run.directory))

    assert np.array_equal(evaluation.log.stamp, named_run.evaluation().log.stamp)


def test_settings_are_a_solver(tmp_path):
    settings = simbridge.DampedLeastSquaresParameters(iterations=3)

    run = simbridge.run(SMALL, solver=settings, out=tmp_path / "run")

    assert run.summary["solver"] == "damped-least-squares"
    assert run.evaluation().settings.solver.parameters["iterations"] == 3


@pytest.mark.parametrize("name", ["dls", "LM", "dampedleastsquares", "DampedLeastSquares"])
def test_an_abbreviation_is_answered_with_the_full_name(name):
    with pytest.raises(UnknownName, match="Did you mean 'damped-least-squares'"):
        simbridge.run(SMALL, solver=name)


def test_an_unknown_option_is_refused_with_the_nearest():
    with pytest.raises(UnknownName, match="Did you mean 'servo_gain'"):
        simbridge.run(SMALL, servo_gian=300.0)


def test_a_misspelt_argument_is_answered_with_its_name():
    with pytest.raises(UnknownName, match="Did you mean 'robot'"):
        simbridge.run(SMALL, robt="ur5e")


def test_what_is_no_solver_is_refused():
    with pytest.raises(InvalidParameter, match="factory"):
        simbridge.run(SMALL, solver=3)


@pytest.mark.shares_setup
def test_a_replay_refuses_another_solver_by_name(named_run):
    with pytest.raises(InvalidParameter, match="solver"):
        simbridge.run(SMALL, robot="ur5e", plan=named_run.directory, solver="pseudoinverse")
