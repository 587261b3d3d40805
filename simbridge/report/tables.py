"""The tables of the page: error budget, delays, joints, the control loop's timing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from simbridge.evaluation.metrics.summary import POSE_PARTS, part_delays
from simbridge.report.joints import Joint, Quantity
from simbridge.report.palette import PARTS, TRACKING, WHOLE
from simbridge.text import counted, degrees, millimetres, milliseconds, plain, significant, with_unit

# A joint this near to a limit is shown in bold.
NEAR = 0.9


def budget_table(summary: Mapping[str, Any]) -> str:
    """The error budget: a row a line, with a bar as long as its share of the tracking error's RMS."""
    worst = max(float(summary[line.key]["position_m"]["rms"]) for line in (WHOLE, *PARTS))
    rows = [_budget_row(line.title, line.colour, line.meaning, summary[line.key], worst) for line in PARTS]
    rows.append(_budget_row(WHOLE.title, WHOLE.colour, WHOLE.meaning, summary[WHOLE.key], worst, "whole"))
    if summary["delay_compensated"] is not None:
        meaning = "What is left of tracking when the delays of position and rotation are taken out, each its own."
        if not any(part_delays(summary, part).total for part in POSE_PARTS):
            meaning = "No shift in time makes the tracking error smaller."
        rows.append(_budget_row("Without delay", TRACKING, meaning, summary["delay_compensated"], worst))
    if "contour_error" in summary:
        meaning = "Attained to the nearest place on the path, time aside."
        rows.append(_budget_row("Contour", TRACKING, meaning, summary["contour_error"], worst))
    return (
        '<table class="numbers budget"><caption class="unseen">Error budget</caption><thead>'
        '<tr><td></td><th scope="colgroup" colspan="4">position, mm</th>'
        '<th scope="colgroup" colspan="2">rotation, °</th><td></td></tr>'
        + _header(["Error", "RMS", "mean", "p95", "max", "RMS", "max"], "What it is")
        + f"</thead><tbody>{''.join(rows)}</tbody></table>"
    )


def _budget_row(
    title: str, colour: str, meaning: str, error: Mapping[str, Mapping[str, float]], worst: float, kind: str = "part"
) -> str:
    position, rotation = error["position_m"], error.get("rotation_rad", {})
    share = 100.0 * position["rms"] / worst if worst > 0.0 else 0.0
    cells = [millimetres(position[name]) for name in ("rms", "mean", "p95", "max")]
    cells += [degrees(rotation.get(name)) for name in ("rms", "max")]
    bar = f'<span class="bar" style="width:{share:.1f}%;background:{colour}"></span>'
    return (
        f'<tr class="{kind}"><th scope="row" title="{escape(meaning)}">{swatch(colour)}{escape(title)}{bar}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        + f'<td class="words">{escape(meaning)}</td></tr>'
    )


def swatch(colour: str, kind: str = "") -> str:
    """A patch of colour for legends and rows."""
    return f'<span class="swatch {kind}" style="background:{colour}"></span>'


def delay_table(summary: Mapping[str, Any]) -> str:
    """Delays of position and rotation, and the lag of the position that is predicted for the solver; in ms."""
    position, rotation = (part_delays(summary, part) for part in POSE_PARTS)
    predicted = summary["predicted_lag_s"] if summary["delay_of"] == "position" else None
    rows = (
        ("Total", "reference to attained", position.total, rotation.total),
        ("Solver", "target to setpoint, the limiter included", position.solver, rotation.solver),
        ("Predicted lag", "of the solver, from its gains and the period", predicted, None),
        ("Plant", "setpoint to attained", position.plant, rotation.plant),
    )
    body = "".join(
        f'<tr><th scope="row">{title}</th><td>{milliseconds(moved)}</td><td>{milliseconds(turned)}</td>'
        f'<td class="words">{meaning}</td></tr>'
        for title, meaning, moved, turned in rows
    )
    return (
        '<table class="numbers"><caption class="unseen">Delays</caption><thead>'
        + _header(["Delay, ms", "position", "rotation"], "From where to where")
        + f"</thead><tbody>{body}</tbody></table>"
    )


