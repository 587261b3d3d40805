"""Scenarios: a trajectory with the settings for its run, by name, from a script, or from a file."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike

from simbridge.errors import InputFileError, InvalidParameter, ScenarioError, UnknownName
from simbridge.ik.forward_dynamics import ForwardDynamicsParameters
from simbridge.ik.parameters import SolverParameters
from simbridge.ik.settings import ALL_SOLVERS
from simbridge.planning.plan import OnLimits
from simbridge.quoting import as_text, shell_quoted
from simbridge.resources import importing_from, load_script, scenario_files
from simbridge.robot import pose
from simbridge.robot.kinematics import tool_path
from simbridge.robot.pose import Array, quaternions
from simbridge.robot.robot import Robot
from simbridge.trajectory.base_frames import PENDANT_BASE_NAME, base_frame_flags
from simbridge.trajectory.dropped_rows import warn_of
from simbridge.trajectory.files import (
    check_frame,
    read_recording,
    unknown_frame,
)
from simbridge.trajectory.gaps import treat_gaps
from simbridge.trajectory.ground_truth import cut_to_samples
from simbridge.trajectory.joint_values import MAX_PLAUSIBLE_POSITION
from simbridge.trajectory.read_options import Column, ReadOptions
from simbridge.trajectory.recording import Recording
from simbridge.trajectory.rtde_recording import is_rtde_recording, read_rtde, recorded_fields
from simbridge.trajectory.sampling import Sampling
from simbridge.trajectory.tables.joint_columns import ArmJoints
from simbridge.trajectory.tables.units import UNITS
from simbridge.trajectory.trajectory import Hold, Trajectory, describe_reading

# What of a controller's recording is joint positions, and what is poses.
JOINT_COLUMNS: tuple[Column, ...] = ("actual_q", "target_q")
POSE_COLUMNS: tuple[Column, ...] = ("actual_TCP_pose", "target_TCP_pose")
# The joints of every arm in UR's URDF.
UR_JOINTS = (
    "shoulder_pan_joint",
    "shoulder_lift_joint",
    "elbow_joint",
    "wrist_1_joint",
    "wrist_2_joint",
    "wrist_3_joint",
)
# Targets and trajectory have the same duration within the rounding of stamps since 1970, s.
DURATION_ROUNDING_S = 1e-6


@dataclass(frozen=True)
class Scenario:
    """A trajectory to track, with the settings for its run.

    Attributes:
        trajectory: The sampled path of the TCP in base_link.
        description: One line for the reader.
        hold: What the target is between samples: "linear" (a replay knows the next sample) or
            "zero-order" (a live, low-rate source does not).
        on_limits: "refuse" a plan whose velocity, velocity jump or tool speed exceeds its limit, or
            "limit" the setpoints in velocity, acceleration and tool speed.
        solver: The solver's settings, unless the command line gives others; or a function of joint
            positions (n,) and a target pose that returns the next joint positions (n,), see
            `CallableSolver`.
        name: Name of the scenario; that of the script or file if left empty.
        sampling: How a low-rate or noisy source samples the trajectory for the solver; None gives
            it the trajectory itself. Errors are measured against the trajectory all the same.
        targets: Noisy samples of the trajectory, recorded, that the solver gets; None gives it the
            trajectory itself, or what `sampling` makes of it. Errors are measured against the
            trajectory all the same.
        file: The custom script or file of samples that it was loaded from; None for a scenario in
            scenarios/.
        unknown_frame: The frame of a file's poses, where any frame is accepted and nothing relates
            this one to base_link; else "".
        frame_flags: Flags of which one may relate that frame to base_link.
        is_placed_by_file: Whether a file itself says where its poses are relative to base_link: by
            a bag's tf, or as poses in UR's base frame.

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
    targets: Trajectory | None = None
    file: Path | None = None
    unknown_frame: str = ""
    frame_flags: tuple[str, ...] = ()
    is_placed_by_file: bool = False

    def __post_init__(self) -> None:
        is_trajectory = isinstance(self.trajectory, Trajectory)
        self._require("trajectory", is_trajectory, "a simbridge.Trajectory")
        self._require("description", isinstance(self.description, str), "text")

        self._require("hold", self.hold in get_args(Hold), "linear or zero-order")
        self._require("on_limits", self.on_limits in get_args(OnLimits), "refuse or limit")

        # A class, such as that of the settings themselves, can be called too.
        is_function = callable(self.solver) and not isinstance(self.solver, type)
        is_solver = isinstance(self.solver, tuple(ALL_SOLVERS.values())) or is_function
        self._require(
            "solver", is_solver, "settings, such as ForwardDynamicsParameters, or a function"
        )

        is_sampling = self.sampling is None or isinstance(self.sampling, Sampling)
        self._require("sampling", is_sampling, "a Sampling, or None")

        if self.targets is not None:
            self._check_targets(self.targets)

        is_name = isinstance(self.name, str) and os.sep not in self.name
        self._require("name", is_name, "text without a slash")

    @property
    def source(self) -> Trajectory:
        """The samples that the solver gets."""
        if self.targets is not None:
            return self.targets
        if self.sampling is not None:
            return self.sampling.of(self.trajectory)
        return self.trajectory

    def scale_speed(self, scale: float) -> Scenario:
        """Return the same scenario at `scale` times the speed."""
        targets = None if self.targets is None else self.targets.scale_speed(scale)
        return replace(self, trajectory=self.trajectory.scale_speed(scale), targets=targets)

    def transform(self, frame: ArrayLike) -> Scenario:
        """Return the same scenario in an outer frame: its poses premultiplied by `frame` (7,)."""
        targets = None if self.targets is None else self.targets.transform(frame)
        return replace(self, trajectory=self.trajectory.transform(frame), targets=targets)

    def _check_targets(self, targets: Trajectory) -> None:
        """Refuse targets that are not samples of the trajectory, or beside other samples of it."""
        needed = "a simbridge.Trajectory, without sampling and joint positions"
        is_alone = self.sampling is None and self.trajectory.joints is None
        self._require("targets", isinstance(targets, Trajectory) and is_alone, needed)

        if abs(targets.duration - self.trajectory.duration) > DURATION_ROUNDING_S:
            needed = f"as long as the trajectory, {self.trajectory.duration:.9g} s"
            raise InvalidParameter("duration of targets", f"{targets.duration:.9g} s", needed)

    def _require(self, name: str, is_valid: bool, needed: str) -> None:
        """Refuse the value of a field that is not valid."""
        if not is_valid:
            raise InvalidParameter(f"scenario's {name}", getattr(self, name), needed)


