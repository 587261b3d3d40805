"""Two emulated controllers that all tests of the clients share. A test that changes one restores
it.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from simbridge.emulator.handle import Emulator
from tests.controllers import loopback

E_SERIES = loopback(86)
CB3 = loopback(85)
CALIBRATION = Path(__file__).parents[1] / "data" / "ur10e_calibration.toml"
HERE = Path(__file__).parent

# The controllers that run.
_running = contextlib.ExitStack()


@pytest.fixture(scope="session")
def e_series():
    """A running, calibrated UR10e with PolyScope 5.12."""
    return _running.enter_context(
        Emulator("ur10e", polyscope="5.12", host=E_SERIES, calibration=CALIBRATION, boot_time=0.05)
    )


@pytest.fixture(scope="session")
def cb3():
    """A UR10 with PolyScope 3.15, without power."""
    return _running.enter_context(Emulator("ur10", polyscope="3.15", host=CB3, running=False))


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items):
    """One worker of pytest-xdist runs all tests of this directory, because they share the
    controllers.
    """
    for item in items:
        if item.path.parent == HERE:
            item.add_marker(pytest.mark.xdist_group("ur"))


@pytest.hookimpl(trylast=True)  # after the test's fixtures, which may still use a controller
def pytest_runtest_teardown(nextitem):
    """End the controllers after the last test of this directory: each takes a part of a core even
    when nothing asks it.

    pytest keeps the fixtures, so a test of this directory that ran after one of another directory
    would get a controller that has ended. All of them run in a row, unless a command line lists
    files of this directory before and after others.
    """
    if nextitem is None or nextitem.path.parent != HERE:
        _running.close()
