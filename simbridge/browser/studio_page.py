"""One page in a browser: its panel, made for this page alone, and the frame that drags the goal.

What is done there is passed on as events; nothing else happens in a page.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pinocchio as pin
import viser
from markupsafe import Markup

from simbridge.browser.controls import PanelControl
from simbridge.browser.curve import Curve
from simbridge.browser.events import PageEvent
from simbridge.browser.goal_frame import GoalFrame
from simbridge.browser.html_texts import STYLE, bold, table, text
from simbridge.browser.inputs import PanelInputs
from simbridge.browser.offers import EventRefused
from simbridge.browser.plots import ErrorPlot, JointPlots
from simbridge.browser.setup import StudioSetup
from simbridge.browser.snapshot import SOURCES
from simbridge.browser.view import NO_RIVAL, PageView
from simbridge.resources import scenario_files
from simbridge.robot.pose import Array

# In place of what a controller's arm does not do.
SIMULATION_ONLY = text(
    Markup(
        "In simulation only. <code>simbridge run</code> sends a scenario to a controller; "
        "its command is in the tab <em>Scenario</em>."
    )
)
# How often a button that is held says so.
HOLD_RATE_HZ = 20.0
# How many values a slider has that gives no step.
SLIDER_VALUES = 500.0
# How many decimals are shown of positions, m, and of rotations, degrees.
POSITION_DECIMALS = 6
ROTATION_DECIMALS = 2

COPY_BUTTON = Markup(
    '<button style="margin:0 0.75em 0.5em;padding:0.3em 1em;border:1px solid #228be6;'
    "border-radius:4px;"
    'background:none;color:#228be6;font:inherit;cursor:pointer" data-command="{}" '
    'onclick="navigator.clipboard.writeText(this.dataset.command)">Copy the command</button>'
)


@dataclass(frozen=True)
class PanelHandles:
    """A setting's control in a panel.

    Attributes:
        control: The setting that the control shows.
        field: Viser's handle of the value.
        reset: Viser's button that restores the default.
        note: What went wrong there, below it.
    """

    control: PanelControl
    field: Any
    reset: Any
    note: Any


class Page:
    """The panel of a page.

    Args:
        client: Viser's client.
        send: Takes what happens in the page.
        height: Height of the plane in which the goal of a planar arm is placed, m; None for other
            arms.
        scale: Size of the goal's frame, m.
        joints: Names of the joints.
        setup: The studio's first settings: whether a controller moves the arm, and which solvers
            may be chosen.
        scenario: The scenario that *Play* runs at first.
    """

    def __init__(
        self,
        client: viser.ClientHandle,
        send: Callable[[PageEvent], None],
        *,
        height: float | None,
        scale: float,
        joints: Sequence[str],
        setup: StudioSetup,
        scenario: str,
    ) -> None:
        self._client = client
        self._solver_names = setup.solver_names
        self._gui = client.gui
        self._inputs = PanelInputs(client.client_id, self._gui, send)
        self._planar = height is not None
        self._controlled = not setup.simulated
        self._drives = True
        # Whether a controller's arm moves.
        self._moving = False
        # Handles that change settings, which a controller's arm allows at rest alone.
        self._settings: list[Any] = []
        # Handles that never act on a controller's arm.
        self._locked: list[Any] = []
        # The controls of settings, by name.
        self._controls: dict[str, PanelHandles] = {}
        # Below a control, by its name: what went wrong there.
        self._notes: dict[str, Any] = {}

        self._add_access()
        self._gui.add_html(str(STYLE))
        self._sentence = self._gui.add_html("")
        self._extrapolation = self._gui.add_html("")
        self._problem = self._gui.add_html("", visible=False)
        self._plot = ErrorPlot(self._gui)

        tabs = self._gui.add_tab_group()
        with tabs.add_tab("Goal"):
            if self._controlled:
                self._add_engagement()
            self._add_goal_and_start()
            self._frame = GoalFrame(client, self._inputs, scale, height)
        with tabs.add_tab("Solver"):
            self._add_solvers()
        with tabs.add_tab("Arm"):
            self._arm_folder = self._gui.add_folder("Arm, servo, targets")
        with tabs.add_tab("Iterate"):
            self._add_iterations()
        with tabs.add_tab("Scenario"):
            self._add_scenario(scenario)
        with tabs.add_tab("Figures"):
            self._figures = self._gui.add_html("")
            self._joint_plots = JointPlots(self._gui, joints)
            self._joints = self._gui.add_html("")
            self._refused = self._gui.add_html("")
        self._add_theme()

    def _add_access(self) -> None:
        """Add the button that takes control, which works where nothing else does."""
        self._role = self._gui.add_markdown("", visible=False)
        self._take_control = self._inputs.add_button("Take control", "take control", visible=False)
        self._inputs.handles.clear()

    def _add_engagement(self) -> None:
        """Add what moves an arm behind a controller, and what asks before."""
        add_button = self._inputs.add_button
        self._state = self._gui.add_html("")
        self._question = self._gui.add_html("", visible=False)
        self._answers = [
            add_button(
                "Confirm: the arm may move", "answer", lambda: True, visible=False, color="red"
            ),
            add_button("Cancel", "answer", lambda: False, visible=False),
        ]

        hint = "After that, the arm moves while the goal is dragged or “Go” is held."
        add_button("Engage", "engage", hint=hint)
        self._add_note("engage")
        add_button("Disengage", "disengage")
        hint = "The arm moves towards the goal while this is held."
        go = add_button("Go (hold)", "release", hint=hint)

        async def hold(_: viser.GuiEvent[Any]) -> None:
            self._inputs.send_event("hold go")

        go.on_hold(hold, callback_hz=HOLD_RATE_HZ)

    def _add_goal_and_start(self) -> None:
        """Add the speed, the goal and the start as numbers."""
        origin = (0.0, 0.0, 0.0)
        hint = "Maximum, in percent of full speed; at 0, the arm holds. Default: 100."
        speed = self._gui.add_slider("speed, %", 0, 100, 5, 100, hint=hint)
        self._speed = self._add_field(speed, "speed")

        hint = "In base_link. Dragging the frame in the scene does the same."
        position = self._gui.add_vector3("position, m", origin, step=0.005, hint=hint)
        self._position = self._add_field(position, "goal")
        hint = "Rotation vector in base_link, degrees."
        rotation = self._gui.add_vector3(
            "rotation, degrees", origin, step=0.1, hint=hint, visible=not self._planar
        )
        self._rotation = self._add_field(rotation, "goal turn")

        hint = "The arm is placed there at once, by inverse kinematics, and starts from there."
        start = self._gui.add_vector3("start, m", origin, step=0.005, hint=hint)
        self._start = self._add_field(start, "start")
        hint = "The start is where the arm is now."
        here = self._inputs.add_button("Start here", "here", hint=hint)
        hint = "The arm's initial posture."
        home = self._inputs.add_button("Start at home", "home", hint=hint)
        self._lock_on_controllers(self._start, here, home)

    def _add_solvers(self) -> None:
        """Add the choice of the solver and of a second one."""
        solver = self._gui.add_dropdown("solver", list(self._solver_names))
        self._solver = self._add_field(solver, "solver")
        self._settings.append(self._solver)
        self._solver_folder = self._gui.add_folder("Settings")

        hint = "Follows the same goal in another colour, with default settings."
        rival = self._gui.add_dropdown("second solver", [NO_RIVAL, *self._solver_names], hint=hint)
        self._rival = self._add_field(rival, "rival")
        self._lock_on_controllers(self._rival)
        self._rivals = self._gui.add_html("")

    def _add_iterations(self) -> None:
        """Add what iterates from the start to the goal; in simulation only."""
        self._iterations = self._gui.add_html(str(SIMULATION_ONLY) if self._controlled else "")
        self._iterate_folder = self._gui.add_folder(
            "Iterate from the start to the goal", visible=not self._controlled
        )
        if self._controlled:
            return
        self._inputs.add_button("Iterate, a frame each", "iterate", lambda: True)
        self._inputs.add_button("Iterate at once", "iterate", lambda: False)
        self._add_note("iterate")
        self._inputs.add_button("Save iterations as CSV", "save iterations")
        self._add_note("save iterations")

    def _add_scenario(self, scenario: str) -> None:
        """Add the choice of the scenario and its command; in simulation also what plays it."""
        names = list(dict.fromkeys([scenario, *scenario_files()]))
        dropdown = self._gui.add_dropdown("scenario", names, initial_value=scenario)
        self._scenario = self._inputs.send_changes(dropdown, "scenario")
        self._playing = self._gui.add_html(str(SIMULATION_ONLY) if self._controlled else "")
        hint = "The command line for the current settings."
        self._command = self._gui.add_text("command", "", multiline=True, hint=hint)
        self._copy = self._gui.add_html("")
        if self._controlled:
            return

        self._add_motion_buttons()
        self._add_note("play")
        time = self._gui.add_slider("time, %", 0.0, 100.0, 0.1, 0.0)
        self._time = self._inputs.send_changes(time, "scrub")

        hint = "Writes a run directory with its report under runs/."
        self._inputs.add_button("Keep this", "keep", hint=hint)
        self._add_note("keep")

        hint = "Its directory, such as runs/circle-1."
        kept = self._gui.add_text("kept run", "", hint=hint)
        self._inputs.handles.append(kept)
        # What is typed there sends no event: *Load* does, and checks the text by this offer.
        self._inputs.note_offer(kept)
        hint = "Shows a kept run of this arm."
        self._inputs.add_button(
            "Load", "load", lambda: self._inputs.checked_value(kept, "load"), hint=hint
        )
        self._add_note("load")

    def _add_motion_buttons(self) -> None:
        """Add the group of buttons that plays, pauses and stops."""
        motion = self._gui.add_button_group("motion", ("Play", "Pause", "Stop"))
        self._motion = motion
        # A page may send any text: what the buttons offer is noted, and each event checked by that.
        self._inputs.note_offer(motion)

        @motion.on_click
        async def _(event: viser.GuiEvent[Any]) -> None:
            # Without a client, it is the studio itself that has set the value.
            if event.client_id is None:
                return
            try:
                label = self._inputs.checked_value(motion, "motion")
                self._inputs.send_event(label.lower())
            except EventRefused as error:
                self._inputs.refuse(error)

    def _add_theme(self) -> None:
        """Add the choice between a light and a dark page."""
        dark = self._gui.add_checkbox("dark", False, hint="This page alone.")
        configure_theme = partial(
            self._gui.configure_theme,
            control_width="large",
            show_logo=False,
            show_share_button=False,
        )
        configure_theme(dark_mode=False)

        @dark.on_update
        async def _(_: viser.GuiEvent[Any]) -> None:
            configure_theme(dark_mode=dark.value)

    def _add_note(self, name: str) -> Any:
        """Add a place for what goes wrong at a control, which is returned."""
        note = self._gui.add_html("", visible=False)
        self._notes[name] = note
        return note

    def _add_field(self, handle: Any, name: str) -> Any:
        """Let a handle send events of a name, with a note below it; returns the handle."""
        self._inputs.send_changes(handle, name)
        self._add_note(name)
        return handle

    def _lock_on_controllers(self, *handles: Any) -> None:
        """Disable handles for good where a controller moves the arm."""
        if self._controlled:
            self._locked += handles

    def offer(self, *controls_of: list[PanelControl]) -> None:
        """Show other controls of settings.

        Args:
            controls_of: Controls of the solver, of the arm, and of iterations.
        """
        for handles in self._controls.values():
            self._remove(handles)
        self._controls.clear()

        folders = (self._solver_folder, self._arm_folder, self._iterate_folder)
        for folder, controls in zip(folders, controls_of, strict=True):
            with folder:
                for control in controls:
                    self._add_control(control)
        self._update_disabled()

    def _remove(self, handles: PanelHandles) -> None:
        """Take the control of a setting out of the panel."""
        del self._notes[handles.control.name]
        for handle in (handles.field, handles.reset, handles.note):
            handle.remove()
            self._inputs.forget(handle)
            for known in (self._settings, self._locked):
                if handle in known:
                    known.remove(handle)

    def _add_control(self, control: PanelControl) -> None:
        """Add the control of a setting, with its reset and its note."""
        name = control.name
        field = self._add_control_field(control)
        self._inputs.send_changes(field, "change", lambda value: (name, value), control=name)
        reset = self._inputs.add_button(
            f"Reset {control.label}", "change", lambda: (name, None), visible=False
        )
        note = self._add_note(name)

        self._controls[name] = PanelHandles(control, field, reset, note)
        self._settings += [field, reset]
        if control.locked:
            self._locked += [field, reset]

    def _add_control_field(self, control: PanelControl) -> Any:
        """Add the field of a setting's value: its handle of viser."""
        shown = control.to_page(control.default)
        hint = f"{control.locked} {control.help}".strip()
        if control.kind == "choice":
            return self._gui.add_dropdown(
                control.label, list(control.choices), initial_value=shown, hint=hint
            )
        if control.kind == "numbers":
            return self._gui.add_text(control.label, shown, hint=hint)

        if control.slider is not None:
            low, high = (bound / control.scale[0] for bound in control.slider)
            if control.kind == "whole":
                return self._gui.add_slider(
                    control.label, int(low), int(high), 1, int(shown), hint=hint
                )
            step = control.step or float(f"{(high - low) / SLIDER_VALUES:.1g}")
            return self._gui.add_slider(control.label, low, high, step, float(shown), hint=hint)

        # A field takes as many decimals as its step has: two more than the default's first digit.
        step = 1.0
        if control.kind != "whole":
            step = 10.0 ** (math.floor(math.log10(shown or 0.1)) - 2)
        return self._gui.add_number(control.label, shown, step=step, hint=hint)

    def show_values(self, values: dict[str, Any], changed: Collection[str]) -> None:
        """Show values of settings; those that were changed can be reset.

        Args:
            values: Values by the names of their controls; a control that is not among them shows
                its default.
            changed: Names of the controls that were changed.
        """
        for name, handles in self._controls.items():
            value = values.get(name, handles.control.default)
            with contextlib.suppress(TypeError, ValueError):
                self._inputs.show(handles.field, handles.control.to_page(value))
            self._inputs.show(handles.reset, name in changed, "visible")

    def show_choices(self, solver: str, speed: float, rival: str, scenario: str) -> None:
        """Show what was chosen.

        Args:
            solver: Name of the solver.
            speed: Part of full speed, %.
            rival: The second solver's name, or `NO_RIVAL`.
            scenario: The scenario that *Play* runs.
        """
        self._inputs.show(self._solver, solver)
        self._inputs.show(self._speed, round(speed))
        self._inputs.show(self._rival, rival)
        if scenario not in self._scenario.options:
            self._inputs.show(self._scenario, (*self._scenario.options, scenario), "options")
        self._inputs.show(self._scenario, scenario)

    def show_goal(self, goal: pin.SE3, start: Array) -> None:
        """Show where the goal and the start are, except while this page drags.

        Args:
            goal: The goal, in base_link.
            start: The TCP in base_link (3,), m.
        """
        rotation = np.degrees(pin.log3(goal.rotation))
        self._show_vector(self._position, goal.translation, POSITION_DECIMALS)
        self._show_vector(self._rotation, rotation, ROTATION_DECIMALS)
        self._show_vector(self._start, start, POSITION_DECIMALS)
        self._frame.show(goal)

    def _show_vector(self, handle: Any, numbers: Array, decimals: int) -> None:
        """Show three rounded numbers, without a minus zero."""
        self._inputs.show(handle, tuple((numbers.round(decimals) + 0.0).tolist()))

    def show_role(self, *, drives: bool, driver: int | None) -> None:
        """Show whether this page drives: while it does not, its controls are disabled.

        Args:
            drives: Whether this page drives.
            driver: The page that drives; None while there is none.
        """
        self._drives = drives
        sentence = ""
        if not drives:
            sentence = "No page is driving."
            if driver is not None:
                sentence = f"Page {driver} is driving. This one is only watching."
        self._inputs.show(self._role, sentence, "content")
        self._inputs.show(self._role, bool(sentence), "visible")
        self._inputs.show(self._take_control, not drives, "visible")

        self._update_disabled()
        self._inputs.show(self._frame.handle, drives, "visible")
        # In simulation there is also the group of buttons that plays a scenario. A group cannot be
        # disabled, so it is hidden.
        if not self._controlled:
            self._inputs.show(self._motion, drives, "visible")

    def _update_disabled(self) -> None:
        """Disable what must not be used now."""
        for handle in self._inputs.handles:
            must_wait = self._moving and handle in self._settings
            disabled = not self._drives or must_wait or handle in self._locked
            self._inputs.show(handle, disabled, "disabled")

    def show(self, view: PageView) -> None:
        """Show texts and tables."""
        self._show_problems(view.problem)
        self._show_html(self._sentence, text(bold(view.sentence)) if view.sentence else "")
        self._show_html(self._extrapolation, text(view.extrapolation))
        refused = f"Refused events: {view.refused}." if view.refused else ""
        self._show_html(self._refused, text(refused))
        figures = table(view.figures, ("figure", "now")) if view.figures else ""
        self._show_html(self._figures, figures)
        head = ("joint", "position", "of its range", "velocity", "of its limit")
        self._show_html(self._joints, table(view.joints, head))
        rivals = table(view.rivals, ("solver", "error", *SOURCES)) if view.rivals else ""
        self._show_html(self._rivals, rivals)

        if self._controlled:
            self._show_engagement(view)
        else:
            self._show_html(self._iterations, text(view.iterations))
            self._show_html(self._playing, text(view.playing))

        if self._command.value != view.command:
            self._inputs.show(self._command, view.command)
            self._copy.content = str(COPY_BUTTON.format(view.command))

    def _show_problems(self, problems: dict[str, str]) -> None:
        """Show what went wrong at its control, or at the top where it has none."""
        for name, note in self._notes.items():
            self._warn(note, [problems.get(name, "")])
        others = [problem for name, problem in problems.items() if name not in self._notes]
        self._warn(self._problem, others)

    def _show_engagement(self, view: PageView) -> None:
        """Show the state of an arm behind a controller, and the question of a real one."""
        state = Markup("The arm is {}.").format(bold(view.state))
        for handle in (self._question, *self._answers):
            self._inputs.show(handle, bool(view.question), "visible")
        if self._moving != view.moving:
            self._moving = view.moving
            self._update_disabled()
        self._show_html(self._state, text(state))
        self._show_html(self._question, view.question)

    def _warn(self, note: Any, problems: Sequence[str]) -> None:
        """Show problems in a note, which is hidden where there are none."""
        content = text(*(f"⚠ {problem}" for problem in problems if problem))
        self._show_html(note, content)
        self._inputs.show(note, bool(content), "visible")

    def _show_html(self, handle: Any, content: str) -> None:
        """Show another content of an element of HTML."""
        self._inputs.show(handle, str(content), "content")

    def show_curves(self, first: Curve, second: Curve | None) -> None:
        """Show error against time, and the joints against their limits.

        Args:
            first: Curve of the solver, or of a run.
            second: Curve of the second solver, or of the run before.
        """
        self._plot.show(first, second)
        self._joint_plots.show(first)

    def show_time(self, percent: float) -> None:
        """Move the slider of what is played."""
        self._inputs.show(self._time, round(percent, 1))

    def download(self, name: str, content: str) -> None:
        """Offer a file to the page's user."""
        self._client.send_file_download(name, content.encode(), save_immediately=True)

    def atomic(self) -> contextlib.AbstractContextManager[None]:
        """Return a context within which everything that is shown arrives together."""
        return self._client.atomic()
