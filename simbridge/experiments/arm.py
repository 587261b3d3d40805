"""The arm of an experiment: as the flags say, with a task that its joints can do, and from a posture that can move.

A UR arm and the planar arms come as they are. A URDF names neither a home nor a task: upright in the middle of its
joints' ranges an arm is mostly singular, and one of few joints cannot take its tool to any pose.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, get_args

from simbridge.experiments.layout import directions
from simbridge.experiments.parameters import Experiment, FromHome, Task
from simbridge.experiments.start import SINGULAR, dexterity, start
from simbridge.planning.options import Options
from simbridge.robot.load import load_robot
from simbridge.robot.robot import Robot
from simbridge.text import counted

_WORDS = {"axis": "the position and the direction of its z axis", "position": "the position alone"}


@dataclass(frozen=True)
class Arm:
    """An arm that can begin.

    Attributes:
        robot: With its tool, its task and its home: where the experiment begins.
        notes: Sentences on what was chosen for want of a flag, and on a choice that makes no good start.
    """

    robot: Robot
    notes: tuple[str, ...] = ()

    def as_data(self) -> dict[str, Any]:
        """For JSON."""
        return {"task": self.robot.task, "home": self.robot.home.tolist(), "notes": list(self.notes)}


def arm(parameters: Experiment) -> Arm:
    """The arm that an experiment is told to take.

    Raises:
        UnknownName, InputFileError, InvalidHome: There is no such robot, or no such home.
        InvalidParameter: The link lengths or the TCP make no sense.
    """
    home = parameters.home if isinstance(parameters, FromHome) else ()
    robot = load_robot(parameters.robot, home=home or None, lengths=parameters.link_lengths or None)
    robot, notes = _with_task(Options(tcp=parameters.tcp or ()).equipped(robot), parameters.task)
    if isinstance(parameters, FromHome):
        robot, more = _with_start(robot, given=bool(home))
        notes += more
    return Arm(robot, notes)


def _with_task(robot: Robot, given: Task | None) -> tuple[Robot, tuple[str, ...]]:
    if given is not None:
        return replace(robot, task=given), ()
    tasks = get_args(Task)
    for task in tasks[tasks.index(robot.task) :]:
        free, chosen = directions(robot, task)
        if chosen < free:
            continue
        if task == robot.task:
            return robot, ()
        free, chosen = directions(robot, robot.task)
        return replace(robot, task=task), (
            f"The tool of {robot.name} can go in {free} directions, of which its {counted(robot.n, 'joint')} choose "
            f"{chosen} at a time: of every target only {_WORDS[task]} is asked for (--task {task}).",
        )
    # It cannot even choose where its tool is: what needs that says so.
    return robot, ()


def _with_start(robot: Robot, given: bool) -> tuple[Robot, tuple[str, ...]]:
    if dexterity(robot, robot.home[None])[0] >= SINGULAR:
        return robot, ()
    if given:
        return robot, (
            f"The given home of {robot.name} is singular: in some direction its tool cannot start, and figures that "
            "begin there say more about that posture than about a solver.",
        )
    home = start(robot)
    home.setflags(write=False)
    written = " ".join(f"{v:.3f}" for v in home)
    return replace(robot, home=home, file_home=robot.home), (
        f"The home of {robot.name} is singular, and no --home was given: the experiment begins at --home {written}.",
    )
