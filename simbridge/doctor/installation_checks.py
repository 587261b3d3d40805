"""Checks of the installation: Python, packages, compiled kernels, and a period of simulation."""

from __future__ import annotations

import platform
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from simbridge.backends import ENGINES, SIMULATION, backend_class, replacement_note
from simbridge.backends.link_choice import (
    NOT_INSTALLED,
    UR_RTDE_HINT,
    Version,
    obstacle_to_ur_rtde,
)
from simbridge.doctor.findings import Finding, failure, success, warning
from simbridge.errors import SimbridgeError
from simbridge.planning.link_choices import LinkName
from simbridge.planning.options import Options
from simbridge.recording.record_tables import installed
from simbridge.robot.load import load_robot
from simbridge.text import degrees
from simbridge.ur.errors import ControllerError

# Names on the package index of what every installation needs. The engine of the simulation depends
# on Python and machine: `check_simulation` loads it.
PACKAGES = (
    "numpy",
    "pin",
    "lark",
    "lazy-loader",
    "numba",
    "ruckig",
    "msgspec",
    "orjson",
    "tomli-w",
    "mcap",
    "zstandard",
    "rosbags",
    "lz4",
    "ruamel.yaml",
    "matplotlib",
    "jinja2",
    "markupsafe",
    "tyro",
    "rich",
    "viser",
    "websockets",
    "trimesh",
    "pycollada",
    "fast-simplification",
    "loky",
    "cloudpickle",
)
# Name of the link that needs no other package.
RTDE_LINK_TITLE = "rtde, simbridge's own RTDE client"
# The oldest and the newest version of Python that simbridge runs on.
OLDEST_PYTHON = (3, 10)
NEWEST_PYTHON = (3, 14)


def check_python(version: tuple[int, int] = sys.version_info[:2]) -> Finding:
    """Check that simbridge runs on this version of Python."""
    seen = f"{platform.python_version()}, {platform.system()} {platform.machine()}"
    is_supported = OLDEST_PYTHON <= version <= NEWEST_PYTHON
    return failure("python", seen, "Use Python 3.10 to 3.14.", unless=is_supported)


def check_packages(versions: Mapping[str, str]) -> Finding:
    """Check that every required package is installed.

    Args:
        versions: Versions by the names of the packages; "" for a package that is missing.
    """
    missing = [name for name, version in versions.items() if not version]
    if missing:
        fix = f"pip install {' '.join(missing)}"
        return failure("packages", f"missing: {', '.join(missing)}", fix)
    return success("packages", ", ".join(f"{name} {version}" for name, version in versions.items()))


def check_kernel_cache(directory: Path) -> Finding:
    """Check that compiled kernels can be cached in a directory, which need not exist yet."""
    try:
        existing = _nearest_existing(directory.absolute())
        with tempfile.TemporaryFile(dir=existing):
            return success("kernel cache", str(directory))
    except OSError as error:
        return warning(
            "kernel cache",
            f"{directory} cannot be written ({error.strerror})",
            "Every start spends several seconds compiling. Choose a writable directory: export "
            "SIMBRIDGE_CACHE=~/simbridge-kernels",
        )


def _nearest_existing(directory: Path) -> Path:
    """Return a directory, or the nearest one above it that exists.

    Raises:
        OSError: The name cannot be looked up, such as one that is too long. (From Python 3.14 on
            `Path.exists` answers False for such a name.)
    """
    for path in (directory, *directory.parents):
        try:
            path.stat()
        except FileNotFoundError:
            continue
        return path
    raise FileNotFoundError(directory)


def check_link(
    choice: LinkName | None = None,
    version: Version | None = None,
    realtime_error: ControllerError | None = None,
) -> Finding:
    """Check through which link a run commands a controller, and whether it can.

    Args:
        choice: The link that the run chooses; None for the default.
        version: Version of the controller's software; None if it is not known.
        realtime_error: The error of the real-time port; None if it answers, or is not known.
    """
    obstacle = obstacle_to_ur_rtde(version, realtime_error)
    if choice == "rtde":
        return success("link", RTDE_LINK_TITLE)
    if not obstacle:
        return success("link", f"ur_rtde {installed(['ur-rtde'])['ur-rtde']}")
    if choice is None:
        return success("link", f"{RTDE_LINK_TITLE}: {obstacle}")
    fix = UR_RTDE_HINT if obstacle == NOT_INSTALLED else "Use --link rtde."
    return failure("link", obstacle, fix)


def simulator_title(backend: str) -> str:
    """Return the name of a simulation for people."""
    return ENGINES[backend].title if backend in ENGINES else backend


def check_simulation(robot: str, backend_name: str = SIMULATION) -> Finding:
    """Check that a simulation loads, and moves the robot for one period."""
    try:
        arm = load_robot(robot)
        with backend_class(backend_name)(arm, Options()) as backend:
            (state,) = backend.stream(arm.home[np.newaxis])
    except SimbridgeError as error:
        return failure("simulation", f"{error}", "Fix that, then try again.")

    period = f"{backend.period * 1e3:g} ms"
    joint_error = float(abs(state.q - arm.home).max())
    seen = (
        f"{simulator_title(backend_name)} moved {arm.name} through {period}; joint error "
        f"{degrees(joint_error)} deg"
    )
    # If the preferred engine is not installed, another engine simulates, and the finding says so.
    note = replacement_note(backend_name)
    return success("simulation", f"{seen}. {note}" if note else seen)
