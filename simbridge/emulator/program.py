"""Makes a program of a script, which is compiled in another process, so that no tick waits for the compiler.

`check_files` is `simbridge emulate --check`: whether files compile, and which functions they call that nobody defines.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from simbridge.emulator.builtin_motion import MotionFunctions
from simbridge.emulator.emulated_controller import Controller
from simbridge.emulator.errors import RuntimeFault, ScriptSyntaxError
from simbridge.emulator.handles import HandleFunctions
from simbridge.emulator.scripts import is_secondary
from simbridge.emulator.secondary import without_blocking
from simbridge.emulator.sockets import SocketFunctions
from simbridge.emulator.state import profile
from simbridge.emulator.urscript.compilation import Compilation, Compiler
from simbridge.emulator.urscript.compiler import Code, compile_script
from simbridge.emulator.urscript.functions import Builtin
from simbridge.emulator.urscript.library import describe
from simbridge.emulator.urscript.runtime import Interpreter
from simbridge.emulator.urscript.values import Pose
from simbridge.errors import InputFileError
from simbridge.robot.load import load_robot

COMPILER = Compiler()
# The built-in functions as the compiler knows them, by whether the program is a secondary one; the same for every
# controller.
_DESCRIPTIONS: dict[bool, Mapping[str, Builtin]] = {}
_SHOWN = 200  # characters of a line that cannot be compiled
# Functions that are accepted without effect, and what they return; the log says so once for each.
WITHOUT_EFFECT: list[tuple[Any, str]] = [
    # Forces, free drive, motion planning
    (None, "force_mode_set_damping screw_driving end_screw_driving"),
    (
        None,
        "tool_wrench_limit_set tool_wrench_limit_disable high_holding_torque_enable high_holding_torque_disable",
    ),
    (None, "path_offset_enable path_offset_disable path_offset_set path_offset_set_alpha_filter"),
    (
        None,
        "path_offset_set_max_offset motion_version_set jerk_gain_scaling_set set_base_acceleration set_pos",
    ),
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
    (
        None,
        "conveyor_pulse_decode encoder_enable_pulse_decode encoder_enable_set_tick_count encoder_set_tick_count",
    ),
    (
        None,
        "set_conveyor_tick_count track_conveyor_linear track_conveyor_circular stop_conveyor_tracking",
    ),
    (None, "frame_tracking_enable frame_tracking_disable"),
    (0, "get_conveyor_tick_count encoder_get_tick_count"),
    # The installation: inputs, outputs, tool connector
    (None, "set_analog_inputrange set_standard_analog_input_domain set_tool_analog_input_domain"),
    (
        None,
        "set_input_actions_to_default set_standard_digital_input_action set_configurable_digital_input_action",
    ),
    (None, "set_tool_digital_input_action set_gp_boolean_input_action set_runstate_outputs"),
    (
        None,
        "set_runstate_configurable_digital_output_to_value set_runstate_gp_boolean_output_to_value",
    ),
    (
        None,
        "set_runstate_standard_analog_output_to_value set_runstate_standard_digital_output_to_value",
    ),
    (None, "set_runstate_tool_digital_output_to_value set_runstate_standard_digital_outputs"),
    (None, "set_runstate_configurable_digital_outputs set_runstate_tool_digital_outputs"),
    (None, "set_runstate_standard_analog_outputs"),
    (None, "set_tool_communication set_tool_output_mode set_tool_digital_output_mode"),
    (None, "set_baselight_off set_baselight_iec set_baselight_solid"),
    (None, "set_euromap_output set_euromap_runstate_dependent_choice"),
    (False, "get_euromap_input get_euromap_output"),
    # Other interfaces
    (
        None,
        "modbus_delete_signal modbus_send_custom_command modbus_reset_connection modbus_set_digital_input_action",
    ),
    (
        None,
        "modbus_set_runstate_dependent_choice modbus_set_signal_update_frequency modbus_set_signal_watchdog",
    ),
    (
        None,
        "modbus_add_signal modbus_add_rw_signal modbus_set_output_register modbus_set_output_signal",
    ),
    (None, "modbus_request_update_signal_value write_port_bit write_port_register"),
    (0, "modbus_get_signal_status modbus_get_error read_port_register"),
    (0.0, "modbus_get_time_since_signal_invalid"),
    (False, "read_port_bit"),
    (None, "interpreter_mode end_interpreter clear_interpreter varmsg"),
]


def builtin_functions(controller: Controller) -> dict[str, Callable[..., Any]]:
    """Every built-in function by its name in URScript, except those of the library and of sockets."""
    found = {
        name: _accept(controller, name, result)
        for result, names in WITHOUT_EFFECT
        for name in names.split()
    }
    for group in (HandleFunctions(), MotionFunctions(controller)):
        found |= group.table()
    return found


def _accept(controller: Controller, name: str, result: Any) -> Callable[..., Any]:
    def accept(_thread: Any, *_arguments: Any, **_named: Any) -> Any:
        controller.without_effect(name)
        return result

    return accept


def known_functions() -> Mapping[str, Builtin]:
    """Every built-in function as the compiler knows it."""
    software = profile("5.25")
    controller = Controller(load_robot("ur10e"), software, ScriptProgram)
    return describe({**builtin_functions(controller), **SocketFunctions(software.period).table()})


class ScriptProgram:
    """A URScript program: it is compiled in another process, then advances with every tick.

    Attributes:
        running: Until it ends, faults or is stopped; also while it is being compiled.
        ready: Whether it has been compiled.
        compilation: Finished when the program can run, or was refused.
    """

    def __init__(
        self, controller: Controller, source: str, on_fault: Callable[[str, int, int], None]
    ) -> None:
        self.running, self.ready = True, False
        self._sockets = SocketFunctions(controller.period, controller.own_ports)
        functions = {**builtin_functions(controller), **self._sockets.table()}
        self._source, self._secondary = source, is_secondary(source)
        self._functions = without_blocking(functions) if self._secondary else functions
        if self._secondary not in _DESCRIPTIONS:
            _DESCRIPTIONS[self._secondary] = describe(self._functions)
        self._on_fault = on_fault
        self._interpreter: Interpreter | None = None
        self._syntax_error: ScriptSyntaxError | None = None
        self.compilation = COMPILER.compile(source, _DESCRIPTIONS[self._secondary], self._compiled)

    def _compiled(self, code: Code | None, error: ScriptSyntaxError | None) -> None:
        if code is not None:
            self._interpreter = Interpreter(code, self._functions, self._fault)
            self.ready = True
        self._syntax_error = error

    def _fault(self, fault: RuntimeFault) -> None:
        self._on_fault(
            ("SECONDARY_PROGRAM_EXCEPTION_XXX" if self._secondary else "") + fault.reason,
            fault.line,
            0,
        )

    def _refuse(self, error: ScriptSyntaxError) -> None:
        """Report why it does not compile, as controllers do (docs/emulator.md); a syntax error with its reason."""
        if error.unknown:
            text = f"compile_error_name_not_found:{error.unknown}:"
        else:
            line = "".join(self._source.split("\n")[error.line - 1 : error.line])[:_SHOWN]
            text = f"syntax_error_on_line:{error.line}:{line}: {error}"
        self._on_fault(text, error.line, error.column)

    @property
    def line(self) -> int:
        """The line that the main program is at; 0 while it is being compiled."""
        return 0 if self._interpreter is None else self._interpreter.line

    def tick(self) -> None:
        if self.compilation.fault is not None:
            raise self.compilation.fault
        if self._syntax_error is not None:
            self._refuse(self._syntax_error)
            self._syntax_error, self.running = None, False
        elif self._interpreter is not None and self.running:
            self._interpreter.tick()
            if not self._interpreter.running:
                self.stop()

    def stop(self) -> None:
        self.running = False
        self.compilation.cancel()
        if self._interpreter is not None:
            self._interpreter.stop()
        self._sockets.close()


def warm_up() -> Compilation:
    """Start the compiler's process, so that the first program need not wait for it: it is ready when this is."""
    return COMPILER.compile("", {}, lambda code, error: None)


