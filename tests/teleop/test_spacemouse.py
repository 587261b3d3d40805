"""A SpaceMouse: reports as devices send them become readings; it is found, opened and lost."""

from __future__ import annotations

import struct
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge.errors import MissingPackage
from simbridge.teleop.device import AT_REST, DeviceError
from simbridge.teleop.drive import Driver
from simbridge.teleop.options import TeleopOptions
from simbridge.teleop.spacemouse import MAX_SILENCE_S, Cap, SpaceMouse
from tests.teleop.fake_session import Clock, FakeSession

# Of a SpaceNavigator: the cap pushed away from the operator, lifted, and turned to the left; the
# cap at rest; its buttons.
PUSHED = bytes.fromhex("01 00 00 a2 fe 00 00")
LIFTED = bytes.fromhex("01 00 00 00 00 51 ff")
TURNED = bytes.fromhex("02 00 00 00 00 a2 fe")
NOT_PUSHED = bytes.fromhex("01 00 00 00 00 00 00")
NO_BUTTON = bytes([3, 0, 0])
DEAD_MAN = bytes([3, 1, 0])
ENGAGE = bytes([3, 2, 0])
DEAD_MAN_AND_ENGAGE = bytes([3, 3, 0])
THIRD = bytes([3, 4, 0])
# Of a SpaceMouse Wireless: all six in one, and 3 bytes of its battery.
ALL_SIX = struct.pack("<B6h", 1, 350, -350, -175, 0, 35, 700)
BATTERY = bytes.fromhex("17 60 00")


def mouse(*batches, clock=None):
    """A device that gives these batches of reports, one at a reading; an error is raised."""
    waiting = list(batches)

    def reports():
        batch = waiting.pop(0) if waiting else ()
        if isinstance(batch, Exception):
            raise batch
        return batch

    return SpaceMouse(reports, TeleopOptions(), clock=clock or Clock())


@pytest.mark.parametrize(
    ("report", "axes"),
    [
        (PUSHED, (1.0, 0.0, 0.0, 0.0, 0.0, 0.0)),
        (LIFTED, (0.0, 0.0, 0.5, 0.0, 0.0, 0.0)),
        (TURNED, (0.0, 0.0, 0.0, 0.0, 0.0, 1.0)),
        (ALL_SIX, (1.0, -1.0, 0.5, -0.1, 0.0, -1.0)),
        (BATTERY, AT_REST),
        (b"", AT_REST),
        (PUSHED[:5], AT_REST),
    ],
)
def test_a_report_is_a_deflection(report, axes):
    assert mouse([report]).read().axes == pytest.approx(axes)


def test_translation_and_rotation_last():
    device = mouse([PUSHED, TURNED], [], [NOT_PUSHED])

    first, second, third = (device.read().axes for _ in range(3))

    assert first == pytest.approx((1.0, 0.0, 0.0, 0.0, 0.0, 1.0))
    assert second == first
    assert third == pytest.approx((0.0, 0.0, 0.0, 0.0, 0.0, 1.0))


def test_the_first_button_is_the_dead_man_button():
    reading = mouse([DEAD_MAN]).read()

    assert reading.held
    assert not reading.requests
    assert not reading.buttons


def test_the_second_button_engages_once():
    device = mouse([DEAD_MAN], [DEAD_MAN_AND_ENGAGE], [DEAD_MAN_AND_ENGAGE])

    _, pressed, still_down = (device.read() for _ in range(3))

    assert pressed.held
    assert pressed.requests == ("toggle",)
    assert still_down.held
    assert not still_down.requests


def test_the_other_buttons_are_events():
    device = mouse([THIRD], [NO_BUTTON])

    pressed, released = (device.read() for _ in range(2))

    assert not pressed.held
    assert pressed.buttons == {"3"}
    assert not released.buttons


def test_a_press_shorter_than_a_period_engages():
    assert mouse([ENGAGE, NO_BUTTON]).read().requests == ("toggle",)


