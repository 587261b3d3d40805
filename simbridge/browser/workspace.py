"""What the driving page works on: the goal, the settings, and the arms that follow the goal.

Each `on_...` is what an event of that name asks for. What takes long happens beside the loop, and its result is one
more event; the arm goes on as it was meanwhile.
"""

from __future__ import annotations

import contextlib
import queue
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import viser
from numpy.typing import ArrayLike

from simbridge.backends.backend import Facts
from simbridge.browser.controlled_arm import ControlledArm
from simbridge.browser.controls import Control, controls_of
from simbridge.browser.iterate import ITERATE
from simbridge.browser.live_arm import LiveArm, Refused, dexterity_at, out_of_reach
from simbridge.browser.page import NONE
from simbridge.browser.playback import Playback
from simbridge.browser.scene import Follower, draw_surroundings
from simbridge.browser.setup import StudioSetup, numbers_of, place_of
from simbridge.browser.simulation import Simulation
from simbridge.browser.view import Curve, Sample, Shown, figures_of, joints_of, rivals_of, sentence_of, table
from simbridge.errors import SimbridgeError
from simbridge.robot.kinematics import tool_frame
from simbridge.robot.pose import Array

Beside = Callable[[str, Any, Callable[[], Any]], None]
"""Does something beside the loop; name and facts of the event that its result becomes."""


