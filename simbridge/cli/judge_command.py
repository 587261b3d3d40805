"""The command `simbridge judge`: what an arm did in a log, and why it deviated."""

from __future__ import annotations

from rich.markup import escape

from simbridge.cli.flags import JudgeFlags
from simbridge.cli.terminal import say
from simbridge.console import Terminal
from simbridge.judging import wording
from simbridge.judging.judgement import Judgement
from simbridge.judging.judgement import judge as judge_log
from simbridge.judging.read_log import read_log
from simbridge.resources import robot_files
from simbridge.robot.load import load_robot
from simbridge.text import make_table


def judge(flags: JudgeFlags) -> int:
    """Judge logs, one after another.

    Returns:
        The exit status, 0.

    Raises:
        InputFileError: A log cannot be read.
    """
    console = Terminal()
    arms = [robot for robot in map(load_robot, robot_files()) if robot.series]
    for name in flags.logs:
        _show(console, judge_log(read_log(name), arms))
    return 0


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
