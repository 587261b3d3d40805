"""The public names: pinned here, so that none is lost or renamed unnoticed."""

from __future__ import annotations

import importlib
import pickle
import subprocess
import sys

import pytest

import simbridge
import simbridge.emulator
import simbridge.trajectory
from simbridge.emulator import errors, handle

pytestmark = pytest.mark.quick

PUBLIC = """
CallableSolver Cell ClosedForm Constrained ConstrainedParameters DampedLeastSquares
DampedLeastSquaresParameters Evaluation FeedbackIK FeedbackParameters ForwardDynamics
ForwardDynamicsParameters JacobianTranspose JacobianTransposeParameters LiveCause LiveOptions
LiveSession LiveStatus Options Pseudoinverse PseudoinverseParameters Robot Rows Run Scenario
SelectivelyDamped SelectivelyDampedParameters SimbridgeError SoftRows Solution Solver Studio Sweep
Trajectory Twin live load_cell load_robot load_scenario read_trajectory run run_as_script studio
sweep
"""


def test_every_promised_name_can_be_imported():
    assert set(PUBLIC.split()) == set(simbridge.__all__) == set(dir(simbridge))
    for name in (*simbridge.__all__, "__version__"):
        assert getattr(simbridge, name) is not None


def test_the_emulators_package_has_what_its_page_names():
    assert simbridge.emulator.__all__ == ["Emulator", "EmulatorError"]
    assert simbridge.emulator.Emulator is handle.Emulator
    assert simbridge.emulator.EmulatorError is errors.EmulatorError

    with pytest.raises(AttributeError, match="walk"):
        _ = simbridge.emulator.walk


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="walk"):
        _ = simbridge.walk

    with pytest.raises(ImportError, match="cannot import name 'walk'"):
        exec("from simbridge.trajectory import walk")


def test_an_object_of_a_public_class_survives_pickling():
    options = simbridge.Options(speed_scale=0.5)

    copy = pickle.loads(pickle.dumps(options))

    assert type(copy) is simbridge.Options
    assert copy == options


def test_a_subpackage_hides_no_public_function():
    importlib.import_module("simbridge.sweeps.sweep")

    importlib.import_module("simbridge.browser.studio")

    assert callable(simbridge.sweep)
    assert callable(simbridge.studio)


def test_importing_simbridge_imports_none_of_its_parts():
    """In a process of its own: numpy alone takes longer than `simbridge --help` may."""
    parts = "('simbridge.', 'numpy', 'pinocchio')"
    code = f"import sys, simbridge; print(*(m for m in sys.modules if m.startswith({parts})))"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.split() == []
