"""A terminal that is asked for its abilities, and is as before at the end."""

from __future__ import annotations

import contextlib
import os
import pty
import termios

import pytest

from simbridge.teleop.device import DeviceError
from simbridge.teleop.drive import Driver
from simbridge.teleop.key_terminal import KeyTerminal
from simbridge.teleop.keyboard import Keyboard
from simbridge.teleop.options import TeleopOptions
from tests.teleop.fake_session import FakeSession
from tests.terminals import KITTY, MUTE, ORDINARY


@pytest.mark.slow
@pytest.mark.parametrize(("answer", "releases"), [(ORDINARY, False), (KITTY, True), (MUTE, False)])
def test_the_terminal_says_whether_it_reports_releases(terminal, answer, releases):
    console = terminal(answer)

    with KeyTerminal(console.theirs, console.theirs) as opened:
        assert opened.releases == releases
        if releases:
            console.wait_for(b"\x1b[>11u")

    if releases:
        console.wait_for(b"\x1b[<u")
    else:
        assert b"\x1b[>" not in console.seen


@pytest.mark.parametrize("answer", [ORDINARY, KITTY])
@pytest.mark.parametrize("error", [None, KeyboardInterrupt, RuntimeError])
def test_the_terminal_is_as_before(terminal, answer, error):
    console = terminal(answer)
    before = console.modes
    expected = pytest.raises(error) if error else contextlib.nullcontext()

    with expected, KeyTerminal(console.theirs, console.theirs):
        output_modes = console.modes[1]
        local_modes = console.modes[3]
        assert not local_modes & termios.ECHO
        # Ctrl-C stays a signal, and lines stay lines.
        assert local_modes & termios.ISIG
        assert output_modes == before[1]
        if error:
            raise error

    assert console.modes == before


def test_for_a_question_it_is_as_before(terminal):
    console = terminal(KITTY)
    before = console.modes

    with KeyTerminal(console.theirs, console.theirs) as opened:
        inside = console.modes
        with opened.suspend():
            assert console.modes == before
            console.wait_for(b"\x1b[<u")
        assert console.modes == inside


def test_a_closed_terminal_is_a_lost_device():
    ours, theirs = pty.openpty()
    session = FakeSession()
    opened = KeyTerminal(theirs, theirs)
    keyboard = Keyboard(opened.receive, TeleopOptions(), releases=False)
    os.close(ours)

    with pytest.raises(DeviceError, match="keyboard: it stopped responding"):
        Driver(session, keyboard, TeleopOptions()).tick()

    os.close(theirs)
    assert session.calls == [("halt", "keyboard lost")]
