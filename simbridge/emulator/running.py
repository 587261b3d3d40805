"""A running controller: a thread ticks it by absolute deadlines, another one serves its clients."""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping

import numpy as np

from simbridge.emulator.emulated_controller import Controller
from simbridge.emulator.errors import EmulatorBroken
from simbridge.emulator.primary import message_of
from simbridge.emulator.servers import Servers
from simbridge.emulator.state import Event
from simbridge.emulator.traffic import Exchange
from simbridge.robot.pose import Array
from simbridge.scheduling import ask_for_short_slices

# A delay beyond this is not caught up: this computer, or its virtual machine, has stood still, and the controller's
# clock with it. Else its clients, which stood still as well, would seem to have been silent.
_MAX_DELAY = 0.02  # s
# For the tick under way when the controller is stopped, s: a tick takes milliseconds.
_TICK_TIMEOUT = 2.0
# For the clock to take a freeze up, s.
_FREEZE_TIMEOUT = 0.1
_TIMINGS = 200_000
# s; controller time that runs faster is made up of several ticks at once, after which packages are sent.
_FASTEST = 0.002
_YIELD = 1e-4  # s, for the clients of a controller that is as fast as it can be
_SPEED_OVER = 1.0  # s, over which the speed reached is measured
_LOGGED = (
    1000  # lines that wait to be printed, and different ones about requests that are not supported
)
_SHOWN, _LONGEST = (
    200,
    1000,
)  # bytes of the client, and letters of the text, in a line about a request


