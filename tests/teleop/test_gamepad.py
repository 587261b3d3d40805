"""A gamepad: its sticks and buttons become readings, and the shell finds and loses it."""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from simbridge.errors import MissingPackage
from simbridge.teleop.device import AT_REST, DeviceError
from simbridge.teleop.drive import Driver
from simbridge.teleop.gamepad import Gamepad, Pad
from simbridge.teleop.options import TeleopOptions
from tests.teleop.fake_session import FakeSession

ENVIRONMENT = ("SDL_VIDEODRIVER", "SDL_JOYSTICK_ALLOW_BACKGROUND_EVENTS", "SDL_NO_SIGNAL_HANDLERS")


def pad(*down, left=(0.0, 0.0), right=(0.0, 0.0)):
    """An Xbox controller: buttons from 1, sticks with right and down positive, triggers at rest."""
    return Pad((*left, -1.0, *right, -1.0), tuple(number in down for number in range(1, 12)))


def gamepad(*pads, options=None):
    states = list(pads)

    def read():
        state = states.pop(0)
        if isinstance(state, Exception):
            raise state
        return state

    return Gamepad(read, options or TeleopOptions())


@pytest.mark.parametrize(
    ("state", "axes"),
    [
        (pad(), AT_REST),
        (pad(left=(0.0, -1.0)), (1.0, 0.0, 0.0, 0.0, 0.0, 0.0)),
        (pad(left=(-0.5, 0.0)), (0.0, 0.5, 0.0, 0.0, 0.0, 0.0)),
        (pad(right=(0.0, -1.0)), (0.0, 0.0, 1.0, 0.0, 0.0, 0.0)),
        (pad(right=(-1.0, 0.0)), (0.0, 0.0, 0.0, 0.0, 0.0, 1.0)),
        (pad(5, left=(0.0, -1.0)), (0.0, 0.0, 0.0, 0.0, 1.0, 0.0)),
        (pad(5, left=(-1.0, 0.0)), (0.0, 0.0, 0.0, -1.0, 0.0, 0.0)),
        (Pad((), ()), AT_REST),
    ],
)
def test_sticks_are_deflections(state, axes):
    assert gamepad(state).read().axes == pytest.approx(axes)


def test_the_right_shoulder_is_the_dead_man_button():
    device = gamepad(pad(), pad(6), pad())

    rest, held, released = (device.read().held for _ in range(3))

    assert not rest
    assert held
    assert not released


def test_start_engages_once():
    device = gamepad(pad(), pad(8), pad(8, 6))

    rest, pressed, still_down = (device.read() for _ in range(3))

    assert not rest.requests
    assert pressed.requests == ("toggle",)
    assert not pressed.held
    assert still_down.held
    assert not still_down.requests


def test_the_other_buttons_are_events():
    device = gamepad(pad(6, 1, 5), pad())

    pressed, released = (device.read().buttons for _ in range(2))

    assert pressed == {"1"}
    assert not released


def test_start_held_from_the_beginning_engages_nothing():
    assert gamepad(pad(8)).read().requests == ()


def test_the_buttons_can_be_chosen():
    device = gamepad(pad(), pad(3, 4), options=TeleopOptions(dead_man_button=3, engage_button=4))
    device.read()

    reading = device.read()

    assert reading.held
    assert reading.requests == ("toggle",)


def test_unplugged_in_motion_the_arm_halts():
    session = FakeSession()
    device = gamepad(pad(), pad(8), pad(), pad(6, left=(0.0, -1.0)), OSError("it was removed"))

    with pytest.raises(DeviceError, match=r"gamepad: it stopped responding \(it was removed\)"):
        Driver(session, device, TeleopOptions()).run(lambda _: None)

    assert [call[0] for call in session.calls] == ["engage", "twist", "halt"]


class PygameError(Exception):
    pass


class FakePygame:
    """pygame-ce with one joystick, which is removed when told."""

    JOYDEVICEREMOVED = 1542
    error = PygameError

    def __init__(self, count=1):
        self.events = []
        self.ended = False
        self.display = SimpleNamespace(init=lambda: None)
        self.event = SimpleNamespace(get=lambda: [self.events.pop()] if self.events else [])
        joystick = SimpleNamespace(
            get_instance_id=lambda: 7,
            get_numaxes=lambda: 6,
            get_axis=lambda number: -1.0 if number == 1 else 0.0,
            get_numbuttons=lambda: 11,
            get_button=lambda number: number == 5,
        )
        self.joystick = SimpleNamespace(
            init=lambda: None, get_count=lambda: count, Joystick=lambda _: joystick
        )

    def quit(self):
        self.ended = True


@pytest.fixture
def opened(monkeypatch):
    for name in (*ENVIRONMENT, "PYGAME_HIDE_SUPPORT_PROMPT"):
        # Restored at the end.
        monkeypatch.setenv(name, "")

    def open_with(pygame):
        monkeypatch.setitem(sys.modules, "pygame", pygame)
        return Gamepad.open(TeleopOptions())

    return open_with


def test_it_is_read_without_a_window(opened):
    pygame = FakePygame()

    with opened(pygame) as device:
        driver = os.environ["SDL_VIDEODRIVER"]
        reading = device.read()

    assert driver == "dummy"
    assert reading.axes[0] == 1.0
    assert reading.held
    assert pygame.ended


def test_its_removal_is_an_error(opened):
    pygame = FakePygame()
    with opened(pygame) as device:
        # Another gamepad is removed first.
        pygame.events.append(SimpleNamespace(type=pygame.JOYDEVICEREMOVED, instance_id=3))
        device.read()

        pygame.events.append(SimpleNamespace(type=pygame.JOYDEVICEREMOVED, instance_id=7))
        with pytest.raises(OSError, match="removed"):
            device.read()


def test_without_a_gamepad_one_sentence_says_so(opened, monkeypatch):
    monkeypatch.setattr("simbridge.teleop.gamepad.glob", lambda _: [])
    with pytest.raises(DeviceError, match="gamepad: none is connected"):
        opened(FakePygame(count=0))


def test_without_the_rights_the_udev_rule_is_given(opened, monkeypatch):
    monkeypatch.setattr("simbridge.teleop.gamepad.glob", lambda _: ["/dev/input/js0"])

    with pytest.raises(DeviceError, match="this user may not read it") as caught:
        opened(FakePygame(count=0))

    assert "ID_INPUT_JOYSTICK" in caught.value.rule


def test_without_pygame_the_extra_is_named(opened):
    with pytest.raises(
        MissingPackage, match=r'pygame-ce. Install it with: pip install "simbridge\[teleop\]"'
    ):
        opened(None)


@pytest.mark.slow
def test_pygame_itself_finds_none_without_a_word():
    """In a process of its own, for SDL keeps what it was started with."""
    code = (
        "from simbridge.teleop import gamepad\n"
        "from simbridge.teleop.options import TeleopOptions\n"
        "gamepad.glob = lambda _: []\n"
        "try: gamepad.Gamepad.open(TeleopOptions()).read(); print('read')\n"
        "except OSError as error: print(error)"
    )
    environment = {name: value for name, value in os.environ.items() if name != "DISPLAY"}

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment
    )

    assert done.stdout.strip() in (
        "gamepad: none is connected. Connect one and start again.",
        "read",
    ), done.stderr
