"""Recognize from outside whose program a controller runs, by its states.

Our control script carries the session's random number and a counter that advances in each cycle.
Registers keep their values after a program has ended, so the number alone proves nothing: of a
program that plays, the counter must advance too.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from simbridge.backends.state_fields import SCRIPT_COUNTER, SCRIPT_NUMBER
from simbridge.ur.tables import PROGRAM_RUNS, RuntimeState

# All times are those of the controller's clock.

# The counter of a running script advances within this time.
ADVANCE_TIME_S = 0.05
# Largest number of states before a pause that may show no count, which comes late.
MAX_LATE_COUNTS = 2
# A script that plays writes its number to the register in its second statement, within this time.
NAMING_TIME_S = 0.1
# The number of a script that was uploaded stands in its register after this time at the latest.
START_TIME_S = 5.0


class ProgramOwner(Enum):
    """The owner of the program that a controller runs, or has paused."""

    NONE = "none"
    OURS = "ours"
    OTHER = "another"
    UNKNOWN = "not known yet"


class ProgramWatch:
    """Follows a controller's states and knows whose program it was in the newest one.

    Args:
        number: The number of our script.
        uploaded: Whether our script was sent to a controller without a program: it may not have
            begun.
        program: Whose program it was before.

    Attributes:
        program: Whose program it was in the newest state.
    """

    def __init__(
        self, number: int, *, uploaded: bool = False, program: ProgramOwner = ProgramOwner.UNKNOWN
    ) -> None:
        self._number = number
        # Whether our script was sent and has not counted yet.
        self._is_starting = uploaded
        self.program = program

        # The script's counter in the last state.
        self._counter: int | None = None
        # Number of states in a row in which a program has played without a count.
        self._uncounted_states = 0
        # Since when a program has played without a count, s.
        self._still_since = 0.0
        # Since when a program has played with another number, s.
        self._unnamed_since = 0.0
        # When a program first played with another number after the last one had ended, s; None if
        # none has. A pause does not change it.
        self._first_unnamed: float | None = None

    def follow(self, state: Mapping[str, Any]) -> ProgramOwner:
        """Return whose program the next state shows.

        Args:
            state: Variables of RTDE by name.
        """
        now = state["timestamp"]
        is_named = state[SCRIPT_NUMBER] == self._number
        is_playing = state["runtime_state"] == RuntimeState.PLAYING
        is_first_state = self._counter is None
        has_counted = not is_first_state and state[SCRIPT_COUNTER] != self._counter
        self._counter = state[SCRIPT_COUNTER]

        # Both times begin anew with each program, and while it is paused.
        if has_counted or is_first_state or not is_playing:
            self._still_since = now
        if is_named or is_first_state or not is_playing:
            self._unnamed_since = now

        if state["runtime_state"] not in PROGRAM_RUNS:
            self.program = ProgramOwner.NONE
            self._first_unnamed = None
        elif is_playing:
            self._uncounted_states = 0 if has_counted else self._uncounted_states + 1
            if is_named:
                self._first_unnamed = None
            elif self._first_unnamed is None:
                self._first_unnamed = now
            self.program = self._judge_playing(now, is_named=is_named, has_counted=has_counted)
        else:
            self.program = self._judge_paused(now, is_named=is_named)
            self._uncounted_states = 0
        return self.program

    def _judge_playing(self, now: float, *, is_named: bool, has_counted: bool) -> ProgramOwner:
        """Return whose program plays.

        Args:
            now: The controller's clock, s.
            is_named: Whether our number stands in its register.
            has_counted: Whether the counter has advanced since the last state.
        """
        if is_named and has_counted:
            self._is_starting = False
            return ProgramOwner.OURS

        if is_named:
            # If the counter stays as it is, an earlier program has left number and counter behind.
            if now - self._still_since > ADVANCE_TIME_S:
                return ProgramOwner.OTHER
            # Until then the answer for the last state holds. If no program ran in that state, one
            # has begun since.
            if self.program is ProgramOwner.NONE:
                return ProgramOwner.UNKNOWN
            return self.program

        # Ours may not have begun yet, or not have named itself.
        if self._is_starting and now - self._unnamed_since < START_TIME_S:
            return ProgramOwner.UNKNOWN
        return ProgramOwner.OTHER

    def _judge_paused(self, now: float, *, is_named: bool) -> ProgramOwner:
        """Return whose program is paused, by whose it was in the state before.

        - OTHER stays OTHER.
        - OURS stays OURS if at most `MAX_LATE_COUNTS` of the last playing states were without a
          count, and our number still stands in its register or our script is starting. Otherwise
          it is UNKNOWN.
        - NONE and UNKNOWN become OURS if our script was sent and has not counted yet, and a program
          has played for less than `NAMING_TIME_S` without our number. Otherwise they are UNKNOWN.

        Args:
            now: The controller's clock, s.
            is_named: Whether our number stands in its register.
        """
        if self.program is ProgramOwner.OTHER:
            return ProgramOwner.OTHER

        if self.program is ProgramOwner.OURS:
            # Without these signs another program may have taken its place, just before the pause.
            counted_until_paused = self._uncounted_states <= MAX_LATE_COUNTS
            # A script that is starting may not have written its number yet.
            number_fits = is_named or self._is_starting
            is_still_ours = counted_until_paused and number_fits
            return ProgramOwner.OURS if is_still_ours else ProgramOwner.UNKNOWN

        # Our script may have been paused before it named itself, which takes it hardly any time.
        # If a program has played for longer without our number, it is another one.
        may_be_ours = self._first_unnamed is None or now - self._first_unnamed < NAMING_TIME_S
        is_ours = self._is_starting and may_be_ours
        return ProgramOwner.OURS if is_ours else ProgramOwner.UNKNOWN