class Workspace:
    """The state of a studio, to be used by the studio's loop alone.

    Args:
        setup: What it begins with.
        scenario: What is chosen to be played.
        folder: For the run directories that are not kept.
        beside: See `Beside`.
        ask: Shows facts to the driving page and waits for its answer; called beside the loop.

    Attributes:
        setup: As the pages show it; the arm may still have the one before.
        goal: Where the arms are sent, in base_link.
        start, start_q: Where an iteration begins: place (3,), m, and joint positions (n,), rad.
        share: Of full speed, at most.
        shown: Texts.
        playback: What is played in place of the live arm.
        answers: What the driving page answers to a question.
        offers: Whether there are other controls than the pages show; who shows them takes it back.
    """

    def __init__(
        self, setup: StudioSetup, scenario: str, folder: Path, beside: Beside, ask: Callable[[Facts, str], bool]
    ) -> None:
        self.setup, self._folder, self._beside, self._ask = setup, folder, beside, ask
        self._arms: list[tuple[LiveArm, Follower]] = []
        self._samples: list[Sample | None] = []
        self._count = self._wanted = self._rival_wanted = 0
        self.share, self.shown, self._curves = 1.0, Shown(), (Curve(), Curve())
        self.offers, self._busy = False, ""
        self.answers: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self.playback = Playback(self, scenario, folder, beside)
        self._first = self._made(setup, None)
        self.goal = tool_frame(self._first.robot, self._first.q)
        self.start: Array = self.goal.translation.copy()
        self.start_q = self._first.q

    def show_in(self, server: viser.ViserServer) -> None:
        """Draw everything in a server's scene."""
        self._server, robot = server, self._first.robot
        draw_surroundings(server, robot, self.setup.options.collision_scene)
        self._arms.append((self._first, Follower(server, robot, 0)))
        self.playback.show_in(server, self._arms[0][1])

    def close(self) -> None:
        """End the sessions."""
        for arm in [arm for arm, _ in self._arms] or [self._first]:
            with contextlib.suppress(SimbridgeError):
                arm.end()

    @property
    def arm(self) -> LiveArm:
        """The arm of the first solver."""
        return self._arms[0][0] if self._arms else self._first

    @property
    def controlled(self) -> ControlledArm | None:
        """The arm, where a controller moves it."""
        return self.arm if isinstance(self.arm, ControlledArm) else None

    @property
    def rival(self) -> str:
        """The second solver's name, or `NONE`."""
        return self._arms[1][0].setup.solver if len(self._arms) > 1 else NONE

    @property
    def resting(self) -> bool:
        """Whether nothing moves, and nothing is played."""
        return self.playback.player is None and all(arm.resting for arm, _ in self._arms)

    @property
    def curves(self) -> tuple[Curve, Curve | None]:
        """The errors that are plotted, and those of the second solver, or of the run before."""
        first, second = self.playback.curves
        if first is not None:
            return first, second
        return self._curves[0], self._curves[1] if len(self._arms) > 1 else None

    def controls(self) -> tuple[list[Control], ...]:
        """Those of the solver, of the arm, and of iterations."""
        return controls_of(self.setup, self.arm.robot)

    @property
    def values(self) -> tuple[dict[str, Any], set[str]]:
        """By the names of their controls, values, and which of them were changed."""
        of_iterations = {ITERATE + name: value for name, value in self.playback.iterating.items()}
        return self.setup.shown_values | of_iterations, {*self.setup.values, *of_iterations}

    def _made(self, setup: StudioSetup, start: Array | None) -> LiveArm:
        if not setup.simulated:
            return ControlledArm(setup, self._ask)
        self._count += 1
        made = Simulation(setup, self._folder / f"session{self._count}", start).__enter__()
        if self._count > 1:
            made.follow(self.goal)
        made.slow_down(self.share)
        return made

    def on_drag(self, value: tuple[str, Array]) -> None:
        phase, pose = value[0], place_of(value[1], 7)
        goal = pin.SE3(pin.Quaternion(*pose[3:]).normalized().matrix(), pose[:3])
        if (arm := self.controlled) is None:
            self._go(goal)
        else:
            arm.drag(phase, goal)

    def on_goal(self, position: ArrayLike) -> None:
        self._go(pin.SE3(self.goal.rotation, place_of(position, 3)))

    on_clicked_goal = on_goal

    def on_goal_turn(self, rotation: ArrayLike) -> None:
        self._go(pin.SE3(pin.exp3(np.radians(place_of(rotation, 3))), self.goal.translation))

    def _go(self, goal: pin.SE3) -> None:
        if self.playback.player is not None:
            self.playback.on_stop(None)
        self.goal = goal
        for arm, _ in self._arms:
            arm.follow(goal)

    def on_hold_go(self, _: None) -> None:
        if self.controlled is not None:
            self.controlled.drive()

    def on_release(self, _: Any) -> None:
        if self.controlled is not None:
            self.controlled.release()

    def on_engage(self, _: None) -> None:
        if (arm := self.controlled) is not None:
            arm.forbid()
            self._busy = "engaging"
            self._beside("engaged", None, arm.engage)

    def on_disengage(self, _: None) -> None:
        if (arm := self.controlled) is not None:
            arm.forbid()
            self._beside("release", None, arm.disengage)

    def on_engaged(self, _: tuple[None, Any]) -> None:
        self._busy = ""
        if self.controlled is not None:
            self.controlled.begin(self.share)

    def on_asked(self, asked: tuple[Facts, str] | None) -> None:
        """A person must answer before a real arm moves; None: it was answered, or nobody did."""
        self.shown.question = ""
        if asked is not None:
            self.shown.question = f"{table(asked[0], ('found', 'value'))}\n\n**{asked[1]}**"

    def on_answer(self, confirmed: bool) -> None:
        if self.shown.question:
            self.answers.put(confirmed)

    def on_left(self, _: None) -> None:
        """The page that drove has left, or another one drives: nobody holds the goal, nor confirms anything."""
        self.on_release(None)
        self.on_answer(False)

    def on_speed(self, percent: float) -> None:
        share = percent / 100.0
        if self.controlled is not None and share > self.share:
            self._only_at_rest("The speed is raised")
        for arm, _ in self._arms:
            arm.slow_down(share)
        self.share = share

    def _only_at_rest(self, name: str) -> None:
        if self.controlled is not None and not self.controlled.resting:
            raise Refused(f"{name} only while the arm is at rest: release the goal first.")

    def on_start(self, position: ArrayLike) -> None:
        self._begin_at(self.arm.posture_at(pin.SE3(self.goal.rotation, place_of(position, 3)), "start"))

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
        control = next(one for controls in self.controls() for one in controls if one.name == name)
        if control.locked:
            raise Refused(control.locked)
        if isinstance(value, str) and control.kind == "numbers":
            value = numbers_of(value)
        given = None if value is None else control.given(value)
        if isinstance(control.default, tuple) and isinstance(given, float):
            given = (given,)
        given = None if given == control.default else given
        if name.startswith(ITERATE):
            self.playback.change(name.removeprefix(ITERATE), given)
        else:
            self._prepare(self.setup.changed(name, given), name)

    def on_solver(self, solver: str) -> None:
        self._prepare(self.setup.with_solver(solver))

    def _prepare(self, setup: StudioSetup, control: str = "") -> None:
        """Compile what a setup needs beside the loop; the old one goes on meanwhile."""
        self._only_at_rest("Settings change")
        self._wanted += 1
        self.setup, arm = setup, self.controlled
        if arm is not None:
            arm.forbid()

        def build() -> None:
            setup.compiled()
            if arm is not None:
                arm.renew(setup)

        self._busy = "compiling"
        self._beside("built", (control, self._wanted, setup), build)
        self.shown.playing = ""

    def on_failed(self, value: tuple[str, Any, Exception]) -> None:
        """What was to be done beside the loop has failed; the arm has the setup before."""
        name, facts, error = value
        self._busy = ""
        if name == "built":
            if facts[1] != self._wanted:
                return
            self.setup = self.arm.setup
            if self.controlled is not None and self.controlled.state not in ("idle", "ended"):
                self.controlled.begin(self.share)
        self.shown.playing = self.shown.iterations = ""
        raise error

    def on_built(self, value: tuple[tuple[str, int, StudioSetup], Any]) -> None:
        (_, number, setup), _ = value
        if number == self._wanted:
            self._busy = ""
            self.adopt(setup)

    def adopt(self, setup: StudioSetup) -> None:
        """Go on with a setup whose solver is compiled.

        Raises:
            SimbridgeError: A session refuses it; the arm and the pages keep the one before.
        """
        before, self.setup, self.offers = self.arm.setup, setup, True
        if self.controlled is not None:
            return
        same_lengths = setup.values.get("link_lengths") == before.values.get("link_lengths")
        try:
            self._replace(setup, self.arm.q if same_lengths else setup.arm.home)
        except SimbridgeError:
            self.setup = before
            raise

    def _replace(self, setup: StudioSetup, q: Array) -> None:
        """Begin anew with a setup, at joint positions (n,), rad; of the second solver, too.

        Raises:
            SimbridgeError: A session refuses the setup; the arms go on as they were.
        """
        with contextlib.ExitStack() as stack:
            new = []
            for index, (arm, _) in enumerate(self._arms):
                new.append(self._made(setup if index == 0 else setup.with_solver(arm.setup.solver), q))
                stack.callback(new[-1].end)
            stack.pop_all()
        for curve in self._curves:
            curve.clear()
        for index, ((old, follower), made) in enumerate(zip(self._arms, new, strict=True)):
            old.end()
            if not np.array_equal(made.robot.placements, old.robot.placements):
                follower.remove()
                follower = Follower(self._server, made.robot, index)
            follower.forget_path()
            self._arms[index] = made, follower
        self.playback.begin_anew(self._arms[0][1])

    def on_rival(self, solver: str) -> None:
        self._rival_wanted += 1
        if len(self._arms) > 1:
            arm, follower = self._arms.pop()
            arm.end()
            follower.remove()
        if solver != NONE and self.controlled is None:
            self._beside("rival built", (self._rival_wanted, solver), self.setup.with_solver(solver).compiled)

    def on_rival_built(self, value: tuple[tuple[int, str], Any]) -> None:
        (number, solver), _ = value
        if number == self._rival_wanted:
            arm = self._made(self.setup.with_solver(solver), self.arm.q)
            self._arms.append((arm, Follower(self._server, arm.robot, 1)))

    def begin_another_session(self) -> Simulation:
        """Go on in a new session, from the same posture; returns the one that has ended.

        Raises:
            Refused: The arm is a controller's.
        """
        if not isinstance(arm := self.arm, Simulation):
            raise Refused("Every session on a controller is recorded under runs/: there is nothing to keep.")
        self._arms[0] = self._made(self.setup, arm.q), self._arms[0][1]
        arm.end()
        return arm

    def advance(self, seconds: float) -> None:
        """Let time pass, s."""
        if self.playback.player is not None:
            self.playback.player.advance(seconds)
            return
        for arm, _ in self._arms:
            arm.advance(seconds)
        if self.controlled is not None:
            self.goal = self.controlled.goal

    def draw(self) -> None:
        """Show the present instant in the scene."""
        with self._server.atomic():
            playing = self.playback.draw()
            for _, rival in self._arms[1:]:
                rival.hide(playing)
            if playing:
                return
            self._samples = [arm.sample() for arm, _ in self._arms]
            for (arm, follower), sample, curve in zip(self._arms, self._samples, self._curves, strict=False):
                if sample is not None:
                    follower.show(sample)
                    if not arm.resting:
                        curve.add(arm.robot, sample)

    def describe(self) -> None:
        """Describe the instant that was drawn last."""
        if not self.playback.describe():
            self._describe_live(self._samples)
        self.shown.command = self.setup.command(self.playback.scenario)

    def _describe_live(self, samples: list[Sample | None]) -> None:
        for _, follower in self._arms:
            follower.show_path()
        self.shown.rivals = rivals_of([arm.setup.solver for arm, _ in self._arms], samples)
        if (sample := samples[0]) is None:
            return
        arm = self.arm
        words = "The solver is being compiled; the previous one is used until then. " * (self._busy == "compiling")
        reach, task = out_of_reach(arm.robot, self.goal.translation), arm.solver.task
        self.shown.sentence = words + sentence_of(sample, arm.error, reach, task)
        if self.controlled is not None:
            self.shown.state, self.shown.moving = self._busy or arm.state, not arm.resting
        iterations = getattr(arm.setup.solver_settings, "iterations", None)
        dexterity = dexterity_at(arm.robot, sample.q, task)
        self.shown.figures = figures_of(sample, dexterity, iterations, arm.setup.servo_delay)
        self.shown.joints = joints_of(arm.robot, sample)
