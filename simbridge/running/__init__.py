"""Where the parts meet: one run, repeated runs, a live session."""
