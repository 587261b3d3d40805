"""The frame in a page's scene by which the goal is dragged, and the clicks that place the goal of a planar arm."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pinocchio as pin
import viser

from simbridge.report.arm_scene import wxyz
from simbridge.robot.pose import Array

# Within so long, s, a second click at most so far away, m, makes a double click.
_DOUBLE = 1.0, 0.005


class GoalFrame:
    """The frame of a page.

    It sends "drag" with phase and pose (7,), and for planar arms "clicked goal" and "clicked start" with places (3,).

    Args:
        client: Of viser.
        send: Takes the name and the value of an event.
        scale: Size, m.
        height: Of the plane in which the goal of a planar arm is placed, m; None for other arms.
    """

    def __init__(
        self, client: viser.ClientHandle, send: Callable[[str, Any], None], scale: float, height: float | None
    ) -> None:
        self._send, self._dragging, self._clicked = send, False, (-math.inf, np.zeros(3))
        planar = height is not None
        self._handle = client.scene.add_transform_controls(
            "/goal", scale=scale, disable_rotations=planar, active_axes=(True, True, not planar), depth_test=False
        )

        @self._handle.on_update
        async def _(event: viser.TransformControlsEvent) -> None:
            if event.client_id is None:
                return
            place, pose = np.array(self._handle.position), [*self._handle.position, *self._handle.wxyz]
            if event.phase == "start":
                self._grabbed = place
            self._dragging = event.phase != "end"
            send("drag", (event.phase, np.array(pose)))
            # Where a first click has brought the frame, the second one meets it.
            if planar and event.phase == "end" and np.array_equal(place, self._grabbed):
                self._double(place)

        if height is None:
            return

        async def clicked(event: viser.SceneClickEvent) -> None:
            place = on_plane(height, event.ray_origin, event.ray_direction)
            if not self._double(place):
                send("clicked goal", place)

        # Its annotation leaves out coroutines, which it takes as all others do.
        client.scene.on_click()(clicked)  # type: ignore[arg-type]

    def _double(self, place: Array) -> bool:
        """Whether a click makes a double click, which places the start."""
        before, self._clicked = self._clicked, (time.monotonic(), place)
        if self._clicked[0] - before[0] > _DOUBLE[0] or np.linalg.norm(place - before[1]) > _DOUBLE[1]:
            return False
        self._send("clicked start", place)
        return True

    def show(self, goal: pin.SE3) -> None:
        """Move it, except while it is dragged."""
        if not self._dragging:
            self._handle.position, self._handle.wxyz = goal.translation, wxyz(goal)

    @property
    def visible(self) -> bool:
        """Whether the page shows it."""
        return self._handle.visible

    @visible.setter
    def visible(self, visible: bool) -> None:
        if self._handle.visible != visible:
            self._handle.visible = visible


def on_plane(height: float, origin: tuple[float, float, float], direction: tuple[float, float, float]) -> Array:
    """Where the ray of a click meets a horizontal plane (3,), m; nan where it does not."""
    share = (height - origin[2]) / direction[2] if direction[2] * (height - origin[2]) > 0.0 else math.nan
    found: Array = np.asarray(origin) + share * np.asarray(direction)
    return found
