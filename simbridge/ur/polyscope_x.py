"""Describe how PolyScope X differs: its versions, its services, and how they are switched on.

PolyScope X has no dashboard server. A script is sent to the primary interface, which accepts it in
Remote only; states are read by RTDE. From 10.11 on there is the Robot API, an interface of HTTP
(`robot_api.py`), which is not needed to move the arm.

Sources: the documentation and the code of UR's client library; UR's manuals of PolyScope X 10.12
(remote mode) and 10.14 (access by HTTP).
"""

from __future__ import annotations

from collections.abc import Sequence

from simbridge.ur.errors import RemoteControlDisabled
from simbridge.ur.tables import PRIMARY, REST, RTDE

# The first major version of PolyScope X.
POLYSCOPE_X_MAJOR = 10
# The oldest version that UR's own client library drives, major and minor.
OLDEST_DRIVEN = (10, 7)
# The first versions with the Robot API, with its report of Local or Remote, and with that of the
# serial number.
ROBOT_API_SINCE = (10, 11)
CONTROL_MODE_SINCE = (10, 12)
SERIAL_NUMBER_SINCE = (10, 14)
# The first version in which the Robot API is a service that is switched off by default.
HTTP_SWITCH_SINCE = (10, 14)

# The Robot API's path in front of all others, and that of its description, which has its version.
ROBOT_API_PATH = "/universal-robots/robot-api"
ROBOT_API_DESCRIPTION = "/openapi.json"

# The ports that simbridge needs on PolyScope X.
NEEDED_PORTS = (PRIMARY, RTDE)
# The switches of the services, by their ports, and the page of the pendant that has them.
SERVICES = {PRIMARY: "Primary", RTDE: "RTDE", REST: "HTTP"}
SERVICES_PAGE = "Settings > Security > Services"

REMOTE_REMEDY = (
    "At the pendant, open Safety Overview > Mode Selection, choose Automatic, then Remote. The "
    "pendant is read-only until it is set back to Local."
)


def is_polyscope_x(version: Sequence[int]) -> bool:
    """Return whether a version of the controller's software, major first, is PolyScope X."""
    return version[0] >= POLYSCOPE_X_MAJOR


def has_robot_api(version: Sequence[int]) -> bool:
    """Return whether a version of the controller's software has the Robot API."""
    return tuple(version[:2]) >= ROBOT_API_SINCE


def service_remedy(port: int) -> str:
    """Return how the service of a port is switched on at the pendant of PolyScope X."""
    return f"At the pendant, switch on {SERVICES[port]} under {SERVICES_PAGE}."


def remote_control_disabled(host: str, version: Sequence[int]) -> RemoteControlDisabled:
    """Return the error for local control, with the remedy at the pendant of a version."""
    if is_polyscope_x(version):
        return RemoteControlDisabled(host, REMOTE_REMEDY)
    return RemoteControlDisabled(host)
