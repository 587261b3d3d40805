"""What the servo process and its parent share: its configuration, and mapped memory for states and live setpoints.

The servo process must never wait for its parent, so nothing here locks. States go to the parent through a ring of rows
that the parent reads when it has time; live setpoints go the other way, under a counter that is odd during a write.
"""

from __future__ import annotations

import mmap
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from simbridge.backends.backend import ArmState
from simbridge.backends.control_script import COUNTER, NUMBER
from simbridge.errors import GuardViolation
from simbridge.planning.guard import ArmLimits
from simbridge.robot.pose import Array
from simbridge.servo.law import GAIN, LOOKAHEAD
from simbridge.ur.rtde import Package

# The RTDE outputs of which a state consists.
STATE_FIELDS = (
    "timestamp", "actual_q", "actual_qd", "actual_current", "target_q", "target_qd", "target_qdd", "speed_scaling",
    "target_speed_fraction", "robot_mode", "safety_mode", "safety_status_bits", "runtime_state", NUMBER, COUNTER,
)  # fmt: skip
# Of these a run can do without: it then does not show the servo law.
OPTIONAL_FIELDS = ("target_qd", "target_qdd")
# Two minutes at 500 Hz: a parent that is delayed by less misses no state.
ROWS = 65_536
_SCALARS = ("sequence", "position", "sent", "received", "timestamp", "scaling", "robot_mode", "safety_mode", "runtime")
_VECTORS = (
    "q",
    "qd",
    "effort",
    "controller_target",
    "controller_target_velocity",
    "controller_target_acceleration",
    "command",
)
# The file begins with 8-byte words: rows written, counter of live setpoints, time of the last one, number last sent,
# and from word 8 the setpoint itself.
_WRITTEN, _COUNTER, _POSTED, _TAKEN, _SETPOINT, _HEAD = 0, 1, 2, 3, 8, 64


@dataclass(frozen=True)
class ControllerSettings:
    """How a controller is used.

    Attributes:
        lookahead: Of servoJ, s.
        gain: Of servoJ, 1/s^2.
        follow_scaling: Follow the controller's speed scaling; otherwise refuse it.
        wait_in_pause: Wait while the program is paused at the pendant; otherwise end.
        tcp: TCP in tool0, x y z (m) rx ry rz (rotation vector, rad), configured on the controller; None leaves it.
        payload: Mass, kg, configured on the controller; None leaves it.
        payload_cog: Its centre of gravity in tool0, m.
        priority: Real-time priority of the servo process; 0 for the default scheduler.
        yes: Whether the cell file may confirm motion instead of the operator.
        feedforward: Whether a replay is the motion that the arm is to make, for which the servo law is inverted.
    """

    lookahead: float = LOOKAHEAD
    gain: float = GAIN
    follow_scaling: bool = True
    wait_in_pause: bool = True
    tcp: tuple[float, ...] | None = None
    payload: float | None = None
    payload_cog: tuple[float, ...] | None = None
    priority: int = 0
    yes: bool = False
    feedforward: bool = False


@dataclass(frozen=True)
class ServoConfig:
    """The configuration of a servo process, the first line on its standard input.

    Attributes:
        host: The controller.
        period: Control period, s.
        limits: The arm's limits.
        settings: How the controller is used.
        number: The session's, which the control script carries.
        live: The file of the pickled `LiveSetup` of a live session.
    """

    host: str
    period: float
    limits: ArmLimits
    settings: ControllerSettings
    number: int
    live: str | None = None


