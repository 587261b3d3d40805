"""replay.html: the arm in 3D as it moved, made by viser from the run's own record.

The page opens from disk and asks for nothing: viser's viewer and the recorded scene are inside.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from simbridge.report.drawing import as_written
from simbridge.report.error_map import colour_steps
from simbridge.report.timeline import thinned_path
from simbridge.robot.pose import Array
from simbridge.text import NO_BREAK, degrees, millimetres

if TYPE_CHECKING:
    import viser

    from simbridge.evaluation.evaluation import Evaluation


# Pictures a second; a long run has fewer, for the page grows by 0.4 MB with every thousand.
RATE = 25.0
MAX_PICTURES = 3000
# Pieces into which a long path is cut.
PIECES = 800
# Links of an arm whose shapes nobody knows are drawn as sticks, m.
STICK = 0.02

# viser's viewer is one script with WebAssembly and workers of its own making: the policy allows these, and nothing
# from outside.
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval' blob: data:; worker-src blob: data:; "
    "connect-src blob: data:; style-src 'unsafe-inline'; img-src data: blob:; font-src data:"
)


def replay_page(evaluation: Evaluation, title: str) -> str:
    """The page as HTML.

    Args:
        evaluation: A run with at least one sample.
        title: Of the page.
    """
    with _viser() as server:
        joints = _draw_arm(server, evaluation)
        edges = _draw_paths(server, evaluation)
        _look(server, evaluation)
        recorder = server.get_scene_serializer()
        _play(server, recorder, evaluation, joints)
        page = recorder.as_html()
    return _dressed(page, title, _legend(evaluation, edges))


@contextlib.contextmanager
def _viser() -> Iterator[viser.ViserServer]:
    """A scene of viser's; it belongs to a server, here on loopback, that nobody is told of."""
    import viser

    with contextlib.redirect_stdout(io.StringIO()):
        server = viser.ViserServer(host="127.0.0.1", port=_PORT, verbose=False)
    try:
        yield server
    finally:
        with contextlib.redirect_stdout(io.StringIO()):
            server.stop()


# Where viser begins to look for a free port.
_PORT = 18_080


def _draw_arm(server: viser.ViserServer, evaluation: Evaluation) -> list[Any]:
    """The links; returns the frame of each joint, to be moved."""
    chain = evaluation.settings["kinematics"]
    placements = np.array(chain["placements"], dtype=float).reshape(-1, 4, 4)
    shapes = evaluation.settings.get("shapes") or {}
    links = [*shapes.values()] or _sticks(placements)
    for number, shape in enumerate(links[0]):
        _draw_shape(server, f"/arm/shape{number}", shape)
    frames, path = [], "/arm"
    for i in range(len(placements) - 1):
        path += f"/joint{i + 1}"
        frames.append(server.scene.add_frame(path, show_axes=False))
        for number, shape in enumerate(links[i + 1] if i + 1 < len(links) else []):
            _draw_shape(server, f"{path}/shape{number}", shape)
    tool = pin.SE3(placements[-1])
    server.scene.add_frame(
        f"{path}/tcp", axes_length=0.08, axes_radius=0.004, wxyz=_wxyz(tool), position=tool.translation
    )
    return frames


def _sticks(placements: Array) -> list[list[dict[str, Any]]]:
    """From each joint's origin to the next one's."""
    ends = [placement[:3, 3].tolist() for placement in placements]
    stick = {"kind": "capsule", "start": [0.0] * 3, "radius": STICK, "color": [0.6, 0.64, 0.68]}
    return [[stick | {"end": end}] for end in ends]


def _draw_shape(server: viser.ViserServer, name: str, shape: dict[str, Any]) -> None:
    start, end = np.array(shape["start"]), np.array(shape["end"])
    length = float(np.linalg.norm(end - start))
    colour = tuple(round(255 * part) for part in shape["color"])
    if length > 0.0:
        # viser's cylinder stands along z.
        turn = pin.Quaternion.FromTwoVectors(np.array([0.0, 0.0, 1.0]), (end - start) / length)
        server.scene.add_cylinder(
            name, shape["radius"], length, colour, wxyz=np.roll(turn.coeffs(), 1), position=0.5 * (start + end)
        )
    if shape["kind"] == "capsule":
        for number, place in enumerate((start, end)):
            server.scene.add_icosphere(f"{name}_end{number}", shape["radius"], colour, subdivisions=2, position=place)


def _draw_paths(server: viser.ViserServer, evaluation: Evaluation) -> Array:
    """Floor, reference, and the attained path in the colours of its error; returns the steps of colour, mm."""
    server.scene.add_grid("/floor", 4.0, 4.0, cell_size=0.1, section_size=0.5, position=(0.0, 0.0, _floor(evaluation)))
    reference, attained = evaluation.reference[:, :3], evaluation.attained[:, :3]
    error = evaluation.budget.tracking.distance * 1e3
    edges = colour_steps(error)
    path = reference[_kept(reference)]
    _lines(server, "/reference", path[:-1], path[1:], (154, 154, 154), 2.0)
    kept = _kept(attained)
    levels = np.clip(np.searchsorted(edges, error[kept]) - 1, 0, len(edges) - 2)
    path = attained[kept]
    # A colour a scene node: viser shows colours that are given by the point too pale.
    for level, colour in enumerate(_colours(edges)):
        here = levels[1:] == level
        _lines(server, f"/attained/step{level}", path[:-1][here], path[1:][here], colour, 6.0)
    return edges


