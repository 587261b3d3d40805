"""Input from programs on the network: UDP datagrams of JSON. `Exchange` decides without a socket, `Network` has it.

A datagram means exactly one thing, or is refused (table in docs/teleop.md). One client drives, known by its name and
address. It gets a number with its engagement, which its motions must carry: what was sent before an engagement never
moves the arm after it. Anyone with the token can stop the arm.
"""

from __future__ import annotations

import contextlib
import hmac
import math
import random
import socket
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import msgspec
import numpy as np
import pinocchio as pin

from simbridge.errors import InvalidParameter, SimbridgeError
from simbridge.sessions.inputs import TwistFrame
from simbridge.teleop.device import (
    MOVABLE,
    Command,
    Device,
    DeviceError,
    Reading,
    Request,
    TeleopOptions,
)

if TYPE_CHECKING:  # loads the backends; a device is only given its session
    from simbridge.sessions.session import LiveSession

SILENCE = 5.0
"""After this time without a datagram of the driving client, another may engage, s."""

_MOST_CLIENTS = 256
_MOST_BUTTONS = 64
_DATAGRAMS_AT_ONCE = 256

Client = tuple[str, Any]
"""Name, and address as the socket gives it."""

LONGEST = 2048
"""Bytes of a datagram; a valid one has far less."""

Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_.-]{1,32}\Z")]
_Number = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
_Joints = Annotated[tuple[float, ...], msgspec.Meta(min_length=1, max_length=16)]


class Message(
    msgspec.Struct, kw_only=True, forbid_unknown_fields=True, tag_field="type", tag=str.lower
):
    """What every datagram has: who sends it, a number that increases from each datagram of a client to its next, over
    restarts too, and the token that `simbridge teleop network` was given."""

    client: Name
    seq: _Number
    token: str = ""


class Halt(msgspec.Struct, kw_only=True, tag_field="type", tag="halt"):
    """Brakes and holds, and ends the engagement. From any client, in any order: only its token counts."""

    token: str = ""
    client: Name = "unnamed"
    seq: _Number = 0


class Status(Message):
    """Changes nothing: asks for a reply."""


class Engage(Message):
    """Asks to drive; the reply has the number of the engagement."""


class Disengage(Message):
    """Gives the arm back; it comes to rest."""


class Button(Message):
    """A button of the client's device is pressed or released."""

    button: Name
    pressed: bool


class Motion(Message):
    """An input; engagement: the number in the reply to `engage`."""

    engagement: _Number


class Pose(Motion):
    """[x y z qx qy qz qw] in base_link, m; relative: to the pose at the engagement."""

    values: tuple[float, float, float, float, float, float, float]
    relative: bool = False


class Twist(Motion):
    """Velocity of the TCP, m/s and rad/s, in the axes of a frame."""

    values: tuple[float, float, float, float, float, float]
    frame: TwistFrame = "base_link"


class Jog(Motion):
    """Joint velocities, rad/s."""

    values: _Joints


class Joints(Motion):
    """Joint positions, rad."""

    values: _Joints


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
    if isinstance(message, (Pose, Twist, Jog, Joints)) and not all(
        map(math.isfinite, message.values)
    ):
        raise InvalidParameter("datagram", "not usable (a value is not finite)", needed)
    return message


def command_of(message: Pose | Twist | Jog | Joints) -> Command:
    """A motion as a session takes it."""
    if isinstance(message, Pose):
        return Command("pose", message.values, relative=message.relative, source=message)
    if isinstance(message, Twist):
        return Command("twist", message.values, frame=message.frame, source=message)
    return Command("jog" if isinstance(message, Jog) else "joints", message.values, source=message)


@dataclass
class _Reply:
    address: Any
    client: str = ""
    seq: int = 0
    error: str = ""
    trusted: bool = False
    engages: bool = False


