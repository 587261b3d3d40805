"""Fixtures of other folders that tests across modules use, too."""

from tests.experiments.suite.conftest import short_suite  # noqa: F401 (fixture)
from tests.robot.conftest import scara  # noqa: F401 (fixture)
from tests.sweeps.conftest import at_once  # noqa: F401 (fixture)
