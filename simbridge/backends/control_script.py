"""Our control script: the program on the controller that servos the arm, and how to recognize it from outside.

ur_rtde uploads it in place of its own (`setCustomScriptFile`), and commands it as it commands its own: a command's
number in input_int_register_0, its values in input_double_register_0 to 10, and 1 in output_int_register_0 when the
script is ready. It knows three commands: servoj, no command, and the end.

It arms its watchdog before anything else, ends when nothing arrives for 0.1 s, and carries an identity: the session's
random number, and a counter that advances in each cycle. Registers keep their values after a program has ended, so the
number alone proves nothing: of a program that plays, the counter must advance too.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any

from simbridge.ur.tables import PROGRAM_RUNS, RuntimeState

# The script ends when nothing arrives for one period of this.
WATCHDOG_FREQUENCY = 10.0  # Hz
# Deceleration at the end of the script, rad/s^2: the arm has been braked by then, unless its commands were lost.
DECELERATION = 4.0
# Output registers that ur_rtde does not use.
NUMBER_OUTPUT, COUNTER_OUTPUT = "output_int_register_22", "output_int_register_23"
# The counter of a running script advances within this time, s of the controller's clock.
_ADVANCES = 0.05
# One that is paused has counted in one of its last states before, so many at the most being late.
_LATE = 2
# A script that plays names itself in its second statement, within this time, s.
_NAMES_ITSELF = 0.1
# A script that was uploaded has carried its number for this long at the latest, s.
_STARTS = 5.0

_SCRIPT = """\
def simbridge():
  rtde_set_watchdog("input_int_register_0", {watchdog:g}, "stop")
  thread count():
    counted = 0
    while True:
      counted = counted + 1
      write_output_integer_register(23, counted)
      sync()
    end
  end
  write_output_integer_register(22, {number})
  counting = run count()
{tool}  # What is left in the registers is not for this script: it obeys after its client has cleared the command.
  obeying = False
  servoing = False
  goal = get_target_joint_positions()
  lookahead = 0.1
  gain = 300
  write_output_integer_register(0, 1)
  while True:
    command = read_input_integer_register(0)
    if command == 0:
      obeying = True
    elif obeying and command == 255:
      break
    elif obeying and command == 11:
      servoing = True
      goal = [{goal}]
      lookahead = read_input_float_register(9)
      gain = read_input_float_register(10)
    end
    if servoing:
      servoj(goal, t={period:g}, lookahead_time=lookahead, gain=gain)
    else:
      sync()
    end
  end
  stopj({deceleration:g})
end
"""


def control_script(
    number: int,
    period: float,
    tcp: Sequence[float] | None = None,
    payload: float | None = None,
    payload_cog: Sequence[float] | None = None,
) -> str:
    """The script of a session, by its number and the controller's cycle (s), as URScript.

    Args:
        tcp: TCP in tool0, x y z (m) rx ry rz (rotation vector, rad), to be set; None leaves it.
        payload: Mass to be set, kg; None leaves it.
        payload_cog: Its centre of gravity in tool0, m.
    """
    tool = "" if tcp is None else f"  set_tcp(p[{_numbers(tcp)}])\n"
    if payload is not None:
        tool += f"  set_payload({payload!r}, [{_numbers(payload_cog or (0.0, 0.0, 0.0))}])\n"
    goal = ", ".join(f"read_input_float_register({i})" for i in range(6))
    return _SCRIPT.format(
        watchdog=WATCHDOG_FREQUENCY,
        number=number,
        tool=tool,
        goal=goal,
        period=period,
        deceleration=DECELERATION,
    )


def _numbers(values: Iterable[float]) -> str:
    return ", ".join(repr(float(value)) for value in values)


def draw_session_number() -> int:
    """A session's number: never 0, which unused registers have."""
    return 1 + secrets.randbelow(2**31 - 1)


class ProgramOwner(Enum):
    """Whose program a controller runs, or has paused."""

    NONE = "none"
    OURS = "ours"
    OTHER = "another"
    UNKNOWN = "not known yet"


class ProgramWatch:
    """Follows a controller's states and knows whose `program` it was in the newest one.

    Args:
        number: The number of our script.
        uploaded: Whether our script was sent to a controller without a program: it may not have begun.
        program: Whose program it was before.
    """

    def __init__(
        self, number: int, *, uploaded: bool = False, program: ProgramOwner = ProgramOwner.UNKNOWN
    ) -> None:
        self._number, self._uploaded = number, uploaded
        self._counter: int | None = None
        # For how many states a program has played without a count; since when; and since when with another number.
        self._uncounted = 0
        self._still = self._strange = 0.0
        # When a program first played with another number after the last one had ended.
        self._foreign: float | None = None
        self.program = program

    def follow(self, state: Mapping[str, Any]) -> ProgramOwner:
        """Take the next state; whose program it shows."""
        now, named = state["timestamp"], state[NUMBER_OUTPUT] == self._number
        playing = state["runtime_state"] == RuntimeState.PLAYING
        counted = self._counter is not None and state[COUNTER_OUTPUT] != self._counter
        if counted or self._counter is None or not playing:
            self._still = now
        if named or self._counter is None or not playing:
            self._strange = now
        self._counter = state[COUNTER_OUTPUT]
        if state["runtime_state"] not in PROGRAM_RUNS:
            self.program, self._foreign = ProgramOwner.NONE, None
        elif playing:
            self._uncounted = 0 if counted else self._uncounted + 1
            self._foreign = None if named else self._foreign or now
            self.program = self._playing(now, named, counted)
        else:
            self.program = self._paused(now, named)
            self._uncounted = 0
        return self.program

    def _playing(self, now: float, named: bool, counted: bool) -> ProgramOwner:
        if named and counted:
            self._uploaded = False
            return ProgramOwner.OURS
        if named:
            before = ProgramOwner.UNKNOWN if self.program is ProgramOwner.NONE else self.program
            return ProgramOwner.OTHER if now - self._still > _ADVANCES else before
        # Ours may not have reached its first statement yet.
        waits = self._uploaded and now - self._strange < _STARTS
        return ProgramOwner.UNKNOWN if waits else ProgramOwner.OTHER

    def _paused(self, now: float, named: bool) -> ProgramOwner:
        """Whose program is paused: ours if it counted until then, or was sent and has hardly begun."""
        if self.program is ProgramOwner.OURS and (
            self._uncounted > _LATE or not (named or self._uploaded)
        ):
            # Another may have taken its place, too late to show it.
            return ProgramOwner.UNKNOWN
        if self.program in (ProgramOwner.NONE, ProgramOwner.UNKNOWN):
            begins = self._foreign is None or now - self._foreign < _NAMES_ITSELF
            return ProgramOwner.OURS if self._uploaded and begins else ProgramOwner.UNKNOWN
        return self.program
