"""Straight-line machine code for a chain, from mathematics that is written once.

expression     scalars that remember how they were computed, and the text they print
mathematics    frames, Jacobian, mass matrix, solves: plain functions of scalars
loops          what runs over iterations and targets: plain functions of arrays
source         a chain and its mathematics, printed as a module
cache          that module, compiled once for all processes
kernel         the compiled functions of a robot
"""
