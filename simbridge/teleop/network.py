"""Input from programs on the network: UDP datagrams of JSON (see `datagram_exchange`)."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from simbridge.errors import SimbridgeError
from simbridge.teleop.datagram_exchange import DatagramExchange, format_address
from simbridge.teleop.device import Device, DeviceCommand, DeviceError, Reading
from simbridge.teleop.network_messages import MAX_DATAGRAM_BYTES
from simbridge.teleop.options import TeleopOptions

if TYPE_CHECKING:  # loads the backends; a device is only given its session
    from simbridge.sessions.session import LiveSession

MAX_DATAGRAMS_PER_READING = 256


class Network(Device):
    """Programs on the network.

    Args:
        listener: A UDP socket, bound, that does not block.
        options: The token.
        clock: Monotonic, s.

    Attributes:
        exchange: What the datagrams mean.
    """

    name = "network"

    def __init__(
        self,
        listener: socket.socket,
        options: TeleopOptions,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._socket = listener
        self._clock = clock
        self.exchange = DatagramExchange(options.token)

        address = format_address(listener.getsockname())
        guard = "without a token, only from this computer"
        if options.token:
            guard = "with the token of --token-file"
        self.guide = (
            f"Network: UDP datagrams of JSON at {address}, {guard} (docs/teleop.md).",
            "  A client engages and then drives; any client can stop the arm.",
            "  Press Ctrl-C to stop.",
        )

    @classmethod
    def open(cls, options: TeleopOptions) -> Network:
        """Listen where the options say.

        Raises:
            DeviceError: The address or port cannot be used.
        """
        family = socket.AF_INET6 if ":" in options.listen else socket.AF_INET
        listener = socket.socket(family, socket.SOCK_DGRAM)
        try:
            listener.bind((options.listen, options.port))
        except OSError as error:
            listener.close()
            reason = (
                f"UDP port {options.port} of {options.listen} cannot be used: {error.strerror}. "
                "Choose another one."
            )
            raise DeviceError(cls.name, reason) from error
        listener.setblocking(False)
        return cls(listener, options)

    def close(self) -> None:
        self._socket.close()

    @property
    def address(self) -> Any:
        """The address at which it listens, as the socket gives it."""
        return self._socket.getsockname()

    def read(self) -> Reading:
        for _ in range(MAX_DATAGRAMS_PER_READING):
            try:
                # One byte more than is valid: what is longer is then seen to be.
                data, address = self._socket.recvfrom(MAX_DATAGRAM_BYTES + 1)
            except BlockingIOError:
                break
            except ConnectionError:
                # A client is gone, says its computer.
                continue
            self.exchange.receive(data, address, self._clock())
        return self.exchange.take()

    def note_engagement(self) -> None:
        self.exchange.note_engagement(self._clock())

    def note_refusal(self, command: DeviceCommand, error: SimbridgeError) -> None:
        self.exchange.note_refusal(command, error)

    def answer(self, session: LiveSession, problem: str) -> None:
        for data, address in self.exchange.replies(session, problem):
            # Whom a reply does not reach asks again.
            with contextlib.suppress(OSError):
                self._socket.sendto(data, address)
