"""The motion that one program leaves to the program that replaces it.

Clients stream speedj, speedl or servoj as programs of one line, many times a second. On real arms
the motion goes on from one line to the next (docs/emulator_fidelity.md). A program is compiled
before it runs, so the arm has to be kept moving for some ticks without a program.
"""

from __future__ import annotations

from simbridge.emulator.drive import Drive
from simbridge.emulator.motions import ArmMotion, HoldMotion

# Longest time for which an arm goes on without the program that moved it, s.
LONGEST_HANDOVER_S = 0.1


class Handover:
    """Keeps the arm moving until the next program takes over; brakes it when none does in time.

    Args:
        drive: Moves the joints.
        period: Control period, s.
    """

    def __init__(self, drive: Drive, period: float) -> None:
        self._drive = drive
        self._max_ticks = round(LONGEST_HANDOVER_S / period)
        # The motion that waits to be taken over; None without one.
        self._motion: ArmMotion | None = None
        # Ticks until the arm brakes.
        self._remaining = 0

    def begin(self) -> None:
        """Keep the present motion for the next program."""
        self._motion = self._drive.motion
        self._remaining = self._max_ticks

    def end(self) -> None:
        """Leave the present motion to the program that has taken over, or to the end of one."""
        self._motion = None

    def tick(self) -> None:
        """Count a tick, after the program has run in it."""
        if self._motion is None:
            return
        if self._drive.motion is not self._motion:
            self._motion = None
            return

        self._remaining -= 1
        if self._remaining <= 0:
            self._drive.motion = HoldMotion()
            self._motion = None
