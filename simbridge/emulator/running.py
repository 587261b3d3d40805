"""A running controller: a thread ticks it by absolute deadlines, another one serves its clients."""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping

import numpy as np

from simbridge.emulator.emulated_controller import EmulatedController
from simbridge.emulator.errors import EmulatorBroken
from simbridge.emulator.primary import message_of
from simbridge.emulator.servers import Servers
from simbridge.emulator.state import ControllerEvent
from simbridge.emulator.traffic import Exchange
from simbridge.robot.pose import Array
from simbridge.scheduling import ask_for_short_slices

# Longest delay that is caught up, s. After a longer one, this computer or its virtual machine was
# suspended; the controller's clock then counts as suspended, too. Otherwise its clients, which were
# also suspended, would seem to have been silent.
MAX_DELAY_S = 0.02
# Longest wait for the tick under way at the end, s: it should take milliseconds.
TICK_TIMEOUT_S = 2.0
# Longest time until the clock's thread takes up a freeze, s.
FREEZE_TIMEOUT_S = 0.1
# Threads hand over within this time: a busy one must yield quickly to a due tick, and again after
# each of its sends, s.
SWITCH_INTERVAL_S = 0.00005
# Ticks whose times are kept.
TIMED_TICKS = 200_000
# Shortest interval between packages, s: if the controller's clock runs faster than real time,
# several ticks are made at once.
SHORTEST_INTERVAL_S = 0.002
# Shortest pause between the ticks of a controller that is faster than real time, s: it is for the
# clients.
SHORTEST_PAUSE_S = 1e-4
# Time over which the attained speed is measured, s.
SPEED_WINDOW_S = 1.0

# Largest number of lines that wait to be printed, and of lines about unsupported requests.
MAX_LINES = 1000
# Bytes that a line shows of a request, and characters of the text about it.
MAX_SHOWN_BYTES = 200
MAX_TEXT_CHARACTERS = 1000


