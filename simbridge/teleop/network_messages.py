"""The messages that programs send to `simbridge teleop network`: JSON, a datagram each.

A datagram means exactly one thing, or is refused (table in docs/teleop.md).
"""

from __future__ import annotations

import math
from typing import Annotated, TypeAlias

import msgspec

from simbridge.errors import InvalidParameter
from simbridge.sessions.inputs import TwistFrame
from simbridge.teleop.device import DeviceCommand

# A valid datagram has far less.
MAX_DATAGRAM_BYTES = 2048
# How much of the parser's complaint is passed on.
MAX_REASON_CHARACTERS = 200

Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_.-]{1,32}\Z")]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
JointValues = Annotated[tuple[float, ...], msgspec.Meta(min_length=1, max_length=16)]
SixValues: TypeAlias = tuple[float, float, float, float, float, float]
SevenValues: TypeAlias = tuple[float, float, float, float, float, float, float]


class ClientMessage(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, tag_field="type"):
    """The fields of every datagram but a stop.

    Attributes:
        client: Name of the client that sends it.
        seq: A number that increases from each datagram of a client to its next, over restarts too.
        token: The token that `simbridge teleop network` was given.
    """

    client: Name
    seq: Count
    token: str = ""


class HaltMessage(msgspec.Struct, kw_only=True, tag_field="type", tag="halt"):
    """Brakes and holds, and ends the engagement. From any client, in any order.

    Only its token counts.
    """

    token: str = ""
    client: Name = "unnamed"
    seq: Count = 0


class StatusMessage(ClientMessage, tag="status"):
    """Changes nothing: asks for a reply."""


class EngageMessage(ClientMessage, tag="engage"):
    """Asks to drive; the reply has the number of the engagement."""


class DisengageMessage(ClientMessage, tag="disengage"):
    """Gives the arm back; it comes to rest."""


class ButtonMessage(ClientMessage, tag="button"):
    """A button of the client's device is pressed or released."""

    button: Name
    pressed: bool


class MotionMessage(ClientMessage):
    """An input that moves the arm.

    Attributes:
        engagement: The number in the reply to `engage`.
    """

    engagement: Count


class PoseMessage(MotionMessage, tag="pose"):
    """A pose of the TCP.

    Attributes:
        values: [x y z qx qy qz qw] in base_link, m.
        relative: Whether it is relative to the pose at the engagement.
    """

    values: SevenValues
    relative: bool = False


class TwistMessage(MotionMessage, tag="twist"):
    """Velocity of the TCP, m/s and rad/s, in the axes of a frame."""

    values: SixValues
    frame: TwistFrame = "base_link"


class JogMessage(MotionMessage, tag="jog"):
    """Joint velocities, rad/s."""

    values: JointValues


class JointsMessage(MotionMessage, tag="joints"):
    """Joint positions, rad."""

    values: JointValues


AnyMotion: TypeAlias = PoseMessage | TwistMessage | JogMessage | JointsMessage
AnyMessage: TypeAlias = (
    HaltMessage
    | StatusMessage
    | EngageMessage
    | DisengageMessage
    | ButtonMessage
    | PoseMessage
    | TwistMessage
    | JogMessage
    | JointsMessage
)
DECODER: msgspec.json.Decoder[AnyMessage] = msgspec.json.Decoder(AnyMessage)


def parse(data: bytes) -> AnyMessage:
    """Decode a datagram.

    Raises:
        InvalidParameter: It is not one of the messages, or has a number that is none.
    """
    needed = "one JSON object as in docs/teleop.md"
    if len(data) > MAX_DATAGRAM_BYTES:
        raise InvalidParameter("datagram", f"longer than {MAX_DATAGRAM_BYTES} bytes", needed)

    try:
        message = DECODER.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        reason = str(error)[:MAX_REASON_CHARACTERS]
        raise InvalidParameter("datagram", f"not usable ({reason})", needed) from None

    if isinstance(message, AnyMotion) and not all(map(math.isfinite, message.values)):
        raise InvalidParameter("datagram", "not usable (a value is not finite)", needed)
    return message


def command_of(message: AnyMotion) -> DeviceCommand:
    """Return a motion as a session takes it."""
    if isinstance(message, PoseMessage):
        return DeviceCommand("pose", message.values, relative=message.relative, source=message)
    if isinstance(message, TwistMessage):
        return DeviceCommand("twist", message.values, frame=message.frame, source=message)
    if isinstance(message, JogMessage):
        return DeviceCommand("jog", message.values, source=message)
    return DeviceCommand("joints", message.values, source=message)
