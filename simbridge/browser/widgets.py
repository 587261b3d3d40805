"""What a page's panel is made of: handles that send events, the frame of the goal, plots against time.

Callbacks are coroutines, which viser runs one after the other in the order of arrival: events arrive in the order in
which a user caused them.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pinocchio as pin
import viser
from viser import uplot

from simbridge.browser.offers import (
    NOTHING,
    EventRefused,
    Offer,
    UnitQuaternion,
    Vector,
    check_offered,
    offer_of,
)
from simbridge.browser.view import SOURCES, Curve, Event
from simbridge.report.arm_scene import wxyz
from simbridge.robot.pose import Array

# Fields into which one types, and how long after the last key, s, what they hold counts.
_TYPED = (viser.GuiTextHandle, viser.GuiNumberHandle, viser.GuiVector3Handle)
_TYPING = 0.6
# Within so long, s, a second click at most so far away, m, makes a double click.
_DOUBLE = 1.0, 0.005
# Of the whole error, and of its sources; seen on white and on black.
_COLOURS = ("#808080", "#e69f00", "#3b8fd0", "#009e73", "#cc79a7", "#56b4e9")
_RIVAL = "#d55e00"
_JOINTS = (*_COLOURS[1:], _RIVAL, "#a6761d")


class Inputs:
    """The handles of a page at which its user does something.

    Args:
        page: Its number.
        gui: Of viser.
        send: Takes the events.

    Attributes:
        handles: Those that are disabled where a page does not drive.
    """

    def __init__(self, page: int, gui: viser.GuiApi, send: Callable[[Event], None]) -> None:
        self._page, self._gui, self._send = page, gui, send
        self.handles: list[Any] = []
        # What each handle offers, by its id.
        self._offers: dict[int, Offer] = {}
        # What was typed and does not count yet, by the id of its field.
        self._typed: dict[int, Callable[[], None]] = {}
        self._counts: asyncio.TimerHandle | None = None

    def event(self, name: str, value: Any = None) -> None:
        """Send an event, after what was typed before."""
        self._send_typed()
        self._send(Event(self._page, name, value, time.monotonic()))

    def refuse(self, error: EventRefused) -> None:
        """Pass on that the page has sent what it is not offered."""
        self._send(Event(self._page, "refused", error, time.monotonic()))

    def _send_typed(self) -> None:
        typed, self._typed = self._typed, {}
        for send in typed.values():
            send()

    def on(
        self,
        handle: Any,
        name: str,
        value: Callable[[Any], Any] = lambda value: value,
        *,
        control: str = "",
    ) -> Any:
        """Send what is done at a handle as events; what the studio itself sets there is no event.

        Args:
            handle: Of viser. What it offers now is what its events may carry.
            name: Of the events.
            value: Makes the value of an event from that of the handle.
            control: The control's name in a refusal; by default that of the events.

        Returns:
            The handle.
        """
        self.note_offer(handle)

        async def changed(event: viser.GuiEvent[Any]) -> None:
            # A handle that has no offer any more was removed while the event was on its way.
            if event.client_id is None or id(handle) not in self._offers:
                return
            try:
                checked = self.checked(handle, control or name)
            except EventRefused as error:
                self.refuse(error)
                return

            if not isinstance(handle, _TYPED):
                self.event(name, value(checked))
                return
            # Each key that is pressed in such a field arrives: what it holds counts once no other key follows.
            self._typed[id(handle)] = lambda: self._send(
                Event(self._page, name, value(checked), time.monotonic())
            )
            if self._counts is not None:
                self._counts.cancel()
            self._counts = asyncio.get_running_loop().call_later(_TYPING, self._send_typed)

        handle.on_update(changed)
        self.handles.append(handle)
        return handle

    def note_offer(self, handle: Any) -> None:
        """Note what a handle offers from now on, out of reach of the page."""
        self._offers[id(handle)] = offer_of(handle)

    def checked(self, handle: Any, control: str) -> Any:
        """The value of a handle, which may come from the page.

        Raises:
            EventRefused: The handle does not offer it.
        """
        value = handle.value
        offer = self._offers.get(id(handle), NOTHING)
        check_offered(control, value, offer)
        return value

    def forget(self, handle: Any) -> None:
        """A handle was removed from the page."""
        self._offers.pop(id(handle), None)
        if handle in self.handles:
            self.handles.remove(handle)

    def button(
        self, label: str, name: str, value: Callable[[], Any] = lambda: None, **more: Any
    ) -> Any:
        """Add a button that sends an event; `more` is viser's, and `value` may raise EventRefused."""
        handle = self._gui.add_button(label, **more)

        @handle.on_click
        async def _(event: viser.GuiEvent[Any]) -> None:
            if event.client_id is None:
                return
            try:
                self.event(name, value())
            except EventRefused as error:
                self.refuse(error)

        self.handles.append(handle)
        return handle

    def set(self, handle: Any, value: Any, what: str = "value") -> None:
        """Show another value, or another of viser's properties, of a handle; what is being typed stays."""
        if getattr(handle, what) != value and not (what == "value" and id(handle) in self._typed):
            setattr(handle, what, value)
            if what == "options":
                self.note_offer(handle)


