"""The phases of a live session, and what changes them; drawn in docs/live.md.

They refine the states `ready`, `moving` and `paused` of a session with a controller, which are in
backends/session_state.py.
"""

from __future__ import annotations

from enum import Enum, IntEnum


class LivePhase(IntEnum):
    """The phase of a live session.

    Idle and engaged are at rest; tracking, braking and holding are what moving means.
    """

    IDLE = 0
    ENGAGED = 1
    TRACKING = 2
    BRAKING = 3
    HOLDING = 4
    PAUSED = 5
    DISENGAGING = 6

    @property
    def shown(self) -> str:
        """Its name, as in `session.status.state`."""
        return "braking" if self is LivePhase.DISENGAGING else self.name.lower()

    @property
    def takes_inputs(self) -> bool:
        """True in a phase in which an input of the present engagement moves the arm."""
        return self in (
            LivePhase.ENGAGED,
            LivePhase.TRACKING,
            LivePhase.BRAKING,
            LivePhase.HOLDING,
        )


class Order(IntEnum):
    """An order to a live motion: all that is asked of it besides inputs."""

    NONE = 0
    ENGAGE = 1
    HALT = 2
    DISENGAGE = 3
    PAUSE = 4
    RESUME = 5
    TOO_SLOW = 6
    SPEED = 7


# What changes the phase.
Happening = Enum("Happening", "ENGAGE INPUT STOP RESTS DISENGAGE PAUSE RESUME RESET")

# Happening -> the phases that it changes, and what they become.
TRANSITIONS: dict[Happening, dict[LivePhase, LivePhase]] = {
    Happening.ENGAGE: {
        LivePhase.IDLE: LivePhase.ENGAGED,
        LivePhase.HOLDING: LivePhase.ENGAGED,
        LivePhase.TRACKING: LivePhase.BRAKING,
        LivePhase.DISENGAGING: LivePhase.BRAKING,
    },
    Happening.INPUT: {
        LivePhase.ENGAGED: LivePhase.TRACKING,
        LivePhase.BRAKING: LivePhase.TRACKING,
        LivePhase.HOLDING: LivePhase.TRACKING,
    },
    Happening.STOP: {
        LivePhase.TRACKING: LivePhase.BRAKING,
    },
    Happening.RESTS: {
        LivePhase.BRAKING: LivePhase.HOLDING,
        LivePhase.DISENGAGING: LivePhase.IDLE,
    },
    Happening.DISENGAGE: {
        LivePhase.ENGAGED: LivePhase.IDLE,
        LivePhase.HOLDING: LivePhase.IDLE,
        LivePhase.TRACKING: LivePhase.DISENGAGING,
        LivePhase.BRAKING: LivePhase.DISENGAGING,
    },
    Happening.PAUSE: dict.fromkeys(LivePhase, LivePhase.PAUSED),
    Happening.RESUME: {
        LivePhase.PAUSED: LivePhase.IDLE,
    },
    # A paused program stays paused, wherever its arm is put.
    Happening.RESET: dict.fromkeys(set(LivePhase) - {LivePhase.PAUSED}, LivePhase.IDLE),
}


def next_phase(phase: LivePhase, happening: Happening) -> LivePhase:
    """Return the phase after something happened; what has no meaning in a phase changes nothing."""
    return TRANSITIONS[happening].get(phase, phase)
