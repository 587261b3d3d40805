"""Our control script: the program on the controller that servos the arm.

It is commanded as ur_rtde commands its own script: a command's number in the first integer input of
its registers (registers.py), the command's values in the double inputs 0 to 10 from there, and 1 in
the first integer output when the script is ready. It knows three commands: servoj, no command, and
the end. Whichever link sends them, the script is the same.

It arms its watchdog before anything else, ends when nothing arrives for 0.1 s, and carries an
identity by which it is recognized from outside (program_watch.py): the session's random number, and
a counter that advances in each cycle.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence

from simbridge.backends.registers import (
    COUNTER_OFFSET,
    GAIN_OFFSET,
    JOINTS,
    LOOKAHEAD_OFFSET,
    NUMBER_OFFSET,
    READY_OFFSET,
    Registers,
)

# The script ends when nothing arrives for one period of this.
WATCHDOG_FREQUENCY_HZ = 10.0
# Deceleration at the end of the script, rad/s^2: the arm has been braked by then, unless its
# commands were lost.
DECELERATION = 4.0
# Numbers of the commands, as ur_rtde has them.
NO_COMMAND = 0
SERVOJ_COMMAND = 11
STOP_COMMAND = 255
# Registers have 32 bits, one of them for the sign.
MAX_SESSION_NUMBER = 2**31 - 1

SCRIPT_TEMPLATE = """\
def simbridge():
  rtde_set_watchdog("{command}", {watchdog:g}, "stop")
  thread count():
    counted = 0
    while True:
      counted = counted + 1
      write_output_integer_register({counter_output}, counted)
      sync()
    end
  end
  write_output_integer_register({number_output}, {number})
  counting = run count()
{tool}\
  # What is left in the registers is not for this script: it obeys after its client has \
cleared the command.
  obeying = False
  servoing = False
  goal = get_target_joint_positions()
  lookahead = 0.1
  gain = 300
  write_output_integer_register({ready_output}, 1)
  while True:
    command = read_input_integer_register({command_input})
    if command == {no_command}:
      obeying = True
    elif obeying and command == {stop_command}:
      break
    elif obeying and command == {servoj_command}:
      servoing = True
      goal = [{goal}]
      lookahead = read_input_float_register({lookahead_input})
      gain = read_input_float_register({gain_input})
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


def render_control_script(
    number: int,
    period: float,
    *,
    registers: Registers,
    tcp: Sequence[float] | None = None,
    payload: float | None = None,
    payload_cog: Sequence[float] | None = None,
) -> str:
    """Return the script of a session as URScript.

    Args:
        number: The session's number.
        period: The controller's cycle, s.
        registers: The registers through which it is commanded, and by which it is recognized.
        tcp: TCP in tool0 (6,), x y z (m) rx ry rz (rotation vector, rad), to be set; None leaves
            it.
        payload: Mass to be set, kg; None leaves it.
        payload_cog: Centre of gravity of the payload in tool0 (3,), m; None for the origin of
            tool0.
    """
    tool = ""
    if tcp is not None:
        tool += f"  set_tcp(p[{_number_list(tcp)}])\n"
    if payload is not None:
        cog = payload_cog or (0.0, 0.0, 0.0)
        tool += f"  set_payload({payload!r}, [{_number_list(cog)}])\n"

    first = registers.first
    joints = range(first, first + JOINTS)
    goal = ", ".join(f"read_input_float_register({joint})" for joint in joints)
    return SCRIPT_TEMPLATE.format(
        command=registers.command,
        watchdog=WATCHDOG_FREQUENCY_HZ,
        number=number,
        number_output=first + NUMBER_OFFSET,
        counter_output=first + COUNTER_OFFSET,
        ready_output=first + READY_OFFSET,
        command_input=first,
        lookahead_input=first + LOOKAHEAD_OFFSET,
        gain_input=first + GAIN_OFFSET,
        no_command=NO_COMMAND,
        servoj_command=SERVOJ_COMMAND,
        stop_command=STOP_COMMAND,
        tool=tool,
        goal=goal,
        period=period,
        deceleration=DECELERATION,
    )


def draw_session_number() -> int:
    """Return a random number for a session; never 0, which unused registers have."""
    return 1 + secrets.randbelow(MAX_SESSION_NUMBER)


def _number_list(values: Iterable[float]) -> str:
    """Return numbers as a list in URScript, without its brackets."""
    return ", ".join(repr(float(value)) for value in values)
