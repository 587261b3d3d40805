"""Checks of this installation, for runs in simulation: Python, packages, the compiler's cache, the simulator."""

from __future__ import annotations

import platform
import sys
import tempfile
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from simbridge.doctor.finding import Finding, failed, passed, warned
from simbridge.errors import SimbridgeError
from simbridge.text import degrees

# As named on the package index. PyBullet comes under two names and is loaded instead.
PACKAGES = (
    "numpy",
    "pin",
    "numba",
    "llvmlite",
    "ruckig",
    "msgspec",
    "mcap",
    "matplotlib",
    "tyro",
    "rich",
    "lark",
    "ur-rtde",
)
OLDEST, NEWEST = (3, 10), (3, 12)


def installed(names: Sequence[str] = PACKAGES) -> dict[str, str]:
    """The version of each package; "" for one that is not there."""
    versions = {}
    for name in names:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = ""
    return versions


def check_python(version: tuple[int, int] = sys.version_info[:2]) -> Finding:
    """Whether this Python is one that simbridge is tested with."""
    seen = f"{platform.python_version()}, {platform.system()} {platform.machine()}"
    if OLDEST <= version <= NEWEST:
        return passed("python", seen)
    return failed("python", f"{version[0]}.{version[1]}", "Use Python 3.10, 3.11 or 3.12.")


def check_packages(versions: dict[str, str]) -> Finding:
    """Whether everything that simbridge needs is there."""
    missing = [name for name, version in versions.items() if not version]
    if missing:
        return failed("packages", f"missing: {', '.join(missing)}", f"pip install {' '.join(missing)}")
    return passed("packages", ", ".join(f"{name} {version}" for name, version in versions.items()))


def check_kernel_cache(directory: Path) -> Finding:
    """Whether compiled kernels are kept between two starts, in a directory that need not be there yet."""
    try:
        there = next(path for path in (directory, *directory.absolute().parents) if path.exists())
        with tempfile.TemporaryFile(dir=there):
            return passed("kernel cache", str(directory))
    except OSError as error:
        return warned(
            "kernel cache",
            f"{directory} cannot be written ({error.strerror})",
            "Each start compiles for some seconds. Name a directory: export SIMBRIDGE_CACHE=~/simbridge-kernels",
        )


def check_simulation(robot: str) -> Finding:
    """Whether PyBullet loads, and moves the robot through one period."""
    from simbridge.backends.pybullet import PyBulletBackend
    from simbridge.robot.load import load_robot

    try:
        arm = load_robot(robot)
        with PyBulletBackend(arm) as backend:
            (state,) = backend.stream([arm.home])
    except SimbridgeError as error:
        return failed("simulation", f"{error}", "Mend that, then try again.")
    off = float(abs(state.q - arm.home).max())
    return passed(
        "simulation", f"PyBullet moved {arm.name} through {backend.period * 1e3:g} ms; joints off by {degrees(off)} deg"
    )