def test_a_silent_deflected_cap_is_as_released():
    clock = Clock()
    device = mouse([DEAD_MAN, PUSHED], [], [], [PUSHED], clock=clock)

    held = [device.read().held]
    clock.now += 0.9 * MAX_SILENCE_S
    held.append(device.read().held)
    clock.now += 0.2 * MAX_SILENCE_S
    held.append(device.read().held)
    # It is heard of again.
    held.append(device.read().held)

    assert held == [True, True, False, True]


def test_unplugged_in_motion_the_arm_halts():
    device = mouse([ENGAGE], [NO_BUTTON], [DEAD_MAN, PUSHED], OSError("read error"))
    session = FakeSession()
    message = r"SpaceMouse: it stopped responding \(read error\)\. Was it unplugged\?"

    with pytest.raises(DeviceError, match=message):
        Driver(session, device, TeleopOptions()).run(lambda _: None)

    assert [call[0] for call in session.calls] == ["engage", "twist", "halt"]


@given(st.lists(st.binary(max_size=20), max_size=20))
def test_no_report_leaves_the_range_of_the_axes(reports):
    cap = Cap()

    for report in reports:
        cap = cap.apply(report)

    assert all(-1.0 <= axis <= 1.0 for axis in cap.axes)
    mouse(reports).read()


class FakeHid:
    """hidapi's module `hid`, with one device."""

    def __init__(self, reports=(), opens=True, **device):
        self.reports = [*reports]
        self.opens = opens
        self.found = (
            [{"path": b"1", "product_string": "SpaceMouse Compact", "usage": 8, **device}]
            if device
            else []
        )
        self.closed = False

    def enumerate(self):
        return [{"path": b"0", "vendor_id": 0x1234, "product_id": 1, "usage": 6}, *self.found]

    def device(self):
        return self

    def open_path(self, path):
        assert path == b"1"
        if not self.opens:
            raise OSError("open failed")

    def set_nonblocking(self, _):
        return 0

    def read(self, _length):
        report = self.reports.pop(0) if self.reports else []
        if isinstance(report, Exception):
            raise report
        return list(report)

    def close(self):
        self.closed = True


def opened(monkeypatch, hid):
    monkeypatch.setitem(sys.modules, "hid", hid)
    return SpaceMouse.open(TeleopOptions())


def test_it_is_read_until_nothing_is_waiting(monkeypatch):
    hid = FakeHid([PUSHED, TURNED, [], LIFTED], vendor_id=0x256F, product_id=0xC635)

    with opened(monkeypatch, hid) as device:
        axes = device.read().axes

    assert axes == pytest.approx((1.0, 0.0, 0.0, 0.0, 0.0, 1.0))
    assert hid.closed


@pytest.mark.parametrize(
    "other",
    [
        {"vendor_id": 0x046D, "product_id": 0xC077, "usage": 2},
        {"vendor_id": 0x256F, "product_id": 0xC650, "usage": 2},
        {},
    ],
    ids=["a mouse of Logitech's", "a mouse of 3Dconnexion's", "nothing"],
)
def test_without_a_spacemouse_one_sentence_says_so(monkeypatch, other):
    with pytest.raises(DeviceError, match="SpaceMouse: none is connected"):
        opened(monkeypatch, FakeHid(**other))


def test_without_the_rights_the_udev_rule_is_given(monkeypatch):
    with pytest.raises(
        DeviceError, match=r"SpaceMouse Compact .* cannot be opened \(open failed\)"
    ) as caught:
        opened(monkeypatch, FakeHid(opens=False, vendor_id=0x256F, product_id=0xC635))
    assert 'SUBSYSTEM=="usb", ATTR{idVendor}=="256f"' in caught.value.rule
    assert 'SUBSYSTEM=="hidraw", ATTRS{idVendor}=="256f"' in caught.value.rule


def test_without_hidapi_the_extra_is_named(monkeypatch):
    with pytest.raises(
        MissingPackage, match=r'hidapi. Install it with: pip install "simbridge\[teleop\]"'
    ):
        opened(monkeypatch, None)


def test_hidapi_has_what_is_used_of_it():
    import hid

    assert isinstance(hid.enumerate(), list)
    assert {"open_path", "set_nonblocking", "read", "close"} <= set(dir(hid.device))
