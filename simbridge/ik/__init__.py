"""Inverse-kinematics solvers: target poses in, joint setpoints out, never a look at the robot.

Import from the modules: `parameters` must stay quick to import for the command line, the solvers need numba.
"""
