"""The driving page engages, halts and disengages an arm behind a controller.

In simulation there is no such arm, and none of this has an effect.
"""

from __future__ import annotations

import queue

from markupsafe import Markup

from simbridge.backends.backend import Facts
from simbridge.browser import html_texts
from simbridge.browser.arm_group import ArmGroup
from simbridge.browser.background import RunInBackground
from simbridge.browser.view import PageView


class Engagement:
    """Engages, holds and releases the arm behind a controller.

    Args:
        arms: The arm among them, and its largest speed.
        view: Takes the question, and what is waited for.
        run_in_background: Runs what waits for the arm.

    Attributes:
        answers: What the driving page answers to a question.
    """

    def __init__(self, arms: ArmGroup, view: PageView, run_in_background: RunInBackground) -> None:
        self._arms = arms
        self._arm = arms.controlled
        self._view = view
        self._run_in_background = run_in_background
        self.answers: queue.SimpleQueue[bool] = queue.SimpleQueue()

    def engage(self) -> None:
        """Let a held goal move the arm, once it is engaged."""
        arm = self._arm
        if arm is None:
            return

        def begin(_: None) -> None:
            self._view.busy = ""
            arm.begin(self._arms.speed)

        arm.forbid()
        self._view.busy = "engaging"
        self._run_in_background("engage", arm.engage, begin, always=True)

    def disengage(self) -> None:
        """Brake; nothing moves until the arm is engaged again."""
        arm = self._arm
        if arm is None:
            return

        def release(_: None) -> None:
            arm.release()

        arm.forbid()
        self._run_in_background("release", arm.disengage, release, always=True)

    def hold(self) -> None:
        """Go towards the goal, while the page repeats it."""
        if self._arm is not None:
            self._arm.drive()

    def release(self) -> None:
        """Brake and hold: nobody holds the goal any longer."""
        if self._arm is not None:
            self._arm.release()

    def ask(self, facts: Facts, question: str) -> None:
        """Show a question that a person must answer before a real arm moves."""
        self._view.question = html_texts.question(facts, question)

    def end_question(self) -> None:
        """Stop showing the question: it was answered, or nobody answered in time."""
        self._view.question = Markup()

    def answer(self, confirmed: bool) -> None:
        """Take an answer of the driving page, if there is a question."""
        if self._view.question:
            self.answers.put(confirmed)

    def change_driver(self) -> None:
        """Brake, and confirm nothing: the page that drove has left, or another one drives."""
        self.release()
        self.answer(False)
