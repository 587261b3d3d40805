"""Pages without drawings, and fixtures of other folders that tests across modules use, too."""

import pytest

from tests.experiments.suite.conftest import short_suite  # noqa: F401 (fixture)
from tests.report.pages import leave_out_drawings
from tests.robot.conftest import scara  # noqa: F401 (fixture)
from tests.sweeps.conftest import at_once  # noqa: F401 (fixture)


@pytest.fixture
def without_drawings(monkeypatch):
    """The reports of runs have no drawings."""
    leave_out_drawings(monkeypatch)
