"""`simbridge doctor`: would a run work here?

It reads and measures; it moves nothing and never loads ur_rtde.
"""

from simbridge.doctor.doctor import doctor
from simbridge.doctor.findings import Finding

__all__ = ["Finding", "doctor"]
