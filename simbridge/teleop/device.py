"""What every input device shares: what one reading of it holds, what it is notified of, and its options.

Each option is one field, from which its flag and its help follow (see `planning/option_field.py`).
"""

from __future__ import annotations

import ipaddress
import math
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import pinocchio as pin

from simbridge.errors import InvalidParameter, Refusal, SimbridgeError, UnknownName
from simbridge.planning.option_field import teleop_option
from simbridge.robot.pose import Array
from simbridge.sessions.inputs import TwistFrame
from simbridge.teleop.token_file import read_token

if TYPE_CHECKING:  # loads the backends; a device is only given its session
    from simbridge.sessions.session import LiveSession

Axes = tuple[float, ...]
Steps = tuple[int, ...]
Request = Literal["engage", "disengage", "toggle", "halt", "quit"]

AT_REST: Axes = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
NO_STEP: Steps = (0, 0, 0, 0, 0, 0)

MOVABLE = ("engaged", "tracking", "braking", "holding")
"""States of a session in which inputs move the arm."""

AXES = ("x", "y", "z", "rx", "ry", "rz")
_GROUPS = {"translation": AXES[:3], "rotation": AXES[3:]}

LOOPBACK = "127.0.0.1"
PORT = 8321

_SHORTEST_TOKEN = 8
# The pendant's base is base_link turned by half a turn about z.
_HALF_TURN = np.diag([-1.0, -1.0, 1.0])


class DeviceError(Refusal, OSError):
    """An input device (its name) that is missing, must not be read, or was lost; reason: what is wrong and what to do;
    rule: lines of a udev rule that gives the rights to read it, or ""."""

    def __init__(self, device: str, reason: str, rule: str = "") -> None:
        self.device, self.reason, self.rule = device, reason, rule
        super().__init__(f"{device}: {reason}")


@dataclass(frozen=True)
class Command:
    """An input that a program gave, to be passed on to the session once: its method, the argument in SI units, the
    frame of a twist, whether a pose is relative, and what the device knows it by."""

    kind: Literal["pose", "twist", "jog", "joints"]
    values: tuple[float, ...]
    frame: TwistFrame = "base_link"
    relative: bool = False
    source: Any = None


@dataclass(frozen=True)
class Reading:
    """What a device shows at one instant; a part that it does not have stays as it is here.

    Attributes:
        axes: Deflection along x (forward), y (left), z (up) and about them, -1 to 1.
        held: Whether the dead-man button is held: only then do the axes move the arm.
        steps: Single steps along and about the same axes since the last reading: -1, 0 or 1 each.
        buttons: Names of the other buttons that are down.
        requests: What was asked for since the last reading, in this order.
        commands: What programs gave since the last reading, in this order.
    """

    axes: Axes = AT_REST
    held: bool = False
    steps: Steps = NO_STEP
    buttons: frozenset[str] = frozenset()
    requests: tuple[Request, ...] = ()
    commands: tuple[Command, ...] = ()


class Device:
    """An input device, open for reading, to be derived from. A context manager.

    Attributes:
        name, dead_man: The device and its dead-man button, as in messages.
        guide: Lines of the first screen: what engages, what moves, what stops.
    """

    name: str
    dead_man: str = "the dead-man button"
    guide: tuple[str, ...] = ()

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """At the end."""

    def read(self) -> Reading:
        """The newest reading; returns at once.

        Raises:
            OSError: The device was unplugged, or cannot be read any more.
        """
        raise NotImplementedError

    def engaged(self) -> None:
        """The session has just been engaged: what was received until now must not move the arm."""

    def refused(self, command: Command, error: SimbridgeError) -> None:
        """The session refused a command of this device."""

    def answer(self, session: LiveSession, problem: str) -> None:
        """A reading was acted on; problem: why a request of it failed, or ""."""

    def suspended(self) -> AbstractContextManager[None]:
        """While the operator is asked something in the terminal."""
        return nullcontext()


def read_lock(text: str) -> tuple[str, ...]:
    """Axes separated by commas; "translation" and "rotation" stand for three each."""
    return tuple(
        axis for name in text.split(",") for axis in _GROUPS.get(name.strip(), (name.strip(),))
    )


