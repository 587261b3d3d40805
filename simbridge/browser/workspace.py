"""What the driving page works on: the goal, the simulated arms that follow it, iterations, and runs of scenarios.

Each `on_...` is what an event of that name asks for. What takes long happens beside the loop, and its result is one
more event; the arm goes on as it was meanwhile.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import viser

from simbridge.browser.controls import Control, arm_controls, solver_controls
from simbridge.browser.iterate import Iterate, iterated, iterations_csv, slow_in_slow_out
from simbridge.browser.page import NONE
from simbridge.browser.player import Player
from simbridge.browser.recording import copied, keep, load, record
from simbridge.browser.sample import Sample
from simbridge.browser.scene import Follower, Trail, draw_surroundings, flat_goal
from simbridge.browser.setup import StudioSetup, numbers_of
from simbridge.browser.simulation import Simulation, out_of_reach
from simbridge.browser.view import Curve, Shown, figures_of, joints_of, sentence_of
from simbridge.errors import InvalidParameter, SimbridgeError
from simbridge.robot.kinematics import tool_frame
from simbridge.robot.pose import Array
from simbridge.text import millimetres

Beside = Callable[[str, Any, Callable[[], Any]], None]
"""Does something beside the loop; name and facts of the event that its result becomes."""


class Workspace:
    """The state of a studio, to be used by the studio's loop alone.

    Args:
        setup: What it begins with.
        scenario: What is chosen to be played.
        folder: For the run directories that are not kept.
        beside: See `Beside`.

    Attributes:
        setup: As the pages show it; the arm may still have the one before.
        goal: Where the arms are sent, in base_link.
        start: Where an iteration begins (3,), m.
        shown: Texts.
        playing: What is played in place of the live arm.
        offers: Whether there are other controls than the pages show; who shows them takes it back.
        downloads: Files for the driving page.
    """

    def __init__(self, setup: StudioSetup, scenario: str, folder: Path, beside: Beside) -> None:
        self.setup, self._scenario, self._folder, self._beside = setup, scenario, folder, beside
        self._arms: list[tuple[Simulation, Follower]] = []
        self._count = self._wanted = 0
        self._iterates: list[Iterate] = []
        self.shown, self._curves = Shown(), (Curve(), Curve())
        self.playing: Player | None = None
        self.offers = False
        self.downloads: list[tuple[str, str]] = []
        self._first = self._simulation(setup, None)
        self.goal = tool_frame(self._first.robot, self._first.robot.home)
        self.start: Array = self.goal.translation.copy()

    def show_in(self, server: viser.ViserServer) -> None:
        """Draw everything in a server's scene."""
        self._server, robot = server, self._first.robot
        draw_surroundings(server, robot, self.setup.options.collision_scene)
        self._trail = Trail(server)
        self._arms.append((self._first, Follower(server, robot, 0)))

    def close(self) -> None:
        """End the sessions."""
        for simulation in [simulation for simulation, _ in self._arms] or [self._first]:
            with contextlib.suppress(SimbridgeError):
                simulation.__exit__()

    @property
    def arm(self) -> Simulation:
        """The arm of the first solver."""
        return self._arms[0][0] if self._arms else self._first

    @property
    def resting(self) -> bool:
        """Whether nothing moves, and nothing is played."""
        return self.playing is None and all(simulation.resting for simulation, _ in self._arms)

    @property
    def curves(self) -> tuple[Curve, Curve | None]:
        """The errors that are plotted, and those of the second solver, or of the run before."""
        first, second = (None, None) if self.playing is None else self.playing.curves
        if first is not None:
            return first, second
        return self._curves[0], self._curves[1] if len(self._arms) > 1 else None

    def controls(self) -> tuple[list[Control], list[Control]]:
        """Those of the solver, and those of the arm."""
        robot = self.arm.robot
        lengths = tuple(float(v) for v in robot.placements[1:, 0, 3]) if robot.planar else None
        return solver_controls(self.setup.solver), arm_controls(robot, lengths)

    def _simulation(self, setup: StudioSetup, start: Array | None) -> Simulation:
        self._count += 1
        made = Simulation(setup, self._folder / f"session{self._count}", start).__enter__()
        if self._count > 1:
            made.follow(self.goal)
        return made

    def on_drag(self, value: tuple[str, Array]) -> None:
        pose = np.asarray(value[1], dtype=float)
        self._go(pin.SE3(pin.Quaternion(*pose[3:]).normalized().matrix(), pose[:3]))

    def on_click(self, ray: tuple[Any, Any]) -> None:
        if (point := flat_goal(self.arm.robot, *ray)) is not None:
            self._go(pin.SE3(self.goal.rotation, point))

    def on_goal(self, position: tuple[float, float, float]) -> None:
        self._go(pin.SE3(self.goal.rotation, np.array(position, dtype=float)))

    def on_goal_turn(self, rotation: tuple[float, float, float]) -> None:
        self._go(pin.SE3(pin.exp3(np.radians(np.array(rotation, dtype=float))), self.goal.translation))

    def _go(self, goal: pin.SE3) -> None:
        if not np.isfinite(goal.homogeneous).all():
            raise InvalidParameter("goal", goal.translation.tolist(), "finite numbers")
        if self.playing is not None:
            self.on_stop(None)
        self.goal = goal
        for simulation, _ in self._arms:
            simulation.follow(goal)

    def on_start(self, position: tuple[float, float, float]) -> None:
        point = np.array(position, dtype=float)
        simulation = self.arm
        if (left := out_of_reach(simulation.robot, point)) > 0.0:
            raise InvalidParameter("start", f"{millimetres(left)} mm out of reach", "within the arm's reach")
        found = simulation.solver.solve(pin.SE3(self.goal.rotation, point), simulation.robot.home)
        if found.distance > 1e-3:
            raise InvalidParameter("start", f"{millimetres(found.distance)} mm out of reach", "within the arm's reach")
        self._begin_at(found.q)

    def on_home(self, _: None) -> None:
        self._begin_at(self.arm.robot.home)

    def _begin_at(self, q: Array) -> None:
        robot = self.arm.robot
        self.goal = tool_frame(robot, q)
        self.start = self.goal.translation.copy()
        self._trail.remove()
        self._replace(self.setup, q)

    def on_change(self, change: tuple[str, Any]) -> None:
        name, value = change
        control = next(one for controls in self.controls() for one in controls if one.name == name)
        if isinstance(value, str) and control.kind == "numbers":
            value = numbers_of(value)
        given = None if value is None else control.given(value)
        if isinstance(control.default, tuple) and isinstance(given, float):
            given = (given,)
        self._prepare(self.setup.changed(name, None if given == control.default else given))

    def on_solver(self, solver: str) -> None:
        self._prepare(self.setup.with_solver(solver))

    def _prepare(self, setup: StudioSetup) -> None:
        """Compile what a setup needs beside the loop; the old one goes on meanwhile."""
        self._wanted += 1
        self.setup = setup
        self._beside("built", (self._wanted, setup), setup.compiled)
        self.shown.playing = ""

    def on_failed(self, value: tuple[str, Any, Exception]) -> None:
        """What was to be done beside the loop has failed; the arm has the setup before."""
        name, facts, error = value
        if name == "built":
            if facts[0] != self._wanted:
                return
            self.setup = self.arm.setup
        self.shown.playing = self.shown.iterations = ""
        raise error

    def on_built(self, value: tuple[tuple[int, StudioSetup], Any]) -> None:
        (number, setup), _ = value
        if number != self._wanted:
            return
        simulation = self.arm
        same_lengths = setup.values.get("link_lengths") == simulation.setup.values.get("link_lengths")
        self.offers = setup.solver != simulation.setup.solver or self.offers
        self._replace(setup, simulation.q if same_lengths else simulation.robot.home)

    def _replace(self, setup: StudioSetup, q: Array) -> None:
        """Begin anew with a setup, at joint positions (n,), rad; of the second solver, too."""
        for curve in self._curves:
            curve.clear()
        for index, (simulation, follower) in enumerate(self._arms):
            simulation.__exit__()
            made = setup if index == 0 else setup.with_solver(simulation.setup.solver)
            new = self._simulation(made, q)
            if new.robot is not simulation.robot and not np.array_equal(
                new.robot.placements, simulation.robot.placements
            ):
                follower.remove()
                follower = Follower(self._server, new.robot, index)
            follower.forget_path()
            self._arms[index] = new, follower

    def on_rival(self, solver: str) -> None:
        if len(self._arms) > 1:
            simulation, follower = self._arms.pop()
            simulation.__exit__()
            follower.remove()
            self.shown.rivals = []
        if solver == NONE:
            return
        setup = self.setup.with_solver(solver)
        self._beside("rival built", setup, setup.compiled)

    def on_rival_built(self, value: tuple[StudioSetup, Any]) -> None:
        setup, _ = value
        simulation = self._simulation(setup, self.arm.q)
        self._arms.append((simulation, Follower(self._server, simulation.robot, 1)))

    def on_iterate(self, asked: dict[str, Any]) -> None:
        simulation, goal = self.arm, self.goal
        if (left := out_of_reach(simulation.robot, goal.translation)) > 0.0:
            raise InvalidParameter("goal", f"{millimetres(left)} mm out of reach", "within the arm's reach")
        setup, q = self.setup, self._start_posture()
        self.shown.iterations = "Iterating ..."
        self._beside("iterated", asked, lambda: iterated(setup, q, goal, asked["threshold"], asked["limit"]))

    def _start_posture(self) -> Array:
        simulation = self.arm
        home = simulation.robot.home
        if np.allclose(tool_frame(simulation.robot, home).translation, self.start, atol=1e-9):
            return home
        return simulation.solver.solve(pin.SE3(self.goal.rotation, self.start), home).q

    def on_iterated(self, value: tuple[dict[str, Any], Any]) -> None:
        asked, result = value
        self._iterates, words = result
        self.shown.iterations = words
        postures = [one.points for one in self._iterates]
        pauses = asked["pause"] * (slow_in_slow_out(len(postures)) if asked["slow"] else np.ones(len(postures)))
        self.playing = Player.of_postures(postures, self._iterates, pauses if asked["animated"] else 0.0 * pauses)

    def on_save_iterations(self, _: None) -> None:
        if not self._iterates:
            raise InvalidParameter("iterations", "none", "made first: press Iterate")
        text = iterations_csv(self.arm.robot, self._iterates)
        self.downloads.append(("iterations.csv", text))

    def on_scenario(self, name: str) -> None:
        self._scenario = name
        self.playing = None

    def on_play(self, _: None) -> None:
        if self.playing is not None and self.playing.resumed(self.setup, self._scenario):
            return
        setup, scenario = self.setup, self._scenario
        self._count += 1
        out = self._folder / f"run{self._count}"
        self.shown.playing = f"Running {scenario} ..."
        self._beside("recorded", scenario, lambda: record(setup, scenario, out))

    def on_recorded(self, value: tuple[str, Any]) -> None:
        scenario, result = value
        older = None if self.playing is None else self.playing.run
        self.playing = Player.of_run(result, scenario, older)
        self._arms[0][1].forget_path()
        self._trail.remove()

    def on_load(self, path: str) -> None:
        """A kept run: its settings, and the run itself to be played."""
        if path:
            self._beside("loaded", None, lambda: load(Path(path), self.setup.base))

    def on_loaded(self, value: tuple[None, Any]) -> None:
        played, scenario = value[1]
        self._prepare(played.setup)
        self.playing = Player.of_run(played, scenario, None)
        self.offers = True

    def on_pause(self, _: None) -> None:
        if self.playing is not None:
            self.playing.paused = not self.playing.paused

    def on_stop(self, _: None) -> None:
        self.playing = None
        self.shown.playing = self.shown.iterations = ""
        self._trail.remove()

    def on_scrub(self, percent: float) -> None:
        if self.playing is not None:
            self.playing.scrub(percent / 100.0)

    def on_keep(self, _: None) -> None:
        if self.playing is not None and self.playing.run is not None:
            played = self.playing.run
            self._beside("kept", None, lambda: keep(played))
            return
        simulation, follower = self._arms[0]
        simulation.__exit__()
        q = simulation.q
        self._arms[0] = self._simulation(self.setup, q), follower
        self._beside("kept", None, lambda: _kept(simulation))

    def on_kept(self, value: tuple[None, Any]) -> None:
        run = value[1]
        again = (
            f"simbridge run {run} --plan {run}" if (run / "inputs.jsonl").exists() else f"simbridge run --plan {run}"
        )
        self.shown.playing = f"Kept: {run}. `{again}` repeats it to the bit; its page is {run / 'report.html'}."

    def advance(self, seconds: float) -> None:
        """Let time pass, s."""
        if self.playing is not None:
            self.playing.advance(seconds)
            return
        for simulation, _ in self._arms:
            simulation.advance(seconds)

    def draw(self) -> None:
        """Show the present instant in the scene."""
        with self._server.atomic():
            if self.playing is not None:
                self.playing.draw(self._arms[0][1], self._trail)
                return
            for (simulation, follower), curve in zip(self._arms, self._curves, strict=False):
                if (sample := simulation.sample()) is not None:
                    follower.show(sample)
                    if not simulation.resting:
                        curve.add(sample.time, sample.errors, sample.distance)

    def describe(self) -> None:
        """Describe the present instant."""
        samples = [simulation.sample() for simulation, _ in self._arms]
        if self.playing is not None:
            self.playing.describe(self.shown)
        elif samples[0] is not None:
            self._describe_sample(samples[0])
        if self.playing is None:
            for _, follower in self._arms:
                follower.show_path()
        self.shown.command = self.setup.command(self._scenario)
        self.shown.rivals = (
            [
                (simulation.setup.solver, millimetres(s.distance), *(millimetres(e) for e in s.errors))
                for (simulation, _), s in zip(self._arms, samples, strict=True)
                if s is not None
            ]
            if len(self._arms) > 1
            else []
        )

    def _describe_sample(self, sample: Sample) -> None:
        simulation = self.arm
        reach = out_of_reach(simulation.robot, self.goal.translation)
        self.shown.sentence = sentence_of(sample, simulation.error, reach, simulation.solver.task)
        iterations = getattr(simulation.setup.solver_settings, "iterations", None)
        options = simulation.setup.options
        delay = options.plant_model.lookahead if options.servo == "servoj" else None
        self.shown.figures = figures_of(sample, simulation.dexterity, iterations, delay)
        self.shown.joints = joints_of(simulation.robot, sample)


def _kept(simulation: Simulation) -> Path:
    simulation.keep()
    return copied(simulation.directory, "studio")
