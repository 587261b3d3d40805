"""The one loop between a device and a live session: readings at a fixed rate become calls of it.

Whatever the device, the same holds. Nothing moves before the session was engaged at the device, and
what was held while it engaged must be released first. Axes move the arm while the dead-man button
is held; its release halts the arm. A device that is lost halts the arm.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import pinocchio as pin

from simbridge.errors import ForeignSolverError, InvalidParameter, SimbridgeError
from simbridge.teleop.device import (
    MOVABLE,
    NO_STEP,
    Device,
    DeviceCommand,
    DeviceError,
    Reading,
    Request,
    Steps,
)
from simbridge.teleop.options import TeleopOptions

if TYPE_CHECKING:  # loads the backends; a driver is given its session
    from simbridge.sessions.session import LiveSession, LiveStatus

# Readings a second; well within the time after which an input is stale.
READING_RATE_HZ = 100.0

# How long a step is asked for at most, s: an arm that was slowed down does not go on with it later.
STEP_DURATION_S = 1.0

OnButton = Callable[[str, bool], object]


class Driver:
    """Drives a session by a device.

    Args:
        session: The session, which need not be engaged.
        device: Open.
        options: How readings become motions.
        on_button: Called with the name of a button of the device, and whether it was pressed or
            released.
        show: Called with the session's status after each reading.
        report: Called with a sentence for the operator.
        clock: Monotonic, s.
    """

    def __init__(
        self,
        session: LiveSession,
        device: Device,
        options: TeleopOptions,
        *,
        on_button: OnButton | None = None,
        show: Callable[[LiveStatus], object] = lambda _: None,
        report: Callable[[str], object] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._session = session
        self._device = device
        self._options = options
        self._on_button = on_button
        self._show = show
        self._report = report
        self._clock = clock

        # The buttons that are down.
        self._down: frozenset[str] = frozenset()
        # Whether the dead-man button was seen released since the session was engaged or halted.
        self._armed = False
        # Whether the device's axes move the arm.
        self._moving = False
        # The pose in base_link to which steps lead; None without any.
        self._goal: pin.SE3 | None = None
        # Until when this pose is asked for, s.
        self._goal_until = 0.0
        # The error that was reported last; "" for none since the last engagement.
        self._reported = ""

    def run(self, sleep: Callable[[float], object] = time.sleep) -> None:
        """Drive until the device asks to quit.

        Args:
            sleep: Waits for a time, s.

        Raises:
            DeviceError: The device was lost; the arm was halted.
            ForeignSolverError: The function for the buttons failed; the arm was halted.
            KeyboardInterrupt: Ctrl-C, or a signal; the session's end brings the arm to rest.
        """
        due = self._clock()
        while self.tick():
            due = max(due + 1.0 / READING_RATE_HZ, self._clock())
            sleep(max(0.0, due - self._clock()))

    def tick(self) -> bool:
        """Read the device once, and let the session do what it asks for.

        Returns:
            Whether to go on; False if the device asks to quit.
        """
        reading = self._read()

        # Requests and buttons come before motions.
        failures = []
        for request in reading.requests:
            failure = self._obey(request)
            if failure:
                failures.append(failure)
        self._note_buttons(reading.buttons)

        # A motion that comes with a request is left out: it was meant for the state before.
        if self._session.status.state not in MOVABLE:
            self._forget_inputs()
        elif not reading.requests:
            self._move(reading)

        # Tell the device and the user how the session is now.
        self._device.answer(self._session, " ".join(failures))
        status = self._session.status
        self._report_once("" if status.error is None else str(status.error))
        self._show(status)
        return "quit" not in reading.requests

    def _read(self) -> Reading:
        """Return the device's newest reading; halt the arm where it is lost."""
        try:
            return self._device.read()
        except OSError as error:
            self._session.halt(f"{self._device.name} lost")
            if isinstance(error, DeviceError):
                raise
            reason = (
                f"it stopped responding ({error}). Was it unplugged? The arm was halted. "
                "Reconnect it and start again."
            )
            raise DeviceError(self._device.name, reason) from error

    def _obey(self, request: Request) -> str:
        """Carry out a request of the device.

        Returns:
            Why it failed, as a sentence; "" if it did not.
        """
        is_movable = self._session.status.state in MOVABLE
        if request == "toggle":
            request = "disengage" if is_movable else "engage"

        try:
            if request == "engage" and not is_movable:
                self._reported = ""
                self._session.engage()
                self._device.note_engagement()
            elif request == "halt":
                self._session.halt(f"stop at the {self._device.name}")
            elif request == "disengage" and is_movable:
                self._session.disengage()
        except SimbridgeError as error:
            # Ctrl-C, as a session reports it.
            if isinstance(error, KeyboardInterrupt):
                raise
            self._report_once(str(error))
            return str(error)
        finally:
            self._forget_inputs()
        return ""

    def _report_once(self, error: str) -> None:
        """Report an error once: a session keeps it in its status until it is engaged again."""
        if error and error != self._reported:
            self._report(error)
        self._reported = error or self._reported

    def _forget_inputs(self) -> None:
        """Forget all that would move the arm: held buttons and axes, and the goal of steps."""
        self._armed = False
        self._moving = False
        self._goal = None

    def _note_buttons(self, down: frozenset[str]) -> None:
        """Note in the session which buttons were pressed or released; call `on_button` for each."""
        for button in sorted(down ^ self._down):
            pressed = button in down
            self._session.note("button", button=button, pressed=pressed)
            if self._on_button is None:
                continue
            try:
                self._on_button(button, pressed)
            except Exception as error:
                self._session.halt("the function for the buttons failed")
                name = self._options.on_button or "function"
                reason = f"failed with {type(error).__name__}: {error}; the arm was halted"
                raise ForeignSolverError(name, reason, what="button function") from error
        self._down = down

    def _move(self, reading: Reading) -> None:
        """Pass on the motions of a reading: commands of programs, single steps, and held axes."""
        for command in reading.commands:
            self._pass_on(command)

        if reading.steps != NO_STEP:
            self._add_step(reading.steps)
        if self._goal is not None:
            # Send the goal again with each reading: after two poses that differ the session would
            # go on at the velocity between them.
            self._session.pose(self._goal)
            if self._clock() > self._goal_until:
                self._goal = None

        if not reading.held:
            if self._moving:
                self._session.halt(f"{self._device.dead_man} released")
            self._armed = True
            self._moving = False
        elif self._armed:
            self._session.twist(self._options.twist(reading.axes), self._options.frame)
            self._moving = True

    def _pass_on(self, command: DeviceCommand) -> None:
        """Call the session's method of a command; tell the device if it is refused."""
        try:
            if command.kind == "pose":
                self._session.pose(command.values, relative=command.relative)
            elif command.kind == "twist":
                self._session.twist(command.values, command.frame)
            elif command.kind == "jog":
                self._session.jog(command.values)
            else:
                self._session.joints(command.values)
        except InvalidParameter as error:
            self._device.note_refusal(command, error)

    def _add_step(self, steps: Steps) -> None:
        """Move the goal of steps by one more, never further than a step from the tool."""
        tool = self._session.tool
        begin = tool if self._goal is None else self._goal
        goal = self._options.step_pose(begin, steps)
        self._goal = self._options.limit_to_step(goal, tool)
        self._goal_until = self._clock() + STEP_DURATION_S
