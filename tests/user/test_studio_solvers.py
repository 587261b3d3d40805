"""A user's solver in the studio, as the first one and as the second."""

from __future__ import annotations

import pytest

import simbridge
from simbridge.browser.setup import StudioSetup
from simbridge.errors import ForeignSolverError, InvalidParameter, UnknownName
from simbridge.ik.rivals.rival import installed_rivals
from simbridge.ik.settings import SOLVERS
from simbridge.planning.options import Options
from tests.ports import free_port
from tests.user.test_solver_factories import MODULE

pytestmark = pytest.mark.quick


@pytest.fixture
def solver(tmp_path, monkeypatch):
    """The name of a factory in a script of the working directory."""
    (tmp_path / "robot_ik.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    return "./robot_ik.py:make"


def setup_with(solver, second=""):
    return StudioSetup.from_options("ur10", solver, Options(), second_solver=second)


def test_a_users_solver_is_offered_beside_the_others(solver):
    setup = setup_with(solver)

    assert setup.solver_names == (*SOLVERS, *installed_rivals(), solver)
    assert setup.compile_solver().name == solver
    assert not setup.solver_values


def test_the_second_solver_may_be_the_users_too(solver):
    setup = setup_with("pseudoinverse", solver)

    rival = setup.with_solver(solver)

    assert rival.make_solver(rival.arm).name == solver
    assert rival.with_solver("pseudoinverse").solver_settings.iterations > 0


def test_a_page_cannot_choose_code_that_was_not_offered(solver):
    setup = setup_with("pseudoinverse")

    with pytest.raises(UnknownName):
        setup.with_solver(solver)


def test_a_missing_function_is_refused_at_the_start(solver):
    with pytest.raises(UnknownName, match="no function 'hole'"):
        setup_with("./robot_ik.py:hole")

    with pytest.raises(ForeignSolverError, match="file not found"):
        setup_with("pseudoinverse", "./none.py:make")


def test_a_controllers_studio_has_no_second_solver():
    with pytest.raises(InvalidParameter, match="second solver"):
        StudioSetup.from_options(
            "ur10", "pseudoinverse", Options(), "ursim", second_solver="forward-dynamics"
        )


@pytest.mark.slow
def test_a_studio_begins_with_both_solvers(solver):
    studio = simbridge.studio(
        robot="ur10", solver=solver, second_solver="pseudoinverse", port=free_port()
    )
    studio.close()

    assert studio.workspace.setup.solver == solver
