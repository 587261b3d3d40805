"""One page in a browser: its panel, made for this page alone, and the frame by which the goal is dragged.

Callbacks are coroutines, which viser runs one after the other in the order of arrival; they only pass events on.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pinocchio as pin
import viser
from markupsafe import escape
from viser import uplot

from simbridge.browser.controls import Control
from simbridge.browser.iterate import LIMIT, THRESHOLD
from simbridge.browser.sample import SOURCES
from simbridge.browser.view import Curve, Event, Shown, table
from simbridge.ik.settings import SOLVERS
from simbridge.report.arm_scene import wxyz
from simbridge.resources import scenario_files
from simbridge.robot.pose import Array

NONE = "none"
# Of the whole error, and of its sources.
_COLOURS = ("#000000", "#e69f00", "#0072b2", "#009e73", "#cc79a7", "#56b4e9")
_RIVAL = "#d55e00"
_COPY = (
    '<button style="margin:0 0.5em" data-command="{}" onclick="navigator.clipboard.writeText(this.dataset.command)">'
    "Copy the command</button>"
)


class Page:
    """The panel of a page.

    Args:
        client: Of viser.
        events: Takes what happens in the page.
        planar: Whether the goal is placed in a plane.
        scale: Size of the goal's frame, m.
    """

    def __init__(
        self, client: viser.ClientHandle, events: Callable[[Event], None], *, planar: bool, scale: float
    ) -> None:
        self.id, self._client, self._gui, self._events = client.client_id, client, client.gui, events
        self._planar, self._drives, self._dragging = planar, True, False
        self._controls: dict[str, tuple[Control, Any, Any]] = {}
        self._all: list[Any] = []
        self._access()
        self._sentence = self._gui.add_markdown("")
        self._problem = self._gui.add_markdown("", visible=False)
        self._plot = self._gui.add_uplot(
            Curve().columns,
            (
                uplot.Series(label="s"),
                uplot.Series(label="error", stroke=_COLOURS[0], width=2),
                *(
                    uplot.Series(label=name, stroke=colour, width=1)
                    for name, colour in zip(SOURCES, _COLOURS[1:], strict=True)
                ),
            ),
            title="distance from the goal, mm",
            padding=(14, 14, 0, 0),
            scales={"x": uplot.Scale(time=False)},
            aspect=1.8,
        )
        self._rival_plot: Any = None
        self._drawn: list[tuple[int, int]] = []
        tabs = self._gui.add_tab_group()
        with tabs.add_tab("Goal"):
            self._goal_tab(scale)
        with tabs.add_tab("Solver"):
            self._solver_tab()
        with tabs.add_tab("Arm"):
            self._arm_folder = self._gui.add_folder("Arm, servo, targets")
        with tabs.add_tab("Iterate"):
            self._iterate_tab()
        with tabs.add_tab("Scenario"):
            self._scenario_tab()
        with tabs.add_tab("Figures"):
            self._figures = self._gui.add_markdown("")
            self._joints = self._gui.add_markdown("")

    def _event(self, name: str, value: Any = None) -> None:
        self._events(Event(self.id, name, value))

    def _on(self, handle: Any, name: str, value: Callable[[Any], Any] = lambda value: value) -> Any:
        """Pass on what is done at a handle; what the studio itself sets is none."""

        async def changed(event: viser.GuiEvent[Any]) -> None:
            if event.client_id is not None:
                self._event(name, value(handle.value))

        handle.on_update(changed)
        self._all.append(handle)
        return handle

    def _button(self, label: str, name: str, value: Callable[[], Any] = lambda: None, **more: Any) -> Any:
        handle = self._gui.add_button(label, **more)

        @handle.on_click
        async def _(event: viser.GuiEvent[Any]) -> None:
            if event.client_id is not None:
                self._event(name, value())

        self._all.append(handle)
        return handle

    def _access(self) -> None:
        """The token's field and the button that takes control: they work where nothing else does."""
        self._role = self._gui.add_markdown("", visible=False)
        self._token = self._gui.add_text("token", "", visible=False, hint="It is printed in the terminal.")
        self._take = self._gui.add_button("Take control", visible=False)

        @self._token.on_update
        async def _(event: viser.GuiEvent[Any]) -> None:
            if event.client_id is not None:
                self._event("token", self._token.value)

        @self._take.on_click
        async def _(event: viser.GuiEvent[Any]) -> None:
            self._event("take control")

    def _goal_tab(self, scale: float) -> None:
        hint = "In base_link. A drag of the frame in the scene does the same."
        self._place = self._on(self._gui.add_vector3("position, m", (0.0, 0.0, 0.0), step=0.005, hint=hint), "goal")
        turn = "Rotation vector in base_link, degrees."
        self._turn = self._gui.add_vector3("rotation, degrees", (0.0, 0.0, 0.0), step=1.0, hint=turn)
        if self._planar:
            self._turn.visible = False
        self._on(self._turn, "goal turn")
        self._start = self._on(
            self._gui.add_vector3(
                "start, m", (0.0, 0.0, 0.0), step=0.005,
                hint="The arm goes there at once, by inverse kinematics, and begins there.",
            ), "start",
        )  # fmt: skip
        self._button("Begin at home", "home")
        self._handle = self._client.scene.add_transform_controls(
            "/goal", scale=scale, disable_rotations=self._planar, disable_axes=False, depth_test=False,
            active_axes=(True, True, not self._planar),
        )  # fmt: skip

        @self._handle.on_update
        async def _(event: viser.TransformControlsEvent) -> None:
            if event.client_id is not None:
                self._dragging = event.phase != "end"
                pose = np.concatenate([self._handle.position, self._handle.wxyz])
                self._event("drag", (event.phase, pose))

        if self._planar:

            async def clicked(event: viser.SceneClickEvent) -> None:
                self._event("click", (event.ray_origin, event.ray_direction))

            # Its annotation leaves out coroutines, which it takes as all others do.
            self._client.scene.on_click()(clicked)  # type: ignore[arg-type]

    def _solver_tab(self) -> None:
        self._solver = self._on(self._gui.add_dropdown("solver", list(SOLVERS)), "solver")
        self._solver_folder = self._gui.add_folder("Settings")
        self._rival = self._on(
            self._gui.add_dropdown(
                "second solver", [NONE, *SOLVERS], hint="Follows the same goal, in another colour, at its defaults."
            ),
            "rival",
        )
        self._rivals = self._gui.add_markdown("")

    def _iterate_tab(self) -> None:
        self._threshold = self._gui.add_number("threshold, mm", 1e3 * THRESHOLD, min=1e-6, step=0.1)
        self._limit = self._gui.add_number("largest number of iterations", LIMIT, min=1, max=100_000, step=1)
        self._pause = self._gui.add_slider("time a frame, ms", 10, 1000, 10, 60)
        self._slow = self._gui.add_checkbox("slow in, slow out", True)
        self._all += [self._threshold, self._limit, self._pause, self._slow]

        def asked() -> dict[str, Any]:
            return {
                "threshold": 1e-3 * self._threshold.value, "limit": int(self._limit.value),
                "pause": 1e-3 * self._pause.value, "slow": self._slow.value,
            }  # fmt: skip

        self._button("Iterate, a frame each", "iterate", lambda: {**asked(), "animated": True})
        self._button("Iterate at once", "iterate", lambda: {**asked(), "animated": False})
        self._iterations = self._gui.add_markdown("")
        self._button("Save iterations as CSV", "save iterations")

    def _scenario_tab(self) -> None:
        names = list(scenario_files())
        self._scenario = self._on(self._gui.add_dropdown("scenario", names), "scenario")
        moves = self._gui.add_button_group("motion", ("Play", "Pause", "Stop"))

        @moves.on_click
        async def _(event: viser.GuiEvent[Any]) -> None:
            if event.client_id is not None:
                self._event(moves.value.lower())

        # A group of buttons cannot be disabled: it is hidden where a page does not drive.
        self._moves = moves
        self._scrub = self._on(self._gui.add_slider("time, %", 0.0, 100.0, 0.1, 0.0), "scrub")
        self._playing = self._gui.add_markdown("")
        self._button("Keep this", "keep", hint="Writes a run directory with its report under runs/.")
        self._load = self._on(self._gui.add_text("load a kept run", "", hint="Its directory."), "load")
        self._command = self._gui.add_text("command", "", multiline=True, hint="It equals the present state.")
        self._copy = self._gui.add_html("")

    def offer(self, solver: str, solver_controls: list[Control], arm_controls: list[Control]) -> None:
        """Show the controls of a solver and of the arm."""
        for _, handle, reset in self._controls.values():
            handle.remove(), reset.remove()
            self._all = [one for one in self._all if one not in (handle, reset)]
        self._controls.clear()
        self._solver.value = solver
        for folder, controls in ((self._solver_folder, solver_controls), (self._arm_folder, arm_controls)):
            with folder:
                for control in controls:
                    self._add(control)

    def _add(self, control: Control) -> None:
        shown = control.shown(control.default)
        facts: dict[str, Any] = {"hint": control.help}
        if control.kind == "choice":
            handle: Any = self._gui.add_dropdown(control.label, list(control.choices), initial_value=shown, **facts)
        elif control.kind == "numbers":
            handle = self._gui.add_text(control.label, shown, **facts)
        elif control.slider is not None:
            low, high = (bound / control.scale[0] for bound in control.slider)
            step = 1 if control.kind == "whole" else float(f"{(high - low) / 500.0:.1g}")
            handle = self._gui.add_slider(control.label, *(
                (int(low), int(high), 1, int(shown)) if control.kind == "whole" else (low, high, step, float(shown))
            ), **facts)  # fmt: skip
        else:
            handle = self._gui.add_number(control.label, shown, **facts)
        self._on(handle, "change", lambda value: (control.name, value))
        reset = self._button(f"Reset {control.label}", "change", lambda: (control.name, None), visible=False)
        self._controls[control.name] = (control, handle, reset)

    def show_values(self, values: dict[str, Any]) -> None:
        """Show the values that differ from their defaults; the others show their defaults."""
        for name, (control, handle, reset) in self._controls.items():
            value = values.get(name, control.default)
            with contextlib.suppress(TypeError, ValueError):
                self._set(handle, control.shown(value))
            self._set(reset, name in values, "visible")

    def _set(self, handle: Any, value: Any, what: str = "value") -> None:
        if getattr(handle, what) != value:
            setattr(handle, what, value)

    def show_goal(self, goal: pin.SE3, start: Array) -> None:
        """Show where the goal and the start are, except while this page drags."""
        self._set(self._place, tuple(goal.translation.round(6).tolist()))
        self._set(self._turn, tuple(np.degrees(pin.log3(goal.rotation)).round(4).tolist()))
        self._set(self._start, tuple(start.round(6).tolist()))
        if not self._dragging:
            self._handle.position, self._handle.wxyz = goal.translation, wxyz(goal)

    def show_role(self, *, drives: bool, admitted: bool, driver: int | None) -> None:
        """Whether this page acts: where it does not, its controls are disabled."""
        self._drives = drives
        words = "" if drives else "Enter the token from the terminal to act." if not admitted else (
            "No page drives." if driver is None else f"Page {driver} drives. This one only watches."
        )  # fmt: skip
        self._set(self._role, words, "content")
        self._set(self._role, bool(words), "visible")
        self._set(self._token, not admitted, "visible")
        self._set(self._take, admitted and not drives, "visible")
        for handle in self._all:
            self._set(handle, not drives, "disabled")
        for handle in (self._handle, self._moves):
            self._set(handle, drives, "visible")

    def refuse_token(self) -> None:
        """Say that the token was not the right one."""
        self._set(self._role, "That is not the token that was printed in the terminal.", "content")

    def show(self, shown: Shown) -> None:
        """Show texts."""
        for handle, text in (
            (self._sentence, f"**{shown.sentence}**" if shown.sentence else ""),
            (
                self._problem,
                "\n\n".join(f"⚠ {name}: {what}" if name else f"⚠ {what}" for name, what in shown.problem.items()),
            ),
            (self._iterations, shown.iterations),
            (self._playing, shown.playing),
            (self._figures, table(shown.figures, ("figure", "now")) if shown.figures else ""),
            (self._joints, table(shown.joints, ("joint", "position", "of its range", "velocity", "of its limit"))),
            (self._rivals, table(shown.rivals, ("solver", "error", *SOURCES)) if shown.rivals else ""),
        ):
            self._set(handle, text, "content")
        self._set(self._problem, bool(shown.problem), "visible")
        if self._command.value != shown.command:
            self._set(self._command, shown.command)
            self._copy.content = _COPY.format(escape(shown.command))

    def show_curves(self, first: Curve, second: Curve | None) -> None:
        """Show error against time; below it, where there is one, the whole error of a second solver or run."""
        drawn = [(id(curve), curve.version) for curve in (first, second) if curve is not None]
        if drawn == self._drawn:
            return
        self._drawn = drawn
        self._set(self._plot, {"x": uplot.Scale(time=False), "y": uplot.Scale(range=(0.0, first.largest))}, "scales")
        self._plot.data = first.columns
        if second is None:
            if self._rival_plot is not None:
                self._rival_plot.remove()
            self._rival_plot = None
        elif self._rival_plot is None:
            series = (uplot.Series(label="s"), uplot.Series(label="error", stroke=_RIVAL, width=2))
            self._rival_plot = self._gui.add_uplot(
                second.columns[:2], series, title="the second solver, or the run before, mm", aspect=2.5,
                scales={"x": uplot.Scale(time=False)},
            )  # fmt: skip
        else:
            self._rival_plot.data = second.columns[:2]

    def show_time(self, percent: float) -> None:
        """Move the slider of what is played."""
        self._set(self._scrub, round(percent, 1))

    def download(self, name: str, content: str) -> None:
        """Offer a file to the page's user."""
        self._client.send_file_download(name, content.encode(), save_immediately=True)

    @contextlib.contextmanager
    def at_once(self) -> Iterator[None]:
        """What is set within arrives together."""
        with self._client.atomic():
            yield
