"""The keys of a terminal: ordinary ones, and those with the kitty keyboard protocol."""

from __future__ import annotations

import re

import pytest

from simbridge.teleop.device import AT_REST, NO_STEP
from simbridge.teleop.drive import Driver
from simbridge.teleop.key_terminal import KeyTerminal
from simbridge.teleop.keyboard import MAX_SILENCE_S, Keyboard
from simbridge.teleop.options import TeleopOptions
from tests.teleop.fake_session import Clock, FakeSession
from tests.terminals import KITTY, ORDINARY

# What a terminal with the protocol sends for a key.
W_PRESSED = b"\x1b[119u"
W_REPEATED = b"\x1b[119;1:2u"
W_RELEASED = b"\x1b[119;1:3u"
S_PRESSED = b"\x1b[115u"
ENTER_PRESSED = b"\x1b[13u"
ENTER_REPEATED = b"\x1b[13;1:2u"
ENTER_RELEASED = b"\x1b[13;1:3u"
SPACE_PRESSED = b"\x1b[32u"
SPACE_RELEASED = b"\x1b[32;1:3u"
X_PRESSED = b"\x1b[120u"
Q_PRESSED = b"\x1b[113u"
TWO_PRESSED = b"\x1b[50u"
TWO_RELEASED = b"\x1b[50;1:3u"
CTRL_C_PRESSED = b"\x1b[99;5u"
FOCUS_LOST = b"\x1b[O"


def keyboard(*typed, releases=False, clock=None, options=None):
    """A keyboard at which this is typed, one part a reading."""
    parts = list(typed)

    def receive():
        return parts.pop(0) if parts else b""

    return Keyboard(receive, options or TeleopOptions(), releases=releases, clock=clock or Clock())


def names(session):
    """The names of the session's calls."""
    return [call[0] for call in session.calls]


def test_keys_at_an_ordinary_terminal_are_steps(terminal):
    console = terminal(ORDINARY)
    with KeyTerminal(console.theirs, console.theirs) as opened:
        device = Keyboard(opened.receive, TeleopOptions(), releases=opened.releases)
        before = device.read()
        console.type(b"w\x1b[D\x1b[6~o")
        reading = device.read()

    assert before.steps == NO_STEP
    assert reading.steps == (1, 1, -1, 0, 0, -1)
    assert reading.axes == AT_REST
    assert not reading.held


def test_a_held_key_is_a_velocity(terminal):
    console = terminal(KITTY)
    session = FakeSession()
    typed = (ENTER_PRESSED, ENTER_RELEASED, W_PRESSED, W_REPEATED, b"", W_RELEASED, b"")

    with KeyTerminal(console.theirs, console.theirs) as opened:
        device = Keyboard(opened.receive, TeleopOptions(), releases=opened.releases)
        driver = Driver(session, device, TeleopOptions())
        for part in typed:
            console.type(part)
            driver.tick()

    assert names(session) == ["engage", "twist", "twist", "twist", "halt"]
    assert session.of("twist")[0][1][0] == pytest.approx(0.1)
    assert session.of("halt") == [("halt", "the key released")]


def test_key_repeat_is_one_step():
    assert keyboard(b"w" * 30).read().steps == (1, 0, 0, 0, 0, 0)


def test_the_newest_step_counts():
    assert keyboard(b"wwws").read().steps == (-1, 0, 0, 0, 0, 0)


@pytest.mark.parametrize(
    ("typed", "releases"),
    [(b"\rx q", False), (ENTER_PRESSED + X_PRESSED + SPACE_PRESSED + Q_PRESSED, True)],
)
def test_four_keys_are_requests(typed, releases):
    reading = keyboard(typed, releases=releases).read()

    assert reading.requests == ("engage", "disengage", "halt", "quit")


def test_only_a_press_of_enter_engages():
    assert keyboard(ENTER_REPEATED + ENTER_RELEASED, releases=True).read().requests == ()


@pytest.mark.parametrize(
    ("enter", "typed", "releases"),
    [
        (b"\r", b"www ", False),
        (ENTER_PRESSED, W_PRESSED + SPACE_PRESSED + SPACE_RELEASED, True),
    ],
)
def test_typed_while_engaging_only_stops(enter, typed, releases):
    session = FakeSession()
    driver = Driver(session, keyboard(enter, typed, releases=releases), TeleopOptions())

    for _ in range(5):
        driver.tick()

    assert session.calls == [("engage",), ("halt", "stop at the keyboard")]


def test_a_key_held_after_a_stop_moves_nothing():
    session = FakeSession()
    # The first "" is what was typed while the arm engaged.
    typed = (ENTER_PRESSED, b"", b"", W_PRESSED, SPACE_PRESSED, W_REPEATED, W_RELEASED, W_PRESSED)
    driver = Driver(session, keyboard(*typed, releases=True), TeleopOptions())

    for _ in range(len(typed) - 2):
        driver.tick()
    held = names(session)
    driver.tick()

    assert held == ["engage", "twist", "halt"]
    # It was released meanwhile.
    assert session.calls[-1][0] == "twist"


def test_two_opposite_keys_hold_still():
    reading = keyboard(W_PRESSED + S_PRESSED, releases=True).read()

    assert reading.held
    assert reading.axes == AT_REST


@pytest.mark.parametrize(
    ("typed", "silence"),
    [(FOCUS_LOST, 0.5 * MAX_SILENCE_S), (b"", 1.1 * MAX_SILENCE_S)],
    ids=["the window loses the focus", "nothing is heard of it"],
)
def test_an_unheard_release_counts(typed, silence):
    clock = Clock()
    device = keyboard(W_PRESSED, typed, releases=True, clock=clock)
    before = device.read()
    clock.now += silence

    after = device.read()

    assert before.held
    assert not after.held


def test_ctrl_hides_no_release():
    ctrl_w_released = b"\x1b[119;5:3u"

    assert not keyboard(W_PRESSED + ctrl_w_released, releases=True).read().held


def test_ctrl_c_as_a_key_ends():
    with pytest.raises(KeyboardInterrupt):
        keyboard(CTRL_C_PRESSED, releases=True).read()


@pytest.mark.parametrize(
    ("typed", "releases", "buttons"),
    [
        ((b"2", b""), False, [{"2"}, frozenset()]),
        ((TWO_PRESSED, b"", TWO_RELEASED), True, [{"2"}, {"2"}, frozenset()]),
    ],
)
def test_digits_are_buttons(typed, releases, buttons):
    device = keyboard(*typed, releases=releases)

    assert [device.read().buttons for _ in typed] == buttons


@pytest.mark.parametrize("releases", [False, True])
def test_the_first_screen_names_every_key(releases):
    device = keyboard(releases=releases, options=TeleopOptions(frame="tool"))

    guide = "\n".join(device.guide)

    assert ("a held key moves" in guide) == releases
    assert ("one step of 5 mm or 2 degrees" in guide) != releases
    words = re.findall(r"\w+", guide)
    assert {*"wsadrfljikuo", "Enter", "Space", "x", "q", "tool"} <= set(words)
    assert max(map(len, device.guide[1:])) <= 80
