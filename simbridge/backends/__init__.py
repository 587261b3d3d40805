"""Execute a plan by simulation, URSim or a real arm, behind one interface.

The backends stand here by name: a new one is a subclass of `Backend` in a file of its own, and one
line here. What differs from one to another is asked of its `Capabilities`, never of its name.
"""

from __future__ import annotations

import pkgutil
from typing import TYPE_CHECKING

from simbridge.errors import InvalidParameter, UnknownName

# This loads NumPy; the command line needs only the names.
if TYPE_CHECKING:
    from simbridge.backends.backend import Backend

SIMULATION = "pybullet"
"""The default backend."""

BACKENDS = {
    SIMULATION: "simbridge.backends.pybullet:PyBulletBackend",
    "ursim": "simbridge.backends.ursim_and_real:UrsimBackend",
    "real": "simbridge.backends.ursim_and_real:RealBackend",
}

LIVE_BACKENDS = (SIMULATION, "ursim", "real")
"""Those on which a live session can run: PyBullet, and each `ControllerBackend`."""


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
        InvalidParameter: It only runs plans.
    """
    if name not in BACKENDS:
        raise UnknownName("backend", name, BACKENDS)
    if name not in LIVE_BACKENDS:
        needed = (
            f"one of {', '.join(LIVE_BACKENDS)}: live sessions, teleop and the studio run only on "
            f"these; {name} runs plans (`simbridge run`)"
        )
        raise InvalidParameter("backend", name, needed)
