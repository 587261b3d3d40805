"""The public names: pinned here, so that none is lost or renamed unnoticed; and the old ones, which warn."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import simbridge
import simbridge.emulator
import simbridge.trajectory
from simbridge.deprecated import RENAMED
from simbridge.emulator import errors, handle
from simbridge.robot import kinematics

PUBLIC = """
CallableSolver Cell ClosedForm Constrained ConstrainedParameters DampedLeastSquares DampedLeastSquaresParameters
FeedbackIK FeedbackParameters ForwardDynamics ForwardDynamicsParameters JacobianTranspose JacobianTransposeParameters
LiveArm LiveOptions LiveSession Options Pseudoinverse PseudoinverseParameters Robot Rows Run Scenario SelectivelyDamped
SelectivelyDampedParameters SimbridgeError SoftRows Solution Solver Studio Sweep Trajectory Twin __version__ connect
live load_cell load_robot load_scenario read_trajectory run run_as_script studio sweep
"""


def test_every_promised_name_can_be_imported():
    assert set(PUBLIC.split()) == set(simbridge.__all__) == set(dir(simbridge))
    for name in simbridge.__all__:
        assert getattr(simbridge, name) is not None


def test_the_emulators_package_has_what_its_page_names():
    assert simbridge.emulator.__all__ == ["Emulator", "EmulatorError"]
    assert simbridge.emulator.Emulator is handle.Emulator and simbridge.emulator.EmulatorError is errors.EmulatorError
    with pytest.raises(AttributeError, match="walk"):
        _ = simbridge.emulator.walk


def test_a_name_that_never_was_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'simbridge' has no attribute 'walk'"):
        _ = simbridge.walk
    with pytest.raises(ImportError, match="cannot import name 'walk'"):
        exec("from simbridge.trajectory import walk")


@pytest.mark.parametrize("old", [old for old in RENAMED if old.startswith("simbridge.trajectory.")])
def test_an_old_name_of_the_trajectory_package_is_the_new_one_with_a_warning(old):
    with pytest.warns(FutureWarning, match=f"{old} is now called {RENAMED[old]}") as caught:
        value = getattr(simbridge.trajectory, old.rpartition(".")[2])
    assert value is getattr(simbridge.trajectory, RENAMED[old].rpartition(".")[2])
    assert caught[0].filename == __file__


def test_slowed_is_time_scaled_with_a_warning(through):
    trajectory = through([[0.6, 0.1, 0.3], [0.7, 0.1, 0.3]], [0.0, 1.0])
    with pytest.warns(FutureWarning, match="time_scaled") as caught:
        slower = trajectory.slowed(0.5)
    assert slower.duration == trajectory.time_scaled(0.5).duration == 2.0
    assert caught[0].filename == __file__


def test_a_module_that_moved_is_found_under_its_old_name_with_a_warning():
    sys.modules.pop("simbridge.kinematics", None)
    with pytest.warns(FutureWarning, match=r"simbridge\.kinematics is now called simbridge\.robot\.kinematics"):
        moved = importlib.import_module("simbridge.kinematics")
    assert moved is kinematics
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("simbridge.dynamics")


def test_importing_simbridge_imports_none_of_its_parts():
    """In a process of its own: numpy alone takes longer than `simbridge --help` may."""
    code = (
        "import sys, simbridge; print(*(m for m in sys.modules if m.startswith(('simbridge.', 'numpy', 'pinocchio'))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["simbridge.deprecated"]
