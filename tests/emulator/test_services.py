"""The ports of a version, and the services that are switched on."""

from __future__ import annotations

import pytest

from simbridge.emulator.services import closed_ports, controller_ports
from simbridge.emulator.state import PROFILES
from simbridge.errors import InvalidParameter, UnknownName
from tests.emulator.fake_controller import stand


@pytest.mark.parametrize(
    ("polyscope", "ports"),
    [
        ("3.15", {29999, 30001, 30002, 30003, 30004}),
        ("5.25", {29999, 30001, 30002, 30003, 30004}),
        ("10.7", {30001, 30004}),
        ("10.12", {30001, 30004, 80}),
        ("10.14", {30001, 30004, 80}),
    ],
)
def test_a_version_has_its_ports(polyscope, ports):
    assert set(controller_ports(PROFILES[polyscope])) == ports


@pytest.mark.parametrize(
    ("polyscope", "services", "closed"),
    [
        ("5.12", None, set()),
        ("10.7", None, set()),
        ("10.12", None, set()),
        ("10.14", None, {80}),
        ("10.14", "primary,rtde,http", set()),
        ("10.14", "http", {30001, 30004}),
        ("10.7", "none", {30001, 30004}),
        ("10.12", "primary", {30004}),
    ],
)
def test_a_service_that_is_not_on_has_a_closed_port(polyscope, services, closed):
    assert set(closed_ports(PROFILES[polyscope], services)) == closed


@pytest.mark.parametrize(
    ("polyscope", "services"), [("10.7", "http"), ("10.12", "http"), ("10.14", "dashboard")]
)
def test_a_service_without_a_switch_is_refused(polyscope, services):
    with pytest.raises(UnknownName, match="service"):
        closed_ports(PROFILES[polyscope], services)


def test_only_polyscope_x_has_switches():
    with pytest.raises(InvalidParameter, match="only PolyScope X"):
        closed_ports(PROFILES["5.12"], "primary")


def test_polyscope_x_opens_its_ports_alone():
    with stand("10.14") as served:
        assert set(served.servers.ports) == {30001, 30004, 80}
