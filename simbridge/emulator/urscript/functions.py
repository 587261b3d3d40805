"""Built-in functions: a method, its description for the compiler, and the cost of a call.

A built-in function is called as `function(thread, *arguments)` with URScript's values. One that has
to wait is a generator function that yields once for every tick that it waits.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from simbridge.emulator.urscript.signatures import SIGNATURES, Signature, signature_of_method

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

# The generator that a blocking function returns.
Wait = Generator[None, None, Any]

# Cost of a call, in units of a tick's budget: 1 is about 0.1 microseconds.
CALL_COST = 3
# Cost of a call of those functions that take longer.
COSTS = {
    # State of the arm
    "get_actual_joint_positions": 20,
    "get_joint_positions": 20,
    "get_target_joint_positions": 20,
    "get_actual_joint_positions_history": 20,
    "get_actual_joint_speeds": 20,
    "get_target_joint_speeds": 20,
    "get_actual_tcp_pose": 20,
    "get_target_tcp_pose": 20,
    "get_actual_tcp_speed": 20,
    "get_target_tcp_speed": 20,
    "get_tcp_force": 20,
    "get_tcp_offset": 20,
    "get_target_waypoint": 20,
    "force": 20,
    "is_steady": 20,
    "get_rtde_value": 200,
    "get_actual_tool_flange_pose": 200,
    # Moves that do not wait if they blend and have no length
    "movej": 500,
    "optimovej": 500,
    # Settings and modes
    "set_payload": 200,
    "set_target_payload": 200,
    "set_gravity": 200,
    "set_tcp": 500,
    "force_mode": 200,
    "tool_contact": 200,
    "freedrive_mode": 500,
    "freedrive_mode_no_incorrect_payload_check": 500,
    "teach_mode": 500,
    # Poses, rotations and kinematics
    "get_forward_kin": 200,
    "pose_trans": 200,
    "pose_inv": 200,
    "pose_add": 200,
    "pose_sub": 200,
    "pose_dist": 200,
    "point_dist": 200,
    "rpy2rotvec": 200,
    "rotvec2rpy": 200,
    "wrench_trans": 500,
    "interpolate_pose": 500,
    "get_jacobian": 500,
    "get_jacobian_time_derivative": 1000,
    "get_mass_matrix": 500,
    "get_coriolis_and_centrifugal_torques": 500,
    # Numbers and texts
    "integer_to_binary_list": 50,
    "binary_list_to_integer": 50,
    "str_find": 50,
    "to_num": 50,
    "textmsg": 100,
    "popup": 100,
    # Communication
    "eip_reader_factory": 50,
    "eip_writer_factory": 50,
    "socket_open": 1000,
    "rpc_factory": 1000,
}


# The methods that `script_function` marks.
_SCRIPT_FUNCTIONS: set[Callable[..., Any]] = set()


@dataclass(frozen=True)
class Builtin:
    """The description of a built-in function: all that the compiler, in another process, gets.

    Attributes:
        signature: The function's parameters, without the calling thread.
        blocks: Whether it may have to wait: it is a generator function.
        cost: Cost of a call, in units of the budget.
    """

    signature: Signature
    blocks: bool
    cost: int = CALL_COST


def script_function(method: FunctionT) -> FunctionT:
    """Mark a method as URScript's function of the same name."""
    _SCRIPT_FUNCTIONS.add(method)
    return method


class FunctionGroup:
    """A group of built-in functions: the methods that are marked by `script_function`.

    Their parameters are those of the table `signatures.txt`, by name, order and default. Before
    them every method gets the thread that calls it, which may be charged for work and asked whether
    it has ended. What the functions do is described in UR's script manual.
    """

    def table(self) -> Mapping[str, Callable[..., Any]]:
        """Return every function by its name in URScript."""
        methods = inspect.getmembers(self, inspect.ismethod)
        return {name: method for name, method in methods if method.__func__ in _SCRIPT_FUNCTIONS}


def describe_functions(functions: Mapping[str, Callable[..., Any]]) -> dict[str, Builtin]:
    """Return the descriptions of functions, by name.

    A function that is not in the table of signatures has the parameters of its method.
    """
    return {
        name: Builtin(
            signature=SIGNATURES.get(name) or signature_of_method(function),
            blocks=inspect.isgeneratorfunction(function),
            cost=COSTS.get(name, CALL_COST),
        )
        for name, function in functions.items()
    }
