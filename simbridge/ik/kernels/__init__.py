"""Compiled code for a chain, from mathematics that is written once, by public numba (docs/architecture.md)."""
