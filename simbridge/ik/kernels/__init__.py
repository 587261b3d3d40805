"""Compiled code for a chain, from mathematics that is written once, by public numba.

expression        scalars that record how they were computed, and print it as Python
mathematics       mass matrix, error, linear solves: plain functions of scalars
source            the text of a module: straight-line code for a chain, and the loops that call it
compile           writes a module's text to the cache directory, imports it, and compiles it
forward_dynamics  the loops of the forward-dynamics solver
descent           the loops of the iterative solvers, with `step` and `null_space`
dense             small linear solves and the singular value decomposition
"""
