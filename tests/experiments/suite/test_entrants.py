"""Who takes part in the suite, and with which versions."""

from __future__ import annotations

import sys
from types import ModuleType

from simbridge.experiments.suite.entrants import package_version


def test_a_module_without_metadata_says_its_version(monkeypatch):
    module = ModuleType("from_the_system")
    module.__version__ = "1.5.1"
    monkeypatch.setitem(sys.modules, "from_the_system", module)

    assert package_version("from_the_system", "python3-from-the-system") == "1.5.1"
