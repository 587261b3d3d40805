"""What a run leaves behind: the log that is written meanwhile, and the run directory around it."""
