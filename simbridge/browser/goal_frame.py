"""The frame in a page's scene by which the goal is dragged, and the clicks that place it."""

from __future__ import annotations

import math
import time

import numpy as np
import pinocchio as pin
import viser

from simbridge.browser.inputs import PanelInputs
from simbridge.browser.offers import EventRefused, NumberVector, UnitQuaternion, check_offered
from simbridge.report.arm_scene import wxyz
from simbridge.robot.pose import Array

# Within this time, s, a second click at most this far away, m, makes a double click.
MAX_DOUBLE_CLICK_S = 1.0
MAX_DOUBLE_CLICK_M = 0.005


class GoalFrame:
    """The frame of the goal; of a planar arm, also the clicks in its plane.

    It sends "drag" with phase and pose (7,), and for planar arms "clicked goal" and "clicked start"
    with positions (3,).

    Args:
        client: Viser's client.
        inputs: Takes the events.
        scale: Size, m.
        height: Height of the plane in which the goal of a planar arm is placed, m; None for other
            arms.

    Attributes:
        handle: Viser's handle of the frame.
    """

    def __init__(
        self, client: viser.ClientHandle, inputs: PanelInputs, scale: float, height: float | None
    ) -> None:
        self._inputs = inputs
        self._planar = height is not None
        self._height = height or 0.0
        self._dragging = False
        # Where the frame was grasped (3,), m.
        self._grasped = np.zeros(3)
        # When and where the last click was, s and (3,), m.
        self._click_time = -math.inf
        self._click_position = np.zeros(3)

        self.handle = client.scene.add_transform_controls(
            "/goal",
            scale=scale,
            disable_rotations=self._planar,
            active_axes=(True, True, not self._planar),
            depth_test=False,
        )
        self.handle.on_update(self._send_drag)
        if self._planar:
            # Unlike those of viser's other functions, this annotation leaves out coroutines.
            client.scene.on_click()(self._send_click)  # type: ignore[arg-type]

    def show(self, goal: pin.SE3) -> None:
        """Move the frame to a goal in base_link, except while it is dragged."""
        if not self._dragging:
            self.handle.position = goal.translation
            self.handle.wxyz = wxyz(goal)

    async def _send_drag(self, event: viser.TransformControlsEvent) -> None:
        """Send where the page drags the frame."""
        if event.client_id is None:
            return
        try:
            check_offered("drag", self.handle.position, NumberVector(3))
            check_offered("drag", self.handle.wxyz, UnitQuaternion())
        except EventRefused as error:
            self._inputs.refuse(error)
            return

        position = np.array(self.handle.position)
        pose = np.concatenate([position, self.handle.wxyz])
        if event.phase == "start":
            self._grasped = position
        self._dragging = event.phase != "end"
        self._inputs.send_event("drag", (event.phase, pose))

        # The first click of a double click brings the frame to its place. The second one therefore
        # meets the frame, and comes as a drag without a motion.
        is_click = event.phase == "end" and np.array_equal(position, self._grasped)
        if self._planar and is_click:
            self._send_double_click(position)

    async def _send_click(self, event: viser.SceneClickEvent) -> None:
        """Send where a click meets the plane: a click places the goal, a double click the start."""
        try:
            check_offered("click", event.ray_origin, NumberVector(3))
            check_offered("click", event.ray_direction, NumberVector(3))
        except EventRefused as error:
            self._inputs.refuse(error)
            return

        # A click beside the plane places nothing: its ray leads away from the plane, or along it.
        rise = self._height - event.ray_origin[2]
        slope = event.ray_direction[2]
        if slope * rise <= 0.0:
            return

        # Where the ray meets the plane.
        distance = rise / slope
        position = np.asarray(event.ray_origin) + distance * np.asarray(event.ray_direction)
        if not self._send_double_click(position):
            self._inputs.send_event("clicked goal", position)

    def _send_double_click(self, position: Array) -> bool:
        """Place the start if a click makes a double click; return whether it does."""
        now = time.monotonic()
        interval = now - self._click_time
        distance = np.linalg.norm(position - self._click_position)
        self._click_time = now
        self._click_position = position
        if interval > MAX_DOUBLE_CLICK_S or distance > MAX_DOUBLE_CLICK_M:
            return False
        self._inputs.send_event("clicked start", position)
        return True
