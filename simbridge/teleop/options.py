"""The options of teleoperation: how readings of a device become motions.

Each option is one field, from which its flag and its help follow (see `planning/option_field.py`).
"""

from __future__ import annotations

import ipaddress
import math
from dataclasses import dataclass, field
from typing import get_args

import numpy as np
import pinocchio as pin

from simbridge.errors import InvalidChoice, InvalidParameter, UnknownName
from simbridge.planning.option_field import teleop_option
from simbridge.robot.pose import Array
from simbridge.sessions.inputs import TwistFrame
from simbridge.teleop.device import Axes, Steps
from simbridge.teleop.token_file import read_token

AXES = ("x", "y", "z", "rx", "ry", "rz")
AXIS_GROUPS = {"translation": AXES[:3], "rotation": AXES[3:]}

# The devices that an option concerns; all of them where an option names none.
STICKS = ("spacemouse", "gamepad")
AXIS_DEVICES = ("spacemouse", "gamepad", "keyboard")

LOOPBACK = "127.0.0.1"
PORT = 8321

# What the numbers may be: parts of the travel, m/s, rad/s, m, rad.
MAX_DEAD_BAND = 0.9
MAX_TRANSLATION_SPEED = 5.0
MAX_ROTATION_SPEED = 10.0
MAX_STEP = 0.05
# 20 degrees, with room for rounding.
MAX_STEP_ANGLE = math.radians(20.0) + 1e-9
MAX_BUTTON = 64
MAX_PORT = 65535
MIN_TOKEN_BYTES = 8

# The pendant's base is base_link turned by half a turn about z.
HALF_TURN = np.diag([-1.0, -1.0, 1.0])


def read_lock(text: str) -> tuple[str, ...]:
    """Read axes separated by commas; "translation" and "rotation" stand for three each."""
    axes: list[str] = []
    for part in text.split(","):
        name = part.strip()
        axes.extend(AXIS_GROUPS.get(name, (name,)))
    return tuple(axes)


