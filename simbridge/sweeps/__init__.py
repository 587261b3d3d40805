"""Sweeps: many runs in simulation, on all cores or on a cluster (`simbridge.sweep` is a function)."""
