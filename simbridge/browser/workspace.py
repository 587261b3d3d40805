"""What the driving page works on: the goal, the settings, and the arms that follow the goal.

Each `on_...` is what an event of that name asks for. What takes long happens beside the loop, and its result is one
more event; the arm goes on as it was meanwhile.
"""

from __future__ import annotations

import contextlib
import queue
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pinocchio as pin
import viser
from markupsafe import Markup
from numpy.typing import ArrayLike

from simbridge.backends.backend import Facts
from simbridge.browser import html_texts
from simbridge.browser.playback import Playback
from simbridge.browser.scene import Follower, draw_surroundings
from simbridge.browser.setup import ITERATE, Control, StudioSetup, controls_of
from simbridge.browser.studio_page import NONE
from simbridge.browser.view import Curve, Refused, Sample, Shown, place_of
from simbridge.errors import SimbridgeError
from simbridge.robot.kinematics import tool_frame
from simbridge.robot.pose import Array
from simbridge.text import millimetres

if TYPE_CHECKING:  # the studio makes them
    from simbridge.browser.arms import ControlledArm, Simulation


@dataclass
class _Followed:
    """An arm, how it is drawn, what was drawn last, and its errors of the last seconds."""

    arm: Simulation | ControlledArm
    follower: Follower = field(init=False)
    sample: Sample | None = None
    curve: Curve = field(default_factory=Curve)