@dataclass
class Exchange:
    """What datagrams mean, in the order in which they come.

    Attributes:
        token: That every datagram must carry.
        engagement: Its number; 0 while no client drives.
        dropped: How many datagrams were dropped, by reason: "malformed", "token", "order" (reordered or repeated),
            "engagement" (of an earlier one, or none), "driver" (another client drives), "value" (the session's).
    """

    token: str = ""
    engagement: int = 0
    dropped: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        # Not 1 again in the next process, whose clients may still send.
        self._last = random.randrange(1, 2**31)
        self._driver: Client | None = None
        self._engaging = False
        self._heard = 0.0
        self._newest: dict[Client, int] = {}
        self._buttons: frozenset[str] = frozenset()
        self._requests: list[Request] = []
        self._commands: list[Command] = []
        self._replies: list[_Reply] = []

    def receive(self, data: bytes, address: Any, now: float) -> None:
        """Take a datagram in; now: monotonic, s."""
        reply = _Reply(address)
        self._replies.append(reply)
        try:
            message = parse(data)
        except InvalidParameter as error:
            self._drop("malformed", reply, str(error))
            return
        reply.client, reply.seq = message.client, message.seq
        # How long the answer takes says nothing of the token.
        if not hmac.compare_digest(message.token.encode(errors="replace"), self.token.encode()):
            self._drop("token", reply, "The token is wrong.")
            return
        reply.trusted = True
        client = (message.client, address)
        if isinstance(message, Halt):
            self._end()
            self._requests.insert(0, "halt")
        elif message.seq <= (newest := self._newest.get(client, -1)):
            self._drop("order", reply, f"Dropped: seq {message.seq} came after {newest}.")
        else:
            self._newest[client] = message.seq
            if len(self._newest) > _MOST_CLIENTS:
                del self._newest[
                    next(one for one in self._newest if one not in (client, self._driver))
                ]
            self._take(message, client, reply, now)

    def _take(self, message: Message, client: Client, reply: _Reply, now: float) -> None:
        drives = client == self._driver
        if drives:
            self._heard = now
        if isinstance(message, Engage):
            self._engage(client, reply, now)
        elif isinstance(message, Status):
            pass  # its reply is all it asks for
        elif self._driver is not None and not drives:
            self._drop("driver", reply, self._refusal)
        elif isinstance(message, Motion) and (
            not self.engagement or message.engagement != self.engagement
        ):
            self._drop(
                "engagement",
                reply,
                "Dropped: it belongs to no present engagement; send engage first.",
            )
        elif isinstance(message, (Pose, Twist, Jog, Joints)):
            self._commands.append(command_of(message))
        elif isinstance(message, Button):
            changed = (
                self._buttons | {message.button}
                if message.pressed
                else self._buttons - {message.button}
            )
            self._buttons = changed if len(changed) <= _MOST_BUTTONS else self._buttons
        elif isinstance(message, Disengage) and drives:
            self._end()

    def _engage(self, client: Client, reply: _Reply, now: float) -> None:
        if self._driver is not None and client != self._driver:
            if self._engaging or now - self._heard <= SILENCE:
                self._drop("driver", reply, self._refusal)
                return
            self._end()
        if not self.engagement and not self._engaging:
            self._driver, self._heard, self._engaging = client, now, True
            self._requests.append("engage")
        reply.engages = True

    def _end(self) -> None:
        """The engagement ends now: nothing that was received before moves the arm any more."""
        self.engagement, self._driver, self._engaging = 0, None, False
        self._commands.clear()
        self._buttons = frozenset()
        self._requests = ["disengage"]

    @property
    def _refusal(self) -> str:
        name, address = self._driver or ("", "")
        return f"Refused: {name} at {_written(address)} drives."

    def _drop(self, reason: str, reply: _Reply, error: str) -> None:
        self.dropped[reason] += 1
        reply.error = error

    def take(self) -> Reading:
        """The requests and commands since the last call."""
        reading = Reading(
            buttons=self._buttons, requests=tuple(self._requests), commands=tuple(self._commands)
        )
        self._requests.clear()
        self._commands.clear()
        return reading

    def engaged(self, now: float) -> None:
        """The session was engaged, which may have taken long; now: monotonic, s."""
        self._last += 1
        self.engagement, self._engaging, self._heard = self._last, False, now

    def refused(self, command: Command, error: SimbridgeError) -> None:
        """The session refused a command."""
        self.dropped["value"] += 1
        for reply in self._replies:
            if (reply.client, reply.seq) == (
                command.source.client,
                command.source.seq,
            ) and not reply.error:
                reply.error = str(error)

    def replies(self, session: LiveSession, problem: str) -> list[tuple[bytes, Any]]:
        """The replies to all datagrams since the last call, with their addresses; the session is as it is after what
        they asked for; problem: why a request failed, or ""."""
        status = session.status
        if status.state not in MOVABLE:
            # Something else ended it, or it could not begin.
            self.engagement, self._driver, self._engaging = 0, None, False
        state: dict[str, Any] = {}
        sent = []
        for reply in self._replies:
            error = reply.error or (
                reply.engages and not self.engagement and (problem or "Not engaged.")
            )
            said = {
                "ok": not error,
                "client": reply.client,
                "seq": reply.seq,
                **({"error": error} if error else {}),
            }
            if reply.trusted:
                state = state or {
                    "state": status.state,
                    "causes": list(status.causes),
                    "speed_factor": status.speed_factor,
                    "engagement": self.engagement,
                    "driver": self._driver[0] if self._driver else "",
                    "tool": [float(v) for v in np.asarray(pin.SE3ToXYZQUAT(session.tool))],
                    "dropped": dict(self.dropped),
                }
                said |= state
            sent.append((msgspec.json.encode(said), reply.address))
        self._replies.clear()
        return sent


