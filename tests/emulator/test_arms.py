"""Several emulated arms: a process each, on the next addresses."""

from __future__ import annotations

import ipaddress
import signal
import socket
import subprocess
import sys
import time

import pytest

from simbridge.emulator.handle import READY
from simbridge.emulator.traffic import read_traffic
from tests.controllers import loopback
from tests.patience import PATIENCE

pytestmark = pytest.mark.slow

FIRST = loopback(80)
SECOND = str(ipaddress.ip_address(FIRST) + 1)


@pytest.fixture
def arms(tmp_path):
    """Two arms, ready, and the file with what they print."""
    log = tmp_path / "log"
    command = [
        sys.executable,
        "-m",
        "simbridge",
        "emulate",
        "--count",
        "2",
        "--robot",
        "ur10",
        "--polyscope",
        "3.15",
        "--host",
        FIRST,
        "--verbose",
    ]
    with log.open("wb") as file:
        process = subprocess.Popen(
            [*command, "--record", str(tmp_path / "all.jsonl")],
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    try:
        deadline = time.monotonic() + PATIENCE
        while (
            log.read_text().count(READY) < 2
            and time.monotonic() < deadline
            and process.poll() is None
        ):
            time.sleep(0.05)
        assert log.read_text().count(READY) == 2, log.read_text()
        yield process, log
    finally:
        process.terminate()
        process.wait(PATIENCE)


def ask(host: str, line: str) -> str:
    with (
        socket.create_connection((host, 29999), timeout=PATIENCE) as client,
        client.makefile("rw") as file,
    ):
        file.readline()
        file.write(f"{line}\n")
        file.flush()
        return file.readline().strip()


def test_arms_have_addresses_and_records_apart(arms, tmp_path):
    process, log = arms

    assert ask(FIRST, "power on") == "Powering on"
    assert ask(SECOND, "robotmode") == "Robotmode: POWER_OFF"

    process.send_signal(signal.SIGINT)

    assert process.wait(PATIENCE) == 0

    for host in (FIRST, SECOND):
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((host, 29999))
    (request,) = (
        e for e in read_traffic(tmp_path / f"all-{SECOND}.jsonl") if e.event == "received"
    )

    assert (request.port, request.client, request.bytes) == (29999, 1, b"robotmode\n")

    for words in (
        f"{FIRST} client 1 -> dashboard: power on",
        f"{SECOND} client 1 -> dashboard: robotmode",
        f"{SECOND} client 1 <- dashboard: Robotmode: POWER_OFF",
    ):
        assert words in log.read_text()


def test_one_ended_arm_ends_all(arms):
    process, log = arms
    with socket.create_connection((SECOND, 30020), timeout=PATIENCE) as control:
        control.sendall(b'{"do": "kill"}\n')

    assert process.wait(PATIENCE) == 9
    assert f"The arm on {SECOND} exited with status 9" in log.read_text()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((FIRST, 29999))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has that signal")
def test_when_their_parent_is_killed_all_end(arms):
    process, _ = arms
    process.kill()
    deadline = time.monotonic() + PATIENCE
    for host in (FIRST, SECOND):
        while True:
            try:
                socket.create_connection((host, 29999)).close()
            except ConnectionRefusedError:
                break
            assert time.monotonic() < deadline
            time.sleep(0.05)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--count", 0), "count"),
        (("--count", 2, "--host", "robot"), "host"),
        (("--count", 2, "--json"), "--json"),
        (("--json",), "--check FILE"),
    ],
)
def test_a_number_of_arms_that_is_not_possible_is_refused(cli, options, named):
    answer = cli("emulate", *options)

    assert answer.status == 2 and named in answer.message
