"""A controller that runs: a thread that ticks it by absolute deadlines, beside the servers' own thread."""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from simbridge.emulator import primary_messages
from simbridge.emulator.controller import Controller
from simbridge.emulator.errors import EmulatorBroken
from simbridge.emulator.servers import Servers
from simbridge.robot.pose import Array
from simbridge.scheduling import ask_for_short_slices

# A machine that was busy longer than this is not made up for: the controller's clock has then stood still.
_LATEST = 0.1
_TIMINGS = 200_000


@dataclass(frozen=True)
class Timing:
    """How punctual the ticks were.

    Attributes:
        period: Between the beginnings of ticks (K,), s.
        work: Spent in each tick (K,), s.
    """

    period: Array
    work: Array


class RunningController:
    """A context manager that serves and ticks a controller.

    Args:
        controller: Not touched by others while it runs, unless `lock` is held.
        host: The address to listen on.
        ports: Other numbers to listen on, by the standard number.

    Raises:
        CannotListen: On entering: a port is in use.
        EmulatorBroken: On leaving: it has ended by itself, or a client's message met a mistake in the emulator.
    """

    def __init__(self, controller: Controller, host: str = "127.0.0.1", ports: Mapping[int, int] | None = None) -> None:
        self.controller = controller
        self.lock = threading.RLock()
        self.servers = Servers(controller, self.lock, host, ports)
        self._thread = threading.Thread(target=self._run, name="simbridge-emulator-tick", daemon=True)
        self._stopping = False
        self._broken: Exception | None = None
        self._frozen = 0.0
        self._stands = threading.Event()
        self._begun = np.zeros(_TIMINGS)
        self._worked = np.zeros(_TIMINGS)
        self._ticks = 0
        controller.on_message = self._tell

    def __enter__(self) -> RunningController:
        self.servers.start()
        # A thread that computes must let a due tick in soon, and again after each of its sends.
        sys.setswitchinterval(0.00005)
        # What exists by now stays: the collector need not look at it in the middle of a tick.
        gc.collect()
        gc.freeze()
        self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._stopping = True
        self._thread.join()
        try:
            self.servers.stop()
        except Exception as error:
            self._broken = self._broken or error
        if self._broken is not None:
            raise EmulatorBroken(self.controller.state.tick, self._broken)

    @property
    def alive(self) -> bool:
        """Whether it ticks."""
        return self._thread.is_alive()

    def freeze(self, seconds: float) -> None:
        """Stand still with everything: no tick, no answer. Returns when it does, so call it without the lock."""
        if seconds > 0.0:
            self._stands.clear()
            self._frozen = float(seconds)
            self._stands.wait(_LATEST)

    def timing(self) -> Timing:
        """Of the ticks so far, the last 200,000."""
        with self.lock:
            count = min(self._ticks, _TIMINGS)
            order = np.arange(self._ticks - count, self._ticks) % _TIMINGS
            return Timing(np.diff(self._begun[order]), self._worked[order])

    def _tell(self, kind: str, text: str, line: int) -> None:
        machine = self.controller
        if kind == "error":
            message = primary_messages.runtime_exception(machine, line, 0, text)
        elif kind == "popup":
            message = primary_messages.popup_message(machine, text)
        elif kind == "text":
            message = primary_messages.text_message(machine, text)
        else:
            message = primary_messages.key_message(machine, kind.upper(), text)
        self.servers.broadcast_message(message)

    def _run(self) -> None:
        ask_for_short_slices()
        try:
            self._tick_until_stopped()
        except Exception as error:
            self._broken = error

    def _tick_until_stopped(self) -> None:
        period = self.controller.period
        deadline = time.monotonic()
        while not self._stopping:
            deadline += period
            pause = deadline - time.monotonic()
            if pause > 0.0:
                time.sleep(pause)
            elif pause < -_LATEST:
                deadline = time.monotonic()
            begin = time.monotonic()
            with self.lock:
                if self._frozen:
                    self._stands.set()
                    time.sleep(self._frozen)
                    self._frozen = 0.0
                    deadline = begin = time.monotonic()
                self.controller.tick()
                self.servers.tick(self.controller.state.tick)
                slot = self._ticks % _TIMINGS
                self._begun[slot] = begin
                self._worked[slot] = time.monotonic() - begin
                self._ticks += 1
