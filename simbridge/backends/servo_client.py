"""The parent's end of the servo process: start it, send requests, receive events, measure its timing, end it."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from simbridge.backends.backend import ArmState
from simbridge.backends.control_script import ProgramOwner
from simbridge.backends.loop_process import LoopProcess
from simbridge.backends.servo_config import ServoConfig
from simbridge.backends.session_state import SessionState
from simbridge.backends.state_ring import MAX_ROWS, StateRing
from simbridge.robot.pose import Array
from simbridge.ur.errors import (
    ConnectionLost,
    RegistersInUse,
    RemoteControlDisabled,
    ScriptNotStarted,
)
from simbridge.ur.survey import registers_taken, survey
from simbridge.ur.tables import REALTIME

# ur_rtde's constructor uploads its script and waits up to five seconds for it to run.
CONNECT_TIMEOUT_S = 15.0  # s


@dataclass(frozen=True)
class LiveProgram:
    """A program that makes setpoints within the servo process, from inputs in shared memory.

    Attributes:
        module: Its main module, which runs as `python -m MODULE servo`.
        setup: What it is made of, pickled.
        create_channel: Creates the channel of inputs in the file at a path.
    """

    module: str
    setup: bytes
    create_channel: Callable[[Path], object]


class ServoProcess(LoopProcess):
    """A running servo process.

    Args:
        config: Its configuration.
        live: What makes the setpoints of a live session; None for plans.

    Attributes:
        reached: The states of the session that it has reported.
        program: Whose program the controller had when it ended.
    """

    def __init__(self, config: ServoConfig, live: LiveProgram | None = None) -> None:
        if live is None:
            super().__init__("simbridge.backends.servo_process", config.host)
        else:
            super().__init__(live.module, config.host, "servo")
        self._config = config
        self._live = live
        self.reached = {SessionState.CONNECTING}
        self.program: ProgramOwner | None = None

    def connect(self) -> dict[str, Any]:
        """Wait until it is connected to the controller.

        Returns:
            Its event: joints `q`, and `notes` about scheduling that the system refused.

        Raises:
            ControllerError: Why it could not connect.
        """
        setup = None
        if self._live is not None:
            path = self.create_memory("setup")
            path.write_bytes(self._live.setup)
            setup = str(path)
        self.send(msgspec.to_builtins(self._config) | {"live": setup})
        self.keep_alive()
        try:
            return self._ready()
        except (ConnectionLost, ScriptNotStarted):
            self._process.kill()
            # ur_rtde does not report which of its connections failed.
            found = survey(self._config.host)
            for silent in found.lost.values():
                raise silent from None
            # It ignores a script that is uploaded in local control, and says nothing.
            if found.dashboard is not None and found.dashboard.remote_control is False:
                raise RemoteControlDisabled(self._config.host) from None
            taken = registers_taken(self._config.host)
            if taken:
                raise RegistersInUse(self._config.host, taken) from None
            raise

    def _ready(self) -> dict[str, Any]:
        deadline = time.monotonic() + CONNECT_TIMEOUT_S
        while (left := deadline - time.monotonic()) > 0.0:
            for event in self.events(left):
                if event["event"] == "ready":
                    return event
        raise ConnectionLost(
            self._config.host,
            REALTIME,
            f"the control script did not run in {CONNECT_TIMEOUT_S:g} s",
        )

    def replay(self, setpoints: Array, *, feedforward: bool = False) -> StateRing:
        """Send setpoints (T, n), rad, one per period, or with feedforward what makes the arm follow them; the ring in
        which the state of each appears."""
        plan = self.create_memory("setpoints")
        plan.write_bytes(np.ascontiguousarray(setpoints, dtype=np.float64).tobytes())
        # A controller that scales the speed takes more periods than the plan has.
        return self._play(
            4 * len(setpoints) + 4096, do="replay", plan=str(plan), feedforward=feedforward
        )

    def begin_session(self, channel: Path) -> StateRing:
        """Begin a live session in which the process makes the setpoints, from the inputs in the channel; it waits to be
        engaged. The ring in which states appear."""
        return self._play(MAX_ROWS, do="session", channel=str(channel))

    def _play(self, states: int, **request: Any) -> StateRing:
        path = self.create_memory("states")
        ring = StateRing.create(path, len(self._config.limits.joint_names), states)
        self.send({**request, "ring": str(path), "rows": ring.rows})
        return ring

    def _note(self, event: dict[str, Any]) -> None:
        super()._note(event)
        if event["event"] == "state":
            self.reached.add(SessionState(event["state"]))
        elif event["event"] == "stopped":
            self.program = ProgramOwner(event["program"])


class LoopTiming:
    """Timing of a servo loop, collected from the states of a stream: 24 bytes a sample."""

    def __init__(self) -> None:
        self._sequence, self._sent, self._received = array("q"), array("d"), array("d")
        self._missed = {"missed_deadlines": 0, "missed_states": 0}

    def add(self, state: ArmState) -> None:
        """Add a state."""
        self._sequence.append(state.sequence)
        self._sent.append(state.host_sent)
        self._received.append(state.host_monotonic)

    def add_counts(self, event: dict[str, Any]) -> None:
        """Take the counts of missed deadlines and states from an event of the servo process."""
        self._missed |= {name: int(event[name]) for name in self._missed if name in event}

    def summary(self) -> dict[str, float | int] | None:
        """As in summary.json's `loop`; None before the second setpoint that followed a state.

        A period is the time between two consecutive setpoints. The age of a state is the time from its arrival to a
        setpoint that was sent when it was the newest one.
        """
        sequence, sent, received = (
            np.array(self._sequence),
            np.array(self._sent),
            np.array(self._received),
        )
        newest = np.searchsorted(received, sent[1:], side="right") - 1
        counted = (np.diff(sequence) == 1) & (newest >= 0)
        if not counted.any():
            return None
        ages = (sent[1:] - received[newest])[counted]
        return {
            **period_figures(np.diff(sent)[counted]),
            **self._missed,
            "state_age_mean_s": float(ages.mean()),
        }


def period_figures(periods: Array) -> dict[str, float]:
    """Mean, deviation, 99.9 % and largest of measured periods (K,), s, as in summary.json's `loop`."""
    return {
        "period_mean_s": float(periods.mean()),
        "period_std_s": float(periods.std()),
        "period_p999_s": float(np.quantile(periods, 0.999)),
        "period_max_s": float(periods.max()),
    }
