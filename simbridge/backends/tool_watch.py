"""Watches whether the tool that a controller has configured is still the one of the motion.

Any client may change TCP and payload during a motion, by a secondary program: then the tool is no
longer where the plan put it, or the controller's forces are those of another load. This module
loads no pinocchio, which the servo process does without.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from simbridge.backends.tool_comparison import (
    Payload,
    payload_difference,
    read_payload,
    same_tcp,
    tcp_text,
)
from simbridge.ur.errors import ToolChanged
from simbridge.ur.rtde import Package

# The RTDE outputs that describe the tool. Older versions have the first alone.
TOOL_FIELDS = ("tcp_offset", "payload", "payload_cog", "payload_inertia")
# How many changes of the payload are kept until they are asked for.
MAX_CHANGES = 100


class ToolWatch:
    """Compares the tool in each state with that at the beginning of the motion.

    Args:
        host: The controller, for the message.
        tcp: TCP in tool0, x y z (m) rx ry rz (rotation vector, rad), that the control script sets;
            None if it sets none.
        payload: Mass that it sets, kg; None if it sets none.
        payload_cog: Centre of gravity of the payload in tool0 (3,), m.
        before: The state right before the control script began; what the script does not set is to
            stay as it was there. None for the first state that is compared.

    Attributes:
        payload: The payload in the newest state.
        changes: The payloads that were set since the beginning, oldest first; whoever reads them
            removes them.
    """

    def __init__(
        self,
        host: str,
        *,
        tcp: Sequence[float] | None = None,
        payload: float | None = None,
        payload_cog: Sequence[float] | None = None,
        before: Package | None = None,
    ) -> None:
        self._host = host

        # The TCP of the motion [x y z rx ry rz], m and rad; None until it is known.
        self._tcp: tuple[float, ...] | None = None if tcp is None else tuple(tcp)
        # The payload with which the states are compared; None until it is known.
        self._reference_payload: Payload | None = None
        self.payload = Payload(None, None, None)
        self.changes: deque[Payload] = deque(maxlen=MAX_CHANGES)

        # The states show a little later what the control script has set: until then they may show
        # the tool that was set before. Whether the TCP is still awaited.
        self._awaits_tcp = tcp is not None
        # The payload that is still awaited; None if none is.
        self._awaited_payload: Payload | None = None
        if payload is not None:
            cog = None if payload_cog is None else tuple(payload_cog)
            self._awaited_payload = Payload(payload, cog, None)

        # What the script does not set is to stay as it was before.
        if before is not None and tcp is None:
            self._tcp = before.get("tcp_offset")
        if before is not None and payload is None:
            self.payload = read_payload(before)
            self._reference_payload = self.payload

        # The tool's variables in the last state: they hardly ever change.
        self._last_variables: tuple[object, ...] = ()

    @property
    def has_other_payload(self) -> bool:
        """True while the newest payload differs from that at the beginning of the motion."""
        if self._reference_payload is None:
            return False
        return payload_difference(self.payload, self._reference_payload) is not None

    def follow(self, state: Package, *, payload_may_change: bool) -> None:
        """Compare the tool of the next state.

        Args:
            state: The state.
            payload_may_change: Whether another payload is only kept in `changes`.

        Raises:
            ToolChanged: The TCP is another one, or the payload is, which may not change.
        """
        variables = tuple(state.get(field) for field in TOOL_FIELDS)
        if variables == self._last_variables:
            return
        self._last_variables = variables

        self._follow_tcp(state.get("tcp_offset"))
        self._follow_payload(read_payload(state), payload_may_change=payload_may_change)

    def _follow_tcp(self, tcp: tuple[float, ...] | None) -> None:
        """Compare the TCP [x y z rx ry rz], m and rad, of the next state, if it has one."""
        if tcp is None:
            return
        if self._tcp is None:
            self._tcp = tcp

        if same_tcp(tcp, self._tcp):
            self._awaits_tcp = False
        elif not self._awaits_tcp:
            raise ToolChanged(self._host, "TCP", tcp_text(tcp), tcp_text(self._tcp))

    def _follow_payload(self, payload: Payload, *, payload_may_change: bool) -> None:
        """Compare the payload of the next state with that at the beginning of the motion.

        A payload that the control script sets is the reference from the first state that shows it.
        Until then nothing is compared, for as long as it takes: the arm is at rest when the script
        sets it, and the backend reads it back before the first motion. A payload that nothing sets
        is the reference as it was before the script began, or in the first state.

        Args:
            payload: The payload of the next state.
            payload_may_change: Whether another payload is only kept in `changes`.

        Raises:
            ToolChanged: The payload is another one, and may not change.
        """
        last_payload = self.payload
        self.payload = payload

        # Wait until the states show the payload that the control script has set.
        if self._awaited_payload is not None:
            is_shown = payload_difference(payload, self._awaited_payload) is None
            if is_shown:
                # The reference is what was set, not what this state shows: its inertia is the
                # controller's choice, may follow a little later, and is not compared.
                self._reference_payload = self._awaited_payload
                self._awaited_payload = None
            return

        # Without a state from before the script, the first one is the reference.
        if self._reference_payload is None:
            self._reference_payload = payload
            return

        difference = payload_difference(payload, self._reference_payload)
        if difference is not None and not payload_may_change:
            raise ToolChanged(self._host, *difference)
        if payload_difference(payload, last_payload) is not None:
            self.changes.append(payload)
