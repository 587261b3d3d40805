"""The process from which those of `ProcessTrial` are forked imports this once."""

from __future__ import annotations

from simbridge.cli import command_line, run_command, run_tables  # noqa: F401
from simbridge.running import repeating, runner  # noqa: F401
from simbridge.running.run_setup import prepare

# Compile, or load, the kernels that every run needs.
for _robot in ("ur10", "ur10e"):
    prepare("square_tracking", robot=_robot)
