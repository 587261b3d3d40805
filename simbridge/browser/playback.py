"""Iterations and runs of scenarios, which the pages play in place of the live arm; simulation only."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pinocchio as pin

from simbridge.browser.iterate import Iterate, iterated, iterations_csv, slow_in_slow_out
from simbridge.browser.scene import Follower
from simbridge.browser.setup import SOLVER, IterateSettings, StudioSetup
from simbridge.browser.view import Curve, Refused, Sample, Shown, out_of_reach, shares_of_limits
from simbridge.errors import InvalidParameter
from simbridge.evaluation.evaluation import Evaluation
from simbridge.ik.settings import SOLVERS
from simbridge.planning.scenario import is_custom_script
from simbridge.recording.run_directory import RunDirectory
from simbridge.report.settings_list import repeat_command
from simbridge.robot.pose import Array
from simbridge.running.run_setup import Prepared, prepare
from simbridge.running.runner import begin, finalize, open_backend, record_end, stream_plan
from simbridge.text import millimetres

if TYPE_CHECKING:  # the studio makes them
    from simbridge.browser.arms import ControlledArm, Simulation


@dataclass(frozen=True)
class Played:
    """A finished run of a scenario in simulation, as the page plays it.

    Attributes:
        setup: With which it was made.
        prepared: Plan and solver; None for one that was loaded.
        path: Its run directory.
        times: Of the samples (T,), s.
        q, qd: Of the arm (T, n), rad and rad/s.
        solution: Joint positions (T, n), rad.
        target: Of the solver (T, 7).
        errors: Distances by source (T, 5), m: see `SOURCES`.
        tracking: Between reference and tool (T,), m.
    """

    setup: StudioSetup
    prepared: Prepared | None
    path: Path
    times: Array
    q: Array
    qd: Array
    solution: Array
    target: Array
    errors: Array
    tracking: Array

    @staticmethod
    def record(setup: StudioSetup, scenario: str, out: Path) -> Played:
        """Plan a scenario, run it in simulation as fast as it goes, and read it back."""
        prepared = prepare(
            scenario,
            robot=setup.bare_arm,
            solver_name=setup.solver,
            solver_changes=setup.solver_values,
            options=setup.options,
        )
        backend = open_backend(prepared)
        directory = RunDirectory.create(out, prepared.scenario.name)
        begin(prepared, backend, directory)
        with backend:
            stream_plan(prepared, backend, directory, None)
        record_end(directory, "completed", backend)
        return Played._read(setup, prepared, directory)

    @staticmethod
    def load(path: Path, shown: StudioSetup) -> tuple[Played, str]:
        """A kept run, read back, and the name of its scenario. Its solver is compiled.

        Args:
            path: The run directory.
            shown: What the studio shows: the run must be of the same arm; a planar one may have other link lengths.

        Raises:
            NotARun, LogReadError: A part of it is missing or broken.
            InvalidParameter: It was made with a custom solver, or with another arm.
        """
        directory = RunDirectory.open(path)
        settings = directory.complete_settings()
        robot, solver, scenario = settings["robot"], settings["solver"], settings["scenario"]
        if solver["name"] not in SOLVERS:
            raise InvalidParameter(
                "run", path, f"made with a solver of simbridge, not with {solver['name']}"
            )
        values = {
            SOLVER + name: tuple(v) if isinstance(v, list) else v
            for name, v in solver["parameters"].items()
        }
        if robot["name"] == shown.arm.name and shown.arm.planar:
            chain = np.array(settings["kinematics"]["placements"]).reshape(-1, 4, 4)
            values["link_lengths"] = tuple(chain[1:, 0, 3].tolist())
        setup = StudioSetup(shown.robot, solver["name"], values, shown.base)
        if (
            robot["name"] != shown.arm.name
            or setup.arm.checksum != settings["kinematics"]["checksum"]
        ):
            needed = (
                f"made with the arm of this studio, {shown.arm.name}, and its TCP and kinematics"
            )
            raise InvalidParameter("run", f"{path}, made with {robot['name']}", needed)
        setup.compiled()
        return Played._read(setup, None, directory), scenario.get("file") or scenario["name"]

    @staticmethod
    def _read(setup: StudioSetup, prepared: Prepared | None, directory: RunDirectory) -> Played:
        found = Evaluation.of(directory)
        *way, attained = found.poses.values()
        way += [way[-1] if found.predicted is None else found.predicted, attained]
        errors = [np.linalg.norm(b[:, :3] - a[:, :3], axis=1) for a, b in pairwise(way)]
        log = found.log
        return Played(
            setup=setup,
            prepared=prepared,
            path=directory.path,
            times=log.stamp - log.stamp[0],
            q=log.position,
            qd=log.velocity,
            solution=log.solution,
            target=found.poses["target"],
            errors=np.column_stack(errors),
            tracking=found.errors.tracking.distance,
        )

    def keep(self) -> Path:
        """Write its report, and copy it to a new directory under runs/, which is returned; a loaded one is kept."""
        if self.prepared is None:
            return self.path
        backend = open_backend(self.prepared)
        finalize(
            RunDirectory.open(self.path), "completed", self.prepared.options.tolerance, backend
        )
        return _copied(self.path, self.prepared.scenario.name)

    @property
    def rms(self) -> float:
        """Of the tracking error, m."""
        return float(np.sqrt(np.mean(self.tracking**2)))

    @property
    def curve(self) -> Curve:
        """Its errors, and the joints' shares of their limits."""
        shares = shares_of_limits(self.setup.arm, self.q, self.qd)
        return Curve.of(np.column_stack([self.times, self.tracking, self.errors, *shares]))

    def sample(self, k: int) -> Sample:
        """The k-th."""
        errors, left = tuple(self.errors[k].tolist()), float(self.tracking[k])
        return Sample(
            float(self.times[k]),
            self.q[k],
            self.qd[k],
            self.solution[k],
            self.target[k],
            errors,
            left,
            0.0,
            (),
        )


