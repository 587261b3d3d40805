"""Interprets datagrams in order of arrival: which client drives, and which ones are dropped.

It opens no socket.

One client drives, known by its name and address. It gets a number with its engagement, which its
motions must carry: what was sent before an engagement never moves the arm after it. Anyone with the
token can stop the arm.
"""

from __future__ import annotations

import hmac
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
import pinocchio as pin

from simbridge.errors import SimbridgeError
from simbridge.robot.pose import Array, align_quaternion
from simbridge.teleop.device import MOVABLE, DeviceCommand, Reading, Request
from simbridge.teleop.network_messages import (
    AnyMotion,
    ButtonMessage,
    ClientMessage,
    DisengageMessage,
    EngageMessage,
    HaltMessage,
    InvalidMessage,
    StatusMessage,
    command_of,
    parse,
)

if TYPE_CHECKING:  # loads the backends; an exchange is only given a session
    from simbridge.sessions.session import LiveSession

# After this time without a datagram of the driving client, another may engage, s.
MAX_SILENCE_S = 5.0

# How many clients' last numbers are kept, and how many buttons may be down.
MAX_CLIENTS = 256
MAX_BUTTONS = 64

# Name, and address as the socket gives it.
ClientIdentity = tuple[str, Any]


@dataclass
class Reply:
    """The answer to a datagram.

    Attributes:
        address: The client's address, as the socket gives it.
        client: The client's name; "" if that could not be read.
        seq: The datagram's number; 0 if that could not be read.
        error: Why it was dropped or refused; "" if it was not.
        trusted: Whether it had the token, so that the state is told.
        engages: Whether it asks to drive.
    """

    address: Any
    client: str = ""
    seq: int = 0
    error: str = ""
    trusted: bool = False
    engages: bool = False


