"""What the servers may ask of the controller. The servers know this interface only."""

from __future__ import annotations

from typing import Protocol

from simbridge.emulator.profile import Profile
from simbridge.emulator.state import ControllerState
from simbridge.robot.robot import Robot


class Machine(Protocol):
    """A controller as its servers see it. Every method is called with the controller's lock held, and returns at once.

    Attributes:
        state: As of the last tick.
        profile: Which software.
        robot: Which arm.
        model_name: As the dashboard's `get robot model` answers: "UR10".
        robot_type: As the primary interface's configuration data: 1 UR5, 2 UR10, 3 UR3, 4 UR16, 7 UR20, 8 UR30.
        serial_number: Digits.
        remote_control: Whether commands from outside are accepted.
        kinematics_checksum: (6,) u32; all ones says URSim.
        dh: theta, a, d, alpha, each of n numbers: what the kinematics info and configuration data tell.
    """

    state: ControllerState
    profile: Profile
    robot: Robot
    model_name: str
    robot_type: int
    serial_number: str
    remote_control: bool
    kinematics_checksum: tuple[int, ...]
    dh: tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...], tuple[float, ...]]

    def load_script(self, source: str) -> None:
        """Stop what runs and run this program, or run it beside when it is a secondary one.

        Faults go to the primary interface's clients as messages.
        """

    def stop_program(self) -> bool:
        """Whether it could be done."""

    def pause_program(self) -> bool:
        """Likewise."""

    def play_program(self) -> bool:
        """Resume a paused program, or start the loaded one."""

    def power_on(self) -> None: ...

    def power_off(self) -> None: ...

    def brake_release(self) -> None: ...

    def unlock_protective_stop(self) -> str:
        """The dashboard's answer: "Protective stop releasing", or why not (refused for the first 5 s)."""

    def restart_safety(self) -> str: ...

    def set_speed_slider(self, fraction: float) -> None: ...

    def popup(self, text: str) -> None: ...

    def close_popup(self) -> None: ...

    def record_input(self, names: tuple[str, ...], values: tuple[object, ...]) -> None:
        """An RTDE input package has arrived and was applied to `state`."""
