"""How long the servo process may take to start, and why it could not connect."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from simbridge.backends import servo_client
from simbridge.backends.servo_client import LiveProgram, ServoProcess, suspect_local_control
from simbridge.backends.servo_config import ServoConfig
from simbridge.planning.guard import ArmLimits
from simbridge.ur.errors import ConnectionLost, ScriptNotStarted, ServoProcessLost
from tests.doctor.surveys import READ
from tests.doctor.test_polyscope_x_checks import CLOSED, polyscope_x

NOT_STARTED = ScriptNotStarted("192.0.2.7", 5.0)


@pytest.mark.parametrize(
    ("ports", "reason"),
    [
        (polyscope_x(7), r"from 10\.12 on"),
        (polyscope_x(14, lost=CLOSED), "the service HTTP"),
    ],
)
def test_where_remote_is_unknown_the_operator_is_asked(ports, reason):
    error = suspect_local_control(NOT_STARTED, ports)

    assert error.waited == 5.0
    assert error.question.startswith("Is it in Remote?")
    with pytest.raises(ScriptNotStarted, match=reason):
        raise error


@pytest.mark.parametrize(
    ("error", "ports"),
    [
        (NOT_STARTED, polyscope_x(12, remote_control=True)),
        (NOT_STARTED, READ),
        (ConnectionLost("192.0.2.7", 30001, "it is silent"), polyscope_x(7)),
    ],
)
def test_nobody_is_asked_without_need(error, ports):
    assert suspect_local_control(error, ports) is None


@contextmanager
def started(host):
    """A fake servo process that was started for the controller at an address."""
    limits = ArmLimits(
        name="arm",
        joint_names=("joint",),
        position_min=(-1.0,),
        position_max=(1.0,),
        max_velocity=(1.0,),
        max_velocity_jump=1.0,
    )
    config = ServoConfig(
        host=host,
        period=0.002,
        limits=limits,
        link="rtde",
        registers="lower",
        lookahead=0.1,
        gain=300.0,
        feedforward=False,
        follow_scaling=False,
        wait_in_pause=False,
        tcp=None,
        payload=None,
        payload_cog=None,
        priority=0,
    )
    program = LiveProgram("tests.backends.fake_servo_process", b"", lambda path: None)
    process = ServoProcess(config, program)
    try:
        yield process
    finally:
        process.stop()


def test_loading_takes_no_time_from_connecting(monkeypatch):
    monkeypatch.setattr(servo_client, "CONNECT_TIMEOUT_S", 0.0)

    with started("192.0.2.7") as process:
        ready = process.connect()

    assert ready["q"] == [0.1]


def test_a_process_that_never_loads_is_lost(monkeypatch):
    monkeypatch.setattr(servo_client, "START_TIMEOUT_S", 0.1)

    with started("stuck") as process, pytest.raises(ServoProcessLost) as lost:
        process.connect()

    assert lost.value.how == "had not started after 0.1 s"
