"""Rivals: solvers of other libraries, each written as the library's own documentation shows it."""