class RunningController:
    """A context manager that ticks and serves a controller.

    Args:
        controller: While it runs, accessed with `lock` held only.
        host: Address at which the ports are served: see `Servers`.
        ports: Numbers of the ports: see `Servers`.
        speed: How many times faster than real time the controller's clock runs, at most; RTDE and
            the real-time interface then send 500 packages a second of real time.
        on_exchange: Called with what clients and controller exchange: see `Servers`.
        closed: Ports that are closed: see `Servers`.

    Attributes:
        controller: The controller that is ticked.
        servers: The servers of the controller.
        lock: Held by whoever uses the controller.
        speed: Factor of real time attained in the last second.
        log: Lines about the errors of programs, protective stops, and requests that the emulator
            does not support (each once), for whoever prints them: no tick waits for a terminal.

    Raises:
        CannotListen: On entering: a port is in use.
        EmulatorBroken: On leaving: a tick or a client's message ran into a bug in the emulator.
    """

    def __init__(
        self,
        controller: EmulatedController,
        host: str = "127.0.0.1",
        ports: Mapping[int, int] | None = None,
        *,
        speed: float = 1.0,
        on_exchange: Callable[[Exchange], None] | None = None,
        closed: Collection[int] = (),
    ) -> None:
        self.controller = controller
        self.speed = speed
        self.lock = threading.RLock()
        self.servers = Servers(
            controller, self.lock, host=host, ports=ports, on_exchange=on_exchange, closed=closed
        )
        self.log: deque[str] = deque(maxlen=MAX_LINES)

        # The thread of the ticks, whether it is to end, and an event that ends its freezing.
        self._thread = threading.Thread(
            target=self._run, name="simbridge-emulator-tick", daemon=True
        )
        self._stopping = False
        self._leaving = threading.Event()
        # The first exception of the thread or of the servers.
        self._bug: Exception | None = None

        # The time for which the controller is to be frozen, s.
        self._freeze_time = 0.0
        # Set while it is frozen.
        self._is_frozen = threading.Event()

        self._max_speed = speed
        # The program's start by the controller's clock and by real time, s.
        self._program_began = (0.0, 0.0)
        # Rings with the start and the duration of the latest ticks, s.
        self._started_at = np.zeros(TIMED_TICKS)
        self._durations = np.zeros(TIMED_TICKS)
        # The number of all ticks.
        self._ticks = 0
        # Texts about requests that were logged once.
        self._logged_requests: set[str] = set()

        controller.on_event = self._broadcast

    def __enter__(self) -> RunningController:
        self.servers.start()
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        # Objects that exist by now stay: the collector need not traverse them during a tick.
        gc.collect()
        gc.freeze()
        self._thread.start()
        # Asked for by this thread: the thread of the ticks might come to it only after
        # `ask_for_priority`, and would take its own real-time priority away.
        ask_for_short_slices(self._thread.native_id or 0)
        return self

    def __exit__(self, *_exception: object) -> None:
        # The thread ends after the tick under way, also while it is frozen.
        self._stopping = True
        self._leaving.set()
        self._thread.join(TICK_TIMEOUT_S)
        if self._thread.is_alive():
            # It holds the lock, without which the servers cannot be stopped: they end with the
            # process.
            bug = TimeoutError("the tick under way did not end")
            raise EmulatorBroken(self.controller.state.tick, bug)

        try:
            self.servers.stop()
        except Exception as error:
            self._bug = self._bug or error
        if self._bug is not None:
            raise EmulatorBroken(self.controller.state.tick, self._bug)

    @property
    def alive(self) -> bool:
        """True while the controller is ticking."""
        return self._thread.is_alive()

    def freeze(self, seconds: float) -> None:
        """Stop everything: no tick, no answer.

        It returns once the controller has stopped, so call it without the lock held.

        Args:
            seconds: Duration, s.
        """
        if seconds > 0.0:
            self._is_frozen.clear()
            self._freeze_time = float(seconds)
            self._is_frozen.wait(FREEZE_TIMEOUT_S)

    def timing(self) -> tuple[Array, Array]:
        """Return times of the last 200,000 ticks, s.

        Returns:
            The times between the starts of two (K - 1,), and the duration of each (K,).
        """
        with self.lock:
            count = min(self._ticks, TIMED_TICKS)
            order = np.arange(self._ticks - count, self._ticks) % TIMED_TICKS
            return np.diff(self._started_at[order]), self._durations[order]

    def _broadcast(self, event: ControllerEvent) -> None:
        """Log an event, and send it to the clients of the primary interface."""
        if event.kind == "unknown":
            self._log_request(event)
            return

        if event.kind == "error":
            position = f" (line {event.line}, column {event.column})" if event.line else ""
            self.log.append(f"fault in {event.program or 'a program'}{position}: {event.text}")
        elif event.kind == "safety":
            self.log.append(f"C{event.code}A{event.argument}: {event.text}")
        elif event.kind == "started":
            self._program_began = self._now()
        elif event.kind == "stopped":
            self._log_program_speed()
        self.servers.broadcast_message(message_of(self.controller, event))

    def _log_request(self, event: ControllerEvent) -> None:
        """Log a request that the emulator does not support: once, and up to 1000 of them."""
        text = event.text
        if len(text) > MAX_TEXT_CHARACTERS:
            text = f"{text[:MAX_TEXT_CHARACTERS]} ..."
        if text in self._logged_requests or len(self._logged_requests) > MAX_LINES:
            return

        self._logged_requests.add(text)
        if len(self._logged_requests) > MAX_LINES:
            self.log.append(
                f"{MAX_LINES} requests that the emulator does not support were logged; "
                "further ones are not"
            )
            return

        rest = " ..." if len(event.data) > MAX_SHOWN_BYTES else ""
        self.log.append(f"{text}: {event.data[:MAX_SHOWN_BYTES]!r}{rest}")

    def _now(self) -> tuple[float, float]:
        """Return the time of the controller's clock, and real time, s."""
        return self.controller.state.timestamp, time.monotonic()

    def _log_program_speed(self) -> None:
        """Log how fast a program ran, if not in real time."""
        if self._max_speed == 1.0:
            return
        timestamp, now = self._now()
        begin_timestamp, begin = self._program_began
        duration = timestamp - begin_timestamp
        real_duration = now - begin

        name = self.controller.program_name or "A program"
        factor = duration / real_duration
        self.log.append(f"{name} took {duration:.3f} s, {factor:.1f} times faster than real time")

    def _run(self) -> None:
        """Tick until stopped; keep the exception of a bug."""
        try:
            self._tick_until_stopped()
        except Exception as error:
            self._bug = error

    def _tick_until_stopped(self) -> None:
        """Tick by absolute deadlines."""
        controller = self.controller
        speed = self._max_speed

        # The time between two deadlines, at which several ticks may be due.
        interval = controller.period
        shortest_pause = 0.0
        if speed != 1.0:
            interval = max(controller.period / speed, SHORTEST_INTERVAL_S)
            shortest_pause = SHORTEST_PAUSE_S

        deadline = time.monotonic()
        # Ticks that are due, and the part of one.
        due = 0.0
        # Real time and controller's time since which the speed is measured, s.
        window_begin = deadline
        window_timestamp = controller.state.timestamp
        while not self._stopping:
            deadline += interval
            remaining = deadline - time.monotonic()
            pause = max(remaining, shortest_pause)
            if pause > 0.0:
                time.sleep(pause)
            # Far behind, as after the computer stood still, ticks that were missed are not made up.
            if remaining < -MAX_DELAY_S:
                deadline = time.monotonic()

            with self.lock:
                if self._freeze_time:
                    self._stay_frozen()
                    deadline = time.monotonic()

                # Tick as often as whole periods are due.
                due += speed * interval / controller.period
                count = int(due)
                due -= count
                self._tick(count)

            now = time.monotonic()
            if now - window_begin > SPEED_WINDOW_S:
                progress = controller.state.timestamp - window_timestamp
                self.speed = progress / (now - window_begin)
                window_begin = now
                window_timestamp = controller.state.timestamp

    def _stay_frozen(self) -> None:
        """Hold everything up, until the time is over or the controller is to end."""
        self._is_frozen.set()
        self._leaving.wait(self._freeze_time)
        self._freeze_time = 0.0

    def _tick(self, count: int) -> None:
        """Tick a number of times, then let the servers send; keep the times of the ticks."""
        for i in range(count):
            begin = time.monotonic()
            self.controller.tick()
            if i == count - 1:
                self.servers.send_due(self.controller.state.tick, count)

            slot = self._ticks % TIMED_TICKS
            self._started_at[slot] = begin
            self._durations[slot] = time.monotonic() - begin
            self._ticks += 1
