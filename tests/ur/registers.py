"""RTDE inputs held by another client."""

from __future__ import annotations

import time

from simbridge.emulator.handle import Emulator


def take(controller: Emulator, *names: str) -> None:
    """Hold these inputs, as soon as whoever asked for them before is seen to have gone."""
    for _ in range(500):
        if not controller.do("take_registers", names=list(names)):
            return
        time.sleep(0.01)
    raise AssertionError(f"{names} are claimed by another client")