@dataclass
class DatagramExchange:
    """The clients, and what they asked for.

    Attributes:
        token: The token that every datagram must carry.
        engagement: Number of the engagement; 0 while no client drives.
        dropped: How many datagrams were dropped, by reason: "malformed", "token", "order"
            (reordered or repeated), "engagement" (of an earlier one, or none), "driver" (another
            client drives), "value" (the session's).
    """

    token: str = ""
    engagement: int = 0
    dropped: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        # The number of the last engagement. It begins at random: clients of the previous process
        # may still send its numbers.
        self._last_engagement = random.randrange(1, 2**31)
        # The client that drives; None if no client does.
        self._driver: ClientIdentity | None = None
        # Whether the session is being engaged for this client.
        self._engaging = False
        # When the last datagram of this client arrived, s.
        self._heard = 0.0
        # The largest sequence number of each client's datagrams.
        self._newest: dict[ClientIdentity, int] = {}
        # Names of the buttons that are down.
        self._buttons: frozenset[str] = frozenset()
        # What ended the last engagement, in words; "" if a client ended it, or before the first.
        self._ended_by = ""
        # The tool's pose (7,) in the last reply; None before the first.
        self._shown_tool: Array | None = None
        # Requests since the last reading.
        self._requests: list[Request] = []
        # Motions since the last reading.
        self._commands: list[DeviceCommand] = []
        # Replies to the datagrams that were not answered yet.
        self._replies: list[Reply] = []

    def receive(self, data: bytes, address: Any, now: float) -> None:
        """Receive a datagram, and act on it if it may be acted on.

        Args:
            data: The datagram.
            address: Address of its client, as the socket gives it.
            now: Present time on a monotonic clock, s.
        """
        reply = Reply(address)
        self._replies.append(reply)
        try:
            message = parse(data)
        except InvalidMessage as error:
            reply.client = error.client
            reply.seq = error.seq
            self._drop("malformed", reply, str(error))
            return
        reply.client = message.client
        reply.seq = message.seq

        # Compare in constant time, so that the time of an answer tells nothing of the token.
        if not hmac.compare_digest(message.token.encode(errors="replace"), self.token.encode()):
            self._drop("token", reply, "The token is wrong.")
            return
        reply.trusted = True

        if isinstance(message, HaltMessage):
            self._end_engagement()
            self._requests.insert(0, "halt")
            return

        client = (message.client, address)
        newest = self._newest.get(client, -1)
        if message.seq <= newest:
            self._drop("order", reply, f"Dropped: seq {message.seq} came after {newest}.")
            return
        self._newest[client] = message.seq
        self._forget_oldest_client(client)
        self._handle(message, client, reply, now)

    def take(self) -> Reading:
        """Return the requests and commands since the last call."""
        reading = Reading(
            buttons=self._buttons, requests=tuple(self._requests), commands=tuple(self._commands)
        )
        self._requests.clear()
        self._commands.clear()
        return reading

    def note_engagement(self, now: float) -> None:
        """Take note that the session was engaged, which may have taken long.

        Args:
            now: Present time on a monotonic clock, s.
        """
        self._last_engagement += 1
        self._ended_by = ""
        self.engagement = self._last_engagement
        self._engaging = False
        self._heard = now

    def note_refusal(self, command: DeviceCommand, error: SimbridgeError) -> None:
        """Take note that the session refused a command; its client is told."""
        self.dropped["value"] += 1
        source = command.source
        for reply in self._replies:
            is_answer = (reply.client, reply.seq) == (source.client, source.seq)
            if is_answer and not reply.error:
                reply.error = str(error)

    def replies(self, session: LiveSession, problem: str) -> list[tuple[bytes, Any]]:
        """Return the replies to all datagrams since the last call, with their addresses.

        Args:
            session: The session, after what they asked for.
            problem: Why a request failed; "" if none did.
        """
        if session.status.state not in MOVABLE:
            # Something else ended the engagement, or it could not begin.
            if self.engagement:
                self._ended_by = ", ".join(map(str, session.status.causes))
            self._forget_driver()

        state = self._state_of(session) if any(reply.trusted for reply in self._replies) else {}
        encoded = []
        for reply in self._replies:
            error = reply.error
            if not error and reply.engages and not self.engagement:
                error = problem or "Not engaged."

            content: dict[str, Any] = {"ok": not error, "client": reply.client, "seq": reply.seq}
            if error:
                content["error"] = error
            if reply.trusted:
                content |= state
            encoded.append((msgspec.json.encode(content), reply.address))
        self._replies.clear()
        return encoded

    def _state_of(self, session: LiveSession) -> dict[str, Any]:
        """Return what a client with the token is told of the session."""
        status = session.status

        # Two quaternions are the same rotation. Choose the one nearer to that of the last reply.
        tool = pin.SE3ToXYZQUAT(session.tool)
        if self._shown_tool is not None:
            tool = align_quaternion(tool, self._shown_tool)
        self._shown_tool = tool

        return {
            "state": status.state,
            "causes": [cause.record() for cause in status.causes],
            "speed_factor": status.speed_factor,
            "engagement": self.engagement,
            "driver": self._driver[0] if self._driver else "",
            "tool": [float(value) for value in tool],
            "dropped": dict(self.dropped),
        }

    def _forget_oldest_client(self, client: ClientIdentity) -> None:
        """Forget the client that was first heard of, if there are too many.

        Args:
            client: A client that is not forgotten, nor is the driver.
        """
        if len(self._newest) <= MAX_CLIENTS:
            return
        for candidate in self._newest:
            if candidate not in (client, self._driver):
                del self._newest[candidate]
                return

    def _handle(
        self, message: ClientMessage, client: ClientIdentity, reply: Reply, now: float
    ) -> None:
        """Act on a message that has the token and came in order."""
        is_driver = client == self._driver
        if is_driver:
            self._heard = now

        if isinstance(message, EngageMessage):
            self._engage(client, reply, now)
        elif isinstance(message, StatusMessage):
            pass  # its reply is all it asks for
        elif self._driver is not None and not is_driver:
            self._drop("driver", reply, self._driver_refusal())
        else:
            self._handle_input(message, reply, is_driver=is_driver)

    def _handle_input(self, message: ClientMessage, reply: Reply, *, is_driver: bool) -> None:
        """Act on a motion, a button or the end of an engagement of a client that may drive."""
        if isinstance(message, AnyMotion):
            if self._is_current(message):
                self._commands.append(command_of(message))
            else:
                self._drop_motion(reply)
        elif isinstance(message, ButtonMessage):
            self._note_button(message)
        elif isinstance(message, DisengageMessage) and is_driver:
            self._end_engagement()

    def _is_current(self, message: AnyMotion) -> bool:
        """Return whether a motion belongs to the present engagement."""
        return bool(self.engagement) and message.engagement == self.engagement

    def _drop_motion(self, reply: Reply) -> None:
        """Drop a motion that does not belong to the present engagement."""
        because = f" ({self._ended_by})" if self._ended_by else ""
        error = (
            f"Dropped: it does not belong to the current engagement{because}; send engage first."
        )
        self._drop("engagement", reply, error)

    def _note_button(self, message: ButtonMessage) -> None:
        """Note a button as down or up, if not too many are down."""
        buttons = set(self._buttons)
        if message.pressed:
            buttons.add(message.button)
        else:
            buttons.discard(message.button)
        if len(buttons) <= MAX_BUTTONS:
            self._buttons = frozenset(buttons)

    def _engage(self, client: ClientIdentity, reply: Reply, now: float) -> None:
        """Let a client drive, unless another client drives and has been heard lately.

        Args:
            client: The client.
            reply: The reply to its request.
            now: Present time on a monotonic clock, s.
        """
        # Another client that has fallen silent loses the arm.
        if self._driver is not None and client != self._driver:
            if self._engaging or now - self._heard <= MAX_SILENCE_S:
                self._drop("driver", reply, self._driver_refusal())
                return
            self._end_engagement()

        # A client that drives already may ask again: it gets the same answer.
        if not self.engagement and not self._engaging:
            self._driver = client
            self._heard = now
            self._engaging = True
            self._requests.append("engage")
        reply.engages = True

    def _end_engagement(self) -> None:
        """End the engagement now: what was received before no longer moves the arm."""
        self._forget_driver()
        self._commands.clear()
        self._buttons = frozenset()
        self._requests = ["disengage"]

    def _forget_driver(self) -> None:
        """Let no client drive."""
        self.engagement = 0
        self._driver = None
        self._engaging = False

    def _driver_refusal(self) -> str:
        """Return why another client is refused: who drives."""
        name, address = self._driver or ("", "")
        return f"Refused: {name} at {format_address(address)} is driving."

    def _drop(self, reason: str, reply: Reply, error: str) -> None:
        """Count a datagram as dropped, and answer why."""
        self.dropped[reason] += 1
        reply.error = error


def format_address(address: Any) -> str:
    """Return an address as the socket gives it as text: "127.0.0.1:8321"."""
    if isinstance(address, tuple):
        return f"{address[0]}:{address[1]}"
    return str(address)
