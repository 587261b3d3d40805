"""The command `simbridge judge`: what an arm did in a log, and why it deviated."""

from __future__ import annotations

from rich.markup import escape

from simbridge.cli.error_reporting import print_error
from simbridge.cli.flags import JudgeFlags
from simbridge.cli.terminal import say
from simbridge.console import Terminal
from simbridge.errors import SimbridgeError
from simbridge.judging import wording
from simbridge.judging.column_names import expand_columns
from simbridge.judging.judgement import Judgement
from simbridge.judging.judgement import judge as judge_log
from simbridge.judging.read_log import LogOptions, read_log
from simbridge.resources import robot_files
from simbridge.robot.load import load_robot
from simbridge.text import make_table


def judge(flags: JudgeFlags) -> int:
    """Judge logs, one after another; a log that cannot be read does not keep the others back.

    Returns:
        The exit status: 0, or 2 where a log could not be read.

    Raises:
        UnknownName, InvalidParameter: The robot or a column does not exist.
    """
    options = LogOptions(
        columns=() if flags.columns is None else expand_columns(flags.columns),
        robot=None if flags.robot is None else load_robot(flags.robot),
        prefix=flags.prefix,
        goals=flags.goals,
    )
    arms = [robot for robot in map(load_robot, robot_files()) if robot.series]
    if options.robot is not None:
        arms.insert(0, options.robot)

    console = Terminal()
    statuses = [0]
    for name in flags.logs:
        try:
            judgement = judge_log(read_log(name, options), arms)
        except SimbridgeError as error:
            statuses.append(print_error(error))
        else:
            _show(console, judgement)
    return max(statuses)


def _show(console: Terminal, judgement: Judgement) -> None:
    """Print the sentence that says what a log shows, the table of motions, and remarks."""
    say(console, f"{judgement.name}: {wording.headline(judgement)}", style="bold")

    motions = wording.shown_motions(judgement)
    if motions:
        rows = [[escape(cell) for cell in wording.motion_row(motion)] for motion in motions]
        console.print(make_table(wording.COLUMNS, rows, left=["kind", "largest part"]))
    if len(motions) < len(judgement.motions):
        say(console, f"Shown: the {len(motions)} motions with the largest errors.")
    for remark in wording.remarks(judgement):
        say(console, remark)
