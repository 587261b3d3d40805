"""simbridge: how well does an arm track a sampled motion, and where does the error come from?

    import simbridge
    run = simbridge.run("square_tracking")
    print(run.summary["tracking_error"]["position_m"]["rms"])

Names are imported when they are first used, so that `import simbridge` is quick. `__init__.pyi` lists them.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

__version__ = "0.1.0"

_STUB = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")
_MODULES = {name: module for module, name in re.findall(r"^from (\S+) import \w+ as (\w+)$", _STUB, re.MULTILINE)}

__all__ = ["__version__", *_MODULES]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return __all__
