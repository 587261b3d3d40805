"""replay.html: the arm in 3D as it moved, recorded with viser from the log.

The page opens from disk and loads nothing: viser's viewer and the recorded scene are inside.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import matplotlib
import numpy as np
import viser
from markupsafe import escape
from numpy.typing import NDArray

from simbridge.evaluation.evaluation import Evaluation
from simbridge.report.arm_scene import ArmScene
from simbridge.report.charts import decimate_path
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
# The first port that viser tries.
FIRST_PORT = 18_080
# Widths of the lines, pixels.
REFERENCE_WIDTH = 2.0
ATTAINED_WIDTH = 6.0
# Height of the label with the error above the tool, m.
LABEL_HEIGHT = 0.04
# Radius of the ball where the reference is, m.
REFERENCE_RADIUS = 0.008
# Smallest distance of the view from the path, m.
MIN_VIEW_DISTANCE = 0.3

# viser's viewer is one script with WebAssembly and workers created from blobs: the policy allows
# these, and nothing from the network.
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval' blob: data:; worker-src blob: "
    "data:; connect-src blob: data:; style-src 'unsafe-inline'; img-src data: blob:; font-src data:"
)


def replay_page(evaluation: Evaluation, title: str) -> str:
    """Return the page as HTML.

    Args:
        evaluation: A run with at least one sample.
        title: The title of the page.
    """
    with _viser() as server:
        placements, prismatic = evaluation.chain
        shapes = list((evaluation.settings.shapes or {}).values())
        drawing = evaluation.directory.meshes()
        arm = ArmScene(
            server.scene,
            "/arm",
            placements=placements,
            prismatic=prismatic,
            shapes=shapes,
            meshes=drawing.meshes,
        )

        edges = _draw_paths(server, evaluation)
        _set_view(server, evaluation)

        recorder = server.get_scene_serializer()
        # Without waking the server for each message: nobody is connected to it.
        with server.atomic():
            _record_motion(server, recorder, evaluation, arm)
        page = recorder.as_html()

    legend = _legend(evaluation, edges, drawing.simplification_note)
    return _complete(page, title, legend)


@contextlib.contextmanager
def _viser() -> Iterator[viser.ViserServer]:
    """Make viser's scene, which needs a server.

    It listens on loopback, and its token is never printed.
    """
    server = GuardedViserServer(PageGate(), "127.0.0.1", FIRST_PORT)
    try:
        yield server
    finally:
        server.stop()


def _draw_paths(server: viser.ViserServer, evaluation: Evaluation) -> Array:
    """Draw the floor, the reference, and the attained path coloured by its error.

    Returns:
        The errors at which the colour changes, mm.
    """
    floor = (0.0, 0.0, _floor(evaluation))
    server.scene.add_grid("/floor", 4.0, 4.0, cell_size=0.1, section_size=0.5, position=floor)

    reference = evaluation.reference[:, :3]
    points = reference[_shape_points(reference)]
    _draw_lines(
        server,
        "/reference",
        points[:-1],
        ends=points[1:],
        colour=_rgb(REFERENCE),
        width=REFERENCE_WIDTH,
    )

    # The colour of each piece of the attained path.
    attained = evaluation.attained[:, :3]
    error = evaluation.errors.tracking.distance * 1e3
    edges = colour_steps(error)
    shown = _shape_points(attained)
    points = attained[shown]
    steps = np.clip(np.searchsorted(edges, error[shown]) - 1, 0, len(edges) - 2)

    # One scene node per colour: viser shows per-point colours too pale.
    for step, colour in enumerate(colours(edges)):
        has_colour = steps[1:] == step
        _draw_lines(
            server,
            f"/attained/step{step}",
            points[:-1][has_colour],
            ends=points[1:][has_colour],
            colour=_rgb(colour),
            width=ATTAINED_WIDTH,
        )
    return edges


def _floor(evaluation: Evaluation) -> float:
    """Return the height of the floor, m; 0 where the scenario has none."""
    floor = evaluation.settings.scenario.floor
    return float(floor) if isinstance(floor, (int, float)) else 0.0


def _shape_points(points: Array) -> NDArray[np.intp]:
    """Return the points of a path (T, 3) that keep its shape from every side, in order."""
    indices = []
    for right, up in ((0, 1), (1, 2), (2, 0)):
        indices.append(decimate_path(points[:, [right, up]], PIECES))
    return np.unique(np.concatenate(indices))


def _draw_lines(
    server: viser.ViserServer,
    name: str,
    begins: Array,
    *,
    ends: Array,
    colour: tuple[int, int, int],
    width: float,
) -> None:
    """Draw lines in one colour; without any, nothing.

    Args:
        server: The server whose scene the lines belong to.
        name: The name of the node in the scene.
        begins: First points of the lines (K, 3), m.
        ends: Last points of the lines (K, 3), m.
        colour: Red, green, blue, 0 to 255.
        width: Width of the lines, pixels.
    """
    if len(begins):
        points = np.stack([begins, ends], axis=1).astype(np.float32)
        server.scene.add_line_segments(
            name, points, colour, thickness=width, thickness_units="screen"
        )


def _set_view(server: viser.ViserServer, evaluation: Evaluation) -> None:
    """Look from the front and the side, at a distance that shows the whole arm and path."""
    # A box around the path and the arm's base.
    path = evaluation.reference[:, :3]
    low = np.minimum(path.min(axis=0), 0.0)
    high = np.maximum(path.max(axis=0), 0.0)
    middle = 0.5 * (low + high)
    distance = max(float(np.linalg.norm(high - low)), MIN_VIEW_DISTANCE)

    side = 1.0 if middle[1] <= 0.0 else -1.0
    direction = np.array([0.8, 0.9 * side, 0.6])
    server.initial_camera.look_at = tuple(middle + np.array([0.0, 0.0, 0.1 * distance]))
    server.initial_camera.position = tuple(middle + distance * direction)
    server.scene.configure_default_lights(True, cast_shadow=False)


def _record_motion(
    server: viser.ViserServer, recorder: Any, evaluation: Evaluation, arm: ArmScene
) -> None:
    """Record the arm's motion at its original speed."""
    log = evaluation.log
    tracking = evaluation.errors.tracking

    # The sample of each frame.
    duration = float(log.stamp[-1] - log.stamp[0])
    count = max(1, min(round(duration * FRAME_RATE), MAX_FRAMES))
    frame_times = np.linspace(log.stamp[0], log.stamp[-1], count + 1)
    samples = np.unique(np.searchsorted(log.stamp, frame_times))
    samples = np.minimum(samples, len(log.stamp) - 1)
    # What each frame shows.
    distances = tracking.distance[samples].tolist()
    angles = tracking.angle[samples].tolist()
    reference = evaluation.reference[samples, :3]
    labels = evaluation.attained[samples, :3] + np.array([0.0, 0.0, LABEL_HEIGHT])
    joints = log.position[samples]
    stamps = log.stamp[samples]

    ball = server.scene.add_icosphere("/reference_point", REFERENCE_RADIUS, _rgb(REFERENCE))
    label = server.scene.add_label("/error", "", anchor="bottom-left")
    for frame, stamp in enumerate(stamps.tolist()):
        # The frame before is shown until this one begins.
        if frame > 0:
            recorder.insert_sleep(float(stamp - stamps[frame - 1]))

        arm.move(joints[frame])
        ball.position = reference[frame]
        label.position = labels[frame]
        distance = millimetres(distances[frame])
        label.text = f"{stamp:.2f} s: {distance} mm, {degrees(angles[frame])}°"


