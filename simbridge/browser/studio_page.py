"""One page in a browser: its panel, made for this page alone, and the frame by which the goal is dragged.

What is done there is passed on as events; nothing else happens in a page.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

import numpy as np
import pinocchio as pin
import viser
from markupsafe import Markup

from simbridge.browser.html_texts import STYLE, bold, table, text
from simbridge.browser.offers import EventRefused
from simbridge.browser.setup import Control
from simbridge.browser.view import SOURCES, Curve, Event, Shown
from simbridge.browser.widgets import ErrorPlot, GoalFrame, Inputs, JointPlots
from simbridge.ik.settings import SOLVERS
from simbridge.resources import scenario_files
from simbridge.robot.pose import Array

NONE = "none"
_SIMULATED = text(
    Markup(
        "In simulation only. <code>simbridge run</code> sends a scenario to a controller; "
        "its command is in the tab <em>Scenario</em>."
    )
)
# How often a held button says so, Hz.
_HOLDS = 20.0
_COPY = Markup(
    '<button style="margin:0 0.75em 0.5em;padding:0.3em 1em;border:1px solid #228be6;border-radius:4px;'
    'background:none;color:#228be6;font:inherit;cursor:pointer" data-command="{}" '
    'onclick="navigator.clipboard.writeText(this.dataset.command)">Copy the command</button>'
)


class Page:
    """The panel of a page.

    Args:
        client: Of viser.
        events: Takes what happens in the page.
        height: Of the plane in which the goal of a planar arm is placed, m; None for other arms.
        scale: Size of the goal's frame, m.
        joints: Their names.
        controlled: Whether a controller moves the arm.
        scenario: What *Play* runs at first.
    """

    def __init__(
        self,
        client: viser.ClientHandle,
        events: Callable[[Event], None],
        *,
        height: float | None,
        scale: float,
        joints: Sequence[str],
        controlled: bool,
        scenario: str,
    ) -> None:
        self._client, self._gui = client, client.gui
        self._inputs = Inputs(client.client_id, self._gui, events)
        self._on, self._button, self._set = self._inputs.on, self._inputs.button, self._inputs.set
        self._planar, self._controlled = height is not None, controlled
        self._drives, self._moving = True, False
        # Those that change settings, which a controller's arm allows at rest alone; and those that never act on it.
        self._settings: list[Any] = []
        self._locked: list[Any] = []
        self._controls: dict[str, tuple[Control, Any, Any]] = {}
        # Below a control: what went wrong there.
        self._notes: dict[str, Any] = {}
        self._access()
        self._gui.add_html(str(STYLE))
        self._sentence = self._gui.add_html("")
        self._problem = self._gui.add_html("", visible=False)
        self._plot = ErrorPlot(self._gui)
        tabs = self._gui.add_tab_group()
        with tabs.add_tab("Goal"):
            if controlled:
                self._controller_part()
            self._goal_tab()
            self._frame = GoalFrame(client, self._inputs, scale, height)
        with tabs.add_tab("Solver"):
            self._solver_tab()
        with tabs.add_tab("Arm"):
            self._arm_folder = self._gui.add_folder("Arm, servo, targets")
        with tabs.add_tab("Iterate"):
            self._iterations = self._gui.add_html(str(_SIMULATED) if controlled else "")
            self._iterate_folder = self._gui.add_folder(
                "Iterate from the start to the goal", visible=not controlled
            )
            if not controlled:
                self._button("Iterate, a frame each", "iterate", lambda: True)
                self._button("Iterate at once", "iterate", lambda: False)
                self._note("iterate")
                self._button("Save iterations as CSV", "save iterations")
                self._note("save iterations")
        with tabs.add_tab("Scenario"):
            self._scenario_tab(scenario)
        with tabs.add_tab("Figures"):
            self._figures = self._gui.add_html("")
            self._joint_plots = JointPlots(self._gui, joints)
            self._joints = self._gui.add_html("")
            self._refused = self._gui.add_html("")
        dark = self._gui.add_checkbox("dark", False, hint="This page alone.")
        theme = partial(
            self._gui.configure_theme,
            control_width="large",
            show_logo=False,
            show_share_button=False,
        )
        theme(dark_mode=False)

        @dark.on_update
        async def _(_: viser.GuiEvent[Any]) -> None:
            theme(dark_mode=dark.value)

    def _note(self, name: str) -> None:
        self._notes[name] = self._gui.add_html("", visible=False)

    def _field(self, handle: Any, name: str) -> Any:
        """A handle that sends events of a name, with a note below it."""
        self._on(handle, name)
        self._note(name)
        return handle

    def _lock_on_controllers(self, *handles: Any) -> None:
        if self._controlled:
            self._locked += handles

    def _access(self) -> None:
        """The button that takes control."""
        self._role = self._gui.add_markdown("", visible=False)
        self._take = self._button("Take control", "take control", visible=False)
        # It works where nothing else does.
        self._inputs.handles.clear()

    def _controller_part(self) -> None:
        self._state = self._gui.add_html("")
        self._question = self._gui.add_html("", visible=False)
        self._answers = [
            self._button(
                "Confirm: the arm may move", "answer", lambda: True, visible=False, color="red"
            ),
            self._button("Cancel", "answer", lambda: False, visible=False),
        ]
        self._button(
            "Engage",
            "engage",
            hint="Afterwards the arm moves while the goal is dragged, or “Go” is held.",
        )
        self._note("engage")
        self._button("Disengage", "disengage")
        go = self._button(
            "Go (hold)", "release", hint="The arm goes towards the goal while this is held."
        )

        async def held(_: viser.GuiEvent[Any]) -> None:
            self._inputs.event("hold go")

        go.on_hold(held, callback_hz=_HOLDS)

    def _goal_tab(self) -> None:
        zero = (0.0, 0.0, 0.0)
        hint = "Of full speed, at most; at 0 the arm holds. Default: 100."
        self._speed = self._field(
            self._gui.add_slider("speed, %", 0, 100, 5, 100, hint=hint), "speed"
        )
        hint = "In base_link. A drag of the frame in the scene does the same."
        self._place = self._field(
            self._gui.add_vector3("position, m", zero, step=0.005, hint=hint), "goal"
        )
        hint = "Rotation vector in base_link, degrees."
        turn = self._gui.add_vector3(
            "rotation, degrees", zero, step=0.1, hint=hint, visible=not self._planar
        )
        self._turn = self._field(turn, "goal turn")
        hint = "The arm goes there at once, by inverse kinematics, and begins there."
        self._start = self._field(
            self._gui.add_vector3("start, m", zero, step=0.005, hint=hint), "start"
        )
        here = self._button("Start here", "here", hint="The start is where the arm is now.")
        home = self._button("Start at home", "home", hint="The arm's posture at the beginning.")
        self._lock_on_controllers(self._start, here, home)

    def _solver_tab(self) -> None:
        self._solver = self._field(self._gui.add_dropdown("solver", list(SOLVERS)), "solver")
        self._settings.append(self._solver)
        self._solver_folder = self._gui.add_folder("Settings")
        hint = "Follows the same goal, in another colour, at its defaults."
        self._rival = self._field(
            self._gui.add_dropdown("second solver", [NONE, *SOLVERS], hint=hint), "rival"
        )
        self._lock_on_controllers(self._rival)
        self._rivals = self._gui.add_html("")

    def _scenario_tab(self, scenario: str) -> None:
        names = list(dict.fromkeys([scenario, *scenario_files()]))
        self._scenario = self._on(
            self._gui.add_dropdown("scenario", names, initial_value=scenario), "scenario"
        )
        self._playing = self._gui.add_html(str(_SIMULATED) if self._controlled else "")
        self._command = self._gui.add_text(
            "command", "", multiline=True, hint="The command line of the present state."
        )
        self._copy = self._gui.add_html("")
        if self._controlled:
            return
        self._moves = self._gui.add_button_group("motion", ("Play", "Pause", "Stop"))
        self._inputs.note_offer(self._moves)

        @self._moves.on_click
        async def _(event: viser.GuiEvent[Any]) -> None:
            if event.client_id is None:
                return
            try:
                self._inputs.event(self._inputs.checked(self._moves, "motion").lower())
            except EventRefused as error:
                self._inputs.refuse(error)

        self._note("play")
        self._scrub = self._on(self._gui.add_slider("time, %", 0.0, 100.0, 0.1, 0.0), "scrub")
        self._button(
            "Keep this", "keep", hint="Writes a run directory with its report under runs/."
        )
        self._note("keep")
        kept = self._gui.add_text("kept run", "", hint="Its directory, such as runs/circle-1.")
        self._inputs.handles.append(kept)
        self._inputs.note_offer(kept)
        self._button(
            "Load",
            "load",
            lambda: self._inputs.checked(kept, "load"),
            hint="Shows a kept run of this arm.",
        )
        self._note("load")

    def offer(self, *controls_of: list[Control]) -> None:
        """Show the controls of the solver, of the arm, and of iterations."""
        for name, (_, *handles) in self._controls.items():
            for handle in (*handles, self._notes.pop(name)):
                handle.remove()
                self._inputs.forget(handle)
                for known in (self._settings, self._locked):
                    if handle in known:
                        known.remove(handle)
        self._controls.clear()
        folders = (self._solver_folder, self._arm_folder, self._iterate_folder)
        for folder, controls in zip(folders, controls_of, strict=True):
            with folder:
                for control in controls:
                    self._add(control)
        self._disable()

    def _add(self, control: Control) -> None:
        shown = control.shown(control.default)
        facts: dict[str, Any] = {"hint": f"{control.locked} {control.help}".strip()}
        if control.kind == "choice":
            handle: Any = self._gui.add_dropdown(
                control.label, list(control.choices), initial_value=shown, **facts
            )
        elif control.kind == "numbers":
            handle = self._gui.add_text(control.label, shown, **facts)
        elif control.slider is not None:
            low, high = (bound / control.scale[0] for bound in control.slider)
            step = control.step or float(f"{(high - low) / 500.0:.1g}")
            whole = control.kind == "whole"
            span = (
                (int(low), int(high), 1, int(shown)) if whole else (low, high, step, float(shown))
            )
            handle = self._gui.add_slider(control.label, *span, **facts)
        else:
            # A field takes as many decimals as its step has.
            step = (
                1.0
                if control.kind == "whole"
                else 10.0 ** (math.floor(math.log10(shown or 0.1)) - 2)
            )
            handle = self._gui.add_number(control.label, shown, step=step, **facts)
        self._on(handle, "change", lambda value: (control.name, value), control=control.name)
        reset = self._button(
            f"Reset {control.label}", "change", lambda: (control.name, None), visible=False
        )
        self._note(control.name)
        self._controls[control.name] = (control, handle, reset)
        self._settings += [handle, reset]
        self._locked += [handle, reset] if control.locked else []

    def show_values(self, values: dict[str, Any], changed: Collection[str]) -> None:
        """Show values, those that are not given at their defaults; the ones that were changed can be reset."""
        for name, (control, handle, reset) in self._controls.items():
            value = values.get(name, control.default)
            with contextlib.suppress(TypeError, ValueError):
                self._set(handle, control.shown(value))
            self._set(reset, name in changed, "visible")

    def show_choices(self, solver: str, speed: float, rival: str, scenario: str) -> None:
        """Show what was chosen: the solver, the speed, %, the second solver, and the scenario."""
        self._set(self._solver, solver)
        self._set(self._speed, round(speed))
        self._set(self._rival, rival)
        if scenario not in self._scenario.options:
            self._set(self._scenario, (*self._scenario.options, scenario), "options")
        self._set(self._scenario, scenario)

    def show_goal(self, goal: pin.SE3, start: Array) -> None:
        """Show where the goal and the start are, except while this page drags."""
        turn = np.degrees(pin.log3(goal.rotation))
        for handle, numbers, digits in (
            (self._place, goal.translation, 6),
            (self._turn, turn, 2),
            (self._start, start, 6),
        ):
            # There is no minus zero.
            self._set(handle, tuple((numbers.round(digits) + 0.0).tolist()))
        self._frame.show(goal)

    def show_role(self, *, drives: bool, driver: int | None) -> None:
        """Whether this page acts: where it does not, its controls are disabled."""
        self._drives = drives
        if drives:
            words = ""
        elif driver is None:
            words = "No page drives."
        else:
            words = f"Page {driver} drives. This one only watches."
        self._set(self._role, words, "content")
        self._set(self._role, bool(words), "visible")
        self._set(self._take, not drives, "visible")
        self._disable()
        self._set(self._frame.handle, drives, "visible")
        if not self._controlled:
            # A group of buttons cannot be disabled.
            self._set(self._moves, drives, "visible")

    def _disable(self) -> None:
        for handle in self._inputs.handles:
            busy = self._moving and handle in self._settings
            self._set(handle, not self._drives or busy or handle in self._locked, "disabled")

    def show(self, shown: Shown) -> None:
        """Show texts."""
        for name, note in self._notes.items():
            self._warn(note, [shown.problem.get(name, "")])
        self._warn(
            self._problem, [what for name, what in shown.problem.items() if name not in self._notes]
        )
        texts = [
            (self._sentence, text(bold(shown.sentence)) if shown.sentence else ""),
            (self._refused, text(f"Refused events: {shown.refused}.") if shown.refused else ""),
            (self._figures, table(shown.figures, ("figure", "now")) if shown.figures else ""),
            (
                self._joints,
                table(
                    shown.joints, ("joint", "position", "of its range", "velocity", "of its limit")
                ),
            ),
            (
                self._rivals,
                table(shown.rivals, ("solver", "error", *SOURCES)) if shown.rivals else "",
            ),
        ]
        if self._controlled:
            state = Markup("The arm is {}.").format(bold(shown.state))
            texts += [(self._state, text(state)), (self._question, shown.question)]
            for handle in (self._question, *self._answers):
                self._set(handle, bool(shown.question), "visible")
            if self._moving != shown.moving:
                self._moving = shown.moving
                self._disable()
        else:
            texts += [
                (self._iterations, text(shown.iterations)),
                (self._playing, text(shown.playing)),
            ]
        for handle, content in texts:
            self._set(handle, str(content), "content")
        if self._command.value != shown.command:
            self._set(self._command, shown.command)
            self._copy.content = str(_COPY.format(shown.command))

    def _warn(self, note: Any, words: Sequence[str]) -> None:
        content = text(*(f"⚠ {what}" for what in words if what))
        self._set(note, str(content), "content")
        self._set(note, bool(content), "visible")

    def show_curves(self, first: Curve, second: Curve | None) -> None:
        """Show error against time, and the joints against their limits."""
        self._plot.show(first, second)
        self._joint_plots.show(first)

    def show_time(self, percent: float) -> None:
        """Move the slider of what is played."""
        self._set(self._scrub, round(percent, 1))

    def download(self, name: str, content: str) -> None:
        """Offer a file to the page's user."""
        self._client.send_file_download(name, content.encode(), save_immediately=True)

    def at_once(self) -> contextlib.AbstractContextManager[None]:
        """What is set within arrives together."""
        return self._client.atomic()
