"""The cause of a run's end is named from evidence.

It is never a default, and never an attribute of a foreign exception.
"""

from __future__ import annotations

import errno
import signal

import pytest

from simbridge.backends.backend import Ending, cause_of
from simbridge.errors import (
    GuardViolation,
    LogWriteError,
    MissingPackage,
    OutputError,
    PlanRefused,
    SimbridgeError,
)
from simbridge.running.signals import SignalReceived
from simbridge.ur import errors

HOST = "192.0.2.7"
SENT = Ending(arm_at_rest=True, script_ended=True)
REFUSED = PlanRefused("It is too fast.", sample=1, time=0.1, value=2.0, limit=1.0)


class ForeignError(Exception):
    """An error of a library, which has an attribute of the same name as ours."""

    cause = ValueError("of a library")


class ForeignInterrupt(KeyboardInterrupt):
    """An interrupt of a library, which has such an attribute."""

    cause = "of a library"


@pytest.mark.parametrize(
    ("error", "before", "in_motion"),
    [
        # A refusal is one at any time: what it refuses is not sent.
        (REFUSED, "refused", "refused"),
        (MissingPackage("pybullet", "The simulation"), "refused", "refused"),
        (errors.NotConfirmed("No."), "refused", "refused"),
        (
            errors.ModelMismatch(HOST, "serial number", actual="1", expected="2", remedy=""),
            "refused",
            "refused",
        ),
        (errors.SpeedScaled(HOST, 0.3, moving=False), "refused", "refused"),
        # A check of ours stops these.
        (GuardViolation("It jumps.", rule="velocity"), "guard", "guard"),
        (errors.SpeedScaled(HOST, 0.3), "guard", "guard"),
        # These prove nothing but themselves.
        (SimbridgeError("?"), "refused", "unknown"),
        (errors.StartNotReached(HOST, "elbow_joint", 0.1), "refused", "unknown"),
        (LogWriteError("log.mcap", 100, errno.EIO), "refused", "unknown"),
        (LogWriteError("log.mcap", 100, errno.EROFS), "refused", "unknown"),
        (OutputError("run", "it was deleted"), "refused", "unknown"),
        (LogWriteError("log.mcap", 100, errno.ENOSPC), "disk_full", "disk_full"),
        # These were seen.
        (
            errors.ConnectionLost(HOST, 30004, "the connection has ended"),
            "connection_lost",
            "connection_lost",
        ),
        (
            errors.ArmChanged(HOST, "payload", actual="1 kg", expected="2 kg", remedy=""),
            "arm_changed",
            "arm_changed",
        ),
        (SignalReceived(signal.SIGTERM), "terminated", "terminated"),
        (KeyboardInterrupt(), "interrupted", "interrupted"),
        # Errors of libraries.
        (ForeignError("?"), "internal_error", "internal_error"),
        (ForeignInterrupt(), "interrupted", "interrupted"),
    ],
)
def test_the_cause_is_what_the_error_proves(error, before, in_motion):
    assert cause_of(error, None) == before
    assert cause_of(error, SENT) == in_motion


def test_what_the_controller_showed_comes_before_our_error():
    shown = Ending(shown=["program_replaced", "power_off", "emergency_stop"])

    assert cause_of(ForeignError(), shown) == "emergency_stop"