class Network(Device):
    """Programs on the network; listener: a UDP socket, bound, that does not block."""

    name = "network"

    def __init__(
        self,
        listener: socket.socket,
        options: TeleopOptions,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._socket, self._clock = listener, clock
        self.exchange = Exchange(options.token)
        address = _written(listener.getsockname())
        guarded = (
            "with the token of --token-file"
            if options.token
            else "without a token, from this computer only"
        )
        self.guide = (
            f"Network: UDP datagrams of JSON at {address}, {guarded} (docs/teleop.md).",
            "  A client engages, and drives; any client can stop the arm.",
            "  Ctrl-C ends.",
        )

    @classmethod
    def open(cls, options: TeleopOptions) -> Network:
        """Listens where the options say.

        Raises:
            DeviceError: The address or port cannot be used.
        """
        family = socket.AF_INET6 if ":" in options.listen else socket.AF_INET
        listener = socket.socket(family, socket.SOCK_DGRAM)
        try:
            listener.bind((options.listen, options.port))
        except OSError as error:
            listener.close()
            place = f"UDP port {options.port} of {options.listen}"
            raise DeviceError(
                cls.name, f"{place} cannot be used: {error.strerror}. Choose another one."
            ) from error
        listener.setblocking(False)
        return cls(listener, options)

    def close(self) -> None:
        self._socket.close()

    @property
    def address(self) -> Any:
        """Where it listens, as the socket gives it."""
        return self._socket.getsockname()

    def read(self) -> Reading:
        for _ in range(_DATAGRAMS_AT_ONCE):
            try:
                data, address = self._socket.recvfrom(LONGEST + 1)
            except BlockingIOError:
                break
            except ConnectionError:
                # A client is gone, says its computer.
                continue
            self.exchange.receive(data, address, self._clock())
        return self.exchange.take()

    def engaged(self) -> None:
        self.exchange.engaged(self._clock())

    def refused(self, command: Command, error: SimbridgeError) -> None:
        self.exchange.refused(command, error)

    def answer(self, session: LiveSession, problem: str) -> None:
        for data, address in self.exchange.replies(session, problem):
            # Whom a reply does not reach asks again.
            with contextlib.suppress(OSError):
                self._socket.sendto(data, address)


def _written(address: Any) -> str:
    return f"{address[0]}:{address[1]}" if isinstance(address, tuple) else str(address)
