"""The state that the driving page changes: goal, start, setup, and playback.

Long tasks run in the background of the studio's loop, and their results arrive as events; the arm
goes on as it was meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import viser
from numpy.typing import ArrayLike

from simbridge.browser.arm_group import ArmGroup, Simulate
from simbridge.browser.background import RunInBackground
from simbridge.browser.controlled_arm import ControlledArm
from simbridge.browser.controls import ITERATE, PanelControl, controls_of
from simbridge.browser.curve import Curve
from simbridge.browser.engagement import Engagement
from simbridge.browser.events import RequestRefused
from simbridge.browser.playback import Playback
from simbridge.browser.setup import StudioSetup
from simbridge.browser.simulated_arm import SimulatedStudioArm
from simbridge.browser.view import NO_RIVAL, PageView
from simbridge.errors import InvalidParameter, SimbridgeError
from simbridge.robot.kinematics import tool_frame
from simbridge.robot.pose import Array
from simbridge.text import millimetres

# No arm reaches so far, m.
MAX_COORDINATE = 1e3


class StudioWorkspace:
    """The state of a studio, to be used by the studio's loop alone.

    Args:
        setup: The first settings.
        controlled: The arm, where a controller moves it.
        simulate: Makes a simulated arm.
        run_in_background: Runs what takes long.
        scenario: The scenario that *Play* runs: see `Playback`.
        folder: Directory of the runs that are not kept: see `Playback`.

    Attributes:
        setup: The setup that the pages show; the arm may still have the one before.
        arms: The arms that follow the goal.
        start: Position of the TCP in base_link (3,), m, at which an iteration begins.
        start_q: Joint positions (n,), rad, at which an iteration begins.
        view: What the pages show besides the scene.
        run_in_background: Runs what takes long.
        engagement: Mediates between the pages and an arm behind a controller.
        playback: What is played in place of the live arm.
        offered_count: Counts how often there were other controls to be shown.
    """

    def __init__(
        self,
        setup: StudioSetup,
        controlled: ControlledArm | None,
        simulate: Simulate,
        *,
        run_in_background: RunInBackground,
        scenario: str,
        folder: Path,
    ) -> None:
        self.setup = setup
        self.view = PageView()
        self.run_in_background = run_in_background
        self.offered_count = 0
        # Numbers of the setup and of the second solver that were wanted last: what was wanted
        # before is not done any more.
        self._wanted_setup = 0
        self._wanted_rival = 0

        self.arms = ArmGroup(setup, controlled, simulate)
        self.engagement = Engagement(self.arms, self.view, run_in_background)
        self.playback = Playback(self, scenario, folder)
        self.start_q = self.arm.q
        self.start: Array = self.goal.translation.copy()

        # What each event of a page does: those without a value, and those with one.
        self._actions: dict[str, Callable[[], None]] = {
            "here": self.start_here,
            "home": self.start_at_home,
            "engage": self.engagement.engage,
            "disengage": self.engagement.disengage,
            "hold go": self.engagement.hold,
            "release": self.engagement.release,
            "save iterations": self.playback.save_iterations,
            "play": self.playback.play,
            "pause": self.playback.pause,
            "stop": self.playback.stop,
            "keep": self.playback.keep,
        }
        self._inputs: dict[str, Callable[[Any], None]] = {
            "drag": self.drag_goal,
            "goal": self.move_goal,
            "clicked goal": self.move_goal,
            "goal turn": self.turn_goal,
            "speed": self.change_speed,
            "start": self.move_start,
            "clicked start": self.move_start,
            "change": self.change,
            "solver": self.choose_solver,
            "rival": self.choose_rival,
            "answer": self.engagement.answer,
            "iterate": self.playback.iterate,
            "scenario": self.playback.choose_scenario,
            "load": self.playback.load,
            "scrub": self.playback.scrub,
        }

    def handle(self, name: str, value: Any) -> None:
        """Do what an event of a page asks for.

        Args:
            name: Name of the event.
            value: The value that the user chose.

        Raises:
            SimbridgeError: What the event asks for cannot be done; the error says why.
        """
        if name in self._actions:
            self._actions[name]()
        elif name in self._inputs:
            self._inputs[name](value)
        else:
            raise RequestRefused(f"There is no event '{name}'.")

    def show_in(self, server: viser.ViserServer) -> None:
        """Draw everything in a server's scene."""
        self._server = server
        self.arms.show_in(server)

    def close(self) -> None:
        """End the sessions."""
        self.arms.close()

    def fail(self, error: Exception) -> None:
        """Raise an error of the work in the background, which is no longer awaited."""
        self.view.busy = ""
        self.view.playing = ""
        self.view.iterations = ""
        raise error

    @property
    def arm(self) -> SimulatedStudioArm | ControlledArm:
        """The arm of the first solver."""
        return self.arms.arm

    @property
    def goal(self) -> pin.SE3:
        """The pose to which the arms are sent, in base_link."""
        return self.arms.goal

    @property
    def rival(self) -> str:
        """The second solver's name, or `NO_RIVAL`."""
        return self.arms.rival or NO_RIVAL

    @property
    def resting(self) -> bool:
        """True if no arm moves, and nothing is played."""
        return self.playback.player is None and self.arms.resting

    @property
    def curves(self) -> tuple[Curve, Curve | None]:
        """The errors that are plotted, and those of the second solver, or of the run before."""
        player = self.playback.player
        if player is not None:
            curve, older_curve = player.curves
            if curve is not None:
                return curve, older_curve
        return self.arms.curves

    def controls(self) -> tuple[list[PanelControl], ...]:
        """Return the controls of the solver, of the arm, and of iterations."""
        return controls_of(self.setup, self.arm.robot)

    @property
    def values(self) -> tuple[dict[str, Any], set[str]]:
        """Values by the names of their controls, and the names of those that were changed."""
        iterating = {}
        for name, value in self.playback.iterating.items():
            iterating[ITERATE + name] = value
        return self.setup.shown_values | iterating, {*self.setup.values, *iterating}

    def drag_goal(self, drag: tuple[str, Array]) -> None:
        """Move the goal with the frame that a page drags.

        Args:
            drag: Phase of the drag ("start", "update" or "end"), and the frame's pose (7,):
                position in base_link, m, and quaternion w x y z.
        """
        phase, pose = drag
        numbers = _check_numbers(pose, 7)
        rotation = pin.Quaternion(*numbers[3:]).normalized().matrix()
        frame = pin.SE3(rotation, numbers[:3])
        if self.arms.controlled is None:
            self._go_to(frame)
        else:
            self.arms.controlled.drag(phase, frame)

    def move_goal(self, position: ArrayLike) -> None:
        """Move the goal to a position (3,) in base_link, m."""
        self._go_to(pin.SE3(self.goal.rotation, _check_numbers(position, 3)))

    def turn_goal(self, rotation: ArrayLike) -> None:
        """Turn the goal to a rotation vector (3,) in base_link, degrees."""
        angles = np.radians(_check_numbers(rotation, 3))
        self._go_to(pin.SE3(pin.exp3(angles), self.goal.translation))

    def _go_to(self, goal: pin.SE3) -> None:
        if self.playback.player is not None:
            self.playback.stop()
        self.arms.go_to(goal)

    def change_speed(self, percent: float) -> None:
        """Move at most at a part of full speed, 0 to 100 %.

        Raises:
            RequestRefused: The speed is raised while an arm behind a controller moves.
        """
        speed = percent / 100.0
        if speed > self.arms.speed:
            self._require_rest("The speed is raised")
        self.arms.slow_down(speed)

    def _require_rest(self, sentence: str) -> None:
        """Refuse what is done only while an arm behind a controller is at rest."""
        if self.arms.controlled is not None and not self.arms.controlled.resting:
            raise RequestRefused(
                f"{sentence} only while the arm is at rest: release the goal first."
            )

    def move_start(self, position: ArrayLike) -> None:
        """Begin with the TCP at a position (3,) in base_link, m, turned as the goal.

        Raises:
            InvalidParameter: The position is out of reach.
            RequestRefused: The arm is behind a controller.
        """
        pose = pin.SE3(self.goal.rotation, _check_numbers(position, 3))
        self._begin_at(self.arm.posture_at(pose, "start"))

    def start_here(self) -> None:
        """Begin where the arm is."""
        self._begin_at(self.arm.q)

    def start_at_home(self) -> None:
        """Begin at the robot's home."""
        self._begin_at(self.arm.robot.home)

    def _begin_at(self, q: Array) -> None:
        """Begin anew at joint positions q (n,), rad, with the goal there."""
        if self.arms.controlled is not None:
            raise RequestRefused("A controller's arm starts where it is.")
        before = self.goal
        self.arms.goal = tool_frame(self.arm.robot, q)
        try:
            self._replace_arms(self.setup, q)
        except SimbridgeError:
            self.arms.goal = before
            raise
        self.start = self.goal.translation.copy()
        self.start_q = q

    def change(self, change: tuple[str, Any]) -> None:
        """Change a setting, compiled in the background where the arm has it.

        Args:
            change: The name of its control, and the value as the page has it; None for the default.

        Raises:
            SimbridgeError: The value makes no sense, or the control cannot be used now.
        """
        name, page_value = change
        control = self._find_control(name)
        if control.locked:
            raise RequestRefused(control.locked)

        value = None if page_value is None else control.from_page(page_value)
        if value == control.default:
            value = None
        if name.startswith(ITERATE):
            self.playback.change(name.removeprefix(ITERATE), value)
        else:
            self._prepare(self.setup.with_value(name, value), name)

    def _find_control(self, name: str) -> PanelControl:
        """Return the control with a name, if it is still offered."""
        for controls in self.controls():
            for control in controls:
                if control.name == name:
                    return control
        raise RequestRefused("This control is no longer available: another solver was chosen.")

    def choose_solver(self, solver: str) -> None:
        """Let the arm follow the goal by another solver, compiled in the background."""
        self._prepare(self.setup.with_solver(solver), "solver")

    def _prepare(self, setup: StudioSetup, control: str) -> None:
        """Compile what a setup needs in the background; the arm goes on with the one before.

        Args:
            setup: Shown at once.
            control: The control at which an error is shown.
        """
        self._require_rest("Settings change")
        self._wanted_setup += 1
        number = self._wanted_setup
        self.setup = setup
        controlled = self.arms.controlled
        if controlled is not None:
            controlled.forbid()

        def build() -> None:
            # Another setup may be wanted meanwhile.
            if number != self._wanted_setup:
                return
            setup.compile_solver()
            if controlled is not None:
                controlled.renew(setup)

        def finish(_: None) -> None:
            if number == self._wanted_setup:
                self.view.busy = ""
                self.adopt(setup)

        def fail(error: Exception) -> None:
            if number == self._wanted_setup:
                self.setup = self.arm.setup
                if controlled is not None and controlled.state not in ("idle", "ended"):
                    controlled.begin(self.arms.speed)
                self.fail(error)

        self.view.busy = "compiling"
        self.view.playing = ""
        self.run_in_background(control, build, finish, fail)

    def adopt(self, setup: StudioSetup) -> None:
        """Go on with a setup whose solver is compiled.

        Raises:
            SimbridgeError: A session refuses it; the arm and the pages keep the one before.
        """
        before = self.arm.setup
        self.setup = setup
        self.offered_count += 1
        if self.arms.controlled is not None:
            return

        same_lengths = setup.values.get("link_lengths") == before.values.get("link_lengths")
        q = self.arm.q if same_lengths else setup.arm.home
        try:
            self._replace_arms(setup, q)
        except SimbridgeError:
            self.setup = before
            raise

    def _replace_arms(self, setup: StudioSetup, q: Array) -> None:
        """Begin anew at joint positions q (n,), rad; an iteration is then no longer played."""
        self.arms.replace(setup, q)
        player = self.playback.player
        if player is not None and player.run is None:
            self.playback.player = None

    def choose_rival(self, solver: str) -> None:
        """Let a second arm follow the goal by another solver; `NO_RIVAL` for none."""
        self._wanted_rival += 1
        number = self._wanted_rival
        self.arms.remove_rival()
        if solver == NO_RIVAL or self.arms.controlled is not None:
            return
        setup = self.setup.with_solver(solver)

        def compile_solver() -> None:
            if number == self._wanted_rival:
                setup.compile_solver()

        def follow(_: None) -> None:
            if number == self._wanted_rival:
                # The setup may have changed meanwhile.
                self.arms.add_rival(self.setup.with_solver(solver))

        self.run_in_background("rival", compile_solver, follow)

    def advance(self, seconds: float) -> None:
        """Let time pass, s."""
        if self.playback.player is not None:
            self.playback.player.advance(seconds)
        else:
            self.arms.advance(seconds)

    def draw(self) -> None:
        """Show the present instant in the scene."""
        player = self.playback.player
        with self._server.atomic():
            self.arms.hide_rival(player is not None)
            if player is not None:
                player.draw(self.arms.drawing)
            else:
                self.arms.draw()

    def describe(self) -> None:
        """Describe the instant that was drawn last."""
        view = self.view
        view.command = self.setup.command(self.playback.scenario)
        if self.playback.player is not None:
            self.playback.player.describe(view, self.arm.solver.task)
            return

        self.arms.draw_paths()
        view.rivals = self._rival_rows()
        snapshot = self.arms.snapshot
        if snapshot is None:
            return
        self.arm.describe(snapshot, self.goal, view)
        if view.busy == "compiling":
            wait = "The solver is being compiled; the previous one is used until then."
            view.sentence = f"{wait} {view.sentence}"
        if self.arms.controlled is not None:
            view.state = view.busy or self.arm.state
            view.moving = not self.arm.resting

    def _rival_rows(self) -> list[tuple[str, ...]]:
        """Return a row for each solver, with its error and the sources; none for one solver."""
        if self.arms.rival is None:
            return []
        rows = []
        for solver, snapshot in self.arms.snapshots:
            errors = (snapshot.distance, *snapshot.errors)
            rows.append((solver, *(millimetres(error) for error in errors)))
        return rows


def _check_numbers(values: ArrayLike, count: int) -> Array:
    """Return the numbers of a position or a pose that a page sends.

    Raises:
        InvalidParameter: There are more or fewer, or some beyond any arm.
    """
    numbers = np.asarray(values, dtype=float)
    if numbers.shape != (count,) or not (np.abs(numbers) < MAX_COORDINATE).all():
        needed = f"{count} numbers below {MAX_COORDINATE:g}"
        raise InvalidParameter("place", numbers.tolist(), needed)
    return numbers
