"""How the motion was: smooth or not, near its limits or near a singular posture."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from simbridge.report.tables import facts_table
from simbridge.text import significant


def effort_table(summary: Mapping[str, Any], names: Sequence[str], prismatic: Sequence[bool]) -> str:
    """Peak and RMS of velocity, acceleration, jerk and torque of every joint: degrees, or mm for sliding joints."""
    effort = summary["joint_effort"]
    columns = [
        (kind, unit)
        for kind, unit in (("velocity", "°/s"), ("acceleration", "°/s²"), ("jerk", "°/s³"), ("torque", "N m"))
        if effort.get(kind) is not None
    ]
    above = "".join(f'<th scope="colgroup" colspan="2">{kind}, {unit}</th>' for kind, unit in columns)
    header = "".join('<th scope="col">peak</th><th scope="col">RMS</th>' for _ in columns)
    rows = []
    for i, name in enumerate(names):
        cells = ""
        for kind, _ in columns:
            scale = 1.0 if kind == "torque" else 1e3 if prismatic[i] else math.degrees(1.0)
            cells += "".join(f"<td>{significant(effort[kind][part][i] * scale, 3, 2)}</td>" for part in ("peak", "rms"))
        slides = " (mm)" if prismatic[i] else ""
        rows.append(f'<tr><th scope="row">{escape(name)}{slides}</th>{cells}</tr>')
    used = "".join(_used(effort[kind]["used"]) for kind, _ in columns)
    rows.append(f'<tr class="whole"><th scope="row">Largest, of its limit</th>{used}</tr>')
    return (
        '<table class="numbers"><caption class="unseen">Effort of the joints</caption><thead>'
        f'<tr><td></td>{above}</tr><tr><th scope="col">Joint</th>{header}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def _used(share: float | None) -> str:
    return f"<td>{'–' if share is None else significant(100.0 * share, 2, 1) + ' %'}</td><td></td>"


def motion_table(summary: Mapping[str, Any]) -> str:
    """Smoothness, singular postures and limits, a line each."""
    singular, near, tool = summary["near_singularity"], summary["near_limits"], summary["smoothness"]["tool"]
    rows = [
        (
            "Smoothness of the tool",
            f"SPARC {_number(tool['sparc'])}, LDLJ {_number(tool['ldlj'])} (nearer to 0: smoother)",
        ),
        (
            "Near a singularity",
            f"{_percent(singular['share'])} of the samples have a smallest singular value below "
            f"{singular['threshold']:g}; the least was {significant(singular['smallest_singular_value'])}",
        ),
        ("Near the end of a joint", f"{_percent(near['position'])} of the samples within 2 % of a joint's range"),
        ("Near a top speed", f"{_percent(near['velocity'])} of the samples from 90 % on"),
        (
            "Near the largest torque",
            "not known: the controller tells only currents"
            if near["torque"] is None
            else f"{_percent(near['torque'])} of the samples from 90 % on",
        ),
    ]
    return facts_table("Motion", rows)


def _number(value: float | None) -> str:
    return significant(value, 4, 3)


def _percent(share: float) -> str:
    return f"{significant(100.0 * share, 3, 2)} %"
