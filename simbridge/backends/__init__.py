"""What executes a plan: simulation, URSim or a real arm, behind one interface.

The backends by name: a new one is a subclass of `Backend` in a file of its own, and one line here.
"""

from __future__ import annotations

import pkgutil
from typing import TYPE_CHECKING

from simbridge.errors import UnknownName

if TYPE_CHECKING:  # loads NumPy; the command line needs only the names
    from simbridge.backends.backend import Backend

SIMULATION = "pybullet"
"""The default backend."""

BACKENDS = {
    SIMULATION: "simbridge.backends.pybullet:PyBulletBackend",
    "ursim": "simbridge.backends.ursim_and_real:UrsimBackend",
    "real": "simbridge.backends.ursim_and_real:RealBackend",
}


def backend_class(name: str) -> type[Backend]:
    """The class of a backend; its module is imported here.

    Raises:
        UnknownName: There is no backend of that name.
    """
    if name not in BACKENDS:
        raise UnknownName("backend", name, BACKENDS)
    found: type[Backend] = pkgutil.resolve_name(BACKENDS[name])
    return found
