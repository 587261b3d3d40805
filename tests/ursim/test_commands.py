"""`simbridge ursim`, with a stand-in for docker whose containers are the emulator."""

from __future__ import annotations

import contextlib
import io
import os
import socket
import subprocess
import sys
from typing import NamedTuple

import pytest

from simbridge.cli.command_line import main
from simbridge.ursim import first_state
from tests.controllers import loopback
from tests.ursim.conftest import E_SERIES, Docker

pytestmark = [pytest.mark.shares_setup, pytest.mark.slow]

HOST = loopback(120)
START = ("ursim", "start", "ur10e", "--host", HOST)
# The address of the URSim that the tests of the file share.
SHARED_HOST = loopback(121)
SHARED_START = ("ursim", "start", "ur10e", "--host", SHARED_HOST)


@pytest.fixture(autouse=True)
def short_pause(monkeypatch):
    monkeypatch.setattr(first_state, "ATTEMPT_PAUSE_S", 0.02)


@pytest.fixture(scope="module")
def emulated(tmp_path_factory):
    """A stand-in for docker."""
    engine = Docker(tmp_path_factory.mktemp("docker"))
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def started(emulated):
    """`simbridge ursim start` with a container that is an emulated controller."""
    command = [sys.executable, "-m", "simbridge", *SHARED_START]
    environment = {**os.environ, **emulated.environment()}
    return subprocess.run(command, env=environment, capture_output=True, text=True)


@pytest.fixture
def running(emulated, started, monkeypatch):
    """The stand-in whose container `started` has started."""
    emulated.enter(monkeypatch)
    return emulated


@pytest.fixture
def silent(docker, monkeypatch):
    """Containers in which nothing listens."""
    monkeypatch.setenv("STAND_IN_CONTENT", "silent")
    return docker


def options_of(docker):
    (container,) = docker.containers.values()
    return " ".join(container["arguments"])


def test_start_ends_when_the_controller_answers(started):
    assert started.returncode == 0, started.stderr
    assert f"URSim for a UR10e (PolyScope 5.12.6) answers at {SHARED_HOST}." in started.stdout


def test_start_names_pendant_and_next_commands(started):
    assert f"Pendant: http://{SHARED_HOST}:6080/vnc.html" in started.stdout
    run = f"simbridge run square_tracking --backend ursim --robot ur10e --host {SHARED_HOST}"
    assert run in started.stdout


def test_a_second_start_uses_what_runs(cli, running):
    answer = cli(*SHARED_START)

    assert answer.status == 0
    assert "already runs" in answer.err
    assert len(running.containers) == 1


def test_another_arm_at_the_address_is_refused(cli, running):
    answer = cli("ursim", "start", "ur5e", "--host", SHARED_HOST)

    assert answer.status == 2
    assert f"already runs for a UR10e ({E_SERIES})" in " ".join(answer.err.split())
    assert len(running.containers) == 1


def test_status_says_that_it_answers(cli, running):
    answer = cli("ursim", "status")

    assert answer.status == 0
    assert f"URSim for a UR10e runs at {SHARED_HOST}; it answers (PolyScope 5.12.6)." in answer.out


def test_status_without_any_exits_with_1(cli, docker):
    assert cli("ursim", "status").status == 1


def test_stop_removes_the_container(cli, silent, monkeypatch):
    monkeypatch.setattr(first_state, "START_TIMEOUT_S", 0.0)
    cli(*START)

    answer = cli("ursim", "stop")

    assert answer.status == 0
    assert silent.containers == {}


class Unanswered(NamedTuple):
    """A start that ended before the controller answered.

    Attributes:
        status: The exit status.
        message: What was printed to stderr, as one line.
        docker: The stand-in.
    """

    status: int
    message: str
    docker: Docker


@contextlib.contextmanager
def started_once(directory, content):
    """Start a container with this content, in vain, and end all with the block."""
    engine = Docker(directory)
    said = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stderr(said):
        engine.enter(patch)
        patch.setenv("STAND_IN_CONTENT", content)
        patch.setattr(first_state, "START_TIMEOUT_S", 0.0)
        status = main(list(START))
    yield Unanswered(status, " ".join(said.getvalue().split()), engine)
    engine.close()


@pytest.fixture(scope="module")
def unanswered(tmp_path_factory):
    """The start of a controller that does not answer, and is left running."""
    with started_once(tmp_path_factory.mktemp("unanswered"), "silent") as unanswered:
        yield unanswered


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """The start of a container that ends at once."""
    with started_once(tmp_path_factory.mktemp("ended"), "ended") as ended:
        yield ended


def test_a_silent_controller_is_left_running(unanswered):
    assert unanswered.status == 2
    assert f"has not answered at {HOST}" in unanswered.message
    assert len(unanswered.docker.containers) == 1


def test_arm_and_loopback_ports_are_chosen(unanswered):
    options = options_of(unanswered.docker)

    assert "-e ROBOT_MODEL=UR10 " in options
    for ports in ("5900", "6080", "29999", "30001-30004"):
        assert f"-p {HOST}:{ports}:{ports} " in options
    assert options.endswith(f" {E_SERIES}")


