"""Imported once by the process from which the processes of `ProcessTrial` are forked."""

from __future__ import annotations

from simbridge.cli import command_line, run_command, run_tables  # noqa: F401
from simbridge.running import repeating, runner  # noqa: F401
from simbridge.running.run_setup import prepare

for _robot in ("ur10", "ur10e"):
    # Compiles, or loads, the kernels that every run needs.
    prepare("square_tracking", robot=_robot)