def _floor(evaluation: Evaluation) -> float:
    floor = evaluation.settings["scenario"].get("floor", 0.0)
    return float(floor) if isinstance(floor, (int, float)) else 0.0


def _kept(points: Array) -> NDArray[np.intp]:
    flat = (points[:, [i, (i + 1) % 3]] for i in range(3))
    return np.unique(np.concatenate([thinned_path(plane, PIECES) for plane in flat]))


def _colours(edges: Array) -> list[tuple[int, int, int]]:
    """Red, green, blue, 0 to 255, of every step."""
    shades = matplotlib.colormaps["viridis_r"](np.linspace(0.06, 1.0, len(edges) - 1))
    return [(round(255 * r), round(255 * g), round(255 * b)) for r, g, b, _ in np.atleast_2d(shades).tolist()]


def _lines(
    server: viser.ViserServer, name: str, begin: Array, end: Array, colour: tuple[int, int, int], width: float
) -> None:
    if len(begin):
        ends = np.stack([begin, end], axis=1).astype(np.float32)
        server.scene.add_line_segments(name, ends, colour, thickness=width, thickness_units="screen")


def _look(server: viser.ViserServer, evaluation: Evaluation) -> None:
    """From in front and aside, near enough to see the whole of arm and path."""
    path = evaluation.reference[:, :3]
    low, high = np.minimum(path.min(axis=0), 0.0), np.maximum(path.max(axis=0), 0.0)
    middle, reach = 0.5 * (low + high), max(float(np.linalg.norm(high - low)), 0.3)
    side = 1.0 if middle[1] <= 0.0 else -1.0
    server.initial_camera.look_at = tuple(middle + np.array([0.0, 0.0, 0.1 * reach]))
    server.initial_camera.position = tuple(middle + reach * np.array([0.8, 0.9 * side, 0.6]))
    server.scene.configure_default_lights(True, cast_shadow=False)


def _play(server: viser.ViserServer, recorder: Any, evaluation: Evaluation, joints: list[Any]) -> None:
    """Moves the arm through the run, in the time that it took."""
    log, tracking = evaluation.log, evaluation.budget.tracking
    count = max(1, min(round(float(log.stamp[-1] - log.stamp[0]) * RATE), MAX_PICTURES))
    pictures = np.unique(np.searchsorted(log.stamp, np.linspace(log.stamp[0], log.stamp[-1], count + 1)))
    pictures = np.minimum(pictures, len(log.stamp) - 1)
    chain = evaluation.settings["kinematics"]
    placements = [pin.SE3(m) for m in np.array(chain["placements"], dtype=float).reshape(-1, 4, 4)]
    due = server.scene.add_icosphere("/due", 0.008, (154, 154, 154))
    sign = server.scene.add_label("/told", "", anchor="bottom-left")
    for picture, following in pairwise([*pictures.tolist(), None]):
        for frame, placement, slides, q in zip(
            joints, placements[:-1], chain["prismatic"], log.position[picture], strict=True
        ):
            moved = placement * _along_z(float(q), bool(slides))
            frame.wxyz, frame.position = _wxyz(moved), moved.translation
        due.position = evaluation.reference[picture, :3]
        sign.position = evaluation.attained[picture, :3] + np.array([0.0, 0.0, 0.04])
        off, turned = float(tracking.distance[picture]), float(tracking.angle[picture])
        sign.text = f"{log.stamp[picture]:.2f} s: {millimetres(off)} mm, {degrees(turned)}°"
        if following is not None:
            recorder.insert_sleep(float(log.stamp[following] - log.stamp[picture]))


def _along_z(q: float, slides: bool) -> pin.SE3:
    if slides:
        return pin.SE3(np.eye(3), np.array([0.0, 0.0, q]))
    return pin.SE3(pin.utils.rotate("z", q), np.zeros(3))


def _wxyz(placement: pin.SE3) -> Array:
    return np.roll(pin.Quaternion(placement.rotation).coeffs(), 1)


def _legend(evaluation: Evaluation, edges: Array) -> str:
    """What the colours mean, as HTML over the scene."""
    steps = "".join(
        f'<i style="background:rgb({red},{green},{blue})"></i>{as_written(float(f"{low:.3g}"))} '
        for (red, green, blue), low in zip(_colours(edges), edges[:-1].tolist(), strict=True)
    )
    robot = evaluation.settings["robot"]["title"]
    scenario = evaluation.settings["scenario"]["name"]
    return (
        f"<b>{escape(scenario)}</b> on {escape(robot)}<br>"
        f'<i style="background:#9a9a9a"></i>reference, and where the tool is due<br>'
        f"tracking error of the attained path, mm, from:<br>"
        f"{steps}to {as_written(float(f'{edges[-1]:.3g}'))}{NO_BREAK}mm"
    )


def _dressed(page: str, title: str, legend: str) -> str:
    """viser's page under our title, with a policy and a legend."""
    policy = f'<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">'
    style = (
        "#legend{position:fixed;left:12px;bottom:56px;z-index:5;pointer-events:none;background:rgba(255,255,255,.85);"
        "border-radius:3px;padding:8px 12px;font:13px/1.6 system-ui,sans-serif;color:#1a1a1a}"
        "#legend i{display:inline-block;width:14px;height:10px;margin:0 4px 0 2px}"
    )
    page = page.replace("<head>", f"<head>{policy}<style>{style}</style>", 1)
    page = page.replace("<title>Viser</title>", f"<title>{escape(title)}</title>", 1)
    end = page.rindex("</body>")
    return f'{page[:end]}<div id="legend">{legend}</div>{page[end:]}'
