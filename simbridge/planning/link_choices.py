"""The choices of how a run commands its controller."""

from __future__ import annotations

from typing import Literal

# Whose RTDE client sends the commands: ur_rtde's, or simbridge's own.
LinkName = Literal["ur_rtde", "rtde"]
# The registers that carry the commands: 0 to 23, or 24 to 47.
RegisterRange = Literal["lower", "upper"]
