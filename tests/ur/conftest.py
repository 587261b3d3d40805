"""Two emulated controllers that all tests of the clients share. A test that changes one restores
it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from simbridge.emulator.handle import Emulator
from tests.controllers import loopback

E_SERIES = loopback(86)
CB3 = loopback(85)
CALIBRATION = Path(__file__).parents[1] / "data" / "ur10e_calibration.toml"


@pytest.fixture(scope="session")
def e_series():
    """A running, calibrated UR10e with PolyScope 5.12."""
    with Emulator(
        "ur10e", polyscope="5.12", host=E_SERIES, calibration=CALIBRATION, boot_time=0.05
    ) as controller:
        yield controller


@pytest.fixture(scope="session")
def cb3():
    """A UR10 with PolyScope 3.15, without power."""
    with Emulator("ur10", polyscope="3.15", host=CB3, running=False) as controller:
        yield controller


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items):
    """One worker of pytest-xdist runs all tests of this directory, because they share the
    controllers.
    """
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.xdist_group("ur"))
