"""The registers through which the servo process and the control script exchange their numbers.

A controller has 48 integer and 48 double registers in each direction. A fieldbus (EtherNet/IP,
PROFINET) claims the lower half, 0 to 23; the upper half, 24 to 47, is for other clients (UR's RTDE
guide). Both halves are used in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from simbridge.planning.link_choices import LinkName, RegisterRange

# Number of joints whose setpoints a command carries.
JOINTS = 6
# Where each number stands, counted from the first register of the half.
LOOKAHEAD_OFFSET = 9
GAIN_OFFSET = 10
READY_OFFSET = 0
NUMBER_OFFSET = 22
COUNTER_OFFSET = 23
# How many integer and double registers ur_rtde claims, as seen on the wire with ur_rtde 1.6.5 (23
# recipes), and what it claims besides.
UR_RTDE_INTEGERS = 8
UR_RTDE_DOUBLES = 18
UR_RTDE_OTHER_INPUTS = ("external_force_torque",)


@dataclass(frozen=True)
class Registers:
    """One half of a controller's registers.

    Attributes:
        first: Number of its first register.
    """

    first: int

    @property
    def command(self) -> str:
        """The integer input that says what to do; the script's watchdog demands its updates."""
        return f"input_int_register_{self.first}"

    @property
    def command_inputs(self) -> tuple[str, ...]:
        """All inputs that the control script reads: the command, six joints, lookahead and gain."""
        offsets = (*range(JOINTS), LOOKAHEAD_OFFSET, GAIN_OFFSET)
        doubles = [f"input_double_register_{self.first + offset}" for offset in offsets]
        return (self.command, *doubles)

    @property
    def number_output(self) -> str:
        """The integer output with the session's number."""
        return f"output_int_register_{self.first + NUMBER_OFFSET}"

    @property
    def counter_output(self) -> str:
        """The integer output with the control script's counter."""
        return f"output_int_register_{self.first + COUNTER_OFFSET}"

    def inputs_of(self, link: LinkName) -> tuple[str, ...]:
        """Return the inputs that a link claims."""
        if link == "rtde":
            return self.command_inputs
        integers = [f"input_int_register_{self.first + i}" for i in range(UR_RTDE_INTEGERS)]
        doubles = [f"input_double_register_{self.first + i}" for i in range(UR_RTDE_DOUBLES)]
        return (*integers, *doubles, *UR_RTDE_OTHER_INPUTS)


REGISTERS: Mapping[RegisterRange, Registers] = {
    "lower": Registers(0),
    "upper": Registers(24),
}
"""The registers of each choice of `--registers`."""
