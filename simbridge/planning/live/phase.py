"""The states of a live session while its loop runs, what leads from one to the next, and the orders that it takes.

They refine the states `ready`, `moving` and `paused` of a session with a controller (backends/session_state.py); drawn
in docs/live.md.
"""

from __future__ import annotations

from enum import IntEnum


class Phase(IntEnum):
    """Of a live session. Idle and engaged are at rest; tracking, braking and holding are what moving means."""

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
        return "braking" if self is Phase.DISENGAGING else self.name.lower()

    @property
    def takes_inputs(self) -> bool:
        """Whether an input of the present engagement moves the arm."""
        return self in (Phase.ENGAGED, Phase.TRACKING, Phase.BRAKING, Phase.HOLDING)


class Order(IntEnum):
    """What is asked of a motion besides inputs."""

    NONE = 0
    ENGAGE = 1
    HALT = 2
    DISENGAGE = 3
    PAUSE = 4
    RESUME = 5
    TOO_SLOW = 6
    SPEED = 7


class Fate(IntEnum):
    """What became of an input."""

    NONE = 0
    ACCEPTED = 1
    LATE = 2
    NOT_ENGAGED = 3
    TOO_FAR = 4


class Happening(IntEnum):
    """What changes the phase."""

    ENGAGE = 0
    INPUT = 1
    STOP = 2
    RESTS = 3
    DISENGAGE = 4
    PAUSE = 5
    RESUME = 6
    RESET = 7


TRANSITIONS: dict[tuple[Phase, Happening], Phase] = {
    (Phase.IDLE, Happening.ENGAGE): Phase.ENGAGED,
    (Phase.HOLDING, Happening.ENGAGE): Phase.ENGAGED,
    (Phase.TRACKING, Happening.ENGAGE): Phase.BRAKING,
    (Phase.DISENGAGING, Happening.ENGAGE): Phase.BRAKING,
    (Phase.ENGAGED, Happening.INPUT): Phase.TRACKING,
    (Phase.TRACKING, Happening.STOP): Phase.BRAKING,
    (Phase.BRAKING, Happening.INPUT): Phase.TRACKING,
    (Phase.BRAKING, Happening.RESTS): Phase.HOLDING,
    (Phase.HOLDING, Happening.INPUT): Phase.TRACKING,
    (Phase.ENGAGED, Happening.DISENGAGE): Phase.IDLE,
    (Phase.HOLDING, Happening.DISENGAGE): Phase.IDLE,
    (Phase.TRACKING, Happening.DISENGAGE): Phase.DISENGAGING,
    (Phase.BRAKING, Happening.DISENGAGE): Phase.DISENGAGING,
    (Phase.DISENGAGING, Happening.RESTS): Phase.IDLE,
    **{(phase, Happening.PAUSE): Phase.PAUSED for phase in Phase},
    (Phase.PAUSED, Happening.RESUME): Phase.IDLE,
    **{(phase, Happening.RESET): Phase.IDLE for phase in Phase if phase is not Phase.PAUSED},
}


def next_phase(phase: Phase, happening: Happening) -> Phase:
    """The phase after something happened; what has no meaning in a phase does not change it."""
    return TRANSITIONS.get((phase, happening), phase)
