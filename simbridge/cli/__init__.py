"""The command line: commands, flags, and what the terminal shows."""

from simbridge.cli.command_line import main, run_as_script

__all__ = ["main", "run_as_script"]
