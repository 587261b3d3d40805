"""What ended a run is named from evidence: never by default, and never from another's attribute."""

from __future__ import annotations

import errno
import signal

import pytest

import simbridge
from simbridge.backends.backend import Ending, cause_of
from simbridge.errors import (
    GuardViolation,
    LogWriteError,
    MissingPackage,
    OutputError,
    PlanRefused,
    SimbridgeError,
)
from simbridge.recording.log_writer import LogWriter
from simbridge.recording.run_directory import RunDirectory
from simbridge.running.signals import SignalReceived
from simbridge.ur import errors

HOST = "192.0.2.7"
SENT = Ending(arm_at_rest=True, script_ended=True)
REFUSED = PlanRefused("It is too fast.", sample=1, time=0.1, value=2.0, limit=1.0)


class Foreign(Exception):
    cause = ValueError("of a library")


class ForeignInterrupt(KeyboardInterrupt):
    cause = "of a library"


@pytest.mark.parametrize(
    ("error", "before", "in_motion"),
    [
        # Refusals, whenever: what they refuse is not sent.
        (REFUSED, "refused", "refused"),
        (MissingPackage("pybullet", "The simulation"), "refused", "refused"),
        (errors.NotConfirmed("No."), "refused", "refused"),
        (errors.ModelMismatch(HOST, "serial number", "1", "2", ""), "refused", "refused"),
        (errors.SpeedScaled(HOST, 0.3, moving=False), "refused", "refused"),
        # What a check of ours stops.
        (GuardViolation("It jumps.", rule="velocity"), "guard", "guard"),
        (errors.SpeedScaled(HOST, 0.3), "guard", "guard"),
        # What proves nothing but itself.
        (SimbridgeError("?"), "refused", "unknown"),
        (errors.StartNotReached(HOST, "elbow_joint", 0.1), "refused", "unknown"),
        (LogWriteError("log.mcap", 100, errno.EIO), "refused", "unknown"),
        (LogWriteError("log.mcap", 100, errno.EROFS), "refused", "unknown"),
        (OutputError("run", "it was deleted"), "refused", "unknown"),
        (LogWriteError("log.mcap", 100, errno.ENOSPC), "disk_full", "disk_full"),
        # What was seen.
        (
            errors.ConnectionLost(HOST, 30004, "the connection has ended"),
            "connection_lost",
            "connection_lost",
        ),
        (errors.ArmChanged(HOST, "payload", "1 kg", "2 kg", ""), "arm_changed", "arm_changed"),
        (SignalReceived(signal.SIGTERM), "terminated", "terminated"),
        (KeyboardInterrupt(), "interrupted", "interrupted"),
        # Errors of others.
        (Foreign("?"), "internal_error", "internal_error"),
        (ForeignInterrupt(), "interrupted", "interrupted"),
    ],
)
def test_the_cause_is_what_the_error_proves_and_refused_only_where_nothing_was_sent(
    error, before, in_motion
):
    assert (cause_of(error, None), cause_of(error, SENT)) == (before, in_motion)


def test_what_the_controller_showed_comes_before_our_error():
    shown = Ending(shown=["program_replaced", "power_off", "emergency_stop"])
    assert cause_of(Foreign(), shown) == "emergency_stop"


def test_a_disk_that_fails_in_motion_is_an_unknown_cause_whose_evidence_is_the_error(
    line, tmp_path, monkeypatch
):
    def fail(log, _sample):
        raise LogWriteError(tmp_path / "log.mcap", 0, errno.EIO)

    monkeypatch.setattr(LogWriter, "write", fail)
    with pytest.raises(LogWriteError):
        simbridge.run(line, out=tmp_path / "run")
    ended_by = RunDirectory.open(tmp_path / "run").summary()["ended_by"]
    assert ended_by["cause"] == "unknown"
    assert (
        ended_by["evidence"][0].startswith("LogWriteError: The log")
        and "EIO" in ended_by["evidence"][0]
    )
