"""What a run leaves behind: the log that is written while it goes on, and the run directory around it."""
