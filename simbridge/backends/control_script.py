"""Our control script: the program on the controller that servos the arm.

ur_rtde uploads it in place of its own (`setCustomScriptFile`), and commands it as it commands its
own: a command's number in input_int_register_0, its values in input_double_register_0 to 10, and 1
in output_int_register_0 when the script is ready. It knows three commands: servoj, no command, and
the end.

It arms its watchdog before anything else, ends when nothing arrives for 0.1 s, and carries an
identity by which it is recognized from outside (program_watch.py): the session's random number, and
a counter that advances in each cycle.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence

# The script ends when nothing arrives for one period of this.
WATCHDOG_FREQUENCY_HZ = 10.0
# Deceleration at the end of the script, rad/s^2: the arm has been braked by then, unless its
# commands were lost.
DECELERATION = 4.0
# The RTDE outputs with the session's number and the script's counter: registers that ur_rtde does
# not use. The script writes them by their numbers.
NUMBER_OUTPUT = "output_int_register_22"
COUNTER_OUTPUT = "output_int_register_23"
# Registers have 32 bits, one of them for the sign.
MAX_SESSION_NUMBER = 2**31 - 1
# Number of joints whose setpoints ur_rtde's commands carry.
JOINTS = 6

SCRIPT_TEMPLATE = """\
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
{tool}\
  # What is left in the registers is not for this script: it obeys after its client has \
cleared the command.
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


def render_control_script(
    number: int,
    period: float,
    *,
    tcp: Sequence[float] | None = None,
    payload: float | None = None,
    payload_cog: Sequence[float] | None = None,
) -> str:
    """Return the script of a session as URScript.

    Args:
        number: The session's number.
        period: The controller's cycle, s.
        tcp: TCP in tool0 (6,), x y z (m) rx ry rz (rotation vector, rad), to be set; None leaves
            it.
        payload: Mass to be set, kg; None leaves it.
        payload_cog: Its centre of gravity in tool0 (3,), m; None for its origin.
    """
    tool = ""
    if tcp is not None:
        tool += f"  set_tcp(p[{_number_list(tcp)}])\n"
    if payload is not None:
        cog = payload_cog or (0.0, 0.0, 0.0)
        tool += f"  set_payload({payload!r}, [{_number_list(cog)}])\n"

    goal = ", ".join(f"read_input_float_register({joint})" for joint in range(JOINTS))
    return SCRIPT_TEMPLATE.format(
        watchdog=WATCHDOG_FREQUENCY_HZ,
        number=number,
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
