"""What ends a run while it moves."""

from __future__ import annotations

from simbridge.errors.root import SimbridgeError


class GuardViolation(SimbridgeError, RuntimeError):
    """A setpoint that the guard did not let out. The arm was stopped, and nothing passes until `recover()`.

    Attributes:
        rule: "shape", "finite", "position", "velocity", "distance", "collision" (live only) or "latched".
        joint: The joint's name, or None.
        value: What was asked for, in SI units, or None.
        limit: What is allowed, in SI units, or None.
    """

    def __init__(
        self,
        message: str,
        *,
        rule: str,
        joint: str | None = None,
        value: float | None = None,
        limit: float | None = None,
    ) -> None:
        self.rule = rule
        self.joint = joint
        self.value = value
        self.limit = limit
        super().__init__(message)


class Interrupted(SimbridgeError, KeyboardInterrupt):
    """Ctrl-C during a run. The arm was stopped."""


class InternalError(SimbridgeError, RuntimeError):
    """A mistake of simbridge's own, in a process that cannot show it by itself. The arm was stopped.

    Attributes:
        where: The part at fault, as in "servo process".
        trace: Its traceback, as text.
    """

    def __init__(self, where: str, trace: str) -> None:
        self.where = where
        self.trace = trace
        lines = trace.strip().splitlines()
        super().__init__(f"The {where} has ended because of a mistake of its own: {lines[-1] if lines else 'unknown'}")