def check_files(files: tuple[str, ...], known: Mapping[str, Builtin], as_json: bool) -> int:
    """Print what each file's check finds.

    Returns:
        The exit status: 1 if a file does not compile, or calls a function that neither it nor the controller has.

    Raises:
        InputFileError: A file cannot be read.
    """
    found = {file: check_source(_read(file), known) for file in files}
    if as_json:
        print(json.dumps(found, indent=2))
    else:
        for file, result in found.items():
            print("\n".join(_lines(file, result)))
    return int(any(result["error"] or result["unknown"] for result in found.values()))


def check_source(source: str, known: Mapping[str, Builtin]) -> dict[str, Any]:
    """Whether a script compiles: {"compiles", "error": None or {"line", "column", "message"}, "unknown": names,
    "calls": {name: {"line", "column"}}}, the last with the first call of each unknown function."""
    try:
        found = compile_script(source, known).unknown
    except ScriptSyntaxError as error:
        place = {"line": error.line, "column": error.column, "message": error.reason}
        return {"compiles": False, "error": place, "unknown": [], "calls": {}}
    calls = {name: {"line": line, "column": column} for name, (line, column) in found.items()}
    return {"compiles": True, "error": None, "unknown": sorted(calls), "calls": calls}


def _lines(file: str, result: dict[str, Any]) -> Iterator[str]:
    error = result["error"]
    if error:
        yield f"{file}:{error['line']}:{error['column']}: {error['message']}"
    for name, place in result["calls"].items():
        yield f"{file}:{place['line']}:{place['column']}: there is no function '{name}'"
    if not error and not result["unknown"]:
        yield f"{file}: compiles"


def _read(file: str) -> str:
    try:
        return Path(file).read_bytes().decode("utf-8-sig", errors="replace")
    except OSError as error:
        raise InputFileError(file, f"it cannot be read: {error.strerror}") from None
