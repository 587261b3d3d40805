"""An arm in a scene of viser's: its shapes and meshes on its joints' frames."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pinocchio as pin
import viser

from simbridge.robot.meshes import DrawnMesh
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
        shapes: Of the base and of each link, as settings.toml records them.
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
        shapes: Sequence[Sequence[dict[str, Any]]] = (),
        meshes: Sequence[DrawnMesh] = (),
        *,
        colour: Rgb | None = None,
        opacity: float = 1.0,
    ) -> None:
        self._placements, self._prismatic = [pin.SE3(placement) for placement in placements], list(prismatic)
        self._scene, self._colour, self._opacity = scene, colour, None if opacity >= 1.0 else opacity
        self.frame = scene.add_frame(name, show_axes=False)
        links = list(shapes) if any(shapes) or meshes else _sticks(placements)
        for number, shape in enumerate(links[0] if links else []):
            self._draw(f"{name}/shape{number}", shape)
        self._joints, path = [], name
        for i in range(len(placements) - 1):
            path += f"/joint{i + 1}"
            at = self._placements[i].translation
            self._joints.append(scene.add_frame(path, show_axes=False, position=at))
            for number, shape in enumerate(links[i + 1] if i + 1 < len(links) else []):
                self._draw(f"{path}/shape{number}", shape)
        bodies = [name, *("".join(f"/joint{k}" for k in range(1, i + 1)) for i in range(1, len(placements)))]
        for number, mesh in enumerate(meshes):
            body = name if mesh.body == 0 else name + bodies[mesh.body]
            scene.add_mesh_simple(
                f"{body}/mesh{number}", mesh.vertices, mesh.triangles, color=colour or _rgb(mesh.color),
                opacity=self._opacity, side="double",
            )  # fmt: skip
        end = self._placements[-1]
        scene.add_frame(f"{path}/tcp", axes_length=0.08, axes_radius=0.004, wxyz=wxyz(end), position=end.translation)

    def _draw(self, name: str, shape: dict[str, Any]) -> None:
        start, end = np.array(shape["start"]), np.array(shape["end"])
        length = float(np.linalg.norm(end - start))
        colour = self._colour or _rgb(shape["color"])
        if length > 0.0:
            # The axis of viser's cylinder is z.
            turn = pin.Quaternion.FromTwoVectors(np.array([0.0, 0.0, 1.0]), (end - start) / length)
            self._scene.add_cylinder(
                name, shape["radius"], length, colour, wxyz=np.roll(turn.coeffs(), 1), position=0.5 * (start + end),
                opacity=self._opacity,
            )  # fmt: skip
        if shape["kind"] == "capsule":
            for number, place in enumerate((start, end)):
                self._scene.add_icosphere(
                    f"{name}_end{number}",
                    shape["radius"],
                    colour,
                    subdivisions=2,
                    position=place,
                    opacity=self._opacity,
                )

    def move(self, q: Array) -> None:
        """Show it at joint positions (n,), rad."""
        for frame, placement, slides, value in zip(
            self._joints, self._placements[:-1], self._prismatic, np.asarray(q).tolist(), strict=True
        ):
            moved = placement * along_z(value, bool(slides))
            frame.wxyz = wxyz(moved)
            if slides:
                frame.position = moved.translation


def _rgb(color: Sequence[float]) -> Rgb:
    red, green, blue = (round(255 * part) for part in color)
    return red, green, blue


def _sticks(placements: Array) -> list[list[dict[str, Any]]]:
    """From each joint's origin to the next one's."""
    ends = [placement[:3, 3].tolist() for placement in placements]
    stick = {"kind": "capsule", "start": [0.0] * 3, "radius": STICK, "color": [0.6, 0.64, 0.68]}
    return [[stick | {"end": end}] for end in ends]


def along_z(q: float, slides: bool) -> pin.SE3:
    """The motion of a joint, about its z axis or along it."""
    if slides:
        return pin.SE3(np.eye(3), np.array([0.0, 0.0, q]))
    return pin.SE3(pin.utils.rotate("z", q), np.zeros(3))


def wxyz(placement: pin.SE3) -> Array:
    """Its rotation as viser takes it."""
    return np.roll(pin.Quaternion(placement.rotation).coeffs(), 1)
