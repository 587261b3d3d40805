"""Our control script: the program on the controller that servos the arm, and how to recognize it from outside.

ur_rtde uploads it in place of its own (`setCustomScriptFile`), and commands it as it commands its own: a command's number
in input_int_register_0, its values in input_double_register_0 to 10, and 1 in output_int_register_0 when the script is
ready. It knows three commands: servoj, no command, and the end.

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
NUMBER, COUNTER = "output_int_register_22", "output_int_register_23"
# The counter of a running script advances within this time, s of the controller's clock.
_ADVANCES = 0.05

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
    """The script as URScript.

    Args:
        number: The session's.
        period: The controller's cycle, s.
        tcp: TCP in tool0, x y z (m) rx ry rz (rotation vector, rad), to be set; None leaves it.
        payload: Mass to be set, kg; None leaves it.
        payload_cog: Its centre of gravity in tool0, m.
    """
    tool = "" if tcp is None else f"  set_tcp(p[{_numbers(tcp)}])\n"
    if payload is not None:
        tool += f"  set_payload({payload!r}, [{_numbers(payload_cog or (0.0, 0.0, 0.0))}])\n"
    goal = ", ".join(f"read_input_float_register({i})" for i in range(6))
    return _SCRIPT.format(
        watchdog=WATCHDOG_FREQUENCY, number=number, tool=tool, goal=goal, period=period, deceleration=DECELERATION
    )


def _numbers(values: Iterable[float]) -> str:
    return ", ".join(repr(float(value)) for value in values)


def random_number() -> int:
    """A session's number: never 0, which unused registers have."""
    return 1 + secrets.randbelow(2**31 - 1)


class Program(Enum):
    """Whose program a controller runs, or has paused."""

    NONE = "none"
    OURS = "ours"
    OTHER = "another"
    UNKNOWN = "not known yet"


class ProgramWatch:
    """Follows a controller's states and knows whether its program is ours.

    Args:
        number: The number of our script.
        uploaded: Whether our script was uploaded to a controller without a program, and has not been seen yet: a program
            that is paused then is ours.

    Attributes:
        program: Whose program it was in the newest state.
    """

    def __init__(self, number: int, *, uploaded: bool = False) -> None:
        self._number, self._uploaded = number, uploaded
        self._counter: int | None = None
        self._since = 0.0
        self.program = Program.UNKNOWN

    def follow(self, state: Mapping[str, Any]) -> Program:
        """Take the next state; whose program it shows."""
        runtime, now, counter = state["runtime_state"], state["timestamp"], state[COUNTER]
        advanced = counter != self._counter and self._counter is not None
        if advanced or self._counter is None:
            self._since = now
        self._counter = counter
        if runtime not in PROGRAM_RUNS:
            # Between the upload and its first cycle there is no program yet.
            self.program = Program.NONE
        elif runtime == RuntimeState.PLAYING:
            ours = state[NUMBER] == self._number
            if ours and advanced:
                self.program, self._uploaded = Program.OURS, False
            elif now - self._since > _ADVANCES and not self._uploaded:
                self.program = Program.OTHER
            elif self.program is Program.NONE or not ours:
                self.program = Program.UNKNOWN
        elif self.program in (Program.NONE, Program.UNKNOWN):
            # Paused before it was seen to play.
            known = self._uploaded or state[NUMBER] == self._number
            self.program = Program.OURS if known else Program.OTHER
        return self.program
