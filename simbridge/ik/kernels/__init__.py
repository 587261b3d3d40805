"""The solvers' compiled code, from mathematics that is written once (docs/internals.md)."""
