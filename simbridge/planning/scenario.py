"""Scenarios: a trajectory with the settings for its run, by name, from a script, or from a file."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np

from simbridge.errors import InputFileError, InvalidParameter, ScenarioError, UnknownName
from simbridge.ik.settings import SOLVERS, ForwardDynamicsParameters, SolverParameters
from simbridge.planning.plan import OnLimits
from simbridge.quoting import as_text, shell_quoted
from simbridge.resources import importing_from, load_script, scenario_files
from simbridge.robot.kinematics import tool_path
from simbridge.robot.pose import quaternions
from simbridge.robot.robot import Robot
from simbridge.trajectory.files import Column, ReadOptions, check_frame, read_recording
from simbridge.trajectory.rtde_recording import is_rtde_recording, read_rtde
from simbridge.trajectory.samples import without_gaps
from simbridge.trajectory.trajectory import Hold, Sampling, Trajectory, described


@dataclass(frozen=True)
class Scenario:
    """A trajectory to track, with the settings for its run.

    Attributes:
        trajectory: The sampled path of the TCP in base_link.
        description: One line for the reader.
        hold: What the target is between samples: "linear" (a replay knows the next sample) or "zero-order" (a live,
            low-rate source does not).
        on_limits: "refuse" a plan whose velocity, velocity jump or tool speed exceeds its limit, or "limit" the
            setpoints in velocity, acceleration and tool speed.
        solver: The solver's settings, unless the command line gives others; or a function of joint positions (n,) and
            a target pose that returns the next joint positions (n,), see `CallableSolver`.
        name: That of the script or file if left empty.
        sampling: How a low-rate or noisy source samples the trajectory for the solver; None gives it the trajectory
            itself. Errors are measured against the trajectory all the same.
        file: The custom script or file of samples that it was loaded from; None for a scenario in scenarios/.

    Raises:
        InvalidParameter: A value is of the wrong kind.
    """

    trajectory: Trajectory
    description: str = ""
    hold: Hold = "linear"
    on_limits: OnLimits = "refuse"
    solver: SolverParameters | Callable[..., Any] = field(default_factory=ForwardDynamicsParameters)
    name: str = ""
    sampling: Sampling | None = None
    file: Path | None = None

    def __post_init__(self) -> None:
        needed = {
            "trajectory": (isinstance(self.trajectory, Trajectory), "a simbridge.Trajectory"),
            "description": (isinstance(self.description, str), "text"),
            "hold": (self.hold in get_args(Hold), "linear or zero-order"),
            "on_limits": (self.on_limits in get_args(OnLimits), "refuse or limit"),
            # A class, such as that of the settings themselves, can be called too.
            "solver": (
                isinstance(self.solver, tuple(SOLVERS.values()))
                or (callable(self.solver) and not isinstance(self.solver, type)),
                "settings, as of ForwardDynamicsParameters, or a function",
            ),
            "sampling": (
                self.sampling is None or isinstance(self.sampling, Sampling),
                "a Sampling, or None",
            ),
            "name": (
                isinstance(self.name, str) and os.sep not in self.name,
                "text without a slash",
            ),
        }
        for name, (right, what) in needed.items():
            if not right:
                raise InvalidParameter(f"scenario's {name}", getattr(self, name), what)


def load_scenario(
    given: str | os.PathLike[str],
    robot: Robot,
    reading: ReadOptions | None = None,
    *,
    any_frame: bool = False,
) -> Scenario:
    """Find a scenario by its name, or make it from a script or from a file of samples or a controller's recording.

    Args:
        given: A name in scenarios/ ("square_tracking"), a script ("./mine.py") or a file (TUM, CSV, ROS bag).
        reading: Frame of the poses, and how a file is read; base_link by default. For a script only the frame can be
            chosen.
        any_frame: Take a file as it is: also one that names another frame than the reading's, and, unless the reading
            chooses a treatment, one with gaps.

    Raises:
        UnknownName: There is no such scenario; the nearest is named.
        ScenarioError: The script fails, or does not define `scenario(robot)`.
        InputFileError: The file cannot be read, has a gap that nothing treats, or its poses are in a frame that nothing
            relates to base_link.
        InvalidParameter: The reading has options for a file, and a script is given.
    """
    reading = reading or ReadOptions()
    files = scenario_files()
    text = os.fspath(given)
    path = files.get(text) or Path(text)
    if path.suffix != ".py" and not path.suffix and os.sep not in text and not path.exists():
        raise UnknownName(
            "scenario", text, files, "A custom script or file is given by its path: ./mine.py."
        )
    if path.suffix == ".py":
        if not reading.plain:
            needed = (
                "a file of poses for --transform, --anchor, --topic, --frames, --from, --columns, "
                "--rate and --gaps"
            )
            raise InvalidParameter("scenario", text, needed)
        scenario = _from_script(path, robot)
        if reading.frame == "base":
            scenario = replace(scenario, trajectory=scenario.trajectory.from_pendant_base())
    else:
        if (path / "settings.toml").is_file():
            repeat = f"`SCENARIO --plan {shell_quoted(path)}` repeats its plan"
            reason = f"this is the directory of a run, not of a live session; {repeat}"
            raise InputFileError(path, reason)
        if path.is_file() and reading.columns is None and is_rtde_recording(path):
            if reading.topic or reading.frames or reading.rate:
                raise InputFileError(
                    path, "this is a controller's recording; omit --topic, --frames and --rate"
                )
            recorded = _of_controller(path, robot, reading.column or "actual_TCP_pose")
            # The controller's poses are in the pendant's base, whatever else is given.
            reading = replace(reading, frame="base_link")
        elif reading.column is not None:
            raise InputFileError(
                path, "this is not a controller's recording, so that it has no columns for --from"
            )
        else:
            recorded, said = read_recording(path, reading)
            if not any_frame:
                check_frame(path, said, reading)
        if not any_frame or reading.gaps is not None:
            recorded = without_gaps(recorded, reading.gaps)
        trajectory = reading.placed(recorded, tool_path(robot, robot.home[None])[0])
        scenario = Scenario(trajectory, description=f"Samples of {path.name}")
    name = scenario.name or path.stem.removesuffix(".csv")
    return replace(scenario, name=name, file=None if text in files else path.resolve())


def is_custom_script(given: str) -> bool:
    """Whether `load_scenario` would run a script of the user's for this name: none of those in scenarios/."""
    return given not in scenario_files() and Path(given).suffix == ".py"


