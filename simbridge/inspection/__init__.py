"""`simbridge inspect`: what a trajectory is like before anything is planned for it."""

from simbridge.inspection.facts import Facts, inspect

__all__ = ["Facts", "inspect"]
