"""The scene that all pages show: arms, the solvers' ghosts, the path with its error, obstacles, joints at limits."""

from __future__ import annotations

from collections import deque

import matplotlib
import numpy as np
import pinocchio as pin
import viser

from simbridge.browser.view import Sample, shares_of_limits
from simbridge.report.arm_scene import ArmScene, Rgb, wxyz
from simbridge.robot.kinematics import joint_origins, tool_frame
from simbridge.robot.meshes import drawing_of, shapes_of
from simbridge.robot.obstacles import CollisionScene
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

COLOURS: tuple[Rgb, Rgb] = ((0, 114, 178), (213, 94, 0))
"""Of the first solver and of the second, which colour-blind people can tell apart (Okabe and Ito)."""
# Points of a path that are kept, and the error at which its colour is the last one, m.
_PATH, _WORST = 400, 0.02
_SHADES = (255 * matplotlib.colormaps["viridis"](np.linspace(0.0, 1.0, 256))[:, :3]).astype(
    np.uint8
)
_GHOST, _RIVAL = 0.25, 0.55
# Less apart, rad or m, ghost and arm would only flicker through each other.
_APART = 5e-3
# A joint's mark is shown from this share of a limit on, and its radius, m.
_NEAR, _MARK = 0.8, 0.06
_GREY: Rgb = (120, 120, 120)


class Follower:
    """One arm in the scene: the arm, its solver's ghost, the path of its tool, and the postures of an iteration.

    Args:
        server: Of the page.
        robot: The arm.
        number: 0 for the first solver, 1 for the second.
    """

    def __init__(self, server: viser.ViserServer, robot: Robot, number: int) -> None:
        self._scene, self._robot, self._name = server.scene, robot, f"/follower{number}"
        links = (
            robot.placements,
            robot.prismatic,
            list(shapes_of(robot).values()),
            drawing_of(robot).meshes,
        )
        self._root = self._scene.add_frame(self._name, show_axes=False)
        second, colour = number > 0, COLOURS[number]
        self._arm = ArmScene(
            self._scene,
            f"{self._name}/arm",
            *links,
            colour=colour if second else None,
            opacity=_RIVAL if second else 1.0,
        )
        self._ghost = ArmScene(
            self._scene, f"{self._name}/ghost", *links, colour=colour, opacity=_GHOST
        )
        self._marks = [
            self._scene.add_icosphere(
                f"{self._name}/limit{i}", _MARK, (230, 60, 40), opacity=0.5, visible=False
            )
            for i in range(robot.n)
        ]
        self._path: deque[tuple[Array, Array]] = deque(maxlen=_PATH)
        self._grown = self._postures = False

    def pose(self, q: Array, solution: Array) -> None:
        """Show the arm and the ghost at joint positions (n,), rad."""
        self._arm.move(q)
        if self._ghost.frame.visible != (apart := bool(np.abs(q - solution).max() > _APART)):
            self._ghost.frame.visible = apart
        if apart:
            self._ghost.move(solution)

    def show(self, sample: Sample) -> None:
        """Show an instant."""
        self.pose(sample.q, sample.solution)
        origins = joint_origins(self._robot.placements, self._robot.prismatic, sample.q[None])[0]
        used = np.maximum(*shares_of_limits(self._robot, sample.q, sample.qd))
        for mark, place, share in zip(self._marks, origins, used, strict=True):
            mark.visible = bool(share > _NEAR)
            if mark.visible:
                mark.position = place
        point = tool_frame(self._robot, sample.q).translation
        if not self._path or np.linalg.norm(point - self._path[-1][0]) > 1e-3:
            self._path.append((point, _SHADES[min(int(255.0 * sample.distance / _WORST), 255)]))
            self._grown = True

    def show_path(self) -> None:
        """Draw the path, its colour the distance from the goal, where it has grown."""
        if len(self._path) < 2 or not self._grown:
            return
        self._grown = False
        points, colours = (np.array(part) for part in zip(*self._path, strict=True))
        ends, paint = (
            np.stack([points[:-1], points[1:]], axis=1),
            np.stack([colours[:-1], colours[1:]], axis=1),
        )
        self._scene.add_line_segments(
            f"{self._name}/path", ends, paint, thickness=4.0, thickness_units="screen"
        )

    def forget_path(self) -> None:
        """Begin another path."""
        self._path.clear()
        self._scene.remove_by_name(f"{self._name}/path")

    def show_postures(self, postures: list[Array]) -> None:
        """Draw the postures of an iteration (n + 1, 3) each, m, as faint lines, the newest one strong."""
        lines = np.concatenate([np.stack([p[:-1], p[1:]], axis=1) for p in postures]).astype(
            np.float32
        )
        links = len(postures[0]) - 1
        shade = np.repeat(np.linspace(215, 150, len(postures)), links).astype(np.uint8)
        colours = np.repeat(np.stack([shade] * 3, axis=1)[:, None], 2, axis=1)
        colours[-links:] = COLOURS[0]
        self._scene.add_line_segments(
            "/iterations", lines, colours, thickness=2.5, thickness_units="screen"
        )
        self._postures = True

    def forget_postures(self) -> None:
        """Take the postures of an iteration out of the scene."""
        if self._postures:
            self._scene.remove_by_name("/iterations")
        self._postures = False

    def hide(self, hidden: bool) -> None:
        """Leave it out of the picture, or no more."""
        if self._root.visible == hidden:
            self._root.visible = not hidden

    def remove(self) -> None:
        """Take it out of the scene."""
        self._root.remove()


