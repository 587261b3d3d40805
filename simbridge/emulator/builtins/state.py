"""URScript's functions that ask for the arm's state."""

from __future__ import annotations

from typing import Any

from simbridge.emulator.arm import frame_of, pose_of
from simbridge.emulator.builtins.arguments import as_list, as_pose
from simbridge.emulator.builtins.functions import Functions
from simbridge.emulator.urscript.values import Pose


class StateFunctions(Functions):
    """What the arm does and is asked to do."""

    def do_get_actual_joint_positions(self, _thread: Any) -> list[float]:
        return as_list(self._state.actual_q)

    def do_get_actual_joint_positions_history(self, _thread: Any, steps: int = 0) -> list[float]:
        ticks = self._controller.record.ticks
        back = min(max(int(steps), 0), len(ticks) - 1)
        return as_list(ticks[-1 - back][3]) if ticks else as_list(self._state.actual_q)

    def do_get_actual_joint_speeds(self, _thread: Any) -> list[float]:
        return as_list(self._state.actual_qd)

    def do_get_target_joint_positions(self, _thread: Any) -> list[float]:
        return as_list(self._state.target_q)

    def do_get_target_joint_speeds(self, _thread: Any) -> list[float]:
        return as_list(self._state.target_qd)

    def do_get_target_joint_accelerations(self, _thread: Any) -> list[float]:
        return as_list(self._state.target_qdd)

    def do_get_actual_tcp_pose(self, _thread: Any) -> Pose:
        return as_pose(self._state.actual_tcp_pose)

    def do_get_target_tcp_pose(self, _thread: Any) -> Pose:
        return as_pose(self._state.target_tcp_pose)

    def do_get_actual_tcp_speed(self, _thread: Any) -> list[float]:
        return as_list(self._state.actual_tcp_speed)

    def do_get_target_tcp_speed(self, _thread: Any) -> list[float]:
        return as_list(self._state.target_tcp_speed)

    def do_get_actual_tool_flange_pose(self, _thread: Any) -> Pose:
        arm = self._controller.arm
        return as_pose(pose_of(arm.tool(self._state.actual_q) * frame_of(arm.tcp).inverse()))

    def do_get_target_waypoint(self, _thread: Any) -> Pose:
        goal = self._controller.motion.goal()
        return as_pose(self._state.target_tcp_pose) if goal is None else as_pose(goal)

    def do_get_joint_torques(self, _thread: Any) -> list[float]:
        return as_list(self._state.target_moment)

    def do_get_tcp_force(self, _thread: Any) -> list[float]:
        return [0.0] * 6

    def do_get_tcp_offset(self, _thread: Any) -> Pose:
        return as_pose(self._state.tcp_offset)

    def do_is_steady(self, _thread: Any) -> bool:
        return not self._state.target_qd.any()

    def do_tool_contact(self, _thread: Any, direction: Any = None) -> int:
        # Nothing is there to be touched.
        return 0