class RunningController:
    """A context manager that ticks and serves a controller.

    Args:
        controller: While it runs, accessed with `lock` held only.
        host, ports, on_exchange: See `Servers`.
        speed: How many times faster than real time the controller's clock runs, at most; RTDE and the real-time
            interface then send 500 packages a second of real time.

    Attributes:
        speed: As reached in the last second.
        log: Lines about the errors of programs, protective stops, and requests that the emulator does not support
            (each once), for whoever prints them: no tick waits for a terminal.

    Raises:
        CannotListen: On entering: a port is in use.
        EmulatorBroken: On leaving: a tick or a client's message ran into a bug in the emulator.
    """

    def __init__(
        self,
        controller: Controller,
        host: str = "127.0.0.1",
        ports: Mapping[int, int] | None = None,
        speed: float = 1.0,
        on_exchange: Callable[[Exchange], None] | None = None,
    ) -> None:
        self.controller = controller
        self.speed = self._wanted_speed = speed
        self._program_began = (0.0, 0.0)
        self.lock = threading.RLock()
        self.servers = Servers(controller, self.lock, host, ports, on_exchange)
        self._thread = threading.Thread(
            target=self._run, name="simbridge-emulator-tick", daemon=True
        )
        self._stopping = False
        self._bug: Exception | None = None
        self._freeze_time = 0.0
        self._stopped = threading.Event()
        self._leaving = threading.Event()
        self._started_at = np.zeros(_TIMINGS)
        self._durations = np.zeros(_TIMINGS)
        self._ticks = 0
        self.log: deque[str] = deque(maxlen=_LOGGED)
        self._known: set[str] = set()  # what was logged once
        controller.on_event = self._broadcast

    def __enter__(self) -> RunningController:
        self.servers.start()
        # A busy thread must yield quickly to a due tick, and again after each of its sends.
        sys.setswitchinterval(0.00005)
        # Objects that exist by now stay: the collector need not traverse them during a tick.
        gc.collect()
        gc.freeze()
        self._thread.start()
        # From here: the thread itself might ask only after `ask_for_priority`, and take its real-time priority away.
        ask_for_short_slices(self._thread.native_id or 0)
        return self

    def __exit__(self, *_exception: object) -> None:
        self._stopping = True
        self._leaving.set()
        self._thread.join(_TICK_TIMEOUT)
        if self._thread.is_alive():
            # It holds the lock, without which the servers cannot be stopped: they end with the process.
            raise EmulatorBroken(
                self.controller.state.tick, TimeoutError("the tick under way did not end")
            )
        try:
            self.servers.stop()
        except Exception as error:
            self._bug = self._bug or error
        if self._bug is not None:
            raise EmulatorBroken(self.controller.state.tick, self._bug)

    @property
    def alive(self) -> bool:
        """Whether it is ticking."""
        return self._thread.is_alive()

    def freeze(self, seconds: float) -> None:
        """Stop everything: no tick, no answer. Returns once it has stopped, so call it without the lock held."""
        if seconds > 0.0:
            self._stopped.clear()
            self._freeze_time = float(seconds)
            self._stopped.wait(_FREEZE_TIMEOUT)

    def timing(self) -> tuple[Array, Array]:
        """Of the last 200,000 ticks: the times between the starts of two (K - 1,) and the duration of each (K,), s."""
        with self.lock:
            count = min(self._ticks, _TIMINGS)
            order = np.arange(self._ticks - count, self._ticks) % _TIMINGS
            return np.diff(self._started_at[order]), self._durations[order]

    def _broadcast(self, event: Event) -> None:
        if event.kind == "unknown":
            text = event.text if len(event.text) <= _LONGEST else f"{event.text[:_LONGEST]} ..."
            if text not in self._known and len(self._known) <= _LOGGED:
                self._known.add(text)
                data = f"{event.data[:_SHOWN]!r}{' ...' if len(event.data) > _SHOWN else ''}"
                more = f"{_LOGGED} requests that the emulator does not support were logged; further ones are not"
                self.log.append(f"{text}: {data}" if len(self._known) <= _LOGGED else more)
            return
        if event.kind == "error":
            place = f" (line {event.line}, column {event.column})" if event.line else ""
            self.log.append(f"fault in {event.program or 'a program'}{place}: {event.text}")
        elif event.kind == "safety":
            self.log.append(f"C{event.code}A{event.argument}: {event.text}")
        elif event.kind in ("started", "stopped"):
            self._measure_program(event.kind == "started")
        self.servers.broadcast_message(message_of(self.controller, event))

    def _measure_program(self, began: bool) -> None:
        """At a speed of its own, log how fast a program ran."""
        now = self.controller.state.timestamp, time.monotonic()
        if began:
            self._program_began = now
        elif self._wanted_speed != 1.0:
            took, real = (end - begin for begin, end in zip(self._program_began, now, strict=True))
            name = self.controller.program_name or "A program"
            self.log.append(
                f"{name} took {took:.3f} s, {took / real:.1f} times faster than real time"
            )

    def _run(self) -> None:
        try:
            self._tick_until_stopped()
        except Exception as error:
            self._bug = error

    def _tick_until_stopped(self) -> None:
        controller, speed = self.controller, self._wanted_speed
        interval = controller.period if speed == 1.0 else max(controller.period / speed, _FASTEST)
        shortest = 0.0 if speed == 1.0 else _YIELD
        deadline, due = time.monotonic(), 0.0
        measured = deadline, controller.state.timestamp
        while not self._stopping:
            deadline += interval
            pause = deadline - time.monotonic()
            if max(pause, shortest) > 0.0:
                time.sleep(max(pause, shortest))
            if pause < -_MAX_DELAY:
                deadline = time.monotonic()
            with self.lock:
                if self._freeze_time:
                    self._stopped.set()
                    self._leaving.wait(self._freeze_time)
                    self._freeze_time = 0.0
                    deadline = time.monotonic()
                due += speed * interval / controller.period
                count = int(due)
                due -= count
                for left in reversed(range(count)):
                    begin = time.monotonic()
                    controller.tick()
                    if not left:
                        self.servers.tick(controller.state.tick, count)
                    slot = self._ticks % _TIMINGS
                    self._started_at[slot] = begin
                    self._durations[slot] = time.monotonic() - begin
                    self._ticks += 1
            if (now := time.monotonic()) - measured[0] > _SPEED_OVER:
                self.speed = (controller.state.timestamp - measured[1]) / (now - measured[0])
                measured = now, controller.state.timestamp
