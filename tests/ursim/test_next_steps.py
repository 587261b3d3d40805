"""What is left to do at the pendant of a URSim that has started."""

from __future__ import annotations

from dataclasses import replace

from simbridge.ur.errors import ConnectionLost
from simbridge.ursim.next_steps import (
    REMOTE_STEP,
    SERVICES_STEP,
    UNKNOWN_REMOTE_STEP,
    pendant_steps,
)
from tests.doctor.surveys import READ, SILENT, UR10, UR10E, with_pendant


def test_nothing_is_left_in_remote_control():
    assert pendant_steps(READ, UR10E) == []


def test_local_control_is_to_be_left():
    assert pendant_steps(with_pendant(remote_control=False), UR10E) == [REMOTE_STEP]


def test_older_software_does_not_tell():
    assert pendant_steps(with_pendant(remote_control=None), UR10E) == [UNKNOWN_REMOTE_STEP]


def test_services_that_are_off_are_named():
    lost = {29999: ConnectionLost("127.0.0.1", 29999, "it is silent")}

    steps = pendant_steps(replace(READ, pendant=None, lost=lost), UR10E)

    assert steps == [SERVICES_STEP.format("dashboard"), UNKNOWN_REMOTE_STEP]


def test_cb3_has_neither_setting():
    assert pendant_steps(SILENT, UR10) == []
