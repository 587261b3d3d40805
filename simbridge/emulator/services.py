"""The ports of a controller, and which of its services are switched on.

On PolyScope X an operator switches services on and off at the pendant; a port whose service is off
is closed. Sources: `ur/polyscope_x.py`.
"""

from __future__ import annotations

from simbridge.emulator.state import Profile
from simbridge.errors import InvalidParameter, UnknownName
from simbridge.ur.polyscope_x import HTTP_SWITCH_SINCE, SERVICES
from simbridge.ur.tables import DASHBOARD, PRIMARY, REALTIME, REST, RTDE, SECONDARY

# The ports on CB3 and e-Series.
STANDARD_PORTS = (DASHBOARD, PRIMARY, SECONDARY, REALTIME, RTDE)
# The ports on PolyScope X. UR's documents contradict each other, or are silent, on whether it has
# the secondary and the real-time interface, so nothing may rely on these.
POLYSCOPE_X_PORTS = (PRIMARY, RTDE)


def controller_ports(profile: Profile) -> tuple[int, ...]:
    """Return the standard numbers of the ports that a version has."""
    if not profile.is_polyscope_x:
        return STANDARD_PORTS
    return (*POLYSCOPE_X_PORTS, REST) if profile.api_version else POLYSCOPE_X_PORTS


def closed_ports(profile: Profile, services: str | None) -> tuple[int, ...]:
    """Return the ports whose services are switched off.

    Args:
        profile: The version.
        services: The services that are on, such as "primary,rtde", separated by commas, or "none";
            None for those that a run needs, and HTTP where it has no switch.

    Raises:
        InvalidParameter: The version has no switches.
        UnknownName: There is no such service.
    """
    switchable = _switchable_ports(profile)
    if services is None:
        return tuple(port for port in switchable.values() if port == REST)

    if not switchable:
        needed = "left out: only PolyScope X (10.7, 10.12, 10.14) is emulated with such switches"
        raise InvalidParameter("services", services, needed)
    names = [] if services == "none" else services.split(",")
    for name in names:
        if name not in switchable:
            where = f"of PolyScope {profile.polyscope}"
            raise UnknownName("service", name, [*switchable, "none"], where=where)
    return tuple(port for name, port in switchable.items() if name not in names)


def _switchable_ports(profile: Profile) -> dict[str, int]:
    """Return the ports whose services have a switch, by the names of the services."""
    if not profile.is_polyscope_x:
        return {}
    ports = {SERVICES[port].lower(): port for port in POLYSCOPE_X_PORTS}
    if profile.version[:2] >= HTTP_SWITCH_SINCE:
        ports[SERVICES[REST].lower()] = REST
    return ports