class StateRing:
    """A mapped file with a ring of states and the newest live setpoint.

    Args:
        path: The file, made by `create`.
        joints: Number of joints n.
        rows: Number of states kept until they are overwritten.
    """

    def __init__(self, path: Path, joints: int, rows: int) -> None:
        self._n, self._capacity, self._width = joints, rows, len(_SCALARS) + len(_VECTORS) * joints
        with path.open("r+b") as file:
            memory = mmap.mmap(file.fileno(), 8 * (_HEAD + rows * self._width))
        numbers = np.frombuffer(memory, dtype=np.float64)
        self._counts = np.frombuffer(memory, dtype=np.int64)[:_HEAD]
        self._head = numbers[:_HEAD]
        self._rows = numbers[_HEAD:].reshape(rows, self._width)
        self._read = 0
        self._newest: tuple[int, Array, float] | None = None

    @staticmethod
    def create(path: Path, joints: int, states: int) -> StateRing:
        """Make the file, large enough for `states` rows or for two minutes, whichever is less."""
        rows = min(states, ROWS)
        width = len(_SCALARS) + len(_VECTORS) * joints
        # Written in full: no page has to be allocated while the arm is servoed.
        path.write_bytes(bytes(8 * (_HEAD + rows * width)))
        return StateRing(path, joints, rows)

    @property
    def rows(self) -> int:
        """Number of states kept."""
        return self._capacity

    @property
    def written(self) -> int:
        """Number of states written so far."""
        return int(self._counts[_WRITTEN])

    @property
    def last_timestamp(self) -> float:
        """The controller's clock at the newest state, s; 0 before the first."""
        return float(self._rows[(self.written - 1) % self._capacity][_SCALARS.index("timestamp")])

    def write(self, scalars: tuple[float, ...], vectors: tuple[Array, ...]) -> None:
        """Add a state (called by the servo process)."""
        count = int(self._counts[_WRITTEN])
        row = self._rows[count % self._capacity]
        row[: len(_SCALARS)] = scalars
        row[len(_SCALARS) :] = np.concatenate(vectors)
        self._counts[_WRITTEN] = count + 1

    def new_states(self, period: float) -> Iterator[ArmState]:
        """The states since the last call, oldest first, without overwritten ones (called by the parent)."""
        while self._read < self.written:
            self._read = max(self._read, self.written - self._capacity + 1)
            row = self._rows[self._read % self._capacity].copy()
            if self._read <= self.written - self._capacity:
                continue  # overwritten during the copy
            self._read += 1
            yield self._state(row, period)

    def _state(self, row: Array, period: float) -> ArmState:
        row.setflags(write=False)
        s = dict(zip(_SCALARS, row[: len(_SCALARS)].tolist(), strict=True))
        v = dict(zip(_VECTORS, row[len(_SCALARS) :].reshape(len(_VECTORS), self._n), strict=True))
        return ArmState(
            sequence=int(s["sequence"]),
            host_monotonic=s["received"],
            host_sent=s["sent"],
            timestamp=s["timestamp"],
            plan_time=s["position"] * period,
            speed_scaling=s["scaling"],
            robot_mode=int(s["robot_mode"]),
            safety_mode=int(s["safety_mode"]),
            runtime_state=int(s["runtime"]),
            **v,
        )

    def post(self, setpoint: Array) -> int:
        """Replace the live setpoint (n,), rad (called by the parent).

        Returns:
            Its number, which `taken` reaches when it has been sent.

        Raises:
            GuardViolation: It has another shape; the previous setpoint stays. The servo process checks the values.
        """
        q = self._joints(setpoint)
        self._counts[_COUNTER] += 1
        self._head[_SETPOINT : _SETPOINT + self._n] = q
        self._head[_POSTED] = time.monotonic()
        self._counts[_COUNTER] += 1
        return self.posted

    def _joints(self, setpoint: Array) -> Array:
        try:
            q = np.asarray(setpoint, dtype=float)
        except (TypeError, ValueError):
            q = np.empty((0, 0))
        if q.shape != (self._n,):
            raise GuardViolation(
                f"A setpoint must be {self._n} joint positions, and {setpoint!r:.80} is not; the arm was stopped.",
                rule="shape",
            )
        return q

    @property
    def posted(self) -> int:
        """Number of the live setpoint that was posted last."""
        return int(self._counts[_COUNTER])

    def newest(self) -> tuple[int, Array, float] | None:
        """The live setpoint's number, the setpoint (n,), and the time it was posted; None before the first."""
        before = int(self._counts[_COUNTER])
        setpoint = self._head[_SETPOINT : _SETPOINT + self._n].copy()
        posted = float(self._head[_POSTED])
        # During a write, which never ends if the parent was killed in it, the previous setpoint holds.
        if before % 2 == 0 and before == int(self._counts[_COUNTER]) and before:
            self._newest = before, setpoint, posted
        return self._newest

    @property
    def taken(self) -> int:
        """Number of the live setpoint that was sent last."""
        return int(self._counts[_TAKEN])

    def take(self, number: int) -> None:
        """Record that a live setpoint was sent (called by the servo process)."""
        self._counts[_TAKEN] = number


def state_at_rest(package: Package) -> ArmState:
    """A controller's state (`STATE_FIELDS`) without a motion; what is sent counts as where the arm is."""
    vectors = {name: np.array(package[name]) for name in ("actual_q", "actual_qd", "actual_current", "target_q")}
    for vector in vectors.values():
        vector.setflags(write=False)
    return ArmState(
        sequence=0,
        host_monotonic=time.monotonic(),
        timestamp=package["timestamp"],
        plan_time=0.0,
        q=vectors["actual_q"],
        qd=vectors["actual_qd"],
        effort=vectors["actual_current"],
        controller_target=vectors["target_q"],
        command=vectors["actual_q"],
        speed_scaling=package["speed_scaling"] * package["target_speed_fraction"],
        robot_mode=package["robot_mode"],
        safety_mode=package["safety_mode"],
        runtime_state=package["runtime_state"],
    )
