"""A SpaceMouse: reports as devices send them become readings, and the shell finds, opens and loses it."""

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

# Of a SpaceNavigator: the cap pushed away from the operator, lifted, and turned to the left; at rest; its buttons.
PUSHED = bytes.fromhex("01 00 00 a2 fe 00 00")
LIFTED = bytes.fromhex("01 00 00 00 00 51 ff")
TURNED = bytes.fromhex("02 00 00 00 00 a2 fe")
STILL = bytes.fromhex("01 00 00 00 00 00 00"), bytes.fromhex("02 00 00 00 00 00 00")
BUTTONS = {
    name: bytes([3, bits, 0])
    for name, bits in {"none": 0, "dead-man": 1, "engage": 2, "both": 3, "third": 4}.items()
}
# Of a SpaceMouse Wireless: all six in one, and 3 bytes of its battery.
ALL_SIX = struct.pack("<B6h", 1, 350, -350, -175, 0, 35, 700)
BATTERY = bytes.fromhex("17 60 00")


def mouse(*batches, clock=None):
    """A device that gives these batches of reports, one at a reading; an error in the place of one is raised."""
    left = list(batches)

    def reports():
        batch = left.pop(0) if left else ()
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
def test_a_report_is_a_deflection_with_x_forward_y_left_z_up(report, axes):
    assert mouse([report]).read().axes == pytest.approx(axes)


def test_translation_and_rotation_come_in_reports_of_their_own_and_last():
    device = mouse([PUSHED, TURNED], [], [STILL[0]])
    both = (1.0, 0.0, 0.0, 0.0, 0.0, 1.0)
    assert device.read().axes == device.read().axes == pytest.approx(both)
    assert device.read().axes == pytest.approx((0.0, 0.0, 0.0, 0.0, 0.0, 1.0))


def test_the_buttons_are_dead_man_engage_and_events():
    device = mouse(
        [BUTTONS["dead-man"]],
        [BUTTONS["both"]],
        [BUTTONS["both"]],
        [BUTTONS["third"]],
        [BUTTONS["none"]],
    )
    held, engage, still, third, none = (device.read() for _ in range(5))
    assert held.held and not held.requests and not held.buttons
    assert engage.held and engage.requests == ("toggle",)
    assert still.held and not still.requests
    assert not third.held and third.buttons == {"3"}
    assert not none.buttons


def test_a_press_shorter_than_a_period_engages():
    assert mouse([BUTTONS["engage"], BUTTONS["none"]]).read().requests == ("toggle",)


def test_a_deflected_cap_of_which_nothing_is_heard_any_more_is_as_released():
    clock = Clock()
    device = mouse([BUTTONS["dead-man"], PUSHED], [], [], [PUSHED], clock=clock)
    assert device.read().held
    clock.now += 0.9 * MAX_SILENCE_S
    assert device.read().held
    clock.now += 0.2 * MAX_SILENCE_S
    assert not device.read().held
    assert device.read().held


def test_unplugged_in_mid_motion_the_arm_is_told_to_hold():
    device = mouse(
        [BUTTONS["engage"]], [BUTTONS["none"]], [BUTTONS["dead-man"], PUSHED], OSError("read error")
    )
    session = FakeSession()
    with pytest.raises(
        DeviceError, match=r"SpaceMouse: it stopped answering \(read error\); was it unplugged\?"
    ):
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
        self.reports, self.opens = [*reports], opens
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


def test_the_first_spacemouse_is_read_until_nothing_is_waiting(monkeypatch):
    hid = FakeHid([PUSHED, TURNED, [], LIFTED], vendor_id=0x256F, product_id=0xC635)
    with opened(monkeypatch, hid) as device:
        assert device.read().axes == pytest.approx((1.0, 0.0, 0.0, 0.0, 0.0, 1.0))
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
