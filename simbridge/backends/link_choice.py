"""Choose the link through which a controller is commanded: ur_rtde, or simbridge's own client."""

from __future__ import annotations

import warnings
from importlib import util

from simbridge.errors import MissingPackage
from simbridge.planning.link_choices import LinkName
from simbridge.ur.controller_facts import ControllerFacts
from simbridge.ur.errors import ControllerError, UnsupportedController
from simbridge.ur.polyscope_x import is_polyscope_x

# What keeps ur_rtde from commanding a controller, as clauses.
NOT_INSTALLED = "ur_rtde is not installed"
REALTIME_IS_SILENT = "ur_rtde needs port 30003, which does not answer"
NOT_ON_POLYSCOPE_X = "ur_rtde needs the dashboard server, which PolyScope X does not have"

UR_RTDE_HINT = "It has wheels for Python 3.10 to 3.12 on x86_64 only; --link rtde works without it."

# Version of a controller's software, major first: two numbers at least.
Version = tuple[int, ...]


def is_ur_rtde_installed() -> bool:
    """Return whether ur_rtde is installed; it is not loaded."""
    return util.find_spec("rtde_control") is not None


def obstacle_to_ur_rtde(
    version: Version | None = None, realtime_error: ControllerError | None = None
) -> str:
    """Return what keeps ur_rtde from commanding a controller, as a clause; "" if nothing does.

    Args:
        version: Version of the controller's software; None if it is not known.
        realtime_error: The error of its real-time port; None if the port answers.
    """
    if version is not None and is_polyscope_x(version):
        return NOT_ON_POLYSCOPE_X
    if not is_ur_rtde_installed():
        return NOT_INSTALLED
    return "" if realtime_error is None else REALTIME_IS_SILENT


def default_link(
    version: Version | None = None, realtime_error: ControllerError | None = None
) -> LinkName:
    """Return the link to a controller if nobody chooses one, as far as the controller is known.

    Args:
        version: Version of the controller's software; None if it is not known.
        realtime_error: The error of its real-time port; None if the port answers, or is not known.
    """
    return "rtde" if obstacle_to_ur_rtde(version, realtime_error) else "ur_rtde"


def choose_link(facts: ControllerFacts, choice: LinkName | None) -> LinkName:
    """Return the link to a controller, and warn if it is rtde although nobody chose it.

    Args:
        facts: Facts of the controller.
        choice: The user's choice; None for the default, ur_rtde where it is possible.

    Raises:
        MissingPackage: ur_rtde was chosen, and is not installed.
        UnsupportedController: ur_rtde was chosen, and cannot command this controller.
        ConnectionLost: ur_rtde was chosen, and the real-time port does not answer.
    """
    obstacle = obstacle_to_ur_rtde(facts.state.version, facts.realtime_error)
    if choice == "rtde" or not obstacle:
        return choice or "ur_rtde"

    if choice is None:
        warnings.warn(
            f"Commands are sent by simbridge's own RTDE client (--link rtde): {obstacle}.",
            stacklevel=2,
        )
        return "rtde"

    # Refuse ur_rtde, and name what stands in its way.
    if obstacle == NOT_ON_POLYSCOPE_X:
        reason = f"{obstacle}. Use --link rtde."
        raise UnsupportedController(facts.host, facts.state.version_text, reason)
    if obstacle == NOT_INSTALLED:
        raise MissingPackage("ur-rtde", "--link ur_rtde", hint=UR_RTDE_HINT)
    assert facts.realtime_error is not None
    raise facts.realtime_error
