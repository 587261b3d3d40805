"""Sweeps: many runs in simulation, on all cores or on a cluster.

The package is not called `sweep`, because `simbridge.sweep` is a function.
"""
