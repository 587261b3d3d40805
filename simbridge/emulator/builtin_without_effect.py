"""URScript's functions that are accepted without effect, and what they return. The log says so once for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simbridge.emulator.controller import Controller
from simbridge.emulator.urscript.values import Pose

# What the functions return: their names.
WITHOUT_EFFECT: list[tuple[Any, str]] = [
    # Forces, free drive, motion planning
    (None, "force_mode_set_damping screw_driving end_screw_driving"),
    (None, "tool_wrench_limit_set tool_wrench_limit_disable high_holding_torque_enable high_holding_torque_disable"),
    (None, "path_offset_enable path_offset_disable path_offset_set path_offset_set_alpha_filter"),
    (None, "path_offset_set_max_offset motion_version_set jerk_gain_scaling_set set_base_acceleration set_pos"),
    (None, "position_deviation_warning pause_on_error_code reset_revolution_counter"),
    (None, "set_safety_mode_transition_hardness"),
    (0, "get_freedrive_status"),  # of 0 to 2: as wanted
    (0.0, "get_tool_current"),
    (0.005, "force_mode_get_damping"),
    (1.0, "jerk_gain_scaling_get"),
    (1, "motion_version_get"),
    (Pose([0.0] * 6), "path_offset_get"),
    ((0.0, 0.0, 0.0), "get_base_acceleration get_tool_accelerometer_reading"),
    (30.0, "get_controller_temp get_joint_temp get_tool_temp"),
    # Conveyors
    (None, "conveyor_pulse_decode encoder_enable_pulse_decode encoder_enable_set_tick_count encoder_set_tick_count"),
    (None, "set_conveyor_tick_count track_conveyor_linear track_conveyor_circular stop_conveyor_tracking"),
    (None, "frame_tracking_enable frame_tracking_disable"),
    (0, "get_conveyor_tick_count encoder_get_tick_count"),
    # The installation: inputs, outputs, tool connector
    (None, "set_analog_inputrange set_standard_analog_input_domain set_tool_analog_input_domain"),
    (None, "set_input_actions_to_default set_standard_digital_input_action set_configurable_digital_input_action"),
    (None, "set_tool_digital_input_action set_gp_boolean_input_action set_runstate_outputs"),
    (None, "set_runstate_configurable_digital_output_to_value set_runstate_gp_boolean_output_to_value"),
    (None, "set_runstate_standard_analog_output_to_value set_runstate_standard_digital_output_to_value"),
    (None, "set_runstate_tool_digital_output_to_value set_runstate_standard_digital_outputs"),
    (None, "set_runstate_configurable_digital_outputs set_runstate_tool_digital_outputs"),
    (None, "set_runstate_standard_analog_outputs"),
    (None, "set_tool_communication set_tool_output_mode set_tool_digital_output_mode"),
    (None, "set_baselight_off set_baselight_iec set_baselight_solid"),
    (None, "set_euromap_output set_euromap_runstate_dependent_choice"),
    (False, "get_euromap_input get_euromap_output"),
    # Other interfaces
    (None, "modbus_delete_signal modbus_send_custom_command modbus_reset_connection modbus_set_digital_input_action"),
    (None, "modbus_set_runstate_dependent_choice modbus_set_signal_update_frequency modbus_set_signal_watchdog"),
    (None, "modbus_add_signal modbus_add_rw_signal modbus_set_output_register modbus_set_output_signal"),
    (None, "modbus_request_update_signal_value write_port_bit write_port_register"),
    (0, "modbus_get_signal_status modbus_get_error read_port_register"),
    (0.0, "modbus_get_time_since_signal_invalid"),
    (False, "read_port_bit"),
    (None, "interpreter_mode end_interpreter clear_interpreter varmsg"),
]


def functions_without_effect(controller: Controller) -> dict[str, Callable[..., Any]]:
    """The functions by name, as a program of this controller calls them."""
    return {name: _accept(name, result, controller) for result, names in WITHOUT_EFFECT for name in names.split()}


def _accept(name: str, result: Any, controller: Controller) -> Callable[..., Any]:
    def accept(_thread: Any, *_arguments: Any, **_named: Any) -> Any:
        controller.without_effect(name)
        return result

    return accept
