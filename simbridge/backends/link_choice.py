"""Choose the link through which a controller is commanded: ur_rtde, or simbridge's own client."""

from __future__ import annotations

import warnings
from importlib import util

from simbridge.errors import MissingPackage
from simbridge.planning.link_choices import LinkName
from simbridge.ur.errors import UnsupportedController
from simbridge.ur.polyscope_x import is_polyscope_x

# What keeps ur_rtde from commanding a controller, as clauses.
NOT_INSTALLED = "ur_rtde is not installed"
NOT_ON_POLYSCOPE_X = (
    "ur_rtde needs the dashboard server and port 30003, which PolyScope X does not have"
)

UR_RTDE_HINT = "It has wheels for Python 3.10 to 3.12 on x86_64 only; --link rtde works without it."

Version = tuple[int, int, int]


def obstacle_to_ur_rtde(version: Version | None) -> str:
    """Return what keeps ur_rtde from commanding a controller, as a clause; "" if nothing does.

    Args:
        version: Version of the controller's software; None if it is not known.
    """
    if version is not None and is_polyscope_x(version):
        return NOT_ON_POLYSCOPE_X
    # It is looked for, not loaded.
    return "" if util.find_spec("rtde_control") is not None else NOT_INSTALLED


def default_link(version: Version | None = None) -> LinkName:
    """Return the link to a controller where the user chooses none: ur_rtde where it is possible.

    Args:
        version: Version of the controller's software; None if it is not known.
    """
    return "rtde" if obstacle_to_ur_rtde(version) else "ur_rtde"


def choose_link(host: str, version: Version, choice: LinkName | None) -> LinkName:
    """Return the link to a controller, and warn if it is rtde although nobody chose it.

    Args:
        host: The controller's address.
        version: Version of the controller's software.
        choice: The user's choice; None for the default.

    Raises:
        MissingPackage: ur_rtde was chosen, and is not installed.
        UnsupportedController: ur_rtde was chosen, and cannot command this controller.
    """
    obstacle = obstacle_to_ur_rtde(version)
    if choice == "ur_rtde" and obstacle == NOT_INSTALLED:
        raise MissingPackage("ur-rtde", "--link ur_rtde", hint=UR_RTDE_HINT)
    if choice == "ur_rtde" and obstacle:
        version_text = ".".join(map(str, version))
        raise UnsupportedController(host, version_text, f"{obstacle}. Use --link rtde.")

    if choice is None and obstacle:
        warnings.warn(
            f"Commands are sent by simbridge's own RTDE client (--link rtde): {obstacle}.",
            stacklevel=2,
        )
    return choice or default_link(version)