def _of_controller(path: Path, robot: Robot, column: Column) -> Trajectory:
    """The motion in a controller's recording, in base_link: its TCP poses, or a robot's at its joint positions."""
    recording = read_rtde(path, [column])
    values = recording.columns[column]
    if column.endswith("_q"):
        if robot.n != values.shape[1]:
            raise InputFileError(
                path, f"its {values.shape[1]} joints are not those of {robot.name}", field=column
            )
        if np.abs(values[:, :-1]).max() > 6.5:
            raise InputFileError(
                path, "joint positions of more than a turn: are they in degrees?", field=column
            )
        moved = Trajectory(recording.times, tool_path(robot, values), source=str(path))
        return described(moved, f"a controller's {column}")
    poses = np.concatenate([values[:, :3], quaternions(values[:, 3:])], axis=1)
    moved = Trajectory(recording.times, poses, source=str(path)).from_pendant_base()
    return described(moved, f"a controller's {column}, placed from base")


def _from_script(path: Path, robot: Robot) -> Scenario:
    if not path.is_file():
        raise ScenarioError(path, "there is no such file")
    name, made = _module_name(path), None
    try:
        # What it imports when it is called may be next to it, too.
        with importing_from(os.path.dirname(os.path.abspath(path))):
            build = getattr(load_script(path, name), "scenario", None)
            if callable(build):
                made = build(robot)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise _script_error(path, error) from error
    finally:
        sys.modules.pop(name, None)
    if not callable(build):
        raise ScenarioError(
            path, "it must define a function scenario(robot) that returns a simbridge.Scenario"
        )
    if not isinstance(made, Scenario):
        raise ScenarioError(
            path, f"scenario(robot) returned {type(made).__name__}, not a simbridge.Scenario"
        )
    return made


def is_being_loaded(path: str | os.PathLike[str]) -> bool:
    """Whether `load_scenario` is running this script."""
    return _module_name(Path(path)) in sys.modules


def _module_name(path: Path) -> str:
    return f"simbridge_scenario_{path.stem}"


def _script_error(path: Path, error: BaseException) -> ScenarioError:
    location = os.path.abspath(path)
    inside = [
        frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == location
    ]
    line = inside[-1].lineno if inside else None
    reason = as_text(error)
    if isinstance(error, SyntaxError):
        reason = error.msg
        if error.filename == location:
            line = error.lineno
    return ScenarioError(path, f"{type(error).__name__}: {reason}".rstrip(".: "), line=line)
