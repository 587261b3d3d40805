"""The command line: commands, flags, and what the terminal shows."""
