"""What makes a point what it is: a hash of all that its figures depend on.

Two points of one identity give the same figures, bit for bit, with the same CPU type and library versions.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import json
import os
import platform
import sys
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import cloudpickle
import msgspec
import numpy as np
import pinocchio as pin

import simbridge
from simbridge.running.run_setup import installed, versions

# Where something was read from, which does not matter: what was read is hashed.
_PLACES = ("source", "file", "calibration", "kinematics", "plant", "replaced", "not_simulated")


def digest(*values: object) -> str:
    """A hash of plain data, arrays, poses, dataclasses and functions: 16 hexadecimal digits."""
    text = json.dumps([_plain(value) for value in values], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (float, np.floating)):
        return float(value).hex()
    if isinstance(value, np.ndarray):
        return [str(value.dtype), list(value.shape), hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()]
    if isinstance(value, pin.SE3):
        return _plain(value.homogeneous)
    if isinstance(value, pin.Inertia):
        return _plain(value.toDynamicParameters())
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(part) for part in value]
    if isinstance(value, msgspec.Struct):
        parts = msgspec.structs.asdict(value)
        return [type(value).__name__, _plain({name: part for name, part in parts.items() if name not in _PLACES})]
    if is_dataclass(value) and not isinstance(value, type):
        parts = {own.name: getattr(value, own.name) for own in fields(value) if own.name not in _PLACES}
        return [type(value).__name__, _plain(parts)]
    if isinstance(value, np.generic):
        return _plain(value.item())
    if callable(value):
        # Of an object that is called like a function its state counts, too.
        name = getattr(value, "__qualname__", "") or hashlib.sha256(cloudpickle.dumps(value)).hexdigest()
        return [name, *(source for _, source in sorted(_sources_of(value).items()))]
    raise TypeError(f"{type(value).__name__} has no identity")


def _sources_of(function: Callable[..., Any]) -> dict[str, str]:
    """The text of each module of a user's function by its path: of its own, and of those beside it that are loaded."""
    paths = [module.__file__ for module in modules_of(function) if module.__file__]
    with contextlib.suppress(TypeError, OSError):
        paths.append(inspect.getsourcefile(inspect.unwrap(_innermost(function))) or "")
    return {path: Path(path).read_text(encoding="utf-8") for path in paths if Path(path).is_file()}


def modules_of(function: Callable[..., Any]) -> list[ModuleType]:
    """The module of a user's function, and those that are loaded from its directory or below; not installed ones."""
    inner = _innermost(function)
    try:
        own = Path(inspect.getsourcefile(inner) or "").resolve()
    except TypeError:
        own = Path(getattr(sys.modules.get(type(inner).__module__), "__file__", None) or "").resolve()
    if not own.is_file() or _is_installed(own):
        return []
    found = []
    for module in [*sys.modules.values()]:
        path = Path(getattr(module, "__file__", None) or "").resolve()
        if path.suffix == ".py" and own.parent in path.parents and not _is_installed(path):
            found.append(module)
    return found


def _innermost(function: Any) -> Any:
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _is_installed(path: Path) -> bool:
    package = Path(simbridge.__file__).parent
    return "site-packages" in path.parts or package in path.parents or Path(os.__file__).parent in path.parents


@functools.cache
def made_by() -> str:
    """What makes figures here: the versions of simbridge, its libraries and Python, and a hash of simbridge's code."""
    package = Path(simbridge.__file__).parent
    code = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        code.update(path.relative_to(package).as_posix().encode() + path.read_bytes())
    libraries = " ".join(f"{name} {version}" for name, version in (versions() | installed(["coal"])).items())
    return f"{libraries} ({code.hexdigest()[:8]}) {platform.machine()}"
