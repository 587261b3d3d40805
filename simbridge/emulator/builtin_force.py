"""URScript's functions for forces: force mode, freedrive, the force sensor, contacts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pinocchio as pin

from simbridge.emulator.arm import frame_of
from simbridge.emulator.builtins import number, numbers
from simbridge.emulator.compliance import ForceMode, Freedrive
from simbridge.emulator.controller import Controller
from simbridge.emulator.motion import JointStop
from simbridge.emulator.urscript.library import FunctionGroup
from simbridge.emulator.urscript.values import short
from simbridge.errors import InvalidParameter
from simbridge.robot.pose import Array

BRAKING = 5.0  # rad/s^2, at the end of freedrive
_ALL = (1, 1, 1, 1, 1, 1)


class ForceFunctions(FunctionGroup):
    """Functions that act on a controller's force mode, freedrive and force sensor.

    Args:
        controller: The one they act on.
        check_mover: Raises a fault if another thread is in a function that moves the arm.
    """

    def __init__(self, controller: Controller, check_mover: Callable[[Any], None]) -> None:
        self._controller, self._check_mover, self._gain = controller, check_mover, 0.5

    def do_force_mode(
        self, _thread: Any, task_frame: Any, selection_vector: Any, wrench: Any, type: int, limits: Any
    ) -> None:
        if type not in (1, 2, 3):
            raise InvalidParameter("force_mode's type", short(type), "1, 2 or 3")
        if type != 2:
            self._controller.without_effect(f"force_mode's type {type} (it is taken for 2)")
        s, drive = self._controller.state, self._controller.drive
        arguments = (
            frame_of(numbers("task_frame", task_frame, 6)), numbers("selection_vector", selection_vector, 6),
            numbers("wrench", wrench, 6), numbers("limits", limits, 6),
        )  # fmt: skip
        if drive.force_mode is None:
            drive.force_mode = ForceMode(self._controller.arm, s.target_q, s.target_qd)
        drive.force_mode.aim(s.target_q, *arguments, self._gain)

    def do_end_force_mode(self, _thread: Any) -> None:
        self._controller.drive.release_force_mode()

    def do_force_mode_set_gain_scaling(self, _thread: Any, scaling: float) -> None:
        if not 0.0 <= number("gain scaling", scaling) <= 2.0:
            raise InvalidParameter("gain scaling", short(scaling), "from 0 to 2")
        self._gain = float(scaling)

    def do_force_mode_get_gain_scaling(self, _thread: Any) -> float:
        return self._gain

    def _freedrive(self, thread: Any, axes: Any, feature: Any) -> None:
        self._check_mover(thread)
        if feature in ("base", "tool"):
            tool = self._controller.arm.tool(self._controller.state.target_q).rotation
            turn = tool if feature == "tool" else np.eye(3)
        else:
            turn = pin.exp3(numbers("feature", feature, 6)[3:])
        controller, free = self._controller, numbers("freeAxes", axes, 6)
        controller.motion = Freedrive(controller.arm, controller.drive.contact, free, turn)

    def do_freedrive_mode(
        self, thread: Any, freeAxes: Any = _ALL, feature: Any = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    ) -> None:
        self._freedrive(thread, freeAxes, feature)

    do_freedrive_mode_no_incorrect_payload_check = do_freedrive_mode

    def do_teach_mode(self, thread: Any) -> None:
        self.do_freedrive_mode(thread)

    def do_end_freedrive_mode(self, _thread: Any) -> None:
        if isinstance(self._controller.motion, Freedrive):
            self._controller.motion = JointStop(BRAKING)

    do_end_teach_mode = do_end_freedrive_mode

    def do_zero_ftsensor(self, _thread: Any) -> None:
        self._controller.drive.contact.zero()

    def do_ft_rtde_input_enable(self, _thread: Any, enable: bool, *sensor: Any) -> None:
        if sensor:
            self._controller.without_effect("the mass and place of an external force sensor")
        self._controller.drive.contact.from_client = bool(enable)

    do_enable_external_ft_sensor = do_ft_rtde_input_enable

    def do_tool_contact(self, _thread: Any, direction: Any = None) -> int:
        towards: Array = np.zeros(6) if direction is None else numbers("direction", direction, 6)
        return self._controller.drive.contact.ticks_since(towards[:3])
