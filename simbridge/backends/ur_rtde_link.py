"""The link to a controller through ur_rtde, which sends the control script and its commands.

This is the only module that imports ur_rtde, and it does so within the servo process alone.

ur_rtde reconnects by itself and then continues streaming, which cannot be switched off. A process
that can open no further socket cannot reconnect: ur_rtde then reports the loss. So the limit on
open files is lowered as soon as the connection is up.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
from collections.abc import Callable
from typing import Any

from simbridge.backends.controller_link import ControllerLink
from simbridge.backends.low_latency import allow_new_files, forbid_new_files
from simbridge.backends.registers import REGISTERS
from simbridge.backends.servo_config import ServoConfig
from simbridge.backends.state_fields import session_fields
from simbridge.robot.pose import Array
from simbridge.ur import errors
from simbridge.ur.rtde import RtdeReader
from simbridge.ur.tables import REALTIME, RTDE

# servoJ takes a speed and an acceleration, which the controller does not use.
UNUSED_SPEED = 0.0
UNUSED_ACCELERATION = 0.0


def send_without_delay(port: int) -> None:
    """Let what this process sends to a port leave at once, before the last packet is acknowledged.

    ur_rtde asks for that, but before it connects, and boost then opens another socket without the
    option. After one late command, all others would wait for an acknowledgement, until after the
    cycle for which they were sent.

    Args:
        port: The port, to which this process is connected.
    """
    for name in os.listdir("/dev/fd"):
        descriptor = int(name)
        # The listing's own descriptor is closed by now.
        with contextlib.suppress(OSError):
            if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                continue
            with socket.socket(fileno=os.dup(descriptor)) as connection:
                if connection.family == socket.AF_INET and connection.getpeername()[1] == port:
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


class UrRtdeLink(ControllerLink):
    """The controller: commands through ur_rtde, states through our own RTDE reader.

    From here on this process opens no file and no socket.

    Args:
        config: The controller, and how it is used.

    Raises:
        ConnectionLost: The controller does not answer.
    """

    def __init__(self, config: ServoConfig) -> None:
        # Imported here, because ur_rtde may not be installed, and only the servo process of this
        # link loads it.
        from rtde_control import RTDEControlInterface  # noqa: PLC0415

        frequency = 1.0 / config.period
        fields = session_fields(REGISTERS[config.registers])
        super().__init__(config, RtdeReader(config.host, fields, frequency))

        # The flags say that our control script will take the place of ur_rtde's, that the
        # constructor does not wait for it, and which half of the registers carries the commands.
        flags = int(RTDEControlInterface.FLAG_CUSTOM_SCRIPT)
        flags |= int(RTDEControlInterface.FLAG_NO_WAIT)
        if config.registers == "upper":
            flags |= int(RTDEControlInterface.FLAG_UPPER_RANGE_REGISTERS)
        try:
            self._control = RTDEControlInterface(config.host, frequency, flags)
        except Exception as error:  # ur_rtde raises RuntimeError and other types for any failure
            reason = f"ur_rtde reports: {str(error).strip()}"
            raise errors.ConnectionLost(config.host, RTDE, reason, was_connected=False) from None
        send_without_delay(RTDE)

        # Without a new socket ur_rtde cannot reconnect by itself: it reports the loss instead.
        forbid_new_files()

    def _send_script(self, source: str) -> None:
        # ur_rtde reads the script from a file; this one is in memory alone.
        with allow_new_files(), open(os.memfd_create("simbridge-script"), "w") as file:
            file.write(source)
            file.flush()
            try:
                self._control.setCustomScriptFile(f"/proc/self/fd/{file.fileno()}")
            except RuntimeError as error:
                reason = f"the script was not sent: {error}"
                raise errors.ConnectionLost(self._config.host, REALTIME, reason) from None

    def keep_alive(self) -> None:
        self._call(self._control.kickWatchdog)

    def servo(self, q: Array) -> bool:
        config = self._config
        return self._call(
            lambda: self._control.servoJ(
                q.tolist(),
                UNUSED_SPEED,
                UNUSED_ACCELERATION,
                config.period,
                config.lookahead,
                config.gain,
            )
        )

    def _call(self, command: Callable[[], Any]) -> bool:
        """Give a command to ur_rtde; return whether it was accepted.

        Raises:
            ConnectionLost: ur_rtde has lost the controller.
        """
        with contextlib.suppress(RuntimeError):
            accepted = command()
            # After a connection loss the return value is meaningless.
            if self._control.isConnected():
                return bool(accepted)

        reason = "the connection for commands has ended"
        raise errors.ConnectionLost(self._config.host, RTDE, reason)

    def stop(self) -> None:
        self._control.stopScript()
