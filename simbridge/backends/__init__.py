"""Execute a plan by simulation, URSim or a real arm, behind one interface.

The backends stand here by name: a new one is a subclass of `Backend` in a file of its own, and one
line here. What differs from one to another is asked of its `Capabilities`, never of its name.
"""

from __future__ import annotations

import importlib.util
import pkgutil
import platform
import sys
from typing import TYPE_CHECKING, NamedTuple

from simbridge.errors import InvalidParameter, MissingEngine, UnknownName

# This loads NumPy; the command line needs only the names.
if TYPE_CHECKING:
    from simbridge.backends.backend import Backend

BACKENDS = {
    "pybullet": "simbridge.backends.pybullet:PyBulletBackend",
    "mujoco": "simbridge.backends.mujoco:MujocoBackend",
    "ursim": "simbridge.backends.ursim_and_real:UrsimBackend",
    "real": "simbridge.backends.ursim_and_real:RealBackend",
}


class Engine(NamedTuple):
    """A physics engine that simulates an arm.

    Attributes:
        title: Name of the engine for people.
        install: The command that installs it; "" if there is no wheel of it.
    """

    title: str
    install: str


def pybullet_command(version: tuple[int, int], machine: str) -> str:
    """Return the command that installs PyBullet from a wheel; "" if there is none.

    Args:
        version: Major and minor version of Python.
        machine: The machine, such as "x86_64".
    """
    if machine != "x86_64" or version > (3, 13):
        return ""
    # PyBullet's own wheels end at Python 3.11; the other package has the same module.
    return "pip install pybullet" if version < (3, 12) else "pip install pybullet-arm64"


ENGINES = {
    "pybullet": Engine("PyBullet", pybullet_command(sys.version_info[:2], platform.machine())),
    "mujoco": Engine("MuJoCo", 'pip install "simbridge[mujoco]"'),
}
"""The engines by the names of their backends, which are those of their modules, too. The first one
that is installed is the default backend."""

LIVE_BACKENDS = (*ENGINES, "ursim", "real")
"""The backends on which a live session can run: the engines, and each `ControllerBackend`."""


def is_installed(engine: str) -> bool:
    """Return whether the module of an engine can be found; it is not imported."""
    spec = importlib.util.find_spec(engine)
    # A directory of that name in the working directory is found as well, but has no origin.
    return spec is not None and spec.origin is not None


def check_engine(engine: str) -> None:
    """Refuse an engine that is not installed.

    Raises:
        MissingEngine: It is not installed.
    """
    if is_installed(engine):
        return

    installed = [name for name in ENGINES if is_installed(name)]
    # If there is none, any will do. The last one has wheels everywhere: it comes first.
    choices = [ENGINES[engine]] if installed else reversed(ENGINES.values())
    install = "; or ".join(
        f"{choice.title} with: {choice.install}" for choice in choices if choice.install
    )
    raise MissingEngine(ENGINES[engine].title, install, installed)


def default_engine() -> str:
    """Return the first engine that is installed; the first of all if none is."""
    installed = [name for name in ENGINES if is_installed(name)]
    return installed[0] if installed else next(iter(ENGINES))


SIMULATION = default_engine()
"""The default backend."""


def replacement_note(backend: str) -> str:
    """Return a sentence on a default backend that replaces an engine that is not installed.

    Returns:
        The sentence; "" for another backend, and where the first engine is installed.
    """
    preferred = next(iter(ENGINES))
    if backend != SIMULATION or backend == preferred:
        return ""
    return f"Simulated with {ENGINES[backend].title}: {ENGINES[preferred].title} is not installed."


def backend_class(name: str) -> type[Backend]:
    """Import the module of a backend, and return its class.

    Raises:
        UnknownName: There is no backend of that name.
    """
    if name not in BACKENDS:
        raise UnknownName("backend", name, BACKENDS)
    backend: type[Backend] = pkgutil.resolve_name(BACKENDS[name])
    return backend


def is_simulated(name: str) -> bool:
    """Return whether the arm of a backend is simulated; False for a name that is not known here."""
    return name in BACKENDS and backend_class(name).capabilities.simulated_time


def check_live_backend(name: str) -> None:
    """Refuse a backend on which no live session can run.

    Raises:
        UnknownName: There is no backend of that name.
        InvalidParameter: The backend only runs plans.
        MissingEngine: Its physics engine is not installed.
    """
    if name not in BACKENDS:
        raise UnknownName("backend", name, BACKENDS)
    if name not in LIVE_BACKENDS:
        needed = (
            f"one of {', '.join(LIVE_BACKENDS)}: live sessions, teleop and the studio run only on "
            f"these; {name} runs plans (`simbridge run`)"
        )
        raise InvalidParameter("backend", name, needed)
    if name in ENGINES:
        check_engine(name)
