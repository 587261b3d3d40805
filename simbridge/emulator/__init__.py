"""A UR controller for tests: real servers, a real URScript, an arm that moves by documented models.

    from simbridge.emulator import Emulator
    with Emulator("ur10e") as controller:
        ...

Both names are imported when they are first used: parts of this package must start quickly.
"""

from __future__ import annotations

import importlib
from typing import Any

_MODULES = {"Emulator": "handle", "EmulatorError": "errors"}
__all__ = ["Emulator", "EmulatorError"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"simbridge.emulator.{_MODULES[name]}"), name)
