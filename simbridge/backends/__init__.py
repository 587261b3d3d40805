"""Execute a plan by simulation, URSim or a real arm, behind one interface.

The backends stand here by name: a new one is a subclass of `Backend` in a file of its own, and one
line here.
"""

from __future__ import annotations

import pkgutil
from typing import TYPE_CHECKING

from simbridge.errors import UnknownName

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


def backend_class(name: str) -> type[Backend]:
    """Import the module of a backend, and return its class.

    Raises:
        UnknownName: There is no backend of that name.
    """
    if name not in BACKENDS:
        raise UnknownName("backend", name, BACKENDS)
    backend: type[Backend] = pkgutil.resolve_name(BACKENDS[name])
    return backend
