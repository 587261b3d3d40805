"""Inverse-kinematics solvers: target poses in, joint setpoints out.

They never read the robot's state. Import from the modules: `settings` names every solver and is
quick to import; the solvers, each beside its settings, need pinocchio.
"""

from typing import Literal, TypeAlias

VelocityLimits: TypeAlias = Literal["enforced", "none"]
"""Whether each step of a solver keeps the velocity limits of the joints."""