def _rgb(colour: Any) -> tuple[int, int, int]:
    """Return red, green and blue, 0 to 255, of a colour as matplotlib names it."""
    red, green, blue = matplotlib.colors.to_rgb(colour)
    return round(255 * red), round(255 * green), round(255 * blue)


def _legend(evaluation: Evaluation, edges: Array, simplification_note: str) -> str:
    """Return the meaning of the colours, as HTML over the scene.

    Args:
        evaluation: The run.
        edges: The errors at which the colour changes, mm.
        simplification_note: What is simplified in the drawing of the arm; "" if nothing is.
    """
    names = edge_names(edges)
    shades = [_rgb(colour) for colour in colours(edges)]
    return render(
        "replay_legend.html",
        scenario=evaluation.settings.scenario.name,
        robot=evaluation.settings.robot.title,
        reference=REFERENCE,
        meshes=simplification_note,
        steps=list(zip(shades, names, strict=False)),
        largest=f"{names[-1]}{NO_BREAK}mm",
    )


def _complete(page: str, title: str, legend: str) -> str:
    """Give viser's page our title, a policy and a legend."""
    policy = f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">'
    page = page.replace("<head>", f"<head>{policy}", 1)
    page = page.replace("<title>Viser</title>", f"<title>{escape(title)}</title>", 1)
    end = page.rindex("</body>")
    return page[:end] + legend + page[end:]
