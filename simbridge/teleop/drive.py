"""The one loop between a device and a live session: readings at a fixed rate become calls of the session.

Whatever the device, the same holds. Nothing moves before the session was engaged at the device, and what was held while
it engaged must be released first. Axes move the arm while the dead-man button is held; its release halts the arm. A
device that is lost halts the arm.
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
    DeviceError,
    Reading,
    Request,
    TeleopOptions,
)

if TYPE_CHECKING:  # loads the backends; a driver is given its session
    from simbridge.sessions.session import LiveSession, LiveStatus

RATE = 100.0
"""Readings a second; well within the time after which an input is stale."""

STEP_TIME = 1.0
"""How long a step is asked for at most, s: an arm that was slowed down does not go on with it later."""

OnButton = Callable[[str, bool], object]


class Driver:
    """Drives a session by a device.

    Args:
        session: Not necessarily engaged.
        device: Open.
        on_button: Called with the name of a button of the device, and whether it was pressed or released.
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
        self._session, self._device, self._options = session, device, options
        self._on_button, self._show, self._report, self._clock = on_button, show, report, clock
        self._down: frozenset[str] = frozenset()
        # Whether the dead-man button was seen released since the session was engaged or halted.
        self._armed = self._moving = False
        self._goal: pin.SE3 | None = None
        self._goal_until = 0.0
        self._reported = ""

    def run(self, sleep: Callable[[float], object] = time.sleep) -> None:
        """Drive until the device asks to quit.

        Raises:
            DeviceError: The device was lost; the arm was halted.
            ForeignSolverError: The function for the buttons failed; the arm was halted.
            KeyboardInterrupt: Ctrl-C, or a signal; the session's end brings the arm to rest.
        """
        due = self._clock()
        while self.tick():
            due = max(due + 1.0 / RATE, self._clock())
            sleep(max(0.0, due - self._clock()))

    def tick(self) -> bool:
        """Act on one reading; returns whether to go on."""
        try:
            reading = self._device.read()
        except OSError as error:
            self._session.halt(f"{self._device.name} lost")
            if isinstance(error, DeviceError):
                raise
            lost = f"it stopped answering ({error}); was it unplugged? The arm was halted."
            raise DeviceError(self._device.name, f"{lost} Connect it and start again.") from error
        problem = " ".join(filter(None, map(self._obey, reading.requests)))
        self._note_buttons(reading.buttons)
        if self._session.status.state not in MOVABLE:
            self._forget()
        elif not reading.requests:
            self._move(reading)
        self._device.answer(self._session, problem)
        status = self._session.status
        self._tell("" if status.error is None else str(status.error))
        self._show(status)
        return "quit" not in reading.requests

    def _obey(self, request: Request) -> str:
        """Do what the device asks for; what failed, as a sentence, or ""."""
        movable = self._session.status.state in MOVABLE
        if request == "toggle":
            request = "disengage" if movable else "engage"
        try:
            if request == "engage" and not movable:
                self._reported = ""
                self._session.engage()
                self._device.engaged()
            elif request == "halt":
                self._session.halt(f"stop at the {self._device.name}")
            elif request == "disengage" and movable:
                self._session.disengage()
        except SimbridgeError as error:
            # Ctrl-C, as a session reports it.
            if isinstance(error, KeyboardInterrupt):
                raise
            self._tell(str(error))
            return str(error)
        finally:
            self._forget()
        return ""

    def _tell(self, error: str) -> None:
        """Report an error once, for a session shows it until it is engaged again."""
        if error and error != self._reported:
            self._report(error)
        self._reported = error or self._reported

    def _forget(self) -> None:
        """What is held now, or was asked for, moves the arm no more."""
        self._armed = self._moving = False
        self._goal = None

    def _note_buttons(self, down: frozenset[str]) -> None:
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
        for command in reading.commands:
            try:
                if command.kind == "pose":
                    self._session.pose(command.values, relative=command.relative)
                elif command.kind == "twist":
                    self._session.twist(command.values, command.frame)
                else:
                    (self._session.jog if command.kind == "jog" else self._session.joints)(
                        command.values
                    )
            except InvalidParameter as error:
                self._device.refused(command, error)
        if reading.steps != NO_STEP:
            tool = self._session.tool
            goal = self._options.stepped(tool if self._goal is None else self._goal, reading.steps)
            self._goal = self._options.within_a_step(goal, tool)
            self._goal_until = self._clock() + STEP_TIME
        if self._goal is not None:
            # Again and again: two different poses in a row would be taken for a velocity.
            self._session.pose(self._goal)
            if self._clock() > self._goal_until:
                self._goal = None
        if not reading.held:
            if self._moving:
                self._session.halt(f"{self._device.dead_man} released")
            self._armed, self._moving = True, False
        elif self._armed:
            self._session.twist(self._options.twist(reading.axes), self._options.frame)
            self._moving = True
