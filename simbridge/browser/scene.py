"""The scene around the arms: the floor, the obstacles, the light, and from where it is seen."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pinocchio as pin
import viser

from simbridge.report.arm_scene import Rgb, wxyz
from simbridge.robot.obstacles import CollisionScene
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

OBSTACLE_COLOUR: Rgb = (120, 120, 120)
OBSTACLE_OPACITY = 0.4

# Width and depth of the floor, its cells and its sections, m.
FLOOR_SIZE_M = 4.0
FLOOR_CELL_M = 0.1
FLOOR_SECTION_M = 0.5

# A longer arm is seen from as near as one of this reach, m.
MAX_SEEN_REACH_M = 3.0


class Viewpoint(NamedTuple):
    """Position and direction of a camera, in base_link.

    Attributes:
        up: The direction that is up in the picture (3,).
        position: Position of the camera (3,), m.
        look_at: The point in the middle of the picture (3,), m.
    """

    up: Array
    position: Array
    look_at: Array


def draw_surroundings(server: viser.ViserServer, robot: Robot, obstacles: CollisionScene) -> None:
    """Draw the floor and the obstacles, and set from where they are seen at first."""
    scene = server.scene
    if obstacles.floor is not None:
        scene.add_grid(
            "/floor",
            FLOOR_SIZE_M,
            FLOOR_SIZE_M,
            cell_size=FLOOR_CELL_M,
            section_size=FLOOR_SECTION_M,
            position=(0.0, 0.0, obstacles.floor),
        )
    for number, box in enumerate(obstacles.boxes):
        placement = pin.SE3(pin.exp3(np.array(box.rotation)), np.array(box.centre))
        scene.add_box(
            f"/obstacle{number}",
            OBSTACLE_COLOUR,
            box.size,
            opacity=OBSTACLE_OPACITY,
            wxyz=wxyz(placement),
            position=placement.translation,
        )

    viewpoint = _viewpoint(robot, portrait=False)
    camera = server.initial_camera
    camera.up = viewpoint.up
    camera.position = viewpoint.position
    camera.look_at = viewpoint.look_at
    scene.configure_default_lights(True, cast_shadow=False)


def look_over_panel(camera: viser.CameraHandle, robot: Robot) -> None:
    """Show the arm above the panel, which is at the bottom of a page higher than it is wide."""
    done = False

    async def look(camera: viser.CameraHandle) -> None:
        nonlocal done
        if not done and camera.image_height > camera.image_width:
            done = True
            viewpoint = _viewpoint(robot, portrait=True)
            camera.up_direction = viewpoint.up
            camera.position = viewpoint.position
            camera.look_at = viewpoint.look_at

    # A page that is being opened has no size yet, and says so when it has.
    camera.on_update(look)


def _viewpoint(robot: Robot, *, portrait: bool) -> Viewpoint:
    """Return from where an arm is seen beside the panel, or above it in a portrait picture."""
    reach = min(robot.arm_length, MAX_SEEN_REACH_M)
    if robot.planar:
        # From above, x to the right.
        centre = np.array([0.0, 0.0, float(robot.placements[0][2, 3])])
        from_centre = np.array([0.0, -1e-3, 1.0])
        up = np.array([0.0, 1.0, 0.0])
        distance = (2.9 if portrait else 1.6) * reach
    else:
        centre = np.array([0.3 * reach, 0.06 * reach, 0.25 * reach])
        from_centre = np.array([1.15, 0.6, 0.5])
        up = np.array([0.0, 0.0, 1.0])
        distance = (1.8 if portrait else 1.0) * reach

    ahead = -from_centre / np.linalg.norm(from_centre)
    right = np.cross(ahead, up) / np.linalg.norm(np.cross(ahead, up))
    # The panel covers three fifths of the height, or the right third.
    shift = -0.46 * np.cross(right, ahead) if portrait else 0.37 * right
    look_at = centre + distance * shift
    return Viewpoint(up=up, position=look_at - distance * ahead, look_at=look_at)
