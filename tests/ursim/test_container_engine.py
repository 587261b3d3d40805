"""Commands of docker that hang, fail, or must not see Ctrl-C."""

from __future__ import annotations

import pytest

from simbridge.console import Terminal
from simbridge.ursim import container_engine
from simbridge.ursim.container_engine import ContainerEngine, UrsimContainer
from simbridge.ursim.errors import ContainerCommandFailed, UrsimEnded
from simbridge.ursim.first_state import await_first_state
from tests.controllers import loopback

CONTAINER = UrsimContainer(
    container_id="12ab",
    arm="UR10e",
    image="ursim:5.12.6",
    host=loopback(122),
    is_running=True,
)


@pytest.fixture
def make_engine(tmp_path):
    """An engine whose program runs a line of shell for `logs`, and lists no container."""

    def make(logs: str) -> ContainerEngine:
        program = tmp_path / "docker"
        program.write_text(f'#!/bin/sh\n[ "$1" = logs ] || exit 0\n{logs}\n')
        program.chmod(0o755)
        return ContainerEngine(str(program))

    return make


def test_a_log_that_hangs_fails(make_engine, monkeypatch):
    monkeypatch.setattr(container_engine, "COMMAND_TIMEOUT_S", 0.05)
    engine = make_engine("exec sleep 60")

    with pytest.raises(ContainerCommandFailed) as caught:
        engine.log(CONTAINER)

    assert "no answer" in caught.value.answer


def test_a_log_without_its_program_fails(tmp_path):
    engine = ContainerEngine(str(tmp_path / "removed"))

    with pytest.raises(ContainerCommandFailed) as caught:
        engine.log(CONTAINER)

    assert caught.value.answer == "No such file or directory"


def test_a_log_holds_both_outputs(make_engine):
    engine = make_engine("echo started; echo no license >&2")

    assert engine.log(CONTAINER) == "started\nno license"


def test_a_log_is_read_out_of_reach_of_ctrl_c(make_engine):
    engine = make_engine("read -r _ _ _ _ _ session _ < /proc/$$/stat; echo $$ $session")

    process, session = engine.log(CONTAINER).split()

    assert process == session


def test_an_unreadable_log_does_not_hide_the_end(make_engine):
    engine = make_engine("echo no such container >&2; exit 1")

    with pytest.raises(UrsimEnded) as caught:
        await_first_state(engine, CONTAINER, Terminal(stderr=True))

    assert caught.value.log_error.answer == "no such container"
    assert "cannot be read: `" in str(caught.value)