@dataclass(frozen=True)
class TeleopOptions:
    """The options that turn the readings of a device into motions.

    Values are in SI units and radians; the help text of each field describes it.

    Raises:
        InvalidParameter: A number, the address or the token is invalid.
        UnknownName: There is no such frame or axis.
    """

    dead_band: float = teleop_option(
        0.08,
        "Dead band: fraction of a stick's or cap's travel that counts as rest, 0 to 0.9.",
        "SHARE",
        devices=STICKS,
    )
    translation_speed: float = teleop_option(
        0.1, "TCP speed at full deflection, or while a key is held.", "M/S", devices=AXIS_DEVICES
    )
    rotation_speed: float = teleop_option(
        0.5,
        "Rotation speed at full deflection, or while a key is held.",
        "RAD/S",
        devices=AXIS_DEVICES,
    )
    frame: TwistFrame = teleop_option(
        "base_link",
        "Axes in which the device moves the TCP: base_link (x forward, as in ROS), "
        "base (as on the pendant), or tool.",
        devices=AXIS_DEVICES,
    )
    lock: tuple[str, ...] = teleop_option(
        (),
        "Axes that are locked: any of x,y,z,rx,ry,rz, or translation, or rotation.",
        "AXIS,...",
        "none",
        read=read_lock,
        devices=AXIS_DEVICES,
    )
    step: float = teleop_option(
        0.005,
        "Step of a key press, where the terminal does not report key releases.",
        "MM",
        units=(1e-3,),
        devices=("keyboard",),
    )
    step_angle: float = teleop_option(
        math.radians(2.0),
        "Step of a key press that turns the tool.",
        "DEG",
        units=(math.radians(1.0),),
        devices=("keyboard",),
    )
    dead_man_button: int | None = teleop_option(
        None,
        "Number of the button to hold while the arm moves.",
        "N",
        "spacemouse 1, gamepad 6",
        devices=STICKS,
    )
    engage_button: int | None = teleop_option(
        None,
        "Number of the button that engages and disengages.",
        "N",
        "spacemouse 2, gamepad 8",
        devices=STICKS,
    )
    on_button: str | None = teleop_option(
        None,
        "Called as function(button, pressed) for each other button of the device: "
        "use it to drive your gripper.",
        "MODULE:FUNCTION",
        "none",
    )
    listen: str = teleop_option(
        LOOPBACK,
        "network: address to listen on; any address but loopback needs --token-file.",
        "ADDRESS",
        devices=("network",),
    )
    port: int = teleop_option(PORT, "network: UDP port.", "PORT", devices=("network",))
    # Not shown where options are printed.
    token: str = field(
        default="",
        repr=False,
        metadata={
            "commands": ("teleop",),
            "devices": ("network",),
            "help": "network: file with the token that every datagram must contain (there is no "
            "encryption: docs/teleop.md).",
            "metavar": "FILE",
            "unset": "none; then only this computer is listened to",
            "flag": "token-file",
            "read": read_token,
        },
    )

    def __post_init__(self) -> None:
        frames = get_args(TwistFrame)
        if self.frame not in frames:
            raise InvalidChoice("frame", self.frame, frames)
        for axis in self.lock:
            if axis not in AXES:
                raise UnknownName("axis", axis, (*AXES, *AXIS_GROUPS))

        self._check_speeds_and_steps()
        self._check_buttons()
        _check_range("port", float(self.port), "", low=0.0, high=MAX_PORT, needed="from 0 to 65535")
        self._check_network()

    def choose_buttons(self, dead_man: int, engage: int) -> tuple[int, int]:
        """Return the numbers of the dead-man button and of the one that engages.

        Args:
            dead_man: The device's default.
            engage: The device's default.

        Raises:
            InvalidParameter: Both buttons are the same.
        """
        dead_man = self.dead_man_button or dead_man
        engage = self.engage_button or engage
        if dead_man == engage:
            raise InvalidParameter("engage button", engage, "different from the dead-man button")
        return dead_man, engage

    def shape(self, axes: Axes) -> Array:
        """Return deflections (6,) without dead band and locked axes, -1 to 1.

        They are continuous at the edge of the dead band.
        """
        deflections = np.clip(np.asarray(axes, dtype=float), -1.0, 1.0)
        beyond = np.maximum(np.abs(deflections) - self.dead_band, 0.0) / (1.0 - self.dead_band)
        return np.sign(deflections) * beyond * self._free_axes

    def twist(self, axes: Axes) -> Array:
        """Return the TCP's velocity (6,) for deflections, m/s and rad/s, in the axes of `frame`."""
        speeds = [self.translation_speed] * 3 + [self.rotation_speed] * 3
        return self.shape(axes) * speeds

    def step_pose(self, pose: pin.SE3, steps: Steps) -> pin.SE3:
        """Return a pose after one step along and about each axis whose step is not 0.

        Args:
            pose: A pose in base_link.
            steps: Steps in the axes of `frame`.
        """
        return self._shift(pose, np.sign(steps) * self._free_axes * self._step_lengths)

    def limit_to_step(self, goal: pin.SE3, tool: pin.SE3) -> pin.SE3:
        """Return a goal at most one step from the tool along and about each axis of `frame`.

        Only the axes along or about which the goal is further are shortened. The rest keep the
        goal: where the tool leaves its line for a moment, the goal does not.

        Args:
            goal: Pose of the goal in base_link.
            tool: Pose of the tool in base_link.
        """
        axes = self._frame_axes(tool)
        distance = axes.T @ (goal.translation - tool.translation)
        angle = axes.T @ pin.log3(goal.rotation @ tool.rotation.T)

        longest = self._step_lengths
        shift = np.clip(np.concatenate([distance, angle]), -longest, longest)
        return self._shift(tool, shift)

    def _shift(self, pose: pin.SE3, shift: Array) -> pin.SE3:
        """Return a pose in base_link, shifted and turned by `shift` (6,), m and rad, in `frame`."""
        axes = self._frame_axes(pose)
        rotation = pin.exp3(axes @ shift[3:]) @ pose.rotation
        return pin.SE3(rotation, pose.translation + axes @ shift[:3])

    def _frame_axes(self, tool: pin.SE3) -> Array:
        """Return the axes (3, 3) of `frame` in base_link, as columns, with the tool at a pose."""
        if self.frame == "base_link":
            return np.eye(3)
        if self.frame == "base":
            return HALF_TURN
        rotation: Array = tool.rotation
        return rotation

    @property
    def _step_lengths(self) -> Array:
        """Steps along and about the axes (6,), m and rad."""
        return np.array([self.step] * 3 + [self.step_angle] * 3)

    @property
    def _free_axes(self) -> Array:
        """A 1 for each axis (6,) that may move, a 0 for each that is locked."""
        return np.array([axis not in self.lock for axis in AXES], dtype=float)

    def _check_speeds_and_steps(self) -> None:
        _check_range(
            "dead band",
            self.dead_band,
            "",
            low=0.0,
            high=MAX_DEAD_BAND,
            needed="from 0 to 0.9 of the travel",
        )
        _check_range(
            "translation speed",
            self.translation_speed,
            " m/s",
            low=0.0,
            high=MAX_TRANSLATION_SPEED,
            needed="from 0 to 5 m/s",
        )
        _check_range(
            "rotation speed",
            self.rotation_speed,
            " rad/s",
            low=0.0,
            high=MAX_ROTATION_SPEED,
            needed="from 0 to 10 rad/s",
        )
        _check_range(
            "step", self.step, " m", low=0.0, high=MAX_STEP, needed="from 0 to 0.05 m (50 mm)"
        )
        _check_range(
            "step angle",
            self.step_angle,
            " rad",
            low=0.0,
            high=MAX_STEP_ANGLE,
            needed="from 0 to 0.349 rad (20 degrees)",
        )

    def _check_buttons(self) -> None:
        needed = "the number of a button, from 1 to 64"
        buttons = [
            ("dead-man button", self.dead_man_button),
            ("engage button", self.engage_button),
        ]
        for name, button in buttons:
            if button is not None:
                _check_range(name, float(button), "", low=1.0, high=MAX_BUTTON, needed=needed)

    def _check_network(self) -> None:
        try:
            address = ipaddress.ip_address(self.listen)
        except ValueError:
            needed = (
                f"an IP address of this computer, such as {LOOPBACK}, or 0.0.0.0 for all of them"
            )
            raise InvalidParameter("address to listen on", self.listen, needed) from None

        if self.token and len(self.token.encode()) < MIN_TOKEN_BYTES:
            # The token is not shown: it may be the beginning of one that is in use.
            needed = f"{MIN_TOKEN_BYTES} characters or more"
            raise InvalidParameter("token", f"{len(self.token)} characters long", needed)

        if not address.is_loopback and not self.token:
            needed = (
                f"{LOOPBACK} unless a token is given: anyone who can reach another address could "
                "move the arm. Write a token into a file and pass it as --token-file"
            )
            raise InvalidParameter("address to listen on", self.listen, needed)


def _check_range(
    name: str, value: float, unit: str, *, low: float, high: float, needed: str
) -> None:
    """Refuse a number, named with its unit, outside a range; a value that is nan is outside."""
    if not low <= value <= high:
        raise InvalidParameter(name, f"{value:.6g}{unit}", needed)
