"""Inverse-kinematics solvers: target poses in, joint setpoints out; they never read the robot's state.

Import from the modules. `settings` has every solver's settings and is quick to import; the solvers need pinocchio.
"""
