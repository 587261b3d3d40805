"""The states of a session with a controller, and what leads from one to the next, as one table.

Drawn in docs/architecture.md. Whatever goes wrong, in whatever state, is the event END.
"""

from __future__ import annotations

from enum import Enum


class State(Enum):
    """Of a session."""

    CONNECTING = "connecting"
    UPLOADING = "uploading"
    READY = "ready"
    MOVING = "moving"
    PAUSED = "paused"
    BRAKING = "braking"
    AT_REST = "at rest"
    ENDED = "ended"


class Event(Enum):
    """What changes the state."""

    SENT = "the control script is sent"
    SCRIPT_RUNS = "the control script runs"
    PLAY = "a motion begins"
    DONE = "the motion is complete"
    PAUSE = "the program was paused at the pendant"
    RESUME = "the program was resumed at the pendant"
    END = "the session is to end"
    RESTS = "nothing more is sent"
    VERIFIED = "the controller was looked at"


TRANSITIONS: dict[tuple[State, Event], State] = {
    (State.CONNECTING, Event.SENT): State.UPLOADING,
    (State.UPLOADING, Event.SCRIPT_RUNS): State.READY,
    (State.READY, Event.PLAY): State.MOVING,
    (State.MOVING, Event.PLAY): State.MOVING,
    (State.MOVING, Event.DONE): State.READY,
    (State.MOVING, Event.PAUSE): State.PAUSED,
    (State.PAUSED, Event.RESUME): State.MOVING,
    **{
        (state, Event.END): State.BRAKING
        for state in (State.CONNECTING, State.UPLOADING, State.READY, State.MOVING, State.PAUSED)
    },
    (State.BRAKING, Event.RESTS): State.AT_REST,
    (State.AT_REST, Event.VERIFIED): State.ENDED,
}


def next_state(state: State, event: Event) -> State:
    """The state after an event; an event that has no meaning in a state does not change it."""
    return TRANSITIONS.get((state, event), state)