def load_scenario(
    source: str | os.PathLike[str],
    robot: Robot,
    reading: ReadOptions | None = None,
    *,
    any_frame: bool = False,
) -> Scenario:
    """Load a scenario by its name, from a script, or from a file of samples.

    Args:
        source: A name in scenarios/ ("square_tracking"), a script ("./mine.py") or a file (TUM,
            CSV, ROS bag, a controller's recording).
        robot: The arm that a script is called with, and whose home an anchored motion begins at.
        reading: Frame of the poses, and how a file is read; base_link by default. For a script only
            the frame can be chosen.
        any_frame: Take a file as it is: also one that names another frame than the reading's, and,
            unless the reading chooses a treatment, one with gaps.

    Raises:
        UnknownName: There is no such scenario; the nearest is named.
        ScenarioError: The script fails, or does not define `scenario(robot)`.
        InputFileError: The file cannot be read, has a gap that nothing treats, or its poses are in
            a frame that nothing relates to base_link.
        InvalidParameter: The reading has options for a file, and a script is given.
    """
    reading = reading or ReadOptions()
    builtin_files = scenario_files()
    text = os.fspath(source)
    path = builtin_files.get(text) or Path(text)

    is_bare_name = not path.suffix and os.sep not in text
    if is_bare_name and not path.exists():
        hint = "Give a script or file of your own by its path, such as ./mine.py."
        raise UnknownName("scenario", text, builtin_files, hint)

    if path.suffix == ".py":
        _check_script_reading(text, reading)
        scenario = _run_script(path, robot)
        if reading.frame == "base":
            scenario = replace(scenario, trajectory=scenario.trajectory.from_pendant_base())
    else:
        scenario = _read_file(path, robot, reading, any_frame=any_frame)

    name = scenario.name or path.stem.removesuffix(".csv")
    file = None if text in builtin_files else path.resolve()
    return replace(scenario, name=name, file=file)