@dataclass
class Player:
    """A motion with a clock: a run of a scenario at its own speed, or the postures of an iteration.

    Attributes:
        times: When each frame is shown (K,), s.
        run: Of a scenario; None for an iteration.
        older: The run before it, over which its errors are shown.
        scenario: Its name.
        iterates: Of an iteration.
        now: On its clock, s.
        paused: Whether the clock stands.
    """

    times: Array
    run: Played | None = None
    older: Played | None = None
    scenario: str = ""
    iterates: Sequence[Iterate] = ()
    now: float = 0.0
    paused: bool = False
    _drawn: int = -1

    @property
    def duration(self) -> float:
        """s."""
        return float(self.times[-1])

    @property
    def frame(self) -> int:
        """The number of the frame that is shown."""
        return max(0, int(np.searchsorted(self.times, self.now, side="right")) - 1)

    @property
    def share(self) -> float:
        """How much of it was shown, 0 to 1."""
        return self.now / self.duration if self.duration > 0.0 else 1.0

    def advance(self, seconds: float) -> None:
        """Move the clock on."""
        if not self.paused:
            self.now = min(self.now + seconds, self.duration)

    @cached_property
    def curves(self) -> tuple[Curve | None, Curve | None]:
        """The errors of the run, and of the one before; None where there is none."""
        first, second = (None if run is None else run.curve for run in (self.run, self.older))
        return first, second

    def draw(self, follower: Follower) -> None:
        """Show its present frame."""
        k = self.frame
        if self.run is not None:
            follower.show(self.run.sample(k))
        elif k != self._drawn:
            self._drawn = k
            follower.pose(self.iterates[k].q, self.iterates[k].q)
            follower.show_postures([one.points for one in self.iterates[: k + 1]])

    def describe(self, shown: Shown, task: str) -> None:
        """Describe its present frame, for a solver's task."""
        k, run = self.frame, self.run
        if run is None:
            one = self.iterates[k]
            left = f"{millimetres(one.distance)} mm are left"
            shown.sentence = f"Iteration {one.number}: {left}, after {1e3 * one.took:.2f} ms."
            return
        sample = run.sample(k)
        when = f"{self.scenario}, {sample.time:.2f} of {self.duration:.2f} s"
        shown.sentence = f"{when}: {millimetres(sample.distance)} mm from the path."
        before = "" if self.older is None else f" Before it was {millimetres(self.older.rms)} mm."
        shown.playing = f"Tracking error of the whole run, RMS: {millimetres(run.rms)} mm.{before}"
        shown.describe(run.setup.arm, task, sample)


class Stage(Protocol):
    """What `Playback` uses of the workspace that it belongs to; see `Workspace` for each."""

    setup: StudioSetup
    controlled: ControlledArm | None
    goal: pin.SE3
    start_q: Array
    shown: Shown
    beside: Callable[..., None]

    @property
    def arm(self) -> Simulation | ControlledArm:
        """The arm of the first solver."""

    @property
    def follower(self) -> Follower:
        """As which it is drawn."""

    def adopt(self, setup: StudioSetup) -> None:
        """Go on with a setup whose solver is compiled."""

    def failed(self, error: Exception) -> None:
        """Report that what was to be done beside the loop has failed."""

    def begin_another_session(self) -> Simulation | ControlledArm:
        """Go on in a new session, from the same posture; returns the one that has ended."""