def test_a_cb3_arm_gets_the_cb3_image(cli, silent, monkeypatch):
    image = "docker.io/universalrobots/ursim_cb3:3.15.8"
    silent.add_image(image)
    monkeypatch.setattr(first_state, "START_TIMEOUT_S", 0.0)

    cli("ursim", "start", "ur5", "--polyscope", "3.15.8", "--host", HOST)

    assert "-e ROBOT_MODEL=UR5 " in options_of(silent)
    assert options_of(silent).endswith(image)


def test_a_container_that_ends_shows_its_log(ended):
    assert ended.status == 2
    assert "the license was not accepted" in ended.message


def test_an_ended_container_is_replaced(cli, ended, monkeypatch):
    ended.docker.enter(monkeypatch)
    monkeypatch.setenv("STAND_IN_CONTENT", "ended")
    (before,) = ended.docker.containers

    cli(*START)

    assert before not in ended.docker.containers
    assert len(ended.docker.containers) == 1


@pytest.mark.parametrize("command", ["run", pytest.param("ps", marks=pytest.mark.soak)])
def test_an_interrupted_start_leaves_no_container(cli, silent, monkeypatch, command):
    monkeypatch.setenv("STAND_IN_SIGNAL", command)

    answer = cli(*START)

    assert answer.status == 130
    assert silent.containers == {}
    assert "The URSim that was starting is removed." in answer.err


def test_an_interrupted_repeat_leaves_what_ran_before(cli, unanswered, monkeypatch):
    unanswered.docker.enter(monkeypatch)
    monkeypatch.setenv("STAND_IN_SIGNAL", "inspect")

    answer = cli(*START)

    assert answer.status == 130
    assert len(unanswered.docker.containers) == 1


def test_a_taken_port_is_named(cli, docker):
    with socket.create_server((HOST, 30004)):
        answer = cli(*START)

    assert answer.status == 2
    assert f"Port 30004 of {HOST} is in use" in " ".join(answer.err.split())
    assert docker.containers == {}


def test_a_missing_image_is_downloaded(cli, silent, monkeypatch):
    image = "docker.io/universalrobots/ursim_e-series:5.25.1"
    silent.add_image(image, where="registry")
    monkeypatch.setattr(first_state, "START_TIMEOUT_S", 0.0)

    cli(*START, "--polyscope", "5.25.1")

    assert options_of(silent).endswith(image)


def test_an_unknown_tag_starts_nothing(cli, docker):
    answer = cli(*START, "--polyscope", "5.99.9")

    assert answer.status == 2
    assert "https://hub.docker.com/r/universalrobots/ursim_e-series/tags" in answer.err
    assert docker.containers == {}


def test_without_docker_and_podman_one_is_to_be_installed(cli, docker):
    (docker.bin / "docker").unlink()

    answer = cli(*START)

    assert answer.status == 2
    assert "sudo apt install podman" in " ".join(answer.err.split())


def test_dockers_own_answer_is_shown(cli, docker, monkeypatch):
    monkeypatch.setenv("STAND_IN_SERVICE", "down")

    answer = cli("ursim", "status")

    assert answer.status == 2
    assert "Cannot connect to the Docker daemon" in " ".join(answer.err.split())


def test_podman_takes_dockers_place(cli, silent, monkeypatch):
    (silent.bin / "docker").rename(silent.bin / "podman")
    monkeypatch.setattr(first_state, "START_TIMEOUT_S", 0.0)

    cli(*START)

    assert len(silent.containers) == 1


def test_a_container_of_another_is_left_alone(cli, docker):
    other = subprocess.Popen(["/bin/sleep", "60"])
    try:
        number = docker.add_container({"owner": "another"}, other.pid)

        answer = cli("ursim", "stop")

        assert answer.status == 0
        assert list(docker.containers) == [number]
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("ur10e", "--polyscope", "10.7.0"), "PolyScope X"),
        (("ur10e", "--polyscope", "3.15.8"), "5.x from 5.0 on"),
        (("ur5", "--polyscope", "5.12.6"), "3.x from 3.0 on"),
        (("ur15", "--polyscope", "5.12.6"), "5.x from 5.22 on"),
        (("ur10e", "--polyscope", "5.12.6;reboot"), "a tag of UR's image"),
        (("ur10e", "--host", "192.168.1.10"), "127.0.0.1"),
        (("ur10e", "--host", "127.0.0.0"), "from 127.0.0.1 to"),
        (("ur10e", "--host", "127.255.255.255"), "to 127.255.255.254"),
        (("planar2r",), "an arm of Universal Robots"),
        (("ur11",), "no UR arm"),
    ],
)
def test_what_cannot_be_started_is_refused(cli, docker, words, reason):
    answer = cli("ursim", "start", *words)

    assert answer.status == 2
    assert reason in " ".join(answer.err.split())
    assert docker.containers == {}


def test_a_run_without_ursim_names_the_command(cli):
    answer = cli("run", "circle", "--backend", "ursim", "--robot", "ur10e", "--host", HOST)

    assert answer.status == 2
    assert f"`simbridge ursim start ur10e --host {HOST}`" in " ".join(answer.err.split())
