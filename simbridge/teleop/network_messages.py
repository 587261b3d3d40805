"""The messages that programs send to `simbridge teleop network`: JSON, a datagram each.

A datagram means exactly one thing, or is refused (table in docs/teleop.md).
"""

from __future__ import annotations

import contextlib
import json
import math
from typing import Annotated, TypeAlias, get_args

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
MESSAGE_TYPES = tuple(str(message.__struct_config__.tag) for message in get_args(AnyMessage))
DECODER: msgspec.json.Decoder[AnyMessage] = msgspec.json.Decoder(AnyMessage)


# The decoder's complaint about a field that is left out, and what it puts before a field's name.
MISSING_FIELD = "Object missing required field "
FIELD_MARK = " - at `$."
# What is expected of some fields, instead of the decoder's words.
NAME_RULE = "expected 1 to 32 letters, digits, `_`, `.` or `-`"
EXPECTATIONS = {
    "client": NAME_RULE,
    "button": NAME_RULE,
    "seq": f"expected an integer from 0 to {2**53}",
    "engagement": "expected the number in the reply to `engage`",
    "frame": "expected `base_link`, `base` or `tool`",
}


class InvalidMessage(InvalidParameter):
    """A datagram that is not a message.

    Attributes:
        reason: What is wrong with it, as a clause.
        client: The name of its client; "" if that cannot be read.
        seq: Number of the datagram; 0 if that cannot be read.
    """

    def __init__(self, reason: str, client: str = "", seq: int = 0) -> None:
        super().__init__("datagram", reason, "one JSON object as in docs/teleop.md")
        self.reason = reason
        self.client = client
        self.seq = seq
        self.args = (f"Invalid message: {reason} (see docs/teleop.md).",)


def parse(data: bytes) -> AnyMessage:
    """Decode a datagram.

    Raises:
        InvalidMessage: It is not one of the messages, or a value in it is not finite.
    """
    if len(data) > MAX_DATAGRAM_BYTES:
        raise InvalidMessage(f"longer than {MAX_DATAGRAM_BYTES} bytes")

    try:
        message = DECODER.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        client, seq = _read_sender(data)
        raise InvalidMessage(_describe(error, data), client, seq) from None

    if isinstance(message, AnyMotion) and not all(map(math.isfinite, message.values)):
        raise InvalidMessage("a value is not finite", message.client, message.seq)
    return message


def _describe(error: Exception, data: bytes) -> str:
    """Return what is wrong with a datagram, as a clause.

    Args:
        error: The decoder's complaint.
        data: The datagram.
    """
    if _has_non_finite_number(data):
        return "it has NaN or Infinity, which are not JSON"

    complaint, _, place = str(error)[:MAX_REASON_CHARACTERS].partition(FIELD_MARK)
    field_name = place.rstrip("`")
    if complaint.startswith(MISSING_FIELD):
        return f"field {complaint.removeprefix(MISSING_FIELD)} is missing"
    if not complaint.startswith("JSON"):
        complaint = complaint[:1].lower() + complaint[1:]
    if not field_name:
        return complaint
    if field_name == "type":
        complaint = f"{complaint}; known are {', '.join(MESSAGE_TYPES)}"
    return f"field `{field_name}`: {EXPECTATIONS.get(field_name, complaint)}"


def _has_non_finite_number(data: bytes) -> bool:
    """Return whether a datagram is JSON but for NaN or Infinity, as Python's `json` writes them."""
    names: list[str] = []
    with contextlib.suppress(ValueError, RecursionError):
        json.loads(data, parse_constant=names.append)
        return bool(names)
    return False


def _read_sender(data: bytes) -> tuple[str, int]:
    """Return client and number of a datagram that is not a message, as far as they can be read.

    Returns:
        The client's name, or ""; and the number, or 0.
    """
    try:
        # Unlike msgspec, it reads NaN as well.
        content = json.loads(data)
    except (ValueError, RecursionError):
        return "", 0
    if not isinstance(content, dict):
        return "", 0

    client = ""
    seq = 0
    with contextlib.suppress(msgspec.ValidationError):
        client = msgspec.convert(content.get("client"), type=Name)
    with contextlib.suppress(msgspec.ValidationError):
        seq = msgspec.convert(content.get("seq"), type=Count)
    return client, seq


def command_of(message: AnyMotion) -> DeviceCommand:
    """Return a motion as a session takes it."""
    if isinstance(message, PoseMessage):
        return DeviceCommand("pose", message.values, relative=message.relative, source=message)
    if isinstance(message, TwistMessage):
        return DeviceCommand("twist", message.values, frame=message.frame, source=message)
    if isinstance(message, JogMessage):
        return DeviceCommand("jog", message.values, source=message)
    return DeviceCommand("joints", message.values, source=message)
