"""The two kinds of UR controllers as backends: URSim and the controller of a real arm."""

from __future__ import annotations

from simbridge.backends.controller import ControllerBackend


class UrsimBackend(ControllerBackend):
    """URSim, UR's simulator of the controller; it is powered on and unlocked as needed."""

    ursim = True
    default_host = "127.0.0.1"
    approach_joint_speed = 1.0
    approach_tool_speed = 0.4


class RealBackend(ControllerBackend):
    """A real arm; it moves only after confirmation, and is never powered on or unlocked from here."""

    ursim = False
    tool_speed_limit = 0.25
    approach_joint_speed = 0.25
    approach_tool_speed = 0.1
