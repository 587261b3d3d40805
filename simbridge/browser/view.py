"""Content of the pages besides the 3D scene, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pinocchio as pin
from markupsafe import Markup

from simbridge.browser.snapshot import SOURCES, Snapshot, limit_use
from simbridge.ik.diagnosis import Diagnosis
from simbridge.robot.robot import Robot
from simbridge.text import millimetres

# In place of a second solver's name.
NO_RIVAL = "none"


@dataclass
class PageView:
    """The texts and tables of the pages.

    Attributes:
        sentence: A sentence on what limits the arm now, or that it is at the goal.
        extrapolation: A sentence on the gain at which the simulated servo law is extrapolated; ""
            where it is not.
        figures: Name and value, both as text.
        joints: Name, position and part of its range, velocity and part of its limit of each joint,
            as text.
        problem: Sentences on what went wrong, by the name of a control, or "" for none of them.
        iterations: What remains to the goal after an iteration's run, as a sentence.
        playing: What is played, as a sentence.
        command: The command line that equals the present state.
        rivals: A row for each solver: name, error, sources; empty for one solver.
        busy: What is waited for: "engaging", "compiling", or "" for nothing.
        state: State of the session with a controller, such as "holding".
        moving: Whether settings must wait until the arm is at rest.
        question: What is asked before a real arm moves, as HTML (see `html_texts.question`); empty
            while nothing is.
        refused: How many events were refused: of pages that do not drive, or with values that are
            not offered.
    """

    sentence: str = ""
    extrapolation: str = ""
    figures: list[tuple[str, str]] = field(default_factory=list)
    joints: list[tuple[str, ...]] = field(default_factory=list)
    problem: dict[str, str] = field(default_factory=dict)
    iterations: str = ""
    playing: str = ""
    command: str = ""
    rivals: list[tuple[str, ...]] = field(default_factory=list)
    busy: str = ""
    state: str = ""
    moving: bool = False
    question: Markup = field(default_factory=Markup)
    refused: int = 0

    def describe(self, robot: Robot, task: str, snapshot: Snapshot) -> None:
        """Fill in the figures and the joints of an instant.

        Args:
            robot: The arm.
            task: The part of the target that the solver is to attain.
            snapshot: The instant.
        """
        self.figures = []
        for source, error in zip(SOURCES, snapshot.errors, strict=True):
            self.figures.append((f"error, {source}", f"{millimetres(error)} mm"))
        # Only the arm's Jacobian is of interest: the pose that would be missed is not.
        no_target = pin.SE3ToXYZQUAT(pin.SE3.Identity())
        diagnosis = Diagnosis(robot, snapshot.q, no_target, 0, task)
        self.figures.append(("condition number", f"{diagnosis.condition:.3g}"))
        self.figures.append(("manipulability", f"{diagnosis.manipulability:.3g}"))

        range_use, velocity_use = limit_use(robot, snapshot.q, snapshot.qd)
        self.joints = []
        for index, name in enumerate(robot.joint_names):
            self.joints.append(
                (
                    name,
                    f"{np.degrees(snapshot.q[index]):.1f}°",
                    f"{100.0 * range_use[index]:.0f} %",
                    f"{snapshot.qd[index]:.3f} rad/s",
                    f"{100.0 * velocity_use[index]:.0f} %",
                )
            )
