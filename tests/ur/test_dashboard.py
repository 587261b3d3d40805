"""The dashboard client with the emulator, compared with ur_rtde's client, and with fake ports."""

from __future__ import annotations

import time

import pytest

from simbridge.ur.dashboard import DashboardClient
from simbridge.ur.errors import CommandRefused, ConnectionLost, RemoteControlDisabled
from tests.controllers import loopback
from tests.emulator.fake_controller import RealController, stand
from tests.optional_packages import needs_ur_rtde
from tests.ur.conftest import E_SERIES
from tests.ur.fake_ports import dashboard, listening, saying

HOST = E_SERIES
LOCAL = loopback(83)
FAKE = loopback(84)
PORT = 29999
CB3 = {
    "PolyscopeVersion": "URSoftware 3.5.1.10661 (Mar 22 2018)",
    "safetymode": "Safetymode: NORMAL",
}


@pytest.fixture
def controller(e_series):
    return e_series


@pytest.fixture
def client(controller):
    with DashboardClient(HOST) as client:
        yield client


def fake(answers):
    return listening(FAKE, PORT, dashboard(answers))


def test_the_greeting_is_kept(client):
    assert client.greeting == "Connected: Universal Robots Dashboard Server"


@needs_ur_rtde
def test_it_reads_the_same_as_ur_rtdes_client(controller, client):
    import dashboard_client

    theirs = dashboard_client.DashboardClient(HOST)
    theirs.connect(2000)
    try:
        assert client.polyscope_version() in theirs.polyscopeVersion()
        assert client.serial_number() == theirs.getSerialNumber()
        assert client.is_in_remote_control() is theirs.isInRemoteControl() is True
        assert client.robot_mode() in theirs.robotmode()
        assert client.safety_status() in theirs.safetystatus()
    finally:
        theirs.disconnect()


def test_local_control_is_an_error(controller, client):
    controller.do("remote_control", on=False)
    try:
        assert client.is_in_remote_control() is False

        with pytest.raises(RemoteControlDisabled, match="Remote Control"):
            client.stop()
    finally:
        controller.do("remote_control", on=True)


def test_a_program_is_seen_and_stopped(controller, client):
    controller.do("run_script", source="def forever():\n  while True:\n    sync()\n  end\nend\n")

    controller.wait_for("runtime_state", "PLAYING")

    assert client.ask("programState").startswith("PLAYING")

    client.stop()
    controller.wait_for("runtime_state", "STOPPED")


def test_a_protective_stop_is_unlocked_later():
    """Ticked by hand: five seconds of the controller's clock take none of ours."""
    running = RealController("ur10e", "5.12")
    with (
        stand(host=LOCAL, ports={}, controller=running) as served,
        DashboardClient(LOCAL) as client,
    ):
        with served.lock:
            served.controller.protective_stop()

        served.tick(5)

        assert client.safety_status() == "PROTECTIVE_STOP"

        with pytest.raises(CommandRefused) as refused:
            client.unlock_protective_stop()

        assert refused.value.command == "unlock protective stop"
        assert "5s" in refused.value.answer.replace(" ", "")

        client.close_safety_popup()
        served.tick(2500)

        client.unlock_protective_stop()

        assert client.safety_status() == "NORMAL"


def test_power_and_brakes_are_switched(controller, client):
    assert client.ask("power off") == "Powering off"

    controller.wait_for("robot_mode", "POWER_OFF")
    client.power_on()
    controller.wait_for("robot_mode", "IDLE")
    client.brake_release()

    controller.wait_for("robot_mode", "RUNNING")

    assert client.robot_mode() == "RUNNING"


def test_an_old_version_reports_none():
    with fake(CB3), DashboardClient(FAKE) as client:
        assert client.polyscope_version() == "3.5.1.10661"
        assert client.serial_number() is None
        assert client.is_in_remote_control() is None
        assert client.safety_status() == "NORMAL"
        assert client.loaded_program() == ""


def test_a_loaded_program_is_named():
    answers = {"get loaded program": "Loaded program: /programs/pick: left.urp"}
    with fake(answers), DashboardClient(FAKE) as client:
        assert client.loaded_program() == "/programs/pick: left.urp"


def test_a_refused_command_is_reported_with_the_answer():
    with (
        fake({"stop": "Failed to execute: stop"}),
        DashboardClient(FAKE) as client,
        pytest.raises(CommandRefused, match="Failed to execute: stop") as refused,
    ):
        client.stop()

    assert refused.value.host == FAKE
    assert refused.value.command == "stop"


def test_an_answer_in_pieces_is_joined():
    def talk(connection):
        connection.sendall(b"Hel")
        connection.sendall(b"lo\n")
        connection.recv(100)
        for piece in (b"2026", b"123", b"\n"):
            time.sleep(0.01)
            connection.sendall(piece)
        connection.recv(100)

    with listening(FAKE, PORT, talk), DashboardClient(FAKE) as client:
        assert client.greeting == "Hello"
        assert client.serial_number() == "2026123"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("talk", "reason"),
    [
        (saying(b""), "no greeting was received within 0.2 s"),
        (saying(b"half a greeting"), "no greeting was received within 0.2 s"),
        (lambda connection: None, "closed the connection"),
        (saying(b"x" * 100_000), "never ends"),
    ],
    ids=["silent", "half", "hang-up", "endless"],
)
def test_a_port_without_a_greeting_is_named(talk, reason):
    with listening(FAKE, PORT, talk), pytest.raises(ConnectionLost, match=reason) as lost:
        DashboardClient(FAKE, timeout=0.2)

    assert lost.value.host == FAKE
    assert lost.value.port == PORT


@pytest.mark.slow
def test_silence_after_the_greeting_names_the_command():
    with (
        listening(FAKE, PORT, saying(b"Connected\n")),
        DashboardClient(FAKE, timeout=2.0) as client,
        pytest.raises(ConnectionLost, match="no answer to 'robotmode' was received within"),
    ):
        client.robot_mode()


def test_a_host_where_nothing_listens_is_named():
    with pytest.raises(ConnectionLost, match="port 29999") as lost:
        DashboardClient(FAKE)

    assert lost.value.port == PORT
