"""Reads any log into a `ControllerLog`, with the reader for the kind of file or directory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from simbridge.errors import InputFileError
from simbridge.judging.bag_log import read_bag_log
from simbridge.judging.export_log import is_exported_table, read_exported_table
from simbridge.judging.log import ControllerLog
from simbridge.judging.log_checks import check_log
from simbridge.judging.missing import find_missing
from simbridge.judging.rtde_log import read_rtde_log
from simbridge.judging.run_log import read_run_log
from simbridge.judging.sent_commands import add_sent
from simbridge.robot.robot import Robot
from simbridge.trajectory.bag_reader import BEGINNINGS

# Name of the file with the settings of a run, in its directory.
RUN_SETTINGS = "settings.toml"
# Name of the file with the log of a run, in its directory.
RUN_LOG = "log.mcap"
# Name of the file that describes a bag of ROS 2, in its directory.
BAG_DESCRIPTION = "metadata.yaml"


@dataclass(frozen=True)
class LogOptions:
    """How a log is read.

    Attributes:
        columns: Names of all columns of a file without a header; empty for a file with a header.
        robot: The arm; None to find it by the joint names in the log, if there are any.
        prefix: Prefix of the names of the arm's joints, or of its topics (`/left`), in a bag with
            several arms; None for a bag with one arm.
        goals: A file with what was sent to the arm, or the directory of the run that sent it; None
            for what the log itself has.
    """

    columns: tuple[str, ...] = ()
    robot: Robot | None = None
    prefix: str | None = None
    goals: str | None = None


def read_log(path: str | Path, options: LogOptions | None = None) -> ControllerLog:
    """Read a log.

    Args:
        path: A recording of RTDE outputs, a ROS bag (its file or directory), or the directory of a
            run or a live session.
        options: How it is read.

    Raises:
        InputFileError: The file is not a log, or cannot be read.
        NotARun, LogReadError: The directory is that of a run that cannot be read.
    """
    options = options or LogOptions()
    log = _read_by_kind(Path(path), options)
    if options.robot is not None:
        log = replace(log, robot=options.robot.name)
    check_log(log, options.robot)
    if options.goals is not None:
        log = add_sent(log, options.goals)
    return replace(log, missing=find_missing(log))


def _read_by_kind(path: Path, options: LogOptions) -> ControllerLog:
    """Read a log with the reader for its kind."""
    if not path.exists():
        raise InputFileError(path, "file not found")
    _check_options(path, options)

    # A run, or its log file alone: the run's settings tell more about the arm than the file does.
    if _is_run(path):
        return read_run_log(path)
    if path.name == RUN_LOG and _is_run(path.parent):
        return read_run_log(path.parent)

    if _is_bag(path):
        return read_bag_log(path, options.robot, options.prefix)
    if path.is_dir():
        # The reader of runs refuses any other directory, and names the missing file.
        return read_run_log(path)
    if not options.columns and is_exported_table(path):
        return read_exported_table(path)
    return read_rtde_log(path, options.columns)


def _check_options(path: Path, options: LogOptions) -> None:
    """Refuse options that do not apply to this kind of log.

    Raises:
        InputFileError: An option does not apply; the message names it.
    """
    is_run = _is_run(path) or path.name == RUN_LOG
    is_bag = _is_bag(path) and not is_run
    if options.columns and (is_run or is_bag):
        raise InputFileError(path, "it names its own columns; omit --columns")
    if options.prefix is not None and not is_bag:
        raise InputFileError(path, "only a ROS bag can have several arms; omit --prefix")


def _is_run(path: Path) -> bool:
    """Return whether a directory is that of a run or a live session."""
    return (path / RUN_SETTINGS).is_file()


def _is_bag(path: Path) -> bool:
    """Return whether a path is a ROS bag: a file with a bag's suffix, or a directory with such.

    In the directory of a compressed bag the files have another suffix, but there is a description.
    """
    # The keys of BEGINNINGS are the suffixes of bags.
    if path.is_dir():
        has_bag_files = any(file.suffix.lower() in BEGINNINGS for file in path.iterdir())
        return has_bag_files or (path / BAG_DESCRIPTION).is_file()
    return path.suffix.lower() in BEGINNINGS
