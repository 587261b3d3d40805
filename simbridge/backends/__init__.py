"""What setpoints can be sent to."""

from simbridge.backends.backend import ArmState, Backend, Capabilities

__all__ = ["ArmState", "Backend", "Capabilities"]
