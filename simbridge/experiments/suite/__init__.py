"""The suite: every solver through the same motions and poses, on any arm.

`motions.py` makes what the solvers are given. A motion is a sequence of targets, one per control
period; a pose set is a list of single targets, each with a start of its own.
"""
