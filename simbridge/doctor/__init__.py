"""`simbridge doctor`: would a run work here? Looks, moves nothing, and never constructs ur_rtde's control interface."""

from simbridge.doctor.doctor import doctor
from simbridge.doctor.finding import Finding

__all__ = ["Finding", "doctor"]
