"""One datagram of the network input: JSON that means exactly one thing, or is refused (table in docs/teleop.md)."""

from __future__ import annotations

import hmac
import math
from typing import Annotated, TypeAlias

import msgspec

from simbridge.errors import InvalidParameter
from simbridge.planning.live.inputs import TwistFrame
from simbridge.teleop.device import Command

LONGEST = 2048
"""Bytes of a datagram; a valid one has far less."""

Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_.-]{1,32}\Z")]
_Number = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
_Joints = Annotated[tuple[float, ...], msgspec.Meta(min_length=1, max_length=16)]


class Message(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What every datagram has.

    Attributes:
        client: Who sends it.
        seq: Increases from each datagram of a client to its next, over restarts too.
        token: As `simbridge teleop network` was given it.
    """

    client: Name
    seq: _Number
    token: str = ""


class Halt(msgspec.Struct, kw_only=True, tag_field="type", tag="halt"):
    """Brakes and holds, and ends the engagement. From any client, in any order: only its token counts."""

    token: str = ""
    client: Name = "unnamed"
    seq: _Number = 0


class Status(Message, tag_field="type", tag="status"):
    """Changes nothing: asks for a reply."""


class Engage(Message, tag_field="type", tag="engage"):
    """Asks to drive; the reply has the number of the engagement."""


class Disengage(Message, tag_field="type", tag="disengage"):
    """Gives the arm back; it comes to rest."""


class Button(Message, tag_field="type", tag="button"):
    """A button of the client's device is pressed or released."""

    button: Name
    pressed: bool


class Motion(Message):
    """An input; engagement: the number in the reply to `engage`."""

    engagement: _Number

    @property
    def command(self) -> Command:
        """The same for a session."""
        raise NotImplementedError


class Pose(Motion, tag_field="type", tag="pose"):
    """[x y z qx qy qz qw] in base_link, m; relative: to the pose at the engagement."""

    values: tuple[float, float, float, float, float, float, float]
    relative: bool = False

    @property
    def command(self) -> Command:
        return Command("pose", self.values, relative=self.relative, source=self)


class Twist(Motion, tag_field="type", tag="twist"):
    """Velocity of the TCP, m/s and rad/s, in the axes of a frame."""

    values: tuple[float, float, float, float, float, float]
    frame: TwistFrame = "base_link"

    @property
    def command(self) -> Command:
        return Command("twist", self.values, frame=self.frame, source=self)


class Jog(Motion, tag_field="type", tag="jog"):
    """Joint velocities, rad/s."""

    values: _Joints

    @property
    def command(self) -> Command:
        return Command("jog", self.values, source=self)


class Joints(Motion, tag_field="type", tag="joints"):
    """Joint positions, rad."""

    values: _Joints

    @property
    def command(self) -> Command:
        return Command("joints", self.values, source=self)


AnyMessage: TypeAlias = Halt | Status | Engage | Disengage | Button | Pose | Twist | Jog | Joints
_DECODER: msgspec.json.Decoder[AnyMessage] = msgspec.json.Decoder(AnyMessage)


def parse(data: bytes) -> AnyMessage:
    """What a datagram says.

    Raises:
        InvalidParameter: It is not one of the messages, or has a number that is none.
    """
    needed = "one JSON object as in docs/teleop.md"
    if len(data) > LONGEST:
        raise InvalidParameter("datagram", f"longer than {LONGEST} bytes", needed)
    try:
        message = _DECODER.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise InvalidParameter("datagram", f"not usable ({str(error)[:200]})", needed) from None
    if isinstance(message, Motion) and not all(map(math.isfinite, message.command.values)):
        raise InvalidParameter("datagram", "not usable (a value is not finite)", needed)
    return message


def carries(message: AnyMessage, token: str) -> bool:
    """Whether a message has this token; how long the answer takes says nothing of the token."""
    return hmac.compare_digest(message.token.encode(errors="replace"), token.encode())