class GoalFrame:
    """The frame in a page's scene by which the goal is dragged, and the clicks that place the goal of a planar arm.

    It sends "drag" with phase and pose (7,), and for planar arms "clicked goal" and "clicked start" with places (3,).

    Args:
        client: Of viser.
        inputs: Takes the events.
        scale: Size, m.
        height: Of the plane in which the goal of a planar arm is placed, m; None for other arms.

    Attributes:
        handle: Viser's.
    """

    def __init__(
        self, client: viser.ClientHandle, inputs: Inputs, scale: float, height: float | None
    ) -> None:
        self._inputs = inputs
        self._dragging = False
        # When and where a first click was, s and m, and where the frame was grasped.
        self._clicked = (-math.inf, np.zeros(3))
        self._grasped = np.zeros(3)
        planar = height is not None
        self.handle = client.scene.add_transform_controls(
            "/goal",
            scale=scale,
            disable_rotations=planar,
            active_axes=(True, True, not planar),
            depth_test=False,
        )

        @self.handle.on_update
        async def _(event: viser.TransformControlsEvent) -> None:
            if event.client_id is None:
                return
            try:
                check_offered("drag", self.handle.position, Vector(3))
                check_offered("drag", self.handle.wxyz, UnitQuaternion())
            except EventRefused as error:
                inputs.refuse(error)
                return

            place = np.array(self.handle.position)
            pose = np.concatenate([place, self.handle.wxyz])
            if event.phase == "start":
                self._grasped = place
            self._dragging = event.phase != "end"
            inputs.event("drag", (event.phase, pose))
            # Where a first click has brought the frame, the second one meets it.
            if planar and event.phase == "end" and np.array_equal(place, self._grasped):
                self._double(place)

        async def clicked(event: viser.SceneClickEvent) -> None:
            try:
                check_offered("click", event.ray_origin, Vector(3))
                check_offered("click", event.ray_direction, Vector(3))
            except EventRefused as error:
                inputs.refuse(error)
                return

            # Where the ray of the click meets the plane; nan where it does not.
            above, down = (height or 0.0) - event.ray_origin[2], event.ray_direction[2]
            share = above / down if down * above > 0.0 else math.nan
            place = np.asarray(event.ray_origin) + share * np.asarray(event.ray_direction)
            if not self._double(place):
                inputs.event("clicked goal", place)

        if planar:
            # Its annotation leaves out coroutines, which it takes as all others do.
            client.scene.on_click()(clicked)  # type: ignore[arg-type]

    def _double(self, place: Array) -> bool:
        """Whether a click makes a double click, which places the start."""
        before, self._clicked = self._clicked, (time.monotonic(), place)
        if (
            self._clicked[0] - before[0] > _DOUBLE[0]
            or np.linalg.norm(place - before[1]) > _DOUBLE[1]
        ):
            return False
        self._inputs.event("clicked start", place)
        return True

    def show(self, goal: pin.SE3) -> None:
        """Move it, except while it is dragged."""
        if not self._dragging:
            self.handle.position, self.handle.wxyz = goal.translation, wxyz(goal)


