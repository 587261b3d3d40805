"""What a servo process that could not connect is explained by."""

from __future__ import annotations

import pytest

from simbridge.backends.servo_client import suspect_local_control
from simbridge.ur.errors import ConnectionLost, ScriptNotStarted
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
