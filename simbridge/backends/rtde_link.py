"""The link to a controller through simbridge's own RTDE client.

States and commands share one connection to port 30004. It writes one package a period, and claims
no other inputs than those that the control script reads. The script is sent to the primary
interface. When the connection ends, nothing reconnects.
"""

from __future__ import annotations

import socket
import time

from simbridge.backends.control_script import NO_COMMAND, SERVOJ_COMMAND, STOP_COMMAND
from simbridge.backends.controller_link import START_POLL_S, ControllerLink
from simbridge.backends.program_watch import ProgramOwner
from simbridge.backends.registers import JOINTS, REGISTERS
from simbridge.backends.servo_config import ServoConfig
from simbridge.backends.state_fields import session_fields
from simbridge.robot.pose import Array
from simbridge.ur import errors
from simbridge.ur.controller_messages import is_script_refused
from simbridge.ur.polyscope_x import remote_control_disabled
from simbridge.ur.rtde_writer import RtdeWriter
from simbridge.ur.tables import PRIMARY

# How long the primary interface may take to accept a connection and the script, s.
UPLOAD_TIMEOUT_S = 2.0
# How long the control script may take to end after the command to end, s.
STOP_TIMEOUT_S = 0.5
# Values of the commands before the first setpoint, which the control script does not read.
NO_VALUES = (0.0,) * (JOINTS + 2)


class RtdeLink(ControllerLink):
    """The controller: states and commands through our own RTDE client.

    Args:
        config: The controller, and how it is used.

    Raises:
        ConnectionLost: The controller does not answer.
        RegistersInUse: Another client has claimed registers that carry the commands.
        UnsupportedController: The controller does not have these registers.
    """

    def __init__(self, config: ServoConfig) -> None:
        registers = REGISTERS[config.registers]
        self._writer = RtdeWriter(
            config.host,
            session_fields(registers),
            inputs=registers.command_inputs,
            frequency=1.0 / config.period,
        )
        super().__init__(config, self._writer)
        # The connection on which the script was sent; None before.
        self._primary: socket.socket | None = None
        # The newest setpoint (6,), rad, lookahead, s, and gain. The other commands repeat them: the
        # script may read a command and its values before and after an update.
        self._values: tuple[float, ...] = NO_VALUES

    def _send_script(self, source: str) -> None:
        # The registers still hold what the session before has written.
        self.keep_alive()

        host = self._config.host
        try:
            self._primary = socket.create_connection((host, PRIMARY), timeout=UPLOAD_TIMEOUT_S)
            self._primary.sendall(source.encode())
        except OSError as error:
            reason = f"the script was not sent ({error.strerror or error})"
            raise errors.ConnectionLost(host, PRIMARY, reason) from None

    def await_script(self) -> None:
        try:
            super().await_script()
        except errors.ScriptNotStarted:
            if self._primary is not None and is_script_refused(self._primary, within=0.0):
                raise remote_control_disabled(self._config.host, self._writer.version) from None
            raise

        # Not before: a connection that is closed with unread states might take the script with it.
        if self._primary is not None:
            self._primary.close()

    def keep_alive(self) -> None:
        self._command(NO_COMMAND)

    def servo(self, q: Array) -> bool:
        # A stop shows in the states alone: they come on the same connection.
        self._values = (*q.tolist(), self._config.lookahead, self._config.gain)
        self._command(SERVOJ_COMMAND)
        return True

    def stop(self) -> None:
        self._command(STOP_COMMAND)

        # The connection must last until the script has read the command.
        deadline = time.monotonic() + STOP_TIMEOUT_S
        while self.program is not ProgramOwner.NONE and time.monotonic() < deadline:
            self.states(START_POLL_S)

    def _command(self, command: int) -> None:
        """Write a command, and with it the values of all registers."""
        self._writer.write((command, *self._values))
