"""What the servo process and its parent share: configuration, states of a session, and memory for states.

The servo process must never wait for its parent, so nothing here locks. States go to the parent through a ring of rows
that the parent reads when it has time.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

from simbridge.backends.backend import ArmState
from simbridge.backends.control_script import COUNTER, NUMBER
from simbridge.backends.loop_process import mapped
from simbridge.backends.tool_watch import TOOL_FIELDS
from simbridge.planning.guard import ArmLimits
from simbridge.robot.pose import Array
from simbridge.ur.rtde import Package

# The RTDE outputs of which a state consists.
STATE_FIELDS = (
    "timestamp", "actual_q", "actual_qd", "actual_current", "target_q", "target_qd", "target_qdd", "speed_scaling",
    "target_speed_fraction", "robot_mode", "safety_mode", "safety_status_bits", "runtime_state", NUMBER, COUNTER,
    *TOOL_FIELDS,
)  # fmt: skip
# Of these a run can do without: it then does not show the servo law. Of the tool, what a version does not report is not
# watched.
OPTIONAL_FIELDS = ("target_qd", "target_qdd")
# Two minutes at 500 Hz: a parent that is delayed by less misses no state.
ROWS = 65_536
# What a row holds: fields of `ArmState`, the plan's time in periods.
_SCALARS = (
    "sequence", "plan_time", "host_sent", "host_monotonic", "timestamp", "speed_scaling",
    "robot_mode", "safety_mode", "runtime_state",
)  # fmt: skip
_WHOLE = ("sequence", "robot_mode", "safety_mode", "runtime_state")
_VECTORS = (
    "q", "qd", "effort", "controller_target", "controller_target_velocity", "controller_target_acceleration", "command",
)  # fmt: skip
# The file begins with so many 8-byte words, of which the first counts the rows written.
_HEAD_WORDS = 64
_WRITTEN = 0


@dataclass(frozen=True)
class ServoConfig:
    """The configuration of a servo process, the first line on its standard input: how a controller is used.

    Attributes:
        host: The controller.
        period: Control period, s.
        limits: The arm's limits.
        lookahead, gain: Of servoJ, s and 1/s^2.
        feedforward: Whether a replay is the motion that the arm is to make, for which the servo law is inverted.
        follow_scaling: Follow the controller's speed scaling; otherwise refuse it.
        wait_in_pause: Wait while the program is paused at the pendant; otherwise end.
        tcp: TCP in tool0, x y z (m) rx ry rz (rotation vector, rad), configured on the controller; None leaves it.
        payload: Mass, kg, configured on the controller; None leaves it.
        payload_cog: Its centre of gravity in tool0, m.
        priority: Real-time priority of the servo process; 0 for the default scheduler.
        number: The session's, which the control script carries.
        live: The file of the pickled `MotionSetup` of a live session.
    """

    host: str
    period: float
    limits: ArmLimits
    lookahead: float
    gain: float
    feedforward: bool
    follow_scaling: bool
    wait_in_pause: bool
    tcp: tuple[float, ...] | None
    payload: float | None
    payload_cog: tuple[float, ...] | None
    priority: int
    number: int = 0
    live: str | None = None


class State(Enum):
    """Of a session with a controller; drawn in docs/internals.md."""

    CONNECTING = "connecting"
    UPLOADING = "uploading"
    READY = "ready"
    MOVING = "moving"
    PAUSED = "paused"
    BRAKING = "braking"
    AT_REST = "at rest"
    ENDED = "ended"


class Event(Enum):
    """What changes the state. Whatever goes wrong, in whatever state, is END."""

    SENT = "the control script is sent"
    SCRIPT_RUNS = "the control script runs"
    PLAY = "a motion begins"
    DONE = "the motion is complete"
    PAUSE = "the program was paused at the pendant"
    RESUME = "the program was resumed at the pendant"
    END = "the session is to end"
    RESTS = "nothing more is sent"
    VERIFIED = "the controller was looked at"


TRANSITIONS: dict[tuple[State, Event], State] = {
    (State.CONNECTING, Event.SENT): State.UPLOADING,
    (State.UPLOADING, Event.SCRIPT_RUNS): State.READY,
    (State.READY, Event.PLAY): State.MOVING,
    (State.MOVING, Event.PLAY): State.MOVING,
    (State.MOVING, Event.DONE): State.READY,
    (State.MOVING, Event.PAUSE): State.PAUSED,
    (State.PAUSED, Event.RESUME): State.MOVING,
    **{
        (state, Event.END): State.BRAKING
        for state in (State.CONNECTING, State.UPLOADING, State.READY, State.MOVING, State.PAUSED)
    },
    (State.BRAKING, Event.RESTS): State.AT_REST,
    (State.AT_REST, Event.VERIFIED): State.ENDED,
}


def next_state(state: State, event: Event) -> State:
    """The state after an event; an event that has no meaning in a state does not change it."""
    return TRANSITIONS.get((state, event), state)


class StateRing:
    """A mapped file with a ring of states.

    Args:
        path: The file, made by `create`; None for memory of this process alone.
        joints: Number of joints n.
        rows: Number of states kept until they are overwritten.
    """

    def __init__(self, path: Path | None, joints: int, rows: int) -> None:
        self._n, self.rows = joints, rows
        numbers = mapped(path, _HEAD_WORDS + rows * (len(_SCALARS) + len(_VECTORS) * joints))
        self._rows = numbers[_HEAD_WORDS:].reshape(rows, -1)
        self._counts = numbers[:_HEAD_WORDS].view(np.int64)
        self._read = 0

    @staticmethod
    def create(path: Path, joints: int, states: int) -> StateRing:
        """Make the file, large enough for `states` rows or for two minutes, whichever is less."""
        rows = min(states, ROWS)
        # Written in full: no page has to be allocated while the arm is servoed.
        path.write_bytes(bytes(8 * (_HEAD_WORDS + rows * (len(_SCALARS) + len(_VECTORS) * joints))))
        return StateRing(path, joints, rows)

    @property
    def written(self) -> int:
        """Number of states written so far."""
        return int(self._counts[_WRITTEN])

    @property
    def last_timestamp(self) -> float:
        """The controller's clock at the newest state, s; 0 before the first."""
        return float(self._rows[(self.written - 1) % self.rows][_SCALARS.index("timestamp")])

    def write(self, scalars: tuple[float, ...], vectors: tuple[Array, ...]) -> None:
        """Add a state (called by the servo process)."""
        count = int(self._counts[_WRITTEN])
        row = self._rows[count % self.rows]
        row[: len(_SCALARS)] = scalars
        row[len(_SCALARS) :] = np.concatenate(vectors)
        self._counts[_WRITTEN] = count + 1

    def new_states(self, period: float) -> Iterator[ArmState]:
        """The states since the last call, oldest first, without overwritten ones (called by the parent)."""
        while self._read < self.written:
            self._read = max(self._read, self.written - self.rows + 1)
            row = self._rows[self._read % self.rows].copy()
            if self._read <= self.written - self.rows:
                continue  # overwritten during the copy
            self._read += 1
            yield self._state(row, period)

    def _state(self, row: Array, period: float) -> ArmState:
        row.setflags(write=False)
        fields: dict[str, Any] = dict(zip(_SCALARS, row[: len(_SCALARS)].tolist(), strict=True))
        fields |= {name: int(fields[name]) for name in _WHOLE}
        fields["plan_time"] *= period
        fields |= zip(_VECTORS, row[len(_SCALARS) :].reshape(len(_VECTORS), self._n), strict=True)
        return ArmState(**fields)


def state_at_rest(package: Package) -> ArmState:
    """A controller's state (`STATE_FIELDS`) without a motion; what is sent counts as where the arm is."""
    names = ("actual_q", "actual_qd", "actual_current", "target_q")
    q, qd, effort, target = (np.array(package[name]) for name in names)
    for vector in (q, qd, effort, target):
        vector.setflags(write=False)
    return ArmState(
        sequence=0,
        host_monotonic=time.monotonic(),
        timestamp=package["timestamp"],
        plan_time=0.0,
        q=q,
        qd=qd,
        effort=effort,
        controller_target=target,
        command=q,
        speed_scaling=package["speed_scaling"] * package["target_speed_fraction"],
        robot_mode=package["robot_mode"],
        safety_mode=package["safety_mode"],
        runtime_state=package["runtime_state"],
    )
