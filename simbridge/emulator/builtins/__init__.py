"""URScript's built-in functions: what a program may ask of the controller.

Each is called as `function(thread, *arguments)`; one that blocks is a generator that yields once a tick until it is
done. Angles in rad, lengths in m. Defaults are URScript's own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from simbridge.emulator.builtins.kinematics import KinematicsFunctions
from simbridge.emulator.builtins.motion import MotionFunctions
from simbridge.emulator.builtins.poses import PoseFunctions
from simbridge.emulator.builtins.program import ProgramFunctions
from simbridge.emulator.builtins.registers import RegisterFunctions
from simbridge.emulator.builtins.settings import SettingFunctions
from simbridge.emulator.builtins.state import StateFunctions

if TYPE_CHECKING:
    from simbridge.emulator.controller import Controller

_GROUPS = (
    MotionFunctions,
    KinematicsFunctions,
    PoseFunctions,
    StateFunctions,
    SettingFunctions,
    RegisterFunctions,
    ProgramFunctions,
)


def builtin_functions(controller: Controller) -> dict[str, Callable[..., Any]]:
    """Every function by its name in URScript, over one controller."""
    return {name: function for group in _GROUPS for name, function in group(controller).table().items()}
