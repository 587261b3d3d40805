"""The keyboard of a terminal, through a pseudo-terminal: ordinary ones, and those with the kitty keyboard protocol."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import termios

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge.teleop.device import AT_REST, NO_STEP, DeviceError
from simbridge.teleop.drive import Driver
from simbridge.teleop.key_decoder import Key, KeyDecoder
from simbridge.teleop.key_terminal import KeyTerminal
from simbridge.teleop.keyboard import MAX_SILENCE_S, Keyboard
from simbridge.teleop.options import TeleopOptions
from tests.teleop.fake_session import Clock, FakeSession
from tests.teleop.terminal import KITTY, MUTE, ORDINARY


def keyboard(*typed, releases=False, clock=None, options=None):
    """A keyboard at which this is typed, one part a reading."""
    left = list(typed)

    def receive():
        part = left.pop(0) if left else b""
        if isinstance(part, Exception):
            raise part
        return part

    return Keyboard(receive, options or TeleopOptions(), releases=releases, clock=clock or Clock())


@pytest.mark.parametrize(("answer", "releases"), [(ORDINARY, False), (KITTY, True), (MUTE, False)])
def test_a_terminal_is_asked_whether_it_reports_releases(terminal, answer, releases):
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
def test_the_terminal_is_as_before_whatever_happens(terminal, answer, error):
    console = terminal(answer)
    before = console.modes
    with (
        pytest.raises(error) if error else contextlib.nullcontext(),
        KeyTerminal(console.theirs, console.theirs),
    ):
        assert not console.modes[3] & termios.ECHO
        # Ctrl-C stays a signal, and lines stay lines.
        assert console.modes[3] & termios.ISIG and console.modes[1] == before[1]
        if error:
            raise error
    assert console.modes == before


def test_for_a_question_the_terminal_is_as_before(terminal):
    console = terminal(KITTY)
    before = console.modes
    with KeyTerminal(console.theirs, console.theirs) as opened:
        inside = console.modes
        with opened.suspend():
            assert console.modes == before
            console.wait_for(b"\x1b[<u")
        assert console.modes == inside


def test_keys_at_an_ordinary_terminal_are_steps(terminal):
    console = terminal(ORDINARY)
    with KeyTerminal(console.theirs, console.theirs) as opened:
        device = Keyboard(opened.receive, TeleopOptions(), releases=opened.releases)
        assert device.read().steps == NO_STEP
        console.type(b"w\x1b[D\x1b[6~o")
        steps = device.read()
        assert steps.steps == (1, 1, -1, 0, 0, -1) and not steps.held and steps.axes == AT_REST


def test_a_key_held_at_a_terminal_with_the_protocol_is_a_velocity_until_released(terminal):
    console = terminal(KITTY)
    session = FakeSession()
    with KeyTerminal(console.theirs, console.theirs) as opened:
        driver = Driver(
            session,
            Keyboard(opened.receive, TeleopOptions(), releases=opened.releases),
            TeleopOptions(),
        )
        for typed in (
            b"\x1b[13u",
            b"\x1b[13;1:3u",
            b"\x1b[119u",
            b"\x1b[119;1:2u",
            b"",
            b"\x1b[119;1:3u",
            b"",
        ):
            console.type(typed)
            driver.tick()
    assert [call[0] for call in session.calls] == ["engage", "twist", "twist", "twist", "halt"]
    assert session.of("twist")[0][1][0] == pytest.approx(0.1)
    assert session.of("halt") == [("halt", "the key released")]


def test_a_closed_terminal_is_a_lost_device(terminal):
    ours, theirs = pty.openpty()
    session = FakeSession()
    opened = KeyTerminal(theirs, theirs)
    os.close(ours)
    with pytest.raises(DeviceError, match="keyboard: it stopped answering"):
        Driver(
            session, Keyboard(opened.receive, TeleopOptions(), releases=False), TeleopOptions()
        ).tick()
    os.close(theirs)
    assert session.calls == [("halt", "keyboard lost")]


def test_key_repeat_between_two_readings_is_one_step():
    assert keyboard(b"w" * 30).read().steps == (1, 0, 0, 0, 0, 0)
    # The newest counts.
    assert keyboard(b"www" + b"s").read().steps == (-1, 0, 0, 0, 0, 0)


@pytest.mark.parametrize("releases", [False, True])
def test_enter_engages_x_disengages_space_stops_q_ends(releases):
    typed = b"\rx q" if not releases else b"\x1b[13u\x1b[120u\x1b[32u\x1b[113u"
    assert keyboard(typed, releases=releases).read().requests == (
        "engage",
        "disengage",
        "halt",
        "quit",
    )


def test_the_repeat_and_the_release_of_enter_engage_nothing():
    assert keyboard(b"\x1b[13;1:2u\x1b[13;1:3u", releases=True).read().requests == ()


@pytest.mark.parametrize("releases", [False, True])
def test_what_was_typed_while_the_arm_engaged_moves_nothing_but_a_stop_stops(releases):
    typed = b"www " if not releases else b"\x1b[119u\x1b[32u\x1b[32;1:3u"
    session = FakeSession()
    enter = b"\r" if not releases else b"\x1b[13u"
    driver = Driver(session, keyboard(enter, typed, releases=releases), TeleopOptions())
    for _ in range(5):
        driver.tick()
    assert session.calls == [("engage",), ("halt", "stop at the keyboard")]


def test_a_held_key_after_a_stop_moves_nothing_until_it_is_released():
    session = FakeSession()
    typed = (
        b"\x1b[13u",
        b"",
        b"",
        b"\x1b[119u",
        b"\x1b[32u",
        b"\x1b[119;1:2u",
        b"\x1b[119;1:3u",
        b"\x1b[119u",
    )
    driver = Driver(session, keyboard(*typed, releases=True), TeleopOptions())
    # The first "" is what was typed while the arm engaged.
    for _ in range(len(typed) - 2):
        driver.tick()
    assert [call[0] for call in session.calls] == ["engage", "twist", "halt"]
    driver.tick()
    assert session.calls[-1][0] == "twist"


def test_two_opposite_keys_hold_still():
    reading = keyboard(b"\x1b[119u\x1b[115u", releases=True).read()
    assert reading.held and reading.axes == AT_REST


@pytest.mark.parametrize(
    "typed", [b"\x1b[O", b""], ids=["the window loses the focus", "nothing is heard of it"]
)
def test_a_key_whose_release_cannot_be_heard_counts_as_released(typed):
    clock = Clock()
    device = keyboard(b"\x1b[119u", typed, releases=True, clock=clock)
    assert device.read().held
    clock.now += 0.5 * MAX_SILENCE_S if typed else 1.1 * MAX_SILENCE_S
    assert not device.read().held


def test_ctrl_pressed_meanwhile_hides_no_release():
    assert not keyboard(b"\x1b[119u\x1b[119;5:3u", releases=True).read().held


def test_ctrl_c_as_a_key_ends():
    with pytest.raises(KeyboardInterrupt):
        keyboard(b"\x1b[99;5u", releases=True).read()


def test_digits_are_buttons():
    device = keyboard(b"2", b"")
    assert device.read().buttons == {"2"} and device.read().buttons == frozenset()
    device = keyboard(b"\x1b[50u", b"", b"\x1b[50;1:3u", releases=True)
    assert [device.read().buttons for _ in range(3)] == [{"2"}, {"2"}, frozenset()]


@pytest.mark.parametrize("releases", [False, True])
def test_the_first_screen_says_which_applies_and_names_every_key(releases):
    guide = "\n".join(keyboard(releases=releases, options=TeleopOptions(frame="tool")).guide)
    assert ("a held key moves" in guide) == releases
    assert ("one step of 5 mm or 2 degrees" in guide) != releases
    words = re.findall(r"\w+", guide)
    assert {*"wsadrfljikuo", "Enter", "Space", "x", "q", "tool"} <= set(words)
    assert max(map(len, guide.splitlines()[1:])) <= 80


@given(st.lists(st.binary(max_size=12), max_size=12))
def test_no_bytes_of_a_terminal_break_the_decoder_or_pile_up_in_it(parts):
    decoder = KeyDecoder()
    for part in parts:
        decoder.feed(part)
    assert decoder.feed(b"\x1b[0\x00" + b" " * 80)[-1] == Key("space")


@given(
    st.lists(
        st.sampled_from([b"w", b"\x1b[A", b"\x1bOB", b"\x1b[5~", b"\x1b[119;1:3u", b" "]),
        max_size=8,
    ),
    st.data(),
)
def test_sequences_may_come_in_any_parts(sequences, data):
    whole = b"".join(sequences)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(whole)))))
    decoder, keys = KeyDecoder(), []
    for begin, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        keys += decoder.feed(whole[begin:end])
    assert keys == KeyDecoder().feed(whole)