def _series(
    names: Sequence[str], colours: Sequence[str], widths: Sequence[float]
) -> tuple[uplot.Series, ...]:
    lines = zip(names, colours, widths, strict=True)
    return (
        uplot.Series(label="s"),
        *(uplot.Series(label=n, stroke=c, width=w) for n, c, w in lines),
    )


_ALONE = _series(("error", *SOURCES), _COLOURS, (2.0, *(1.0 for _ in SOURCES)))
_COMPARED = (*_ALONE, _series(("second solver, or run before",), (_RIVAL,), (2.0,))[1])


def _scales(curve: Curve, largest: float) -> dict[str, uplot.Scale]:
    return {"x": uplot.Scale(time=False, range=curve.span), "y": uplot.Scale(range=(0.0, largest))}


def _add_plot(
    gui: viser.GuiApi,
    title: str,
    data: tuple[Array, ...],
    series: tuple[uplot.Series, ...],
    largest: float,
) -> Any:
    """An empty plot, without the values under the pointer, which are dashes where there is none."""
    legend, scales = uplot.Legend(live=False), _scales(Curve(), largest)
    return gui.add_uplot(
        data, series, title=title, padding=(14, 14, 0, 0), scales=scales, legend=legend, aspect=1.8
    )


def _scale(plot: Any, curve: Curve, largest: float) -> None:
    # A plot is made anew by its page when its scales change: only where they do.
    if plot.scales != (scales := _scales(curve, largest)):
        plot.scales = scales


class ErrorPlot:
    """Error against time, with the whole error of a second solver, or of the run before, where there is one."""

    def __init__(self, gui: viser.GuiApi) -> None:
        self._plot = _add_plot(gui, "distance from the goal, mm", Curve().errors, _ALONE, 1.0)
        self._drawn: list[tuple[int, int]] = []

    def show(self, first: Curve, second: Curve | None) -> None:
        """Show what has changed."""
        drawn = [(id(curve), curve.version) for curve in (first, second) if curve is not None]
        if drawn == self._drawn:
            return
        self._drawn = drawn
        data, series, largest = first.errors, _ALONE, first.largest
        if second is not None:
            times, error = second.errors[:2]
            data = (*data, np.interp(data[0], times, error, left=np.nan, right=np.nan))
            series, largest = _COMPARED, max(largest, second.largest)
        _scale(self._plot, first, largest)
        # The page draws with each of them: it must have the data of every series.
        if len(series) < len(self._plot.series):
            self._plot.series = series
        self._plot.data = data
        if len(series) > len(self._plot.series):
            self._plot.series = series


class JointPlots:
    """Each joint's share of its range and of its velocity limit, against time."""

    def __init__(self, gui: viser.GuiApi, names: Sequence[str]) -> None:
        self._n, self._drawn = len(names), (0, 0)
        series = _series(
            names, [_JOINTS[i % len(_JOINTS)] for i in range(self._n)], [1.5] * self._n
        )
        self._plots = [
            _add_plot(gui, title, Curve().joints(self._n)[0], series, 100.0)
            for title in (
                "joint positions, % of their ranges",
                "joint velocities, % of their limits",
            )
        ]

    def show(self, curve: Curve) -> None:
        """Show what has changed."""
        if (drawn := (id(curve), curve.version)) != self._drawn:
            self._drawn = drawn
            for plot, data in zip(self._plots, curve.joints(self._n), strict=True):
                _scale(plot, curve, 100.0)
                plot.data = data
