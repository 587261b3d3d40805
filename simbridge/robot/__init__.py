"""Robots: one description of an arm, from which every other form of it is made."""

from simbridge.robot.load import load_robot
from simbridge.robot.robot import Joint, Link, Robot, Shape

__all__ = ["Joint", "Link", "Robot", "Shape", "load_robot"]
