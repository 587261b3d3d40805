"""A plugin for pytest: the fixture `simbridge_emulator`. Every run of pytest where simbridge is installed loads it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from simbridge.emulator.handle import Emulator

_MARKER = "simbridge_emulator(...): arguments of simbridge.emulator.Emulator, for the fixture of the same name."


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker, for --strict-markers."""
    config.addinivalue_line("markers", _MARKER)


@pytest.fixture
def simbridge_emulator(request: pytest.FixtureRequest) -> Iterator[Emulator]:
    """An emulated UR10e on an address of its own, powered on; @pytest.mark.simbridge_emulator(...) has other arguments.

    Its log is printed at the end: pytest shows it for a test that fails.
    """
    # Numpy, which other people's tests should not wait for.
    from simbridge.emulator.handle import Emulator  # noqa: PLC0415

    marker = request.node.get_closest_marker("simbridge_emulator")
    positional, named = ((), {}) if marker is None else (marker.args, marker.kwargs)
    with Emulator(*positional, **{"host": _own_address(), **named}) as controller:
        yield controller
        print(controller.log)


def _own_address() -> str:
    """A loopback address that other processes, such as workers of pytest-xdist, do not use."""
    pid = os.getpid()
    return f"127.{1 + pid // 256 % 254}.{pid % 256}.1"