@dataclass(frozen=True)
class TeleopOptions:
    """How readings of a device become motions. In SI units and radians; the help text of each field describes it.

    Raises:
        InvalidParameter, UnknownName: A value is invalid.
    """

    dead_band: float = teleop_option(
        0.08, "Part of the travel of a stick or cap that counts as rest, 0 to 0.9.", "SHARE"
    )
    translation_speed: float = teleop_option(
        0.1, "Speed of the TCP at full deflection, or of a held key.", "M/S"
    )
    rotation_speed: float = teleop_option(
        0.5, "Rotation at full deflection, or of a held key.", "RAD/S"
    )
    frame: TwistFrame = teleop_option(
        "base_link",
        "Axes in which the device moves the TCP: base_link (x forward, as in ROS), base (as on the pendant), or tool.",
    )
    lock: tuple[str, ...] = teleop_option(
        (),
        "Axes that do not move: some of x,y,z,rx,ry,rz, or translation, or rotation.",
        "AXIS,...",
        "none",
        read=read_lock,
    )
    step: float = teleop_option(
        0.005, "Step of a key press, where the terminal reports no release.", "MM", units=(1e-3,)
    )
    step_angle: float = teleop_option(
        math.radians(2.0), "The same, for rotations.", "DEG", units=(math.radians(1.0),)
    )
    dead_man_button: int | None = teleop_option(
        None, "Number of the button to hold while the arm moves.", "N", "spacemouse 1, gamepad 6"
    )
    engage_button: int | None = teleop_option(
        None, "Number of the button that engages and disengages.", "N", "spacemouse 2, gamepad 8"
    )
    on_button: str | None = teleop_option(
        None,
        "Called as function(button, pressed) for each other button of the device: a gripper is yours to drive.",
        "MODULE:FUNCTION",
        "none",
    )
    listen: str = teleop_option(
        LOOPBACK,
        "network: address to listen on; other than loopback needs --token-file.",
        "ADDRESS",
    )
    port: int = teleop_option(PORT, "network: UDP port.", "PORT")
    # Not shown where options are printed.
    token: str = field(
        default="",
        repr=False,
        metadata={
            "commands": ("teleop",),
            "help": "network: file with the token that every datagram must carry (no encryption: docs/teleop.md).",
            "metavar": "FILE",
            "unset": "none; then only this computer is listened to",
            "flag": "token-file",
            "read": read_token,
        },
    )

    def __post_init__(self) -> None:
        if self.frame not in get_args(TwistFrame):
            raise UnknownName("frame", self.frame, get_args(TwistFrame))
        for axis in self.lock:
            if axis not in AXES:
                raise UnknownName("axis", axis, (*AXES, *_GROUPS))
        for name, value, unit, least, most, needed in (
            ("dead band", self.dead_band, "", 0.0, 0.9, "from 0 to 0.9, a part of the travel"),
            ("translation speed", self.translation_speed, " m/s", 0.0, 5.0, "from 0 to 5 m/s"),
            ("rotation speed", self.rotation_speed, " rad/s", 0.0, 10.0, "from 0 to 10 rad/s"),
            ("step", self.step, " m", 0.0, 0.05, "from 0 to 0.05 m (50 mm)"),
            (
                "step angle",
                self.step_angle,
                " rad",
                0.0,
                math.radians(20.0) + 1e-9,
                "from 0 to 0.349 rad (20 degrees)",
            ),
            *(
                (name, number, "", 1, 64, "the number of a button, from 1 to 64")
                for name, number in (
                    ("dead-man button", self.dead_man_button),
                    ("engage button", self.engage_button),
                )
                if number is not None
            ),
            ("port", self.port, "", 0, 65535, "from 0 to 65535"),
        ):
            if not least <= value <= most:
                raise InvalidParameter(name, f"{value:.6g}{unit}", needed)
        self._check_network()

    def _check_network(self) -> None:
        try:
            address = ipaddress.ip_address(self.listen)
        except ValueError:
            needed = (
                f"an IP address of this computer, such as {LOOPBACK}, or 0.0.0.0 for all of them"
            )
            raise InvalidParameter("address to listen on", self.listen, needed) from None
        if self.token and len(self.token.encode()) < _SHORTEST_TOKEN:
            # Not shown: it may be the beginning of one that is in use.
            needed = f"{_SHORTEST_TOKEN} characters or more"
            raise InvalidParameter("token", f"{len(self.token)} characters long", needed)
        if not address.is_loopback and not self.token:
            needed = (
                f"{LOOPBACK} unless a token is given: whoever reaches another address could move the arm. Write a "
                "token of your own into a file and give it as --token-file"
            )
            raise InvalidParameter("address to listen on", self.listen, needed)

    def buttons(self, dead_man: int, engage: int) -> tuple[int, int]:
        """The dead-man button and the one that engages, for a device with these defaults; they differ."""
        chosen = self.dead_man_button or dead_man, self.engage_button or engage
        if chosen[0] == chosen[1]:
            raise InvalidParameter("engage button", chosen[1], "another than the dead-man button")
        return chosen

    def shaped(self, axes: Axes) -> Array:
        """Deflections (6,) without dead band and locked axes, -1 to 1; continuous at the edge of the band."""
        value = np.clip(np.asarray(axes, dtype=float), -1.0, 1.0)
        beyond = np.maximum(np.abs(value) - self.dead_band, 0.0) / (1.0 - self.dead_band)
        return np.sign(value) * beyond * self._free

    def twist(self, axes: Axes) -> Array:
        """The TCP's velocity (6,) for these deflections: m/s and rad/s, in the axes of `frame`."""
        return self.shaped(axes) * ([self.translation_speed] * 3 + [self.rotation_speed] * 3)

    def stepped(self, pose: pin.SE3, steps: Steps) -> pin.SE3:
        """A pose in base_link after one step along and about each axis that is not 0, in the axes of `frame`."""
        return self._moved(pose, np.sign(steps) * self._free * self._step)

    def within_a_step(self, goal: pin.SE3, tool: pin.SE3) -> pin.SE3:
        """The goal, or where it is more than one step from the tool along or about an axis of `frame`, one step there.

        The other axes keep the goal: where the tool leaves its line for a moment, the goal does not.
        """
        turn = self._axes_at(tool)
        along = turn.T @ (goal.translation - tool.translation)
        about = turn.T @ pin.log3(goal.rotation @ tool.rotation.T)
        return self._moved(tool, np.clip(np.concatenate([along, about]), -self._step, self._step))

    def _moved(self, pose: pin.SE3, by: Array) -> pin.SE3:
        turn = self._axes_at(pose)
        return pin.SE3(pin.exp3(turn @ by[3:]) @ pose.rotation, pose.translation + turn @ by[:3])

    def _axes_at(self, pose: pin.SE3) -> Array:
        axes: dict[str, Array] = {"base_link": np.eye(3), "base": _HALF_TURN, "tool": pose.rotation}
        return axes[self.frame]

    @property
    def _step(self) -> Array:
        return np.array([self.step] * 3 + [self.step_angle] * 3)

    @property
    def _free(self) -> Array:
        return np.array([axis not in self.lock for axis in AXES], dtype=float)
