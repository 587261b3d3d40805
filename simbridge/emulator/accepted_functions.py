"""Built-in functions that the emulator accepts without effect.

A program that calls one of them continues; the log mentions each function once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simbridge.emulator.emulated_controller import EmulatedController
from simbridge.emulator.urscript.values import Pose

# The results of the functions, by their names.
RESULTS: dict[str, Any] = {
    # Forces, free drive, motion planning
    "force_mode_set_damping": None,
    "screw_driving": None,
    "end_screw_driving": None,
    "tool_wrench_limit_set": None,
    "tool_wrench_limit_disable": None,
    "high_holding_torque_enable": None,
    "high_holding_torque_disable": None,
    "path_offset_enable": None,
    "path_offset_disable": None,
    "path_offset_set": None,
    "path_offset_set_alpha_filter": None,
    "path_offset_set_max_offset": None,
    "motion_version_set": None,
    "jerk_gain_scaling_set": None,
    "set_base_acceleration": None,
    "set_pos": None,
    "position_deviation_warning": None,
    "pause_on_error_code": None,
    "reset_revolution_counter": None,
    "set_safety_mode_transition_hardness": None,
    # 0, from a range of 0 to 2, says that freedrive moves as wanted.
    "get_freedrive_status": 0,
    "get_tool_current": 0.0,
    "force_mode_get_damping": 0.005,
    "jerk_gain_scaling_get": 1.0,
    "motion_version_get": 1,
    "path_offset_get": Pose([0.0] * 6),
    "get_base_acceleration": (0.0, 0.0, 0.0),
    "get_tool_accelerometer_reading": (0.0, 0.0, 0.0),
    "get_controller_temp": 30.0,
    "get_joint_temp": 30.0,
    "get_tool_temp": 30.0,
    # Conveyors
    "conveyor_pulse_decode": None,
    "encoder_enable_pulse_decode": None,
    "encoder_enable_set_tick_count": None,
    "encoder_set_tick_count": None,
    "set_conveyor_tick_count": None,
    "track_conveyor_linear": None,
    "track_conveyor_circular": None,
    "stop_conveyor_tracking": None,
    "frame_tracking_enable": None,
    "frame_tracking_disable": None,
    "get_conveyor_tick_count": 0,
    "encoder_get_tick_count": 0,
    # The installation: inputs, outputs, tool connector
    "set_analog_inputrange": None,
    "set_standard_analog_input_domain": None,
    "set_tool_analog_input_domain": None,
    "set_input_actions_to_default": None,
    "set_standard_digital_input_action": None,
    "set_configurable_digital_input_action": None,
    "set_tool_digital_input_action": None,
    "set_gp_boolean_input_action": None,
    "set_runstate_outputs": None,
    "set_runstate_configurable_digital_output_to_value": None,
    "set_runstate_gp_boolean_output_to_value": None,
    "set_runstate_standard_analog_output_to_value": None,
    "set_runstate_standard_digital_output_to_value": None,
    "set_runstate_tool_digital_output_to_value": None,
    "set_runstate_standard_digital_outputs": None,
    "set_runstate_configurable_digital_outputs": None,
    "set_runstate_tool_digital_outputs": None,
    "set_runstate_standard_analog_outputs": None,
    "set_tool_communication": None,
    "set_tool_output_mode": None,
    "set_tool_digital_output_mode": None,
    "set_baselight_off": None,
    "set_baselight_iec": None,
    "set_baselight_solid": None,
    "set_euromap_output": None,
    "set_euromap_runstate_dependent_choice": None,
    "get_euromap_input": False,
    "get_euromap_output": False,
    # Other interfaces
    "modbus_delete_signal": None,
    "modbus_send_custom_command": None,
    "modbus_reset_connection": None,
    "modbus_set_digital_input_action": None,
    "modbus_set_runstate_dependent_choice": None,
    "modbus_set_signal_update_frequency": None,
    "modbus_set_signal_watchdog": None,
    "modbus_add_signal": None,
    "modbus_add_rw_signal": None,
    "modbus_set_output_register": None,
    "modbus_set_output_signal": None,
    "modbus_request_update_signal_value": None,
    "write_port_bit": None,
    "write_port_register": None,
    "modbus_get_signal_status": 0,
    "modbus_get_error": 0,
    "read_port_register": 0,
    "modbus_get_time_since_signal_invalid": 0.0,
    "read_port_bit": False,
    "interpreter_mode": None,
    "end_interpreter": None,
    "clear_interpreter": None,
    "varmsg": None,
}


def accepted_functions(controller: EmulatedController) -> dict[str, Callable[..., Any]]:
    """Return these functions, by their names in URScript."""
    return {name: _accept(controller, name, result) for name, result in RESULTS.items()}


def _accept(controller: EmulatedController, name: str, result: Any) -> Callable[..., Any]:
    """Return a function that takes any arguments, and returns a result."""

    def accept(_thread: Any, *_arguments: Any, **_named: Any) -> Any:
        controller.without_effect(name)
        return result

    return accept
