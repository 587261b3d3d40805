"""An arm in the scene, with its solver's ghost, its tool's path and an iteration's postures."""

from __future__ import annotations

from collections import deque

import matplotlib
import numpy as np
import viser

from simbridge.browser.snapshot import Snapshot, limit_use
from simbridge.recording.record_tables import record_bodies
from simbridge.report.arm_scene import ArmScene, Rgb
from simbridge.robot.arm_drawing import draw_arm
from simbridge.robot.kinematics import joint_origins, tool_frame
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

# The first solver's and the second's, which colour-blind people can tell apart (Okabe and Ito).
COLOURS: tuple[Rgb, Rgb] = ((0, 114, 178), (213, 94, 0))
MARK_COLOUR: Rgb = (230, 60, 40)

GHOST_OPACITY = 0.25
SECOND_ARM_OPACITY = 0.55
MARK_OPACITY = 0.5

# Less apart, rad or m, ghost and arm would only flicker through each other.
MIN_GHOST_DISTANCE = 5e-3

# A joint's mark is shown from this fraction of a limit on; its radius, m.
MARKED_LIMIT_USE = 0.8
MARK_RADIUS_M = 0.06

# How many points of a path are kept, and how far they are apart, m.
MAX_PATH_POINTS = 400
PATH_INTERVAL_M = 1e-3
# The error at which the path's colour is the last one, m.
LAST_COLOUR_ERROR_M = 0.02
PATH_COLOURS = (255 * matplotlib.colormaps["viridis"](np.linspace(0.0, 1.0, 256))[:, :3]).astype(
    np.uint8
)

# Grey of the first and the last posture of an iteration.
FIRST_POSTURE_GREY = 215
LAST_POSTURE_GREY = 150


class DrawnArm:
    """One arm in the scene.

    Args:
        server: Server of the page.
        robot: The arm.
        number: 0 for the first solver, 1 for the second.
    """

    def __init__(self, server: viser.ViserServer, robot: Robot, number: int) -> None:
        self._scene = server.scene
        self._robot = robot
        self._name = f"/follower{number}"
        self._root = self._scene.add_frame(self._name, show_axes=False)

        is_second = number > 0
        colour = COLOURS[number]
        self._arm = self._add_arm(
            "arm",
            colour=colour if is_second else None,
            opacity=SECOND_ARM_OPACITY if is_second else 1.0,
        )
        self._ghost = self._add_arm("ghost", colour=colour, opacity=GHOST_OPACITY)

        # A ball at each joint, shown where the joint is near a limit.
        self._marks = []
        for index in range(robot.n):
            mark = self._scene.add_icosphere(
                f"{self._name}/limit{index}",
                MARK_RADIUS_M,
                MARK_COLOUR,
                opacity=MARK_OPACITY,
                visible=False,
            )
            self._marks.append(mark)

        # Points of the path (3,), m, and their colours, and whether some were not drawn yet.
        self._path: deque[tuple[Array, Array]] = deque(maxlen=MAX_PATH_POINTS)
        self._path_has_grown = False
        # Whether the postures of an iteration are drawn.
        self._has_postures = False

    def _add_arm(self, name: str, *, colour: Rgb | None, opacity: float) -> ArmScene:
        """Add the links of the arm to the scene."""
        robot = self._robot
        return ArmScene(
            self._scene,
            f"{self._name}/{name}",
            placements=robot.placements,
            prismatic=robot.prismatic,
            shapes=list(record_bodies(robot).values()),
            meshes=draw_arm(robot).meshes,
            colour=colour,
            opacity=opacity,
        )

    def pose(self, q: Array, solution: Array) -> None:
        """Show the arm and the ghost.

        Args:
            q: Joint positions of the arm (n,), rad.
            solution: Joint positions of the ghost (n,), rad.
        """
        self._arm.move(q)
        is_apart = bool(np.abs(q - solution).max() > MIN_GHOST_DISTANCE)
        if self._ghost.frame.visible != is_apart:
            self._ghost.frame.visible = is_apart
        if is_apart:
            self._ghost.move(solution)

    def show(self, snapshot: Snapshot) -> None:
        """Show an instant, and lengthen the path by it."""
        self.pose(snapshot.q, snapshot.solution)
        self._show_marks(snapshot)

        point = tool_frame(self._robot, snapshot.q).translation
        if not self._path or np.linalg.norm(point - self._path[-1][0]) > PATH_INTERVAL_M:
            shade = min(int(255.0 * snapshot.distance / LAST_COLOUR_ERROR_M), 255)
            self._path.append((point, PATH_COLOURS[shade]))
            self._path_has_grown = True

    def _show_marks(self, snapshot: Snapshot) -> None:
        """Show which joints are near a limit."""
        robot = self._robot
        origins = joint_origins(robot.placements, robot.prismatic, snapshot.q[None])[0]
        range_use, velocity_use = limit_use(robot, snapshot.q, snapshot.qd)
        largest_use = np.maximum(range_use, velocity_use)
        for mark, origin, use in zip(self._marks, origins, largest_use, strict=True):
            mark.visible = bool(use > MARKED_LIMIT_USE)
            if mark.visible:
                mark.position = origin

    def draw_path(self) -> None:
        """Draw the path where it has grown; its colour is the distance from the goal."""
        if len(self._path) < 2 or not self._path_has_grown:
            return
        self._path_has_grown = False

        points = np.array([point for point, _ in self._path])
        colours = np.array([colour for _, colour in self._path])
        segments = np.stack([points[:-1], points[1:]], axis=1)
        segment_colours = np.stack([colours[:-1], colours[1:]], axis=1)
        self._scene.add_line_segments(
            f"{self._name}/path",
            segments,
            segment_colours,
            thickness=4.0,
            thickness_units="screen",
        )

    def clear_path(self) -> None:
        """Begin another path."""
        self._path.clear()
        self._scene.remove_by_name(f"{self._name}/path")

    def draw_postures(self, postures: list[Array]) -> None:
        """Draw the postures of an iteration as faint lines, the newest one strong.

        Args:
            postures: Joint origins and TCP (n + 1, 3) of each, m.
        """
        segments = [np.stack([points[:-1], points[1:]], axis=1) for points in postures]
        links = len(postures[0]) - 1

        # One grey per posture, for both ends of each of its links.
        greys = np.linspace(FIRST_POSTURE_GREY, LAST_POSTURE_GREY, len(postures))
        shade = np.repeat(greys, links).astype(np.uint8)
        colours = np.repeat(np.stack([shade] * 3, axis=1)[:, None], 2, axis=1)
        colours[-links:] = COLOURS[0]

        self._scene.add_line_segments(
            "/iterations",
            np.concatenate(segments).astype(np.float32),
            colours,
            thickness=2.5,
            thickness_units="screen",
        )
        self._has_postures = True

    def clear_postures(self) -> None:
        """Take the postures of an iteration out of the scene."""
        if self._has_postures:
            self._scene.remove_by_name("/iterations")
        self._has_postures = False

    def set_visible(self, visible: bool) -> None:
        """Show the arm, or leave it out of the picture."""
        if self._root.visible != visible:
            self._root.visible = visible

    def remove(self) -> None:
        """Take the arm out of the scene."""
        self._root.remove()
