"""A UR controller for tests: real servers, a real URScript, an arm that moves by documented models.

    from simbridge.emulator import Emulator
    with Emulator("ur10e") as controller:
        ...

`Emulator` is imported when it is first used: parts of this package must start quickly.
"""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["Emulator"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("simbridge.emulator.handle"), name)
