"""A client of the dashboard server: the buttons of the pendant, and what its screen shows.

Source: Universal Robots, "Dashboard Server, CB-Series" and "Dashboard Server, e-Series": one line in, one line out.
"""

from __future__ import annotations

import re
import socket
import time

from simbridge.ur.errors import CommandRefused, ConnectionLost, RemoteControlDisabled
from simbridge.ur.tables import DASHBOARD

MAX_LINE = 65536
_NOT_UNDERSTOOD = "could not understand"
_NOT_ALLOWED = "not allowed due to safety"
_LOCAL = "Remote Control"
_VERSION = re.compile(r"\d+(?:\.\d+){1,3}")


class DashboardClient:
    """A connection to a controller's dashboard. A context manager.

    Args:
        host: The controller.
        timeout: For connecting, and for each answer, s.

    Attributes:
        greeting: The server's first line.

    Raises:
        ConnectionLost: Nothing listens, or no greeting comes in time.
    """

    def __init__(self, host: str, timeout: float = 2.0) -> None:
        self.host, self._timeout, self._received = host, timeout, bytearray()
        deadline = time.monotonic() + timeout
        try:
            self._socket = socket.create_connection((host, DASHBOARD), timeout=timeout)
        except OSError as error:
            raise self._lost(f"no connection ({error.strerror or error})") from None
        try:
            self.greeting = self._line(deadline, "greeting")
        except ConnectionLost:
            self._socket.close()
            raise

    def __enter__(self) -> DashboardClient:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._socket.close()

    def _lost(self, reason: str) -> ConnectionLost:
        return ConnectionLost(self.host, DASHBOARD, reason)

    def ask(self, command: str) -> str:
        """Send a command and return its answer, one line.

        Raises:
            ConnectionLost: No answer within the timeout, or the connection ended. A late answer would be taken for
                the next command's, so this connection can no longer be used.
        """
        deadline = time.monotonic() + self._timeout
        try:
            self._socket.settimeout(self._timeout)
            self._socket.sendall(command.encode("utf-8") + b"\n")
        except OSError as error:
            raise self._lost(f"sending failed ({error.strerror or error})") from None
        return self._line(deadline, f"answer to '{command}'")

    def _line(self, deadline: float, what: str) -> str:
        while b"\n" not in self._received:
            left = deadline - time.monotonic()
            try:
                if left <= 0.0:
                    raise TimeoutError
                self._socket.settimeout(left)
                data = self._socket.recv(4096)
            except TimeoutError:
                raise self._lost(f"no {what} within {self._timeout:g} s") from None
            except OSError as error:
                raise self._lost(f"reading failed ({error.strerror or error})") from None
            if not data:
                raise self._lost(f"the controller ended the connection before its {what}")
            self._received += data
            if len(self._received) > MAX_LINE:
                raise self._lost(f"its {what} does not end: this is not a dashboard")
        line, _, self._received = self._received.partition(b"\n")
        return line.decode("utf-8", errors="replace").strip()

    # What the screen shows

    def polyscope_version(self) -> str:
        """Major, minor and what follows, as "5.12.6.1102099"; "" if the server does not report it."""
        found = _VERSION.search(self._answer("PolyscopeVersion"))
        return found.group() if found else ""

    def serial_number(self) -> str | None:
        """Of the arm; None if the version does not report it (before 3.12 and 5.6)."""
        return self._answer("get serial number") or None

    def is_in_remote_control(self) -> bool | None:
        """Whether programs from outside are accepted; None if the version has no such switch (CB3, before 5.6)."""
        return {"true": True, "false": False}.get(self._answer("is in remote control").lower())

    def robot_mode(self) -> str:
        """In capitals, as "RUNNING" or "POWER_OFF"."""
        return self._after_colon("robotmode")

    def safety_status(self) -> str:
        """In capitals, as "NORMAL" or "PROTECTIVE_STOP"; versions before 5.4 report the safety mode instead."""
        return self._after_colon("safetystatus") or self._after_colon("safetymode")

    def loaded_program(self) -> str:
        """Its path; "" when none is loaded."""
        return self._after_colon("get loaded program")

    def _answer(self, question: str) -> str:
        answer = self.ask(question)
        return "" if _NOT_UNDERSTOOD in answer.lower() else answer

    def _after_colon(self, question: str) -> str:
        return self._answer(question).partition(":")[2].strip()

    # The buttons; an error says that the controller does not do it: RemoteControlDisabled, CommandRefused

    def power_on(self) -> None:
        """Power the arm on; the brakes stay closed."""
        self._do("power on", "Powering on")

    def brake_release(self) -> None:
        """Release the brakes; the arm is then ready to move."""
        self._do("brake release", "Brake releasing")

    def unlock_protective_stop(self) -> None:
        """Confirm a protective stop, refused in the first five seconds; the program stays paused."""
        self._do("unlock protective stop", "Protective stop releasing")

    def stop(self) -> None:
        """Stop the program."""
        self._do("stop", "Stopped")

    def close_safety_popup(self) -> None:
        """Close the message about a stop on the screen."""
        self._do("close safety popup", "closing safety popup")

    def _do(self, command: str, done: str) -> None:
        answer = self.ask(command)
        if answer.lower().startswith(done.lower()):
            return
        if _NOT_ALLOWED in answer and _LOCAL in answer:
            raise RemoteControlDisabled(self.host)
        raise CommandRefused(self.host, command, answer)
