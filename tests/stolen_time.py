"""The time that the host of this virtual machine takes from it."""

from __future__ import annotations

import os
from pathlib import Path

LONGEST_STOLEN = 0.03
"""The longest time for which the host may take the cores during a test of real time, s. After more,
a failure says nothing: no priority keeps real time where the computer stands still.
"""


def stolen_time() -> float:
    """Return for how long the host has not given the cores that were wanted, s; 0 on a real
    computer.
    """
    try:
        fields = Path("/proc/stat").read_text(encoding="ascii").split(maxsplit=9)
    except OSError:
        return 0.0
    return int(fields[8]) / os.sysconf("SC_CLK_TCK")
