"""The states of a session with a controller, as one table; drawn in docs/internals.md."""

from __future__ import annotations

from enum import Enum


class SessionState(Enum):
    """A state of a session with a controller."""

    CONNECTING = "connecting"
    UPLOADING = "uploading"
    READY = "ready"
    MOVING = "moving"
    PAUSED = "paused"
    BRAKING = "braking"
    AT_REST = "at rest"
    ENDED = "ended"


class SessionEvent(Enum):
    """An event that changes the state of a session.

    Whatever goes wrong, in whatever state, is END.
    """

    SENT = "the control script is sent"
    SCRIPT_RUNS = "the control script runs"
    PLAY = "a motion begins"
    DONE = "the motion is complete"
    PAUSE = "the program was paused at the pendant"
    RESUME = "the program was resumed at the pendant"
    END = "the session is to end"
    RESTS = "nothing more is sent"
    VERIFIED = "the controller was looked at"


# The state that follows a state after an event.
TRANSITIONS: dict[tuple[SessionState, SessionEvent], SessionState] = {
    (SessionState.CONNECTING, SessionEvent.SENT): SessionState.UPLOADING,
    (SessionState.UPLOADING, SessionEvent.SCRIPT_RUNS): SessionState.READY,
    (SessionState.READY, SessionEvent.PLAY): SessionState.MOVING,
    (SessionState.MOVING, SessionEvent.PLAY): SessionState.MOVING,
    (SessionState.MOVING, SessionEvent.DONE): SessionState.READY,
    (SessionState.MOVING, SessionEvent.PAUSE): SessionState.PAUSED,
    (SessionState.PAUSED, SessionEvent.RESUME): SessionState.MOVING,
    # The end, from wherever the session is.
    (SessionState.CONNECTING, SessionEvent.END): SessionState.BRAKING,
    (SessionState.UPLOADING, SessionEvent.END): SessionState.BRAKING,
    (SessionState.READY, SessionEvent.END): SessionState.BRAKING,
    (SessionState.MOVING, SessionEvent.END): SessionState.BRAKING,
    (SessionState.PAUSED, SessionEvent.END): SessionState.BRAKING,
    (SessionState.BRAKING, SessionEvent.RESTS): SessionState.AT_REST,
    (SessionState.AT_REST, SessionEvent.VERIFIED): SessionState.ENDED,
}


def next_state(state: SessionState, event: SessionEvent) -> SessionState:
    """Return the state after an event; an event without a meaning in a state does not change it."""
    return TRANSITIONS.get((state, event), state)