def is_custom_script(source: str) -> bool:
    """Return whether `load_scenario` would run a script of the user's, not one in scenarios/."""
    return source not in scenario_files() and Path(source).suffix == ".py"


def is_being_loaded(path: str | os.PathLike[str]) -> bool:
    """Return whether `load_scenario` is running this script."""
    return _module_name(Path(path)) in sys.modules


def _read_file(path: Path, robot: Robot, reading: ReadOptions, *, any_frame: bool) -> Scenario:
    """Read a file of samples or a controller's recording, and place its motion in base_link."""
    if (path / "settings.toml").is_file():
        directory = shell_quoted(path)
        reason = (
            "this is the directory of a run, not of a live session; "
            f"`simbridge report {directory}` shows its result, and "
            f"`simbridge run SCENARIO --plan {directory}` repeats its plan"
        )
        raise InputFileError(path, reason)

    # A file that is only inspected, in whatever frame, keeps its gaps unless their treatment is
    # chosen: the inspection lists them.
    file = _read_motion(path, robot, reading, any_frame=any_frame)
    motion = file.motion
    if not any_frame or reading.gaps is not None:
        motion = treat_gaps(motion, reading.gaps)
    home_pose = tool_path(robot, robot.home[None])[0]
    trajectory = file.reading.place(motion, home_pose)

    targets = None
    if reading.reference is not None:
        targets = trajectory
        trajectory = _read_truth(Path(reading.reference), robot, reading, samples=motion)
    frame = unknown_frame(file.recording, file.reading, robot.base_name)
    return Scenario(
        trajectory,
        description=f"Samples of {path.name}",
        targets=targets,
        unknown_frame=frame,
        frame_flags=base_frame_flags(file.recording, robot.base_name) if frame else (),
        is_placed_by_file=file.recording.is_placed_by_file,
    )


class _FileMotion(NamedTuple):
    """The motion in a file, and how it is to be placed.

    Attributes:
        motion: The motion as it was recorded; in base_link if the format defines poses in the
            pendant's base.
        recording: The file as read.
        reading: The options, with what the format defines.
    """

    motion: Trajectory
    recording: Recording
    reading: ReadOptions


def _read_motion(path: Path, robot: Robot, reading: ReadOptions, *, any_frame: bool) -> _FileMotion:
    """Read the motion in a file of samples or a controller's recording."""
    if path.is_file() and _is_controller_recording(path, reading):
        motion = _read_controller_recording(path, robot, reading)
        recording = Recording(motion, frame="")
        is_placed = True
    else:
        recording = _read_samples(path, robot, reading, any_frame=any_frame)
        motion = recording.trajectory
        is_placed = recording.is_in_pendant_base
        if is_placed:
            # Whatever frame the reading names: the format defines it.
            motion = motion.from_pendant_base()

    if motion.joints is not None:
        _check_joints_are_not_moved(path, reading)
        is_placed = True
    if reading.base_frame is not None and not recording.frame:
        raise InputFileError(path, "it does not name the frame of its poses; omit --base-frame")
    if is_placed:
        reading = replace(reading, frame="base_link")
    return _FileMotion(motion, recording, reading)


