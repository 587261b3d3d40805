"""The robot modes: off, booting, idle, brakes released."""

from __future__ import annotations

from simbridge.emulator.state import ControllerState, RobotMode

BRAKE_RELEASE_TIME = 0.3  # s


class Power:
    """Brings the arm from off to running, as URSim does.

    Args:
        state: Whose `robot_mode` it sets.
        boot_time: From power on to idle, s.
    """

    def __init__(self, state: ControllerState, boot_time: float) -> None:
        self._state, self._boot_time = state, boot_time
        self._left = 0.0
        self._release_wanted = False

    def on(self) -> None:
        """Power on; does nothing when it is on."""
        if self._state.robot_mode == RobotMode.POWER_OFF:
            self._state.robot_mode, self._left = RobotMode.BOOTING, self._boot_time

    def off(self) -> None:
        """Power off, brakes closed."""
        self._state.robot_mode, self._release_wanted = RobotMode.POWER_OFF, False

    def release_brakes(self) -> None:
        """Release the brakes: at once when idle, after booting when it comes earlier; powers on if need be."""
        if self._state.robot_mode == RobotMode.RUNNING:
            return
        self.on()
        self._release_wanted = True
        if self._state.robot_mode == RobotMode.IDLE:
            self._left = BRAKE_RELEASE_TIME

    def tick(self, period: float) -> None:
        """A period later."""
        state = self._state
        self._left -= period
        if self._left > 0.0:
            return
        if state.robot_mode == RobotMode.BOOTING:
            state.robot_mode, self._left = RobotMode.IDLE, BRAKE_RELEASE_TIME
        elif state.robot_mode == RobotMode.IDLE and self._release_wanted:
            state.robot_mode, self._release_wanted = RobotMode.RUNNING, False
