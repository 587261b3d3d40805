"""A plugin for pytest: the fixture `simbridge_emulator`.

Every run of pytest where simbridge is installed loads it, so it imports next to nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from simbridge.emulator.handle import Emulator

MARKER_HELP = (
    "simbridge_emulator(...): arguments of simbridge.emulator.Emulator, for the fixture of the "
    "same name."
)


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker, for --strict-markers."""
    config.addinivalue_line("markers", MARKER_HELP)


@pytest.fixture
def simbridge_emulator(request: pytest.FixtureRequest) -> Iterator[Emulator]:
    """An emulated UR10e on an address of its own, powered on.

    @pytest.mark.simbridge_emulator(...) passes other arguments. Its log is printed at the end:
    pytest shows it for a test that fails.
    """
    # Imported here, since it imports NumPy: tests without an emulator should not wait for that.
    from simbridge.emulator.handle import Emulator  # noqa: PLC0415

    arguments: tuple[Any, ...] = ()
    options: dict[str, Any] = {"host": _process_address()}
    marker = request.node.get_closest_marker("simbridge_emulator")
    if marker is not None:
        arguments = marker.args
        options |= marker.kwargs

    with Emulator(*arguments, **options) as controller:
        yield controller
        print(controller.log)


def _process_address() -> str:
    """Return a loopback address that no other process uses, such as a worker of pytest-xdist."""
    pid = os.getpid()
    return f"127.{1 + pid // 256 % 254}.{pid % 256}.1"