def _is_controller_recording(path: Path, reading: ReadOptions) -> bool:
    """Return whether a file is read by the names of a controller's fields.

    `--columns` reads it as a table, unless it states no more than units of the poses.
    """
    if reading.columns is None:
        return is_rtde_recording(path)
    if reading.choice.columns or reading.choice.names_joints:
        return False
    return any(field in POSE_COLUMNS for field in recorded_fields(path))


def _check_controller_units(path: Path, reading: ReadOptions) -> None:
    """Refuse units that are not those of a controller's recording: s, m and rad."""
    for role, unit in reading.choice.units.items():
        if UNITS[unit] != 1.0:
            raise InputFileError(
                path,
                f"--columns {role}[{unit}]: a controller's recording is in s, m and rad. If this "
                "file is in other units, choose its columns, too: --columns "
                f"t=timestamp,x=actual_TCP_pose_0,..., with {role}[{unit}]=NAME",
            )


def _check_joints_are_not_moved(path: Path, reading: ReadOptions) -> None:
    """Refuse to place joint positions elsewhere: they would be others."""
    if reading.places or reading.base_frame is not None:
        raise InputFileError(
            path,
            "recorded joint positions cannot be placed elsewhere: omit --transform, --anchor, "
            "--frame and --base-frame",
        )


def _read_truth(
    path: Path, robot: Robot, reading: ReadOptions, *, samples: Trajectory
) -> Trajectory:
    """Read the true motion behind noisy samples, and place it in base_link as they are placed.

    Args:
        path: The file of the true motion.
        robot: The arm.
        reading: How both files are read and placed.
        samples: The samples, as they were recorded.
    """
    if samples.joints is not None:
        reason = "recorded joint positions are the motion itself: omit --reference"
        raise InputFileError(samples.source, reason)
    file = _read_motion(path, robot, reading, any_frame=False)
    if file.motion.joints is not None:
        raise InputFileError(path, "--reference needs poses; this file has joint positions")

    # Splitting the true motion at gaps would leave a piece that does not cover the samples.
    treatment = None if reading.gaps == "split" else reading.gaps
    truth = treat_gaps(cut_to_samples(file.motion, samples, reading.reference_offset), treatment)
    home_pose = tool_path(robot, robot.home[None])[0]
    if reading.anchor == "start":
        # Both motions are moved alike, so that the samples begin at home.
        return truth.transform(pose.compose(home_pose, pose.inverse(samples.start)))
    return file.reading.place(truth, home_pose)


def _read_samples(path: Path, robot: Robot, reading: ReadOptions, *, any_frame: bool) -> Recording:
    """Read a file of poses or joints; its frame must be the reading's unless any is accepted."""
    if reading.column not in (None, "joints"):
        raise InputFileError(
            path,
            f"this is not a controller's recording, so it has no {reading.column} (--from); "
            "--from joints reads the positions of the arm's joints",
        )

    arm = ArmJoints(
        robot.name, robot.joint_names, tuple(robot.prismatic.tolist()), partial(tool_path, robot)
    )
    bases = [robot.base_name]
    if _is_ur(robot):
        bases.append(PENDANT_BASE_NAME)
    recording = read_recording(path, reading, arm, bases=bases)
    if not any_frame:
        check_frame(path, recording, reading, robot.base_name)
    return recording


def _is_ur(robot: Robot) -> bool:
    """Return whether an arm is UR's: by its controller, or as the joints of UR's URDF."""
    return bool(robot.series) or robot.joint_names == UR_JOINTS


def _read_controller_recording(path: Path, robot: Robot, reading: ReadOptions) -> Trajectory:
    """Read the motion in a controller's recording, in base_link.

    The poses are the recorded ones of the TCP, or those of the robot's TCP at recorded joint
    positions.
    """
    if reading.topic or reading.frames:
        raise InputFileError(path, "this is a controller's recording; omit --topic and --frames")
    _check_controller_units(path, reading)

    column = _controller_column(path, reading)
    recording = read_rtde(path, [column], rate=reading.rate)
    warn_of(path, recording.notes)
    values = recording.columns[column]

    if column.endswith("_q"):
        _check_joint_positions(path, robot, column, values)
        poses = tool_path(robot, values)
        trajectory = Trajectory(recording.times, poses, source=str(path), joints=values)
        return describe_reading(trajectory, f"a controller's {column}")

    poses = np.concatenate([values[:, :3], quaternions(values[:, 3:])], axis=1)
    trajectory = Trajectory(recording.times, poses, source=str(path)).from_pendant_base()
    return describe_reading(trajectory, f"a controller's {column}, placed from base")


