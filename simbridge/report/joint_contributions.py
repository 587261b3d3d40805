"""Which joint? What each joint's own following error does to the tool."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from simbridge.evaluation.metrics.pose_errors import statistics
from simbridge.report.palette import PLANT
from simbridge.robot.kinematics import task_jacobians
from simbridge.robot.pose import Array
from simbridge.text import degrees, millimetres

if TYPE_CHECKING:
    from simbridge.evaluation.evaluation import Evaluation


# Of a longer run, evenly spaced samples: Jacobians take time, and a mean does not need more.
MOST = 5000


def shares_of_joints(evaluation: Evaluation) -> tuple[Array, Array]:
    """By how much each joint's following error alone moves the tool: (K, n) in m and (K, n) in rad.

    To first order the joints' displacements add up, as vectors, to the plant's line of the budget.
    """
    log, chain = evaluation.log, evaluation.settings["kinematics"]
    placements = np.array(chain["placements"], dtype=float).reshape(-1, 4, 4)
    prismatic = np.array(chain["prismatic"], dtype=bool)
    chosen = slice(None, None, -(-len(log.stamp) // MOST))
    following = log.setpoint[chosen] - log.position[chosen]
    moved = task_jacobians(placements, prismatic, log.setpoint[chosen], "pose") * following[:, None, :]
    return np.linalg.norm(moved[:, :3], axis=1), np.linalg.norm(moved[:, 3:], axis=1)


def joint_contributions(evaluation: Evaluation) -> str:
    """The answer in a sentence; then a row a joint, with a bar as long as what it does to the tool."""
    positions, rotations = shares_of_joints(evaluation)
    answer = escape(largest_contributor(evaluation.log.joint_names, positions))
    return f'<p>{answer}</p>\n<div class="scroll">{_table(evaluation, positions, rotations)}</div>'


def _table(evaluation: Evaluation, positions: Array, rotations: Array) -> str:
    prismatic = evaluation.settings["kinematics"]["prismatic"]
    following = np.abs(evaluation.log.setpoint - evaluation.log.position)
    worst = max(float(np.sqrt(np.mean(positions**2, axis=0)).max()), 1e-15)
    rows = []
    for i, name in enumerate(evaluation.log.joint_names):
        moved, turned = statistics(positions[:, i]), statistics(rotations[:, i])
        own, unit = (millimetres, " mm") if prismatic[i] else (degrees, "°")
        joint = statistics(following[:, i])
        share = 100.0 * moved["rms"] / worst
        bar = f'<span class="bar" style="width:{share:.1f}%;background:{PLANT}"></span>'
        cells = [
            own(joint["rms"]) + unit,
            own(joint["max"]) + unit,
            millimetres(moved["rms"]),
            millimetres(moved["max"]),
            degrees(turned["rms"]),
        ]
        rows.append(
            f'<tr><th scope="row">{escape(name)}{bar}</th>' + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
        )
    return (
        '<table class="numbers"><caption class="unseen">Which joint</caption><thead>'
        '<tr><td></td><th scope="colgroup" colspan="2">off its setpoint</th>'
        '<th scope="colgroup" colspan="2">moves the tool, mm</th><th scope="colgroup">turns it, °</th></tr>'
        '<tr><th scope="col">Joint</th><th scope="col">RMS</th><th scope="col">max</th><th scope="col">RMS</th>'
        f'<th scope="col">max</th><th scope="col">RMS</th></tr></thead><tbody>{"".join(rows)}</tbody></table>'
    )


def largest_contributor(names: Sequence[str], positions: Array) -> str:
    """Which joint moves the tool most, from what each does to it (K, n) in m, in a sentence."""
    rms = np.sqrt(np.mean(positions**2, axis=0))
    worst = int(np.argmax(rms))
    if rms[worst] < 1e-9:
        return "Every joint was where it was sent."
    return (
        f"{names[worst]} does most: off its setpoint, it alone moves the tool by "
        f"{millimetres(float(rms[worst]))}\u00a0mm RMS. What several joints do may cancel."
    )