class Playback:
    """What is played, and what it is made from. Each `on_...` is what an event of that name asks for.

    Args:
        workspace: The goal, the start and the settings.
        scenario: What *Play* runs.
        folder: For the run directories that are not kept.

    Attributes:
        scenario: What *Play* runs.
        iterating: The settings of iterations that differ from their defaults.
        player: What is played; None while the live arm is shown.
        downloads: Files for the driving page: name and content.
    """

    def __init__(self, workspace: Stage, scenario: str, folder: Path) -> None:
        self._workspace, self.scenario, self._folder = workspace, scenario, folder
        # What the studio was started with: the only script of the user's that it runs.
        self._trusted_script = Path(scenario).resolve()
        # Whether a run is being kept.
        self._keeping = False
        self._count, self.iterating = 0, dict[str, Any]()
        self._iterates: list[Iterate] = []
        self.player: Player | None = None
        self.downloads: list[tuple[str, str]] = []

    def _refuse_on_controllers(self) -> None:
        if self._workspace.controlled is not None:
            raise Refused(
                "On a controller the studio only follows the goal; `simbridge run` runs a scenario."
            )

    def change(self, name: str, value: Any) -> None:
        """Change a setting of iterations; None stands for the default."""
        changed = {key: old for key, old in self.iterating.items() if key != name}
        changed |= {} if value is None else {name: value}
        _ = IterateSettings(**changed)
        self.iterating = changed

    def on_iterate(self, animated: bool) -> None:
        self._refuse_on_controllers()
        workspace = self._workspace
        setup, goal, q, settings = (
            workspace.setup,
            workspace.goal,
            workspace.start_q,
            IterateSettings(**self.iterating),
        )
        if (left := out_of_reach(workspace.arm.robot, goal.translation)) > 0.0:
            raise InvalidParameter(
                "goal", f"{millimetres(left)} mm out of reach", "within the arm's reach"
            )
        workspace.shown.iterations = "Iterating ..."

        def show(result: tuple[list[Iterate], str]) -> None:
            self._iterates, workspace.shown.iterations = result
            count = len(self._iterates)
            weights = (
                slow_in_slow_out(count) if settings.slow_in_slow_out == "on" else np.ones(count)
            )
            pauses = settings.frame_time * weights * animated
            self.player = Player(
                np.concatenate([[0.0], np.cumsum(pauses)[:-1]]), iterates=self._iterates
            )

        workspace.beside("iterate", lambda: iterated(setup, q, goal, settings), show)

    def on_save_iterations(self, _: None) -> None:
        if not self._iterates:
            raise InvalidParameter("iterations", "none", "made first: press Iterate")
        self.downloads.append(
            ("iterations.csv", iterations_csv(self._workspace.arm.robot, self._iterates))
        )

    def on_scenario(self, name: str) -> None:
        self.scenario, self.player = name, None

    def on_play(self, _: None) -> None:
        self._refuse_on_controllers()
        setup, scenario, player = self._workspace.setup, self.scenario, self.player
        if (
            player is not None
            and player.run is not None
            and player.run.setup is setup
            and player.scenario == scenario
        ):
            player.now = 0.0 if player.now >= player.duration else player.now
            player.paused = False
            return
        if is_custom_script(scenario) and not self._is_trusted(scenario):
            raise Refused(
                f"The studio was not started with {scenario}; simbridge studio {scenario} plays it."
            )
        self._count += 1
        out = self._folder / f"run{self._count}"
        self._workspace.shown.playing = f"Running {scenario} ..."

        def show(run: Played) -> None:
            older = None if self.player is None else self.player.run
            self.player = Player(run.times, run, older, scenario)
            self._workspace.follower.forget_path()
            self._workspace.follower.forget_postures()

        self._workspace.beside("play", lambda: Played.record(setup, scenario, out), show)

    def _is_trusted(self, script: str) -> bool:
        """Return True for the script with which the studio was started.

        A kept run is data, and may name any other.
        """
        return Path(script).resolve() == self._trusted_script

    def on_load(self, path: str) -> None:
        """A kept run: its solver, and the run itself to be played."""
        if not path:
            return
        self._refuse_on_controllers()
        setup = self._workspace.setup

        def show(result: tuple[Played, str]) -> None:
            run, scenario = result
            self._workspace.adopt(run.setup)
            self.scenario, self.player = scenario, Player(run.times, run, scenario=scenario)

        self._workspace.beside("load", lambda: Played.load(Path(path), setup), show)

    def on_pause(self, _: None) -> None:
        if self.player is not None:
            self.player.paused = not self.player.paused

    def on_stop(self, _: None) -> None:
        self.player = None
        self._workspace.shown.playing = self._workspace.shown.iterations = ""
        self._workspace.follower.forget_postures()

    def on_scrub(self, percent: float) -> None:
        if (player := self.player) is not None:
            player.now, player.paused = min(max(percent / 100.0, 0.0), 1.0) * player.duration, True

    def on_keep(self, _: None) -> None:
        if self._keeping:
            raise Refused("A run is being kept already.")
        if self.player is not None and (run := self.player.run) is not None:
            keep = run.keep
        else:
            ended = self._workspace.begin_another_session()

            def keep() -> Path:
                return _copied(ended.report(), "studio")

        def show(path: Path) -> None:
            command = repeat_command(RunDirectory.open(path).complete_settings(), path)
            again = f" `{command}` repeats it to the bit." if command else ""
            self._workspace.shown.playing = (
                f"Kept: {path}. Its page is {path / 'report.html'}.{again}"
            )

        def end_keeping(path: Path) -> None:
            self._keeping = False
            show(path)

        def fail(error: Exception) -> None:
            self._keeping = False
            self._workspace.failed(error)

        self._keeping = True
        self._workspace.beside("keep", keep, end_keeping, fail, each=True)


def _copied(path: Path, name: str) -> Path:
    """A copy of a run directory in a new one under runs/."""
    kept = RunDirectory.create(None, name).path
    shutil.copytree(path, kept, dirs_exist_ok=True)
    return kept