def _controller_column(path: Path, reading: ReadOptions) -> Column:
    """Return the field of a controller's recording that is read: as chosen, poses, or joints."""
    recorded = recorded_fields(path)
    joints: list[Column] = [field for field in JOINT_COLUMNS if field in recorded]
    has_poses = any(field in recorded for field in POSE_COLUMNS)
    asks_for_joints = reading.column == "joints"
    if len(joints) == 1 and (asks_for_joints or (reading.column is None and not has_poses)):
        return joints[0]
    if asks_for_joints:
        choice = f"choose --from {' or '.join(JOINT_COLUMNS)}"
        reason = f"it has both target and actual joint positions: {choice}"
        raise InputFileError(path, reason if joints else "it has neither actual_q nor target_q")
    return reading.column or "actual_TCP_pose"


def _check_joint_positions(path: Path, robot: Robot, column: Column, q: Array) -> None:
    """Refuse joint positions q (T, n) of another arm, or in another unit than rad."""
    if robot.n != q.shape[1]:
        reason = f"its {q.shape[1]} joints do not match those of {robot.name}"
        raise InputFileError(path, reason, field=column)

    # The last joint of some arms turns without end.
    if np.abs(q[:, :-1]).max() > MAX_PLAUSIBLE_POSITION:
        reason = "joint positions exceed a full turn: are they in degrees?"
        raise InputFileError(path, reason, field=column)


def _check_script_reading(text: str, reading: ReadOptions) -> None:
    """Refuse options for a file of poses where a script is given."""
    if not reading.plain:
        needed = (
            "a file of poses for --transform, --anchor, --base-frame, --topic, --frames, --from, "
            "--columns, --rate, --gaps and --reference"
        )
        raise InvalidParameter("scenario", text, needed)


def _run_script(path: Path, robot: Robot) -> Scenario:
    """Call the function scenario(robot) that a script defines.

    Raises:
        ScenarioError: The script fails, or does not define the function.
    """
    if not path.is_file():
        raise ScenarioError(path, "file not found")

    module_name = _module_name(path)
    scenario = None
    try:
        # What it imports when it is called may be next to it, too.
        with importing_from(os.path.dirname(os.path.abspath(path))):
            build = getattr(load_script(path, module_name), "scenario", None)
            if callable(build):
                scenario = build(robot)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise _script_error(path, error) from error
    finally:
        sys.modules.pop(module_name, None)

    if not callable(build):
        raise ScenarioError(
            path, "it must define a function scenario(robot) that returns a simbridge.Scenario"
        )
    if not isinstance(scenario, Scenario):
        kind = type(scenario).__name__
        raise ScenarioError(path, f"scenario(robot) returned {kind}, not a simbridge.Scenario")
    return scenario


def _module_name(path: Path) -> str:
    """Return the name under which a script is imported."""
    return f"simbridge_scenario_{path.stem}"


def _script_error(path: Path, error: BaseException) -> ScenarioError:
    """Return the error to raise for an error in a script, with the script's own line."""
    location = os.path.abspath(path)
    frames = traceback.extract_tb(error.__traceback__)
    script_frames = [frame for frame in frames if frame.filename == location]
    line = script_frames[-1].lineno if script_frames else None
    reason = as_text(error)

    # A script that cannot be parsed has no frame of its own.
    if isinstance(error, SyntaxError):
        reason = error.msg
        if error.filename == location:
            line = error.lineno

    return ScenarioError(path, f"{type(error).__name__}: {reason}".rstrip(".: "), line=line)