class Workspace:
    """The state of a studio, to be used by the studio's loop alone.

    Args:
        simulate: Makes a simulated arm, which begins at joint positions (n,), rad, or at home.
        beside: See `Studio.beside`.
        scenario, folder: See `Playback`.

    Attributes:
        setup: As the pages show it; the arm may still have the one before.
        controlled: The arm, where a controller moves it.
        goal: Where the arms are sent, in base_link.
        start, start_q: Where an iteration begins: place (3,), m, and joint positions (n,), rad.
        share: Of full speed, at most.
        shown: Texts.
        playback: What is played in place of the live arm.
        answers: What the driving page answers to a question.
        offered_count: Counts how often there were other controls to be shown.
    """

    def __init__(
        self,
        setup: StudioSetup,
        controlled: ControlledArm | None,
        simulate: Callable[[StudioSetup, Array | None], Simulation],
        beside: Callable[..., None],
        scenario: str,
        folder: Path,
    ) -> None:
        self.setup, self.controlled, self._simulate, self.beside = (
            setup,
            controlled,
            simulate,
            beside,
        )
        self.share, self.shown, self._busy = 1.0, Shown(), ""
        self.offered_count = 0
        self._wanted = self._rival_wanted = 0
        self.answers: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self.playback = Playback(self, scenario, folder)
        # The arm of the first solver, and that of the second.
        self._followed = [_Followed(controlled or simulate(setup, None))]
        self.start_q = self.arm.q
        self.goal = tool_frame(self.arm.robot, self.start_q)
        self.start: Array = self.goal.translation.copy()

    def show_in(self, server: viser.ViserServer) -> None:
        """Draw everything in a server's scene."""
        self._server, robot = server, self.arm.robot
        draw_surroundings(server, robot, self.setup.options.collision_scene)
        self._followed[0].follower = Follower(server, robot, 0)

    def close(self) -> None:
        """End the sessions."""
        for one in self._followed:
            with contextlib.suppress(SimbridgeError):
                one.arm.end()

    def failed(self, error: Exception) -> None:
        """What was to be done beside the loop has failed."""
        self._busy = self.shown.playing = self.shown.iterations = ""
        raise error

    @property
    def arm(self) -> Simulation | ControlledArm:
        """The arm of the first solver."""
        return self._followed[0].arm

    @property
    def follower(self) -> Follower:
        """As which it is drawn."""
        return self._followed[0].follower

    @property
    def rival(self) -> str:
        """The second solver's name, or `NONE`."""
        return self._followed[1].arm.setup.solver if len(self._followed) > 1 else NONE

    @property
    def resting(self) -> bool:
        """Whether nothing moves, and nothing is played."""
        return self.playback.player is None and all(one.arm.resting for one in self._followed)

    @property
    def curves(self) -> tuple[Curve, Curve | None]:
        """The errors that are plotted, and those of the second solver, or of the run before."""
        if (player := self.playback.player) is not None and player.curves[0] is not None:
            return player.curves[0], player.curves[1]
        first, *second = (one.curve for one in self._followed)
        return first, second[0] if second else None

    def controls(self) -> tuple[list[Control], ...]:
        """Those of the solver, of the arm, and of iterations."""
        return controls_of(self.setup, self.arm.robot)

    @property
    def values(self) -> tuple[dict[str, Any], set[str]]:
        """By the names of their controls, values, and which of them were changed."""
        of_iterations = {ITERATE + name: value for name, value in self.playback.iterating.items()}
        return self.setup.shown_values | of_iterations, {*self.setup.values, *of_iterations}

    def on_drag(self, value: tuple[str, Array]) -> None:
        phase, pose = value[0], place_of(value[1], 7)
        goal = pin.SE3(pin.Quaternion(*pose[3:]).normalized().matrix(), pose[:3])
        if self.controlled is None:
            self._go(goal)
        else:
            self.controlled.drag(phase, goal)

    def on_goal(self, position: ArrayLike) -> None:
        self._go(pin.SE3(self.goal.rotation, place_of(position, 3)))

    on_clicked_goal = on_goal

    def on_goal_turn(self, rotation: ArrayLike) -> None:
        self._go(pin.SE3(pin.exp3(np.radians(place_of(rotation, 3))), self.goal.translation))

    def _go(self, goal: pin.SE3) -> None:
        if self.playback.player is not None:
            self.playback.on_stop(None)
        self.goal = goal
        for one in self._followed:
            one.arm.goal = goal

    def on_hold_go(self, _: None) -> None:
        if self.controlled is not None:
            self.controlled.drive()

    def on_release(self, _: Any) -> None:
        if self.controlled is not None:
            self.controlled.release()

    def on_engage(self, _: None) -> None:
        if (arm := self.controlled) is not None:

            def begin(_: None) -> None:
                self._busy = ""
                arm.begin(self.share)

            arm.forbid()
            self._busy = "engaging"
            self.beside("engage", arm.engage, begin, each=True)

    def on_disengage(self, _: None) -> None:
        if self.controlled is not None:
            self.controlled.forbid()
            self.beside("release", self.controlled.disengage, self.on_release, each=True)

    def show_question(self, facts: Facts = (), question: str = "") -> None:
        """A person must answer before a real arm moves; "": it was answered, or nobody did."""
        self.shown.question = html_texts.question(facts, question) if question else Markup()

    def on_answer(self, confirmed: bool) -> None:
        if self.shown.question:
            self.answers.put(confirmed)

    def on_left(self, _: None) -> None:
        """The page that drove has left, or another one drives: nobody holds the goal, nor confirms anything."""
        self.on_release(None)
        self.on_answer(False)

    def on_speed(self, percent: float) -> None:
        share = percent / 100.0
        if share > self.share:
            self._only_at_rest("The speed is raised")
        for one in self._followed:
            one.arm.slow_down(share)
        self.share = share

    def _only_at_rest(self, name: str) -> None:
        if self.controlled is not None and not self.controlled.resting:
            raise Refused(f"{name} only while the arm is at rest: release the goal first.")

    def on_start(self, position: ArrayLike) -> None:
        self._begin_at(
            self.arm.posture_at(pin.SE3(self.goal.rotation, place_of(position, 3)), "start")
        )

    on_clicked_start = on_start

    def on_here(self, _: None) -> None:
        self._begin_at(self.arm.q)

    def on_home(self, _: None) -> None:
        self._begin_at(self.arm.robot.home)

    def _begin_at(self, q: Array) -> None:
        if self.controlled is not None:
            raise Refused("A controller's arm begins where it is.")
        before, self.goal = self.goal, tool_frame(self.arm.robot, q)
        try:
            self._replace(self.setup, q)
        except SimbridgeError:
            self.goal = before
            raise
        self.start, self.start_q = self.goal.translation.copy(), q

    def on_change(self, change: tuple[str, Any]) -> None:
        name, value = change
        offered = {control.name: control for controls in self.controls() for control in controls}
        if name not in offered:
            raise Refused("This control is no longer there: another solver was chosen.")
        control = offered[name]
        if control.locked:
            raise Refused(control.locked)
        given = None if value is None else control.given(value)
        given = None if given == control.default else given
        if name.startswith(ITERATE):
            self.playback.change(name.removeprefix(ITERATE), given)
        else:
            self._prepare(self.setup.changed(name, given), name)

    def on_solver(self, solver: str) -> None:
        self._prepare(self.setup.with_solver(solver), "solver")

    def _prepare(self, setup: StudioSetup, control: str) -> None:
        """Compile what a setup needs beside the loop; the old one goes on meanwhile."""
        self._only_at_rest("Settings change")
        self._wanted += 1
        self.setup, number, arm = setup, self._wanted, self.controlled
        if arm is not None:
            arm.forbid()

        def build() -> None:
            if number != self._wanted:
                # Another setup is wanted meanwhile.
                return
            setup.compiled()
            if arm is not None:
                arm.renew(setup)

        def built(_: None) -> None:
            if number == self._wanted:
                self._busy = ""
                self.adopt(setup)

        def failed(error: Exception) -> None:
            if number == self._wanted:
                self.setup = self.arm.setup
                if arm is not None and arm.state not in ("idle", "ended"):
                    arm.begin(self.share)
                self.failed(error)

        self._busy, self.shown.playing = "compiling", ""
        self.beside(control, build, built, failed)

    def adopt(self, setup: StudioSetup) -> None:
        """Go on with a setup whose solver is compiled.

        Raises:
            SimbridgeError: A session refuses it; the arm and the pages keep the one before.
        """
        before, self.setup = self.arm.setup, setup
        self.offered_count += 1
        if self.controlled is not None:
            return
        same_lengths = setup.values.get("link_lengths") == before.values.get("link_lengths")
        try:
            self._replace(setup, self.arm.q if same_lengths else setup.arm.home)
        except SimbridgeError:
            self.setup = before
            raise

    def _begun(self, setup: StudioSetup, q: Array) -> Simulation:
        made = self._simulate(setup, q)
        made.goal = self.goal
        made.slow_down(self.share)
        return made

    def _replace(self, setup: StudioSetup, q: Array) -> None:
        """Begin anew with a setup, at joint positions (n,), rad; where it is refused, the arms go on as they were."""
        with contextlib.ExitStack() as stack:
            new = [self._begun(setup, q)]
            stack.callback(new[0].end)
            new += [
                self._begun(setup.with_solver(one.arm.setup.solver), q)
                for one in self._followed[1:]
            ]
            stack.pop_all()
        self.follower.forget_postures()
        for number, (one, made) in enumerate(zip(self._followed, new, strict=True)):
            one.arm.end()
            one.curve.clear()
            one.follower.forget_path()
            if not np.array_equal(made.robot.placements, one.arm.robot.placements):
                one.follower.remove()
                one.follower = Follower(self._server, made.robot, number)
            one.arm = made
        if self.playback.player is not None and self.playback.player.run is None:
            self.playback.player = None

    def on_rival(self, solver: str) -> None:
        self._rival_wanted += 1
        number = self._rival_wanted
        for one in self._followed[1:]:
            one.arm.end()
            one.follower.remove()
        del self._followed[1:]

        def follow(_: Any) -> None:
            if number == self._rival_wanted:
                one = _Followed(self._begun(self.setup.with_solver(solver), self.arm.q))
                one.follower = Follower(self._server, one.arm.robot, 1)
                self._followed.append(one)

        if solver == NONE or self.controlled is not None:
            return
        setup = self.setup.with_solver(solver)

        def compile_solver() -> None:
            if number == self._rival_wanted:
                setup.compiled()

        self.beside("rival", compile_solver, follow)

    def begin_another_session(self) -> Simulation | ControlledArm:
        """Go on in a new session, from the same posture; returns the one that has ended."""
        if self.controlled is not None:
            raise Refused(
                "Every session on a controller is recorded under runs/: there is nothing to keep."
            )
        ended, self._followed[0].arm = self.arm, self._begun(self.setup, self.arm.q)
        ended.end()
        return ended

    def advance(self, seconds: float) -> None:
        """Let time pass, s."""
        if self.playback.player is not None:
            self.playback.player.advance(seconds)
            return
        for one in self._followed:
            one.arm.advance(seconds)
        if self.controlled is not None:
            self.goal = self.controlled.goal

    def draw(self) -> None:
        """Show the present instant in the scene."""
        player = self.playback.player
        with self._server.atomic():
            for one in self._followed[1:]:
                one.follower.hide(player is not None)
            if player is not None:
                player.draw(self.follower)
                return
            for one in self._followed:
                if (sample := one.arm.sample()) is not None:
                    one.sample = sample
                    one.follower.show(sample)
                    if not one.arm.resting:
                        one.curve.add(one.arm.robot, sample)

    def describe(self) -> None:
        """Describe the instant that was drawn last."""
        self.shown.command = self.setup.command(self.playback.scenario)
        if self.playback.player is not None:
            self.playback.player.describe(self.shown, self.arm.solver.task)
            return
        for one in self._followed:
            one.follower.show_path()
        self.shown.rivals = [
            (
                one.arm.setup.solver,
                *(millimetres(error) for error in (one.sample.distance, *one.sample.errors)),
            )
            for one in self._followed
            if one.sample is not None and len(self._followed) > 1
        ]
        arm, sample = self.arm, self._followed[0].sample
        if sample is not None:
            arm.describe(sample, self.goal, self.shown)
            if self._busy == "compiling":
                waits = "The solver is being compiled; the previous one is used until then."
                self.shown.sentence = f"{waits} {self.shown.sentence}"
            if self.controlled is not None:
                self.shown.state, self.shown.moving = self._busy or arm.state, not arm.resting
