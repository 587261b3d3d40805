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
STICK = 0.02

Rgb = tuple[int, int, int]


class ArmScene:
    """A drawn arm, which `move` moves.

    Args:
        scene: Of a viser server, or of one of its clients.
        name: Of its node.
        placements, prismatic: See `Robot.placements` and `Robot.prismatic`.
        shapes: Of the base and of each link.
        meshes: Of the same; sticks where there are neither.
        colour: Of all shapes; their own by default.
        opacity: 1 for solid.

    Attributes:
        frame: Its root, which moves or hides the whole.
    """

    def __init__(
        self,
        scene: viser.SceneApi,
        name: str,
        placements: Array,
        prismatic: Iterable[bool],
        shapes: Sequence[Sequence[ShapeRecord]] = (),
        meshes: Sequence[DrawnMesh] = (),
        *,
        colour: Rgb | None = None,
        opacity: float = 1.0,
    ) -> None:
        self._placements, self._prismatic = (
            [pin.SE3(placement) for placement in placements],
            list(prismatic),
        )
        self._scene, self._colour, self._opacity = (
            scene,
            colour,
            None if opacity >= 1.0 else opacity,
        )
        self.frame = scene.add_frame(name, show_axes=False)
        links = list(shapes) if any(shapes) or meshes else _sticks(placements)
        self._joints, bodies = [], [name]
        for number, placement in enumerate(self._placements[:-1], start=1):
            bodies.append(f"{bodies[-1]}/joint{number}")
            self._joints.append(
                scene.add_frame(bodies[-1], show_axes=False, position=placement.translation)
            )
        for body, link in zip(bodies, links, strict=False):
            for number, shape in enumerate(link):
                self._draw(f"{body}/shape{number}", shape)
        for number, mesh in enumerate(meshes):
            place, painted = f"{bodies[mesh.body]}/mesh{number}", colour or _rgb(mesh.color)
            scene.add_mesh_simple(
                place,
                mesh.vertices,
                mesh.triangles,
                color=painted,
                opacity=self._opacity,
                side="double",
            )
        end = self._placements[-1]
        scene.add_frame(
            f"{bodies[-1]}/tcp",
            axes_length=0.08,
            axes_radius=0.004,
            wxyz=wxyz(end),
            position=end.translation,
        )

    def _draw(self, name: str, shape: ShapeRecord) -> None:
        start, end = np.array(shape.start), np.array(shape.end)
        length = float(np.linalg.norm(end - start))
        colour = self._colour or _rgb(shape.color)
        if length > 0.0:
            # The axis of viser's cylinder is z.
            turn = pin.Quaternion.FromTwoVectors(np.array([0.0, 0.0, 1.0]), (end - start) / length)
            at = {"wxyz": np.roll(turn.coeffs(), 1), "position": 0.5 * (start + end)}
            self._scene.add_cylinder(
                name, shape.radius, length, colour, opacity=self._opacity, **at
            )
        if shape.kind == "capsule":
            for end_number, place in enumerate((start, end)):
                ball, radius = f"{name}_end{end_number}", shape.radius
                self._scene.add_icosphere(
                    ball, radius, colour, subdivisions=2, position=place, opacity=self._opacity
                )

    def move(self, q: Array) -> None:
        """Show it at joint positions (n,), rad."""
        for frame, placement, slides, value in zip(
            self._joints,
            self._placements[:-1],
            self._prismatic,
            np.asarray(q).tolist(),
            strict=True,
        ):
            turned, slid = (0.0, value) if slides else (value, 0.0)
            moved = placement * pin.SE3(pin.utils.rotate("z", turned), np.array([0.0, 0.0, slid]))
            frame.wxyz = wxyz(moved)
            if slides:
                frame.position = moved.translation


def _rgb(color: Sequence[float]) -> Rgb:
    red, green, blue = (round(255 * part) for part in color)
    return red, green, blue


def _sticks(placements: Array) -> list[list[ShapeRecord]]:
    """Return a stick from each joint's origin to the next one's, for links of unknown shape."""
    sticks = []
    for placement in placements:
        end = placement[:3, 3].tolist()
        sticks.append([ShapeRecord("capsule", [0.0] * 3, end, STICK, [0.6, 0.64, 0.68])])
    return sticks


def wxyz(placement: pin.SE3) -> Array:
    """Its rotation as viser takes it."""
    return np.roll(pin.Quaternion(placement.rotation).coeffs(), 1)
