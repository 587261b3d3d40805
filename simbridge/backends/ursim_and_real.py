"""The two kinds of UR controllers as backends: URSim's, and a real arm's.

URSim is powered on and unlocked from here. A real arm never is; before it moves, the operator
confirms, or a cell file that matches the controller does.
"""

from __future__ import annotations

from simbridge.backends import preflight
from simbridge.backends.backend import Facts
from simbridge.backends.controller_backend import ControllerBackend
from simbridge.backends.operator_confirmation import confirm_approach, confirm_motion
from simbridge.backends.ursim_startup import power_up, unlock
from simbridge.robot.pose import Array
from simbridge.ur.controller_facts import ControllerFacts


class UrsimBackend(ControllerBackend):
    """URSim, UR's simulator of the controller; it is powered on and unlocked as needed."""

    ursim = True
    default_host = "127.0.0.1"
    approach_joint_speed = 1.0
    approach_tool_speed = 0.4

    def _ensure_ready(self) -> ControllerFacts:
        facts = self._identify()
        preflight.check_not_stopped(facts)
        power_up(facts)
        return super()._ensure_ready()

    def _confirm(self, facts: ControllerFacts, more_facts: Facts, *, cell_confirms: bool) -> None:
        """Nobody is beside it, so nobody has to confirm."""

    def recover(self) -> None:
        self.stop()
        self._identify()
        unlock(self.host)
        super().recover()


class RealBackend(ControllerBackend):
    """A real arm; it moves only after confirmation, and is never powered on or unlocked here."""

    ursim = False
    tool_speed_limit = 0.25
    approach_joint_speed = 0.25
    approach_tool_speed = 0.1

    def _confirm(self, facts: ControllerFacts, more_facts: Facts, *, cell_confirms: bool) -> None:
        confirm_motion(
            facts,
            self.robot,
            self._cell,
            more_facts=more_facts,
            ask=self._ask,
            cell_confirms=cell_confirms,
        )

    def _plan_approach(self, begin: Array, goal: Array) -> Array:
        path = super()._plan_approach(begin, goal)
        confirm_approach(path, self.robot, period=self.period, ask=self._ask)
        return path
