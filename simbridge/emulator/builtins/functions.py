"""What the groups of built-in functions have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pinocchio as pin

from simbridge.emulator.arm import frame_of
from simbridge.emulator.builtins.arguments import numbers
from simbridge.emulator.urscript.values import Pose
from simbridge.robot.pose import Array

if TYPE_CHECKING:
    from simbridge.emulator.controller import Controller


class Functions:
    """A group of built-in functions, over one controller: the methods whose names begin with `do_`.

    Args:
        controller: On which they act.
    """

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._state = controller.state

    def table(self) -> Mapping[str, Callable[..., Any]]:
        """Every function by its name in URScript."""
        return {name.removeprefix("do_"): getattr(self, name) for name in dir(self) if name.startswith("do_")}

    def _joints(self, target: Any) -> Array:
        """Joint positions (6,) of a target given as joints or as a pose."""
        if isinstance(target, Pose):
            return self._controller.arm.any_joints(self._frame("pose", target), self._state.target_q)
        return numbers("joint positions", target, 6)

    def _frame(self, what: str, target: Any) -> pin.SE3:
        if not isinstance(target, Pose):
            return self._controller.arm.tool(numbers(what, target, 6))
        return frame_of(numbers(what, target, 6))
