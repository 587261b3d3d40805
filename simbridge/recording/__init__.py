"""The record of a run: the log that is written meanwhile, and the run directory around it."""
