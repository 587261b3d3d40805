"""A client of the dashboard server: the buttons of the pendant, and what its screen shows.

Source: Universal Robots, "Dashboard Server, CB-Series" and "Dashboard Server, e-Series": one line
in, one line out.
"""

from __future__ import annotations

import re
import socket
import time

from simbridge.ur.errors import CommandRefused, ConnectionLost, RemoteControlDisabled
from simbridge.ur.tables import DASHBOARD

# Bytes that are read at once.
RECEIVED_BYTES = 4096
# Longest answer, bytes.
MAX_LINE_BYTES = 65536
# Words in an answer by which the server refuses a command.
NOT_UNDERSTOOD = "could not understand"
NOT_ALLOWED = "not allowed due to safety"
LOCAL_CONTROL = "Remote Control"
_VERSION = re.compile(r"\d+(?:\.\d+){1,3}")


class DashboardClient:
    """A connection to a controller's dashboard. A context manager.

    Args:
        host: The controller.
        timeout: Longest time for connecting and for each answer, s.

    Attributes:
        host: The controller.
        greeting: The server's first line.

    Raises:
        ConnectionLost: Nothing listens, or no greeting comes in time.
    """

    def __init__(self, host: str, timeout: float = 2.0) -> None:
        self.host = host
        self._timeout = timeout
        # Bytes that came after the last whole line.
        self._received = bytearray()

        deadline = time.monotonic() + timeout
        try:
            self._socket = socket.create_connection((host, DASHBOARD), timeout=timeout)
        except OSError as error:
            reason = str(error.strerror or error)
            raise self._lost(reason, was_connected=False) from None
        try:
            self.greeting = self._read_line(deadline, "greeting")
        except ConnectionLost:
            self._socket.close()
            raise

    def __enter__(self) -> DashboardClient:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._socket.close()

    def _lost(self, reason: str, *, was_connected: bool = True) -> ConnectionLost:
        """Return the error about this connection; see `ConnectionLost`."""
        return ConnectionLost(self.host, DASHBOARD, reason, was_connected=was_connected)

    def ask(self, command: str) -> str:
        """Send a command and return its answer, one line.

        Raises:
            ConnectionLost: No answer within the timeout, or the connection ended. A late answer
                would be taken for the next command's, so this connection can no longer be used.
        """
        deadline = time.monotonic() + self._timeout
        try:
            self._socket.settimeout(self._timeout)
            self._socket.sendall(command.encode("utf-8") + b"\n")
        except OSError as error:
            raise self._lost(f"sending failed ({error.strerror or error})") from None
        return self._read_line(deadline, f"answer to '{command}'")

    def _read_line(self, deadline: float, name: str) -> str:
        """Return the next line.

        Args:
            deadline: Instant by which the line must have come, s (of the monotonic clock).
            name: What the line is, for error messages.
        """
        while b"\n" not in self._received:
            remaining = deadline - time.monotonic()
            try:
                if remaining <= 0.0:
                    raise TimeoutError
                self._socket.settimeout(remaining)
                data = self._socket.recv(RECEIVED_BYTES)
            except TimeoutError:
                raise self._lost(f"no {name} was received within {self._timeout:g} s") from None
            except OSError as error:
                raise self._lost(f"reading failed ({error.strerror or error})") from None
            if not data:
                raise self._lost(f"the controller closed the connection before sending its {name}")
            self._received += data
            if len(self._received) > MAX_LINE_BYTES:
                raise self._lost(f"its {name} never ends: this is not a dashboard server")

        line, _, self._received = self._received.partition(b"\n")
        return line.decode("utf-8", errors="replace").strip()

    # What the screen shows

    def polyscope_version(self) -> str:
        """Return major, minor and what follows, as "5.12.6.1102099".

        "" if the server does not report it.
        """
        version = _VERSION.search(self._answer("PolyscopeVersion"))
        return version.group() if version else ""

    def serial_number(self) -> str | None:
        """Return the serial number of the arm; None if it is not reported (before 3.12 and 5.6)."""
        return self._answer("get serial number") or None

    def is_in_remote_control(self) -> bool | None:
        """Return whether programs from outside are accepted.

        None if the version has no such switch (CB3, before 5.6).
        """
        answer = self._answer("is in remote control").lower()
        return {"true": True, "false": False}.get(answer)

    def robot_mode(self) -> str:
        """Return the robot mode in capitals, as "RUNNING" or "POWER_OFF"."""
        return self._after_colon("robotmode")

    def safety_status(self) -> str:
        """Return the safety status in capitals, as "NORMAL" or "PROTECTIVE_STOP".

        Versions before 5.4 report the safety mode instead.
        """
        return self._after_colon("safetystatus") or self._after_colon("safetymode")

    def loaded_program(self) -> str:
        """Return the path of the loaded program; "" when none is loaded."""
        return self._after_colon("get loaded program")

    def _answer(self, question: str) -> str:
        """Return the answer to a question; "" to one that the version does not know."""
        answer = self.ask(question)
        return "" if NOT_UNDERSTOOD in answer.lower() else answer

    def _after_colon(self, question: str) -> str:
        """Return what follows the name in the answer to a question; "" without an answer."""
        return self._answer(question).partition(":")[2].strip()

    # The buttons; a controller that does not do it raises RemoteControlDisabled or CommandRefused

    def power_on(self) -> None:
        """Power the arm on; the brakes stay closed."""
        self._command("power on", "Powering on")

    def brake_release(self) -> None:
        """Release the brakes; the arm is then ready to move."""
        self._command("brake release", "Brake releasing")

    def unlock_protective_stop(self) -> None:
        """Confirm a protective stop; the program stays paused.

        It is refused in the first five seconds.
        """
        self._command("unlock protective stop", "Protective stop releasing")

    def stop(self) -> None:
        """Stop the program."""
        self._command("stop", "Stopped")

    def close_safety_popup(self) -> None:
        """Close the message about a stop on the screen."""
        self._command("close safety popup", "closing safety popup")

    def _command(self, command: str, confirmation: str) -> None:
        """Send a command, and expect an answer that begins with its confirmation."""
        answer = self.ask(command)
        if answer.lower().startswith(confirmation.lower()):
            return
        if NOT_ALLOWED in answer and LOCAL_CONTROL in answer:
            raise RemoteControlDisabled(self.host)
        raise CommandRefused(self.host, command, answer)
