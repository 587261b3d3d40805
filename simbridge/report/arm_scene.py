"""An arm in a scene of viser's: its shapes and meshes on its joints' frames."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pinocchio as pin
import viser

from simbridge.recording.run_record import ShapeRecord
from simbridge.robot.arm_drawing import DrawnMesh
from simbridge.robot.pose import Array

# Links of unknown shape are drawn as sticks of this radius, m.
STICK_RADIUS = 0.02
# Length and radius of the axes at the tool, m.
TOOL_AXES_LENGTH = 0.08
TOOL_AXES_RADIUS = 0.004

Rgb = tuple[int, int, int]


class ArmScene:
    """A drawn arm, which `move` moves.

    Args:
        scene: The scene of a viser server, or of one of its clients.
        name: The name of the arm's node in the scene.
        placements: Frames of the chain: see `Robot.placements`.
        prismatic: Which joints slide: see `Robot.prismatic`.
        shapes: The shapes of the base and of each link.
        meshes: The meshes of the bodies; without shapes and meshes sticks are drawn.
        colour: The colour of all shapes and meshes; their own colours by default.
        opacity: Opacity, 0 to 1; 1 is solid.

    Attributes:
        frame: The arm's root, which moves or hides the whole.
    """

    def __init__(  # noqa: PLR0913 (the later ones by keyword)
        self,
        scene: viser.SceneApi,
        name: str,
        *,
        placements: Array,
        prismatic: Iterable[bool],
        shapes: Sequence[Sequence[ShapeRecord]] = (),
        meshes: Sequence[DrawnMesh] = (),
        colour: Rgb | None = None,
        opacity: float = 1.0,
    ) -> None:
        self._placements = [pin.SE3(placement) for placement in placements]
        self._prismatic = list(prismatic)
        self._scene = scene
        self._colour = colour
        self._opacity = None if opacity >= 1.0 else opacity
        self.frame = scene.add_frame(name, show_axes=False)

        # A frame of the scene for each body, which hangs on that of the body before: the base, then
        # the link behind each joint. The last placement is not a joint's but the tool's.
        self._joints = []
        bodies = [name]
        for number, placement in enumerate(self._placements[:-1], start=1):
            bodies.append(f"{bodies[-1]}/joint{number}")
            self._joints.append(
                scene.add_frame(bodies[-1], show_axes=False, position=placement.translation)
            )

        # The shapes and meshes, in the frames of their bodies.
        links = list(shapes) if any(shapes) or meshes else _sticks(placements)
        for body, link in zip(bodies, links, strict=False):
            for number, shape in enumerate(link):
                self._draw_shape(f"{body}/shape{number}", shape)
        for number, mesh in enumerate(meshes):
            self._draw_mesh(f"{bodies[mesh.body]}/mesh{number}", mesh)

        tool = self._placements[-1]
        scene.add_frame(
            f"{bodies[-1]}/tcp",
            axes_length=TOOL_AXES_LENGTH,
            axes_radius=TOOL_AXES_RADIUS,
            wxyz=wxyz(tool),
            position=tool.translation,
        )

    def _draw_shape(self, name: str, shape: ShapeRecord) -> None:
        """Draw a cylinder between a shape's ends; a capsule has balls at them."""
        start = np.array(shape.start)
        end = np.array(shape.end)
        length = float(np.linalg.norm(end - start))
        colour = self._colour or _rgb(shape.color)

        if length > 0.0:
            # The axis of viser's cylinder is z. pinocchio's quaternions end with w, viser's begin
            # with it.
            axis = np.array([0.0, 0.0, 1.0])
            rotation = pin.Quaternion.FromTwoVectors(axis, (end - start) / length)
            self._scene.add_cylinder(
                name,
                shape.radius,
                length,
                colour,
                opacity=self._opacity,
                wxyz=np.roll(rotation.coeffs(), 1),
                position=0.5 * (start + end),
            )

        if shape.kind == "capsule":
            for number, centre in enumerate((start, end)):
                self._scene.add_icosphere(
                    f"{name}_end{number}",
                    shape.radius,
                    colour,
                    subdivisions=2,
                    position=centre,
                    opacity=self._opacity,
                )

    def _draw_mesh(self, name: str, mesh: DrawnMesh) -> None:
        """Draw a mesh in its body's frame, visible from both sides."""
        self._scene.add_mesh_simple(
            name,
            mesh.vertices,
            mesh.triangles,
            color=self._colour or _rgb(mesh.color),
            opacity=self._opacity,
            side="double",
        )

    def move(self, q: Array) -> None:
        """Show the arm at joint positions.

        Args:
            q: Positions (n,), rad, or m for a prismatic joint.
        """
        # The last placement is the tool's, which moves with the last link.
        joint_placements = self._placements[:-1]
        positions = np.asarray(q).tolist()

        for frame, placement, is_prismatic, position in zip(
            self._joints, joint_placements, self._prismatic, positions, strict=True
        ):
            # A joint turns about its z axis, or slides along it.
            angle = 0.0 if is_prismatic else position
            distance = position if is_prismatic else 0.0
            motion = pin.SE3(pin.utils.rotate("z", angle), np.array([0.0, 0.0, distance]))
            pose = placement * motion

            # The origin of a revolute joint's frame does not move: each assignment is a message to
            # the browser.
            frame.wxyz = wxyz(pose)
            if is_prismatic:
                frame.position = pose.translation


def _rgb(color: Sequence[float]) -> Rgb:
    """Return red, green and blue, 0 to 255, of a colour in fractions of 1."""
    red, green, blue = (round(255 * part) for part in color)
    return red, green, blue


def _sticks(placements: Array) -> list[list[ShapeRecord]]:
    """Return a stick from each joint's origin to the next one's, for links of unknown shape."""
    sticks = []
    for placement in placements:
        end = placement[:3, 3].tolist()
        sticks.append([ShapeRecord("capsule", [0.0] * 3, end, STICK_RADIUS, [0.6, 0.64, 0.68])])
    return sticks


def wxyz(placement: pin.SE3) -> Array:
    """Return the rotation of a placement as viser takes it: w, x, y, z (4,)."""
    return np.roll(pin.Quaternion(placement.rotation).coeffs(), 1)
