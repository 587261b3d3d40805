"""How long tests wait for events: on a busy computer what takes a moment may take minutes."""

PATIENCE = 300.0
"""The longest wait for an event that comes unless something is broken, s."""
