"""The time that the host of this virtual machine takes from it."""

from __future__ import annotations

import os
from pathlib import Path

LONGEST_STOLEN = 0.03
"""What keeps real time says nothing if the host took the cores for longer meanwhile, s. No priority
keeps real time where the computer stands still.
"""


def stolen() -> float:
    """Return for how long the host has not given the cores that were wanted, s; 0 on a real
    computer.
    """
    try:
        fields = Path("/proc/stat").read_text(encoding="ascii").split(maxsplit=9)
    except OSError:
        return 0.0
    return int(fields[8]) / os.sysconf("SC_CLK_TCK")
