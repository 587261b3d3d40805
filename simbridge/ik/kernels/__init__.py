"""Straight-line machine code for a chain, from mathematics that is written once.

expression     scalars that remember how they were computed, and the text they print
mathematics    frames, Jacobian, mass matrix, solves: plain functions of scalars
loops          what runs over iterations and targets: plain functions of arrays
source         a chain and its mathematics, printed as a module
lazy           functions that are compiled when they are first needed
routine        a compiled function, its arguments in one block, found again by the next process
machine_code   what numba makes of it, the first time
cache          where that is kept
engine         where it runs
kernel         the routines of a robot
"""