def pose_error_table(summary: Mapping[str, Any]) -> str:
    """APE and RPE: their statistics in position and the main ones in rotation."""
    relative = summary["relative_pose_error"]
    rows = [("APE", summary["absolute_pose_error"], "Absolute pose error, nothing aligned.")]
    if relative is not None:
        seconds = plain(float(f"{relative['delta_s']:.6g}"))
        over = f"{counted(relative['delta_samples'], 'sample')} ({seconds} s)"
        rows.append(("RPE", relative, f"Relative pose error of all pairs {over} apart."))
    body = ""
    for title, error, meaning in rows:
        position, rotation = error["position_m"], error["rotation_rad"]
        cells = [millimetres(position[name]) for name in ("rmse", "mean", "median", "std", "max")]
        cells += [degrees(rotation[name]) for name in ("rmse", "max")]
        body += f'<tr><th scope="row">{title}</th>' + "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        body += f'<td class="words">{escape(meaning)}</td></tr>'
    return (
        '<table class="numbers"><caption class="unseen">APE and RPE</caption><thead>'
        '<tr><td></td><th scope="colgroup" colspan="5">position, mm</th>'
        '<th scope="colgroup" colspan="2">rotation, °</th><td></td></tr>'
        + _header(["As evo", "RMSE", "mean", "median", "std", "max", "RMSE", "max"], "What it is")
        + f"</thead><tbody>{body}</tbody></table>"
    )


def joint_table(joints: Sequence[Joint]) -> str:
    """Range, peaks and distance from the limits of every joint."""
    kinds = {joint.effort.name for joint in joints}
    effort = kinds.pop() if len(kinds) == 1 else "torque or force"
    rows = "".join(_joint_row(joint) for joint in joints)
    return (
        '<table class="numbers"><caption class="unseen">Joints</caption><thead>'
        '<tr><td></td><th scope="colgroup" colspan="2">position</th><th scope="colgroup" colspan="2">velocity</th>'
        f'<th scope="colgroup" colspan="2">{effort}</th></tr>'
        + _header(["Joint", "from and to", "to the nearest limit", "peak", "of its limit", "peak", "of its limit"])
        + f"</thead><tbody>{rows}</tbody></table>"
    )


def _joint_row(joint: Joint) -> str:
    position = joint.position
    least, most = significant(position.least, 4, 1), with_unit(significant(position.most, 4, 1), position.unit)
    cells = f"<td>{least} to {most}</td>{_margin(position)}{_peak(joint.velocity)}{_peak(joint.effort)}"
    return f'<tr><th scope="row">{escape(joint.name)}</th>{cells}</tr>'


def _margin(quantity: Quantity) -> str:
    if quantity.margin is None:
        return "<td>no limit</td>"
    reach = quantity.upper - quantity.lower
    near = quantity.margin < 0.5 * (1.0 - NEAR) * reach
    return _cell(with_unit(significant(quantity.margin, 4, 1), quantity.unit), near)


def _peak(quantity: Quantity) -> str:
    peak = f"<td>{escape(with_unit(significant(quantity.peak, decimals=3), quantity.unit))}</td>"
    if quantity.share is None:
        return f"{peak}<td>{'no limit' if quantity.known else '–'}</td>"
    limit = plain(float(f"{quantity.upper:.4g}"))
    return peak + _cell(f"{significant(100.0 * quantity.share, 2, 1)} % of {limit}", quantity.share >= NEAR)


def _cell(text: str, near: bool) -> str:
    return f'<td class="near">{escape(text)}</td>' if near else f"<td>{escape(text)}</td>"


def loop_table(loop: Mapping[str, Any]) -> str:
    """The control loop's timing, as far as it was measured."""
    names = {
        "period_mean_s": "Period, mean",
        "period_std_s": "Period, standard deviation",
        "period_p999_s": "Period, 99.9th percentile",
        "period_max_s": "Period, longest",
        "missed_deadlines": "Missed deadlines",
        "missed_states": "Missed states",
        "state_age_mean_s": "Age of the states, mean",
    }
    rows = [
        (title, f"{milliseconds(loop[key])} ms" if key.endswith("_s") else str(loop[key]))
        for key, title in names.items()
        if loop.get(key) is not None
    ]
    return facts_table("Control loop", rows)


def facts_table(caption: str, rows: Iterable[tuple[str, str]]) -> str:
    """Names and what they are."""
    body = "".join(f'<tr><th scope="row">{escape(name)}</th><td>{escape(text)}</td></tr>' for name, text in rows)
    return f'<table class="facts"><caption class="unseen">{escape(caption)}</caption><tbody>{body}</tbody></table>'


def _header(names: Sequence[str], words: str = "") -> str:
    cells = "".join(f'<th scope="col">{name}</th>' for name in names)
    cells += f'<th scope="col" class="words">{words}</th>' if words else ""
    return f"<tr>{cells}</tr>"
