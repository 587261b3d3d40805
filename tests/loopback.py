"""Addresses for controllers in tests: UR's ports are fixed, so each controller needs its own address."""

from __future__ import annotations

import os


def loopback(number: int) -> str:
    """A loopback address, by its last byte, that only this process uses: workers and runs do not disturb each other."""
    pid = os.getpid()
    return f"127.{1 + (pid >> 8) % 254}.{pid % 256}.{number}"
