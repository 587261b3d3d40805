"""A controller's safety system: protective, emergency and safeguard stops, and how they are released."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable

from simbridge.emulator.settings import Settings
from simbridge.emulator.state import ControllerState, Event, Power
from simbridge.ur.tables import RuntimeState, SafetyMode

# A client that waits for just that delay by its own clock, as a test of UR's library does, may come so much early, s.
_EARLY = 0.02
RELEASE_TIME = 0.5  # s from the primary interface's command to unlock it until the arm may move again
# UR's error codes (C209A0 and so on)
PROTECTIVE_STOP_CODE = 209


class Safety(ABC):
    """The part of a `Controller` that stops it; the attributes are the controller's."""

    state: ControllerState
    settings: Settings
    power: Power
    on_event: Callable[[Event], None]
    _stopped_at, _released_at = -math.inf, math.inf

    @abstractmethod
    def _end_program(self) -> None: ...

    def tick_safety(self) -> None:
        """Release what is to be released by now."""
        if self.state.timestamp >= self._released_at:
            self._unlock()

    def protective_stop(self, reason: str = "", code: int = PROTECTIVE_STOP_CODE, argument: int = 0) -> None:
        """The safety system stops the arm; the program pauses or stops (`settings`). Its code: C209A0 is 209 and 0."""
        if self.state.safety_mode != SafetyMode.NORMAL:
            return
        self._safety_stop(SafetyMode.PROTECTIVE_STOP)
        text = f"Protective stop{': ' + reason if reason else ''}"
        self.on_event(Event("safety", text, code=code, argument=argument))

    def emergency_stop(self) -> None:
        """The emergency button is pressed: the program pauses, the arm stops and loses power."""
        self._safety_stop(SafetyMode.ROBOT_EMERGENCY_STOP)
        self.power.off()

    def safeguard_stop(self) -> None:
        """A safeguard is opened: the program pauses until it is closed and the operator resumes."""
        if not self.state.safety_stop:
            self._safety_stop(SafetyMode.SAFEGUARD_STOP)

    def _set_safety_mode(self, mode: SafetyMode) -> None:
        self._released_at = math.inf
        if self.state.safety_mode == mode:
            return
        self.state.safety_mode = mode
        self.on_event(Event("safety mode", mode.name))

    def _safety_stop(self, mode: SafetyMode) -> None:
        s = self.state
        self._set_safety_mode(mode)
        self._stopped_at = s.timestamp
        if mode == SafetyMode.PROTECTIVE_STOP and self.settings.on_protective_stop == "stop":
            self._end_program()
        elif s.runtime_state == RuntimeState.PLAYING:
            s.runtime_state = RuntimeState.PAUSED

    def release_safety(self) -> None:
        """The emergency button is released, or the safeguard is closed."""
        if self.state.emergency_stop or self.state.safety_mode == SafetyMode.SAFEGUARD_STOP:
            self._set_safety_mode(SafetyMode.NORMAL)

    def unlock_protective_stop(self) -> str:
        """Return the dashboard's answer; refused for the first 5 s (`Settings.unlock_delay`)."""
        s = self.state
        if s.safety_mode != SafetyMode.PROTECTIVE_STOP:
            return "Protective stop releasing"
        if s.timestamp - self._stopped_at < self.settings.unlock_delay - _EARLY:
            return (
                f"Cannot unlock protective stop until {self.settings.unlock_delay:g}s after occurrence. "
                "Always inspect cause of protective stop before unlocking"
            )
        self._unlock()
        return "Protective stop releasing"

    def release_protective_stop(self) -> None:
        """Unlock it by command of the primary interface: at any time, and it takes a moment."""
        if self.state.safety_mode == SafetyMode.PROTECTIVE_STOP and self._released_at == math.inf:
            self._released_at = self.state.timestamp + RELEASE_TIME

    def _unlock(self) -> None:
        if self.state.safety_mode == SafetyMode.PROTECTIVE_STOP:
            self._set_safety_mode(SafetyMode.NORMAL)

    def restart_safety(self) -> str:
        """Reset the safety system after a fault or violation; the arm is powered off."""
        self._set_safety_mode(SafetyMode.NORMAL)
        self.power.off()
        return "Restarting safety"