def draw_surroundings(server: viser.ViserServer, robot: Robot, obstacles: CollisionScene) -> None:
    """The floor and the obstacles; and from where they are seen at first."""
    scene = server.scene
    if obstacles.floor is not None:
        scene.add_grid(
            "/floor",
            4.0,
            4.0,
            cell_size=0.1,
            section_size=0.5,
            position=(0.0, 0.0, obstacles.floor),
        )
    for number, box in enumerate(obstacles.boxes):
        place = pin.SE3(pin.exp3(np.array(box.rotation)), np.array(box.centre))
        scene.add_box(
            f"/obstacle{number}",
            _GREY,
            box.size,
            opacity=0.4,
            wxyz=wxyz(place),
            position=place.translation,
        )
    camera = server.initial_camera
    camera.up, camera.position, camera.look_at = _view(robot, portrait=False)
    scene.configure_default_lights(True, cast_shadow=False)


def look_over_panel(camera: viser.CameraHandle, robot: Robot) -> None:
    """Once a page is higher than it is wide, its panel is at the bottom: show the arm above it."""
    done = False

    async def look(camera: viser.CameraHandle) -> None:
        nonlocal done
        if not done and camera.image_height > camera.image_width:
            done = True
            camera.up_direction, camera.position, camera.look_at = _view(robot, portrait=True)

    # A page that is being opened has no size yet, and says so when it has.
    camera.on_update(look)


def _view(robot: Robot, *, portrait: bool) -> tuple[Array, Array, Array]:
    """Up, and from where to where, so that an arm is seen beside the panel, or above it."""
    reach = min(robot.reach, 3.0)
    if robot.planar:
        # From above, x to the right.
        centre, towards, up = (
            (0.0, 0.0, float(robot.placements[0][2, 3])),
            (0.0, -1e-3, 1.0),
            (0.0, 1.0, 0.0),
        )
        away = (2.9 if portrait else 1.6) * reach
    else:
        centre, towards, up = (
            (0.3 * reach, 0.06 * reach, 0.25 * reach),
            (1.15, 0.6, 0.5),
            (0.0, 0.0, 1.0),
        )
        away = (1.8 if portrait else 1.0) * reach
    ahead = -np.array(towards) / np.linalg.norm(towards)
    right = np.cross(ahead, up) / np.linalg.norm(np.cross(ahead, up))
    # The panel covers three fifths of the height, or the right third.
    shift = -0.46 * np.cross(right, ahead) if portrait else 0.37 * right
    place = np.array(centre) + away * shift
    return np.array(up), place - away * ahead, place
