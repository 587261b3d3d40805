"""Makes the identity of a point: a hash of everything on which its figures depend.

Two points with the same identity have the same figures, bit for bit, with the same type of CPU and
the same versions of libraries. A user's function is identified by its source and by the source of
the modules around it.
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
from simbridge.recording.record_tables import installed, versions

# Names of fields that say where something was read from. They are not hashed: the content is.
SOURCE_FIELDS = (
    "source",
    "file",
    "calibration",
    "kinematics",
    "plant",
    "replaced",
    "not_simulated",
)


@functools.cache
def made_by() -> str:
    """Return a text on the programs that make the figures on this computer.

    It has the versions of simbridge, its libraries and Python, a hash of simbridge's code, and the
    type of the computer.
    """
    package = Path(simbridge.__file__).parent
    code = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        code.update(path.relative_to(package).as_posix().encode() + path.read_bytes())

    all_versions = versions() | installed(["coal"])
    libraries = " ".join(f"{name} {version}" for name, version in all_versions.items())
    return f"{libraries} ({code.hexdigest()[:8]}) {platform.machine()}"


def digest(*values: object) -> str:
    """Return a hash of values: 16 hexadecimal digits.

    Args:
        values: Plain data, arrays, poses, inertias, dataclasses, structs and functions.

    Raises:
        TypeError: A value is of another type.
    """
    text = json.dumps([_as_plain(value) for value in values], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _as_plain(value: Any) -> Any:
    """Return a value as plain data for JSON, to be hashed: data that change with the value."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (float, np.floating)):
        # The hexadecimal form has all digits of the number.
        return float(value).hex()
    if isinstance(value, Mapping):
        return {str(name): _as_plain(item) for name, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [_as_plain(item) for item in value]
    if isinstance(value, np.ndarray):
        # A hash of the elements stands for them.
        content = np.ascontiguousarray(value).tobytes()
        return [str(value.dtype), list(value.shape), hashlib.sha256(content).hexdigest()]
    return _object_as_plain(value)


def _object_as_plain(value: Any) -> Any:
    """Return an object of a class, or a function, as plain data for JSON."""
    if isinstance(value, pin.SE3):
        return _as_plain(value.homogeneous)
    if isinstance(value, pin.Inertia):
        return _as_plain(value.toDynamicParameters())
    if isinstance(value, msgspec.Struct):
        return _record_as_plain(value, msgspec.structs.asdict(value))
    if is_dataclass(value) and not isinstance(value, type):
        names = [item.name for item in fields(value)]
        return _record_as_plain(value, {name: getattr(value, name) for name in names})
    if isinstance(value, np.generic):
        return _as_plain(value.item())
    if callable(value):
        return _function_as_plain(value)
    raise TypeError(f"{type(value).__name__} has no identity")


def _record_as_plain(value: object, content: Mapping[str, Any]) -> list[Any]:
    """Return the type and the fields of a record, without fields that say where it was read from.

    Args:
        value: The record.
        content: Fields of the record by name.
    """
    relevant = {name: item for name, item in content.items() if name not in SOURCE_FIELDS}
    return [type(value).__name__, _as_plain(relevant)]


def _function_as_plain(function: Callable[..., Any]) -> list[str]:
    """Return the name of a function and its source texts.

    A callable object has no name; a hash of its state takes the place of the name.
    """
    name = getattr(function, "__qualname__", "")
    if not name:
        name = hashlib.sha256(cloudpickle.dumps(function)).hexdigest()

    sources = _read_sources(function)
    return [name, *(sources[path] for path in sorted(sources))]


def _read_sources(function: Callable[..., Any]) -> dict[str, str]:
    """Return the texts of the modules of a user's function, by their paths."""
    paths = [module.__file__ for module in modules_of(function) if module.__file__]
    # A function without a source file has only those modules.
    with contextlib.suppress(TypeError, OSError):
        unwrapped = inspect.unwrap(_strip_partial(function))
        paths.append(inspect.getsourcefile(unwrapped) or "")
    return {path: Path(path).read_text(encoding="utf-8") for path in paths if Path(path).is_file()}


def modules_of(function: Callable[..., Any]) -> list[ModuleType]:
    """Return the modules that a user's function may need, without installed ones.

    They are the function's own module, and all modules that are loaded from its directory or below.
    """
    source = _find_source_file(_strip_partial(function))
    if not source.is_file() or _is_installed(source):
        return []

    # The directory ends in a separator, so that no sibling's name begins with it.
    directory = os.path.join(source.parent, "")
    modules = []
    for module in list(sys.modules.values()):
        path = real_path(getattr(module, "__file__", None) or "")
        is_near = path.endswith(".py") and path.startswith(directory)
        if is_near and not _is_installed(Path(path)):
            modules.append(module)
    return modules


# A thousand modules are loaded, and each search for modules asks for the paths of all. A link may
# have another target in the next sweep: `forget_files` of `job` clears the cache.
real_path = functools.cache(os.path.realpath)


def _find_source_file(function: Any) -> Path:
    """Return the file that defines a function, or the class of a callable object."""
    try:
        return Path(inspect.getsourcefile(function) or "").resolve()
    except TypeError:
        # `inspect` refuses an object: the module of its class has the file.
        module = sys.modules.get(type(function).__module__)
        return Path(getattr(module, "__file__", None) or "").resolve()


def _strip_partial(function: Any) -> Any:
    """Return the function that `functools.partial`, applied any number of times, wraps."""
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _is_installed(path: Path) -> bool:
    """Return whether a file belongs to an installed package, to simbridge or to Python."""
    package = Path(simbridge.__file__).parent
    standard_library = Path(os.__file__).parent
    return (
        "site-packages" in path.parts or package in path.parents or standard_library in path.parents
    )
