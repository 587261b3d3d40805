"""The suite: every solver follows the same motions and solves the same poses, on any arm.

`motion_makers.py` makes the motions and sets of poses. A motion is a sequence of targets, one per
control period; a set of poses is a list of single targets, each with its own start.
"""
