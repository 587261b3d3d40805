"""replay.html: the arm in 3D as it moved, recorded with viser from the log.

The page opens from disk and loads nothing: viser's viewer and the recorded scene are inside.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import matplotlib
import numpy as np
import viser
from markupsafe import escape
from numpy.typing import NDArray

from simbridge.evaluation.evaluation import Evaluation
from simbridge.report.arm_scene import ArmScene
from simbridge.report.charts import decimated_path
from simbridge.report.guarded_viser import GuardedViserServer
from simbridge.report.page_gate import PageGate
from simbridge.report.palette import REFERENCE
from simbridge.report.paths import colour_steps, colours, edge_names
from simbridge.report.rendering import render
from simbridge.robot.pose import Array
from simbridge.text import NO_BREAK, degrees, millimetres

# Frames per second; a long run has fewer, for the page grows by 0.4 MB with every thousand.
FRAME_RATE = 25.0
MAX_FRAMES = 3000
# Pieces into which a long path is cut.
PIECES = 800
# Where viser begins to look for a free port.
_PORT = 18_080

# viser's viewer is one script with WebAssembly and workers created from blobs: the policy allows these, and nothing
# from the network.
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
        placements, prismatic = evaluation.chain
        shapes = list((evaluation.settings.shapes or {}).values())
        drawing = evaluation.directory.meshes()
        arm = ArmScene(server.scene, "/arm", placements, prismatic, shapes, drawing.meshes)
        edges = _draw_paths(server, evaluation)
        _set_view(server, evaluation)
        recorder = server.get_scene_serializer()
        _record_motion(server, recorder, evaluation, arm)
        page = recorder.as_html()
    return _finished(page, title, _legend(evaluation, edges, drawing.simplification_note))


@contextlib.contextmanager
def _viser() -> Iterator[viser.ViserServer]:
    """Make viser's scene, which needs a server.

    It listens on loopback, and its token is never printed.
    """
    server = GuardedViserServer(PageGate(), "127.0.0.1", _PORT)
    try:
        yield server
    finally:
        server.stop()


def _draw_paths(server: viser.ViserServer, evaluation: Evaluation) -> Array:
    """Draw the floor, the reference, and the attained path coloured by its error; returns the colour steps, mm."""
    server.scene.add_grid(
        "/floor", 4.0, 4.0, cell_size=0.1, section_size=0.5, position=(0.0, 0.0, _floor(evaluation))
    )
    reference, attained = evaluation.reference[:, :3], evaluation.attained[:, :3]
    error = evaluation.errors.tracking.distance * 1e3
    edges = colour_steps(error)
    path = reference[_kept(reference)]
    _lines(server, "/reference", path[:-1], path[1:], _rgb(REFERENCE), 2.0)
    kept = _kept(attained)
    levels = np.clip(np.searchsorted(edges, error[kept]) - 1, 0, len(edges) - 2)
    path = attained[kept]
    # One scene node per colour: viser shows per-point colours too pale.
    for level, colour in enumerate(colours(edges)):
        here = levels[1:] == level
        _lines(server, f"/attained/step{level}", path[:-1][here], path[1:][here], _rgb(colour), 6.0)
    return edges


def _floor(evaluation: Evaluation) -> float:
    floor = evaluation.settings.scenario.floor
    return float(floor) if isinstance(floor, (int, float)) else 0.0


def _kept(points: Array) -> NDArray[np.intp]:
    flat = (points[:, [i, (i + 1) % 3]] for i in range(3))
    return np.unique(np.concatenate([decimated_path(plane, PIECES) for plane in flat]))


def _lines(
    server: viser.ViserServer,
    name: str,
    begin: Array,
    end: Array,
    colour: tuple[int, int, int],
    width: float,
) -> None:
    if len(begin):
        ends = np.stack([begin, end], axis=1).astype(np.float32)
        server.scene.add_line_segments(
            name, ends, colour, thickness=width, thickness_units="screen"
        )


def _set_view(server: viser.ViserServer, evaluation: Evaluation) -> None:
    """From the front and the side, at a distance that shows the whole arm and path."""
    path = evaluation.reference[:, :3]
    low, high = np.minimum(path.min(axis=0), 0.0), np.maximum(path.max(axis=0), 0.0)
    middle, reach = 0.5 * (low + high), max(float(np.linalg.norm(high - low)), 0.3)
    side = 1.0 if middle[1] <= 0.0 else -1.0
    server.initial_camera.look_at = tuple(middle + np.array([0.0, 0.0, 0.1 * reach]))
    server.initial_camera.position = tuple(middle + reach * np.array([0.8, 0.9 * side, 0.6]))
    server.scene.configure_default_lights(True, cast_shadow=False)


def _record_motion(
    server: viser.ViserServer, recorder: Any, evaluation: Evaluation, arm: ArmScene
) -> None:
    """Record the arm's motion at its original speed."""
    log, tracking = evaluation.log, evaluation.errors.tracking
    count = max(1, min(round(float(log.stamp[-1] - log.stamp[0]) * FRAME_RATE), MAX_FRAMES))
    samples = np.unique(
        np.searchsorted(log.stamp, np.linspace(log.stamp[0], log.stamp[-1], count + 1))
    )
    samples = np.minimum(samples, len(log.stamp) - 1)
    distances, angles = tracking.distance[samples].tolist(), tracking.angle[samples].tolist()
    target = server.scene.add_icosphere("/reference_point", 0.008, _rgb(REFERENCE))
    label = server.scene.add_label("/error", "", anchor="bottom-left")
    for (k, following), distance, angle in zip(
        pairwise([*samples.tolist(), None]), distances, angles, strict=True
    ):
        arm.move(log.position[k])
        target.position = evaluation.reference[k, :3]
        label.position = evaluation.attained[k, :3] + np.array([0.0, 0.0, 0.04])
        label.text = f"{log.stamp[k]:.2f} s: {millimetres(distance)} mm, {degrees(angle)}°"
        if following is not None:
            recorder.insert_sleep(float(log.stamp[following] - log.stamp[k]))


def _rgb(colour: Any) -> tuple[int, int, int]:
    """Red, green, blue, 0 to 255, of a colour as matplotlib names it."""
    red, green, blue = matplotlib.colors.to_rgb(colour)
    return round(255 * red), round(255 * green), round(255 * blue)


def _legend(evaluation: Evaluation, edges: Array, meshes: str) -> str:
    """The meaning of the colours, as HTML over the scene."""
    names = edge_names(edges)
    return render(
        "replay_legend.html",
        scenario=evaluation.settings.scenario.name,
        robot=evaluation.settings.robot.title,
        reference=REFERENCE,
        meshes=meshes,
        steps=list(zip(map(_rgb, colours(edges)), names, strict=False)),
        largest=f"{names[-1]}{NO_BREAK}mm",
    )


def _finished(page: str, title: str, legend: str) -> str:
    """viser's page with our title, a policy and a legend."""
    policy = f'<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">'
    page = page.replace("<head>", f"<head>{policy}", 1)
    page = page.replace("<title>Viser</title>", f"<title>{escape(title)}</title>", 1)
    end = page.rindex("</body>")
    return page[:end] + legend + page[end:]
