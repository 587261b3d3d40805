"""URScript: parsed, compiled to Python generators, and run a tick at a time."""
