"""URScript's built-in functions that do not move the arm: state, settings, inputs and outputs.

Angles in rad, lengths in m. `FunctionGroup` says where names, parameters and defaults come from.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from simbridge.emulator.arm import frame_of, pose_of
from simbridge.emulator.builtin_kinematics import KinematicsFunctions
from simbridge.emulator.rtde_variables import output_variables
from simbridge.emulator.state import ControllerEvent, ControllerState
from simbridge.emulator.urscript.arguments import (
    as_list,
    as_pose,
    not_negative,
    number,
    numbers,
    text_of,
)
from simbridge.emulator.urscript.functions import Wait, script_function
from simbridge.emulator.urscript.values import Pose, Struct, short, wrap
from simbridge.errors import InvalidParameter

# Digital inputs and outputs, by number: the standard ones, then the configurable ones, then those
# of the tool.
DIGITAL_COUNT = 18
FIRST_CONFIGURABLE = 8
CONFIGURABLE_COUNT = 8
FIRST_TOOL = 16
TOOL_COUNT = 2
TOOL_VOLTAGES = (0, 12, 24)

# Time at zero target speed after which is_steady() is true, s (UR's script manual).
STEADY_TIME_S = 0.5
# Largest component of a payload's inertia, kg m^2 (UR's script manual).
MAX_INERTIA = 133.0
NO_INERTIA = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


def _check_number(value: Any, count: int) -> int:
    """Return the number of a register, an input or an output, 0 to count - 1.

    Raises:
        InvalidParameter: There is no such number.
    """
    if not isinstance(value, int) or not 0 <= value < count:
        raise InvalidParameter("register", short(value), f"a whole number from 0 to {count - 1}")
    return value


# Functions that differ only in what they read or write are made by these.


def _read_state(value_of: Callable[[ControllerState], Any]) -> Callable[..., Any]:
    """Return a function that returns a part of the controller's state.

    Args:
        value_of: Returns the part, as a value of URScript.
    """

    @script_function
    def read(self: ControllerFunctions, _thread: Any) -> Any:
        return value_of(self._state)

    return read


def _read_register(registers_of: Callable[[ControllerState], list[Any]]) -> Callable[..., Any]:
    """Return a function that returns a register.

    Args:
        registers_of: Returns the list of registers.
    """

    @script_function
    def read(self: ControllerFunctions, _thread: Any, address: int) -> Any:
        registers = registers_of(self._state)
        return registers[_check_number(address, len(registers))]

    return read


def _write_register(
    registers_of: Callable[[ControllerState], list[Any]], convert: Callable[[Any], Any]
) -> Callable[..., Any]:
    """Return a function that writes a register.

    Args:
        registers_of: Returns the list of registers.
        convert: Checks the value, and returns it as the register has it.
    """

    @script_function
    def write(self: ControllerFunctions, _thread: Any, address: int, value: Any) -> None:
        registers = registers_of(self._state)
        registers[_check_number(address, len(registers))] = convert(value)

    return write


def _read_bit(
    bits_of: Callable[[ControllerState], int], first: int = 0, count: int = DIGITAL_COUNT
) -> Callable[..., Any]:
    """Return a function that returns a digital input or output.

    Args:
        bits_of: Returns the levels of all inputs or all outputs: bit i is that of number i.
        first: The bit that the function numbers 0.
        count: Number of these inputs or outputs.
    """

    @script_function
    def read(self: ControllerFunctions, _thread: Any, n: int) -> bool:
        bit = first + _check_number(n, count)
        return bool(bits_of(self._state) >> bit & 1)

    return read


def _write_bit(first: int = 0, count: int = DIGITAL_COUNT) -> Callable[..., Any]:
    """Return a function that sets a digital output; see `_read_bit`."""

    @script_function
    def write(self: ControllerFunctions, _thread: Any, n: int, b: bool) -> None:
        bit = 1 << first + _check_number(n, count)
        outputs = self._state.digital_outputs
        self._state.digital_outputs = outputs | bit if b else outputs & ~bit

    return write


def _ask(answer: Any) -> Callable[..., Wait]:
    """Return a function that shows a question and waits until it is closed.

    Args:
        answer: The value that the function returns, since nobody can type one here.
    """

    @script_function
    def ask(self: ControllerFunctions, thread: Any, message: Any) -> Wait:
        yield from self.popup(thread, message, blocking=True)
        return answer

    return ask


def _as_integer_register(value: Any) -> int:
    return wrap(int(number("value", value)))


def _as_float_register(value: Any) -> float:
    return number("value", value)


class ControllerFunctions(KinematicsFunctions):
    """Functions that read or set the state of a controller.

    Those that move its arm are a subclass.
    """

    # What the arm does and is commanded to do

    get_actual_joint_positions = _read_state(lambda state: as_list(state.actual_q))
    get_joint_positions = get_actual_joint_positions
    get_actual_joint_speeds = _read_state(lambda state: as_list(state.actual_qd))
    get_target_joint_positions = _read_state(lambda state: as_list(state.target_q))
    get_target_joint_speeds = _read_state(lambda state: as_list(state.target_qd))
    get_target_joint_accelerations = _read_state(lambda state: as_list(state.target_qdd))
    get_actual_joint_accelerations = get_target_joint_accelerations
    get_actual_tcp_pose = _read_state(lambda state: as_pose(state.actual_tcp_pose))
    tool_pose = get_actual_tcp_pose
    get_target_tcp_pose = _read_state(lambda state: as_pose(state.target_tcp_pose))
    get_target_tcp_pose_along_path = get_target_tcp_pose
    get_actual_tcp_speed = _read_state(lambda state: as_list(state.actual_tcp_speed))
    get_target_tcp_speed = _read_state(lambda state: as_list(state.target_tcp_speed))
    get_target_tcp_speed_along_path = get_target_tcp_speed
    get_joint_torques = _read_state(lambda state: as_list(state.target_moment))
    get_tcp_offset = _read_state(lambda state: as_pose(state.tcp_offset))

    @script_function
    def get_actual_joint_positions_history(self, _thread: Any, steps: int = 0) -> list[float]:
        return as_list(self._controller.record.past_q(int(steps)))

    @script_function
    def get_actual_tool_flange_pose(self, _thread: Any) -> Pose:
        arm = self._controller.arm
        flange = arm.tool(self._state.actual_q) * frame_of(arm.tcp).inverse()
        return as_pose(pose_of(flange))

    @script_function
    def get_target_waypoint(self, _thread: Any) -> Pose:
        goal = self._drive.motion.goal()
        return as_pose(self._state.target_tcp_pose if goal is None else goal)

    get_tcp_force = _read_state(lambda state: as_list(state.tcp_force))

    @script_function
    def force(self, _thread: Any) -> float:
        return float(np.linalg.norm(self._state.tcp_force[:3]))

    @script_function
    def is_steady(self, _thread: Any) -> bool:
        return self._state.still_ticks * self._controller.period >= STEADY_TIME_S

    # Tool centre point, payload, gravity

    @script_function
    def set_tcp(self, _thread: Any, pose: Any, tcp_name: str = "") -> None:
        self._controller.set_tcp(numbers("TCP", pose, 6))

    @script_function
    def set_payload(self, _thread: Any, m: float, cog: Any = None) -> None:
        # Without a centre of gravity, it is at the TCP, and stays there if the TCP changes later.
        state = self._state
        mass = not_negative("payload", m)
        centre = state.tcp_offset[:3] if cog is None else numbers("centre of gravity", cog, 3)

        state.payload = mass
        state.payload_cog = np.array(centre)
        state.payload_inertia = np.zeros(6)
        state.cog_follows_tcp = cog is None

    @script_function
    def set_target_payload(
        self,
        _thread: Any,
        m: float,
        cog: Any,
        inertia: Any = NO_INERTIA,
        transition_time: float = 0.0,
    ) -> None:
        inertia_values = numbers("inertia", inertia, 6, most=MAX_INERTIA)
        if (inertia_values[:3] < 0.0).any():
            needed = "Ixx, Iyy and Izz that are not negative"
            raise InvalidParameter("inertia", short(inertia), needed)

        self.set_payload(_thread, m, numbers("centre of gravity", cog, 3))
        self._state.payload_inertia = inertia_values
        if transition_time:
            self._controller.without_effect("set_target_payload's transition_time")

    # These two leave the other part of the payload as it is, but not its inertia.

    @script_function
    def set_payload_mass(self, _thread: Any, m: float) -> None:
        self._state.payload = not_negative("payload", m)
        self._state.payload_inertia = np.zeros(6)

    @script_function
    def set_payload_cog(self, _thread: Any, CoG: Any) -> None:
        self.set_payload(_thread, self._state.payload, numbers("centre of gravity", CoG, 3))

    get_target_payload = _read_state(lambda state: float(state.payload))
    get_target_payload_cog = _read_state(lambda state: as_list(state.payload_cog))
    get_target_payload_inertia = _read_state(lambda state: as_list(state.payload_inertia))
    get_gravity = _read_state(lambda state: as_list(state.gravity))

    @script_function
    def set_gravity(self, _thread: Any, d: Any) -> None:
        self._state.gravity = numbers("gravity", d, 3)

    # Watchdog, messages, popups, stops

    @script_function
    def rtde_set_watchdog(
        self, _thread: Any, variable_name: str, min_frequency: float, action: str = "pause"
    ) -> None:
        self._controller.watchdog.set(
            str(variable_name),
            number("min_frequency", min_frequency),
            action=str(action),
            now=self._state.timestamp,
        )

    @script_function
    def textmsg(self, thread: Any, s1: Any, s2: Any = "") -> None:
        self._controller.on_event(
            ControllerEvent("text", text_of(thread, s1) + text_of(thread, s2))
        )

    @script_function
    def popup(
        self,
        thread: Any,
        s: Any,
        title: str = "Popup",
        warning: bool = False,
        error: bool = False,
        blocking: bool = False,
    ) -> Wait:
        if title != "Popup" or warning or error:
            self._controller.without_effect("a popup's title and kind")
        self._controller.popup(text_of(thread, s))
        while blocking and self._controller.popup_text:
            yield

    request_boolean_from_primary_client = _ask(False)
    request_integer_from_primary_client = _ask(0)
    request_float_from_primary_client = _ask(0.0)
    request_string_from_primary_client = _ask("")

    @script_function
    def time(self, _thread: Any, mode: int = 0) -> Struct:
        # The system's clock, or the controller's.
        nanoseconds = time.time_ns() if mode else round(1e9 * self._state.timestamp)
        return Struct({"sec": nanoseconds // 10**9, "nanosec": nanoseconds % 10**9})

    @script_function
    def powerdown(self, thread: Any) -> None:
        self._controller.power_off()
        thread.check_ended()

    @script_function
    def protective_stop(self, thread: Any) -> None:
        # The program is paused before its next tick; one that has nothing left to do has ended, as
        # UR's tests expect.
        self._controller.protective_stop("the program asked for it")
        thread.check_ended()

    # General-purpose registers: 48 integers and floats and 128 bits in each direction

    read_input_integer_register = _read_register(lambda state: state.input_int)
    read_input_float_register = _read_register(lambda state: state.input_double)
    read_input_boolean_register = _read_register(lambda state: state.input_bit)
    read_output_integer_register = _read_register(lambda state: state.output_int)
    read_output_float_register = _read_register(lambda state: state.output_double)
    read_output_boolean_register = _read_register(lambda state: state.output_bit)
    write_output_integer_register = _write_register(
        lambda state: state.output_int, _as_integer_register
    )
    write_output_float_register = _write_register(
        lambda state: state.output_double, _as_float_register
    )
    write_output_boolean_register = _write_register(lambda state: state.output_bit, bool)

    # Digital inputs and outputs

    get_digital_in = _read_bit(lambda state: state.digital_inputs)
    get_digital_out = _read_bit(lambda state: state.digital_outputs)
    set_digital_out = _write_bit()

    get_standard_digital_in = get_digital_in
    get_standard_digital_out = get_digital_out
    set_standard_digital_out = set_digital_out

    get_configurable_digital_in = _read_bit(
        lambda state: state.digital_inputs, FIRST_CONFIGURABLE, CONFIGURABLE_COUNT
    )
    get_configurable_digital_out = _read_bit(
        lambda state: state.digital_outputs, FIRST_CONFIGURABLE, CONFIGURABLE_COUNT
    )
    set_configurable_digital_out = _write_bit(FIRST_CONFIGURABLE, CONFIGURABLE_COUNT)

    get_tool_digital_in = _read_bit(lambda state: state.digital_inputs, FIRST_TOOL, TOOL_COUNT)
    get_tool_digital_out = _read_bit(lambda state: state.digital_outputs, FIRST_TOOL, TOOL_COUNT)
    set_tool_digital_out = _write_bit(FIRST_TOOL, TOOL_COUNT)

    # Analog inputs and outputs, in A or V. The tool's inputs follow the two standard ones.

    @script_function
    def get_analog_in(self, _thread: Any, n: int) -> float:
        return self._state.analog_inputs[_check_number(n, 4)]

    get_standard_analog_in = get_analog_in

    @script_function
    def get_tool_analog_in(self, _thread: Any, n: int) -> float:
        return self._state.analog_inputs[2 + _check_number(n, 2)]

    @script_function
    def get_analog_out(self, _thread: Any, n: int) -> float:
        i = _check_number(n, 2)
        is_voltage = self._state.analog_output_types >> i & 1
        # The state has V, or mA.
        unit = 1.0 if is_voltage else 1e-3
        return self._state.analog_outputs[i] * unit

    @script_function
    def set_analog_out(self, _thread: Any, n: int, f: float) -> None:
        self._state.set_analog_output(_check_number(n, 2), not_negative("f", f))

    @script_function
    def set_analog_outputdomain(self, thread: Any, port: int, domain: int) -> None:
        i = _check_number(port, 2)
        types = self._state.analog_output_types
        self._state.analog_output_types = types & ~(1 << i) | bool(domain) << i

    get_standard_analog_out = get_analog_out
    set_standard_analog_out = set_analog_out

    # Tool connector, flags, RTDE

    @script_function
    def set_tool_voltage(self, _thread: Any, voltage: int) -> None:
        if voltage not in TOOL_VOLTAGES:
            raise InvalidParameter("voltage", short(voltage), "0, 12 or 24")
        self._state.tool_voltage = int(voltage)

    @script_function
    def get_flag(self, _thread: Any, n: int) -> bool:
        return self._state.flags[_check_number(n, len(self._state.flags))]

    @script_function
    def set_flag(self, _thread: Any, n: int, b: bool) -> None:
        self._state.flags[_check_number(n, len(self._state.flags))] = bool(b)

    @script_function
    def get_rtde_value(self, _thread: Any, key: str) -> Any:
        variables = output_variables(self._controller.profile)
        if key not in variables:
            allowed = "the name of an RTDE output of this version"
            raise InvalidParameter("key", short(key), allowed)
        return variables[key].access(self._state)
