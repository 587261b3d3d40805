"""Names that documentation and scenarios used to import, and what they are called now.

An old name still works and warns. Names of a package are looked up by its `__getattr__`, and modules that have moved by
`MovedModules`, which `simbridge` gives to the import system.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
import warnings
from types import ModuleType
from typing import Any

# Old name: new name, both in full.
RENAMED = {
    "simbridge.trajectory.Fixed": "simbridge.trajectory.ConstantOrientation",
    "simbridge.trajectory.Law": "simbridge.trajectory.MotionLaw",
    "simbridge.trajectory.Reading": "simbridge.trajectory.ReadOptions",
    "simbridge.trajectory.Tangent": "simbridge.trajectory.PathTangent",
    "simbridge.trajectory.Towards": "simbridge.trajectory.LookAt",
    "simbridge.trajectory.joined": "simbridge.trajectory.concatenate",
    "simbridge.trajectory.still": "simbridge.trajectory.dwell",
    "simbridge.Trajectory.slowed": "simbridge.Trajectory.time_scaled",
    "simbridge.kinematics": "simbridge.robot.kinematics",
}


def warn_renamed(old: str, stacklevel: int = 2) -> None:
    """Warn that a name has changed; at stacklevel 2 the warning names the line that called the caller."""
    warnings.warn(f"{old} is now called {RENAMED[old]}.", FutureWarning, stacklevel=stacklevel + 1)


def renamed(module: str, name: str) -> Any:
    """What an old name of a module stands for; for the module's `__getattr__`.

    Raises:
        AttributeError: The module never had that name.
    """
    old = f"{module}.{name}"
    if old not in RENAMED:
        raise AttributeError(f"module '{module}' has no attribute '{name}'")
    warn_renamed(old, stacklevel=3)
    home, _, new = RENAMED[old].rpartition(".")
    return getattr(importlib.import_module(home), new)


class MovedModules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds a module under its old name; asked only after everything else."""

    def find_spec(self, name: str, path: object, target: object = None) -> importlib.machinery.ModuleSpec | None:
        return importlib.machinery.ModuleSpec(name, self) if name in RENAMED else None

    def exec_module(self, module: ModuleType) -> None:
        warn_renamed(module.__name__)
        sys.modules[module.__name__] = importlib.import_module(RENAMED[module.__name__])
