"""The part of a report that a live session has: its states, its inputs and what hindered it, over time and in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from simbridge.report import drawing
from simbridge.report.charts import BOTTOM, LEFT, RIGHT, Chart, Line
from simbridge.report.over_time import at_both_widths, broad, linear_panel
from simbridge.report.palette import ALARM, ATTAINED, INK, REFERENCE, SETPOINT, SOLVER, STATES
from simbridge.report.rendering import LegendEntry
from simbridge.sessions.figures import Hindrance, Session
from simbridge.text import NO_BREAK, counted

# Height of a row of the time line with its title, and of its bar, in pixels.
_ROW, _BAR = 34, 14
# Causes with a row of their own; the table has all.
_ROWS = 8
# Events that are listed; events.jsonl has all.
_EVENTS = 300
_FATES = {
    "accepted": (INK, "accepted"),
    "late": (ATTAINED, "accepted late"),
    "superseded": (REFERENCE, "superseded"),
    "rejected": (ALARM, "rejected"),
}
MEANINGS = {
    "joint_velocity": "share of the joint's limit",
    "joint_limit": "room left in the joint's range",
    "tool_speed": "at its limit",
    "singularity": "smallest singular value",
    "obstacle": "distance left",
    "reach": "target out of reach by",
    "stale": "no input received for",
    "max_jump": "input refused: too far from the last",
    "max_turn": "input refused: turned too far from the last",
    "solver": "a step took longer than a period",
    "loop": "the control loop stood still for",
    "speed_slider": "the controller's speed factor",
    "late_commands": "return to full speed after late commands",
    "payload": "the controller's payload, changed during the session",
    "not_engaged": "input refused",
    "halted": "on request",
    "disengaged": "on request",
    "paused": "at the pendant",
}

Phase = tuple[float, float, str]
"""From when to when, s, and the state's name."""

_SPEED_LEGEND = (
    LegendEntry("controller's speed factor", SETPOINT),
    LegendEntry("share of the wanted step that was made", SOLVER, "thin"),
)


def session_part(session: Session) -> dict[str, Any]:
    """What the template shows of a session; to be called within `drawing_style`.

    Returns:
        `sentences`: the states and the rejected inputs; `hindrances`, rows of their table: name, worst number, how
        often, s in all, first at s, meaning of the number; `events`: rows of when, s, and what. `time_line` and `speed`
        are drawings over time with their legends; "" where nothing was logged.
    """
    hindrances, phases = session.hindrances, session.phases
    sentences = [_states(phases)] if phases else ["It was never engaged: nothing moved."]
    reasons = Counter(_reason(record.why) for record in session.inputs if record.fate == "rejected")
    if reasons:
        words = ", ".join(f"{why} ({number})" for why, number in reasons.most_common())
        sentences.append(f"Rejected inputs: {words}.")
    if missing := session.missing_periods:
        sentences.append(
            f"The log lacks {counted(missing, 'control period')}: their states never arrived."
        )
    return {
        "sentences": sentences,
        "hindrances": [_row(each) for each in hindrances],
        "events": _events(session),
        "legend": _legend(session, phases),
        "time_line": _time_line(session, phases, hindrances[:_ROWS]) if phases else "",
        "speed_legend": _SPEED_LEGEND,
        "speed": _speed(session) if phases else "",
    }


def _states(phases: Sequence[Phase]) -> str:
    times = _durations(phases)
    parts = [
        f"{shown} {times[shown]:.2f}{NO_BREAK}s"
        for shown in sorted(times, key=times.__getitem__, reverse=True)
    ]
    return f"Its states: {', '.join(parts)}."


def _durations(phases: Sequence[Phase]) -> dict[str, float]:
    """Of each state, s, in the order in which they first came."""
    return {
        name: sum(end - begin for begin, end, phase in phases if phase == name)
        for *_, name in phases
    }


def _reason(why: str) -> str:
    """The reason without its number, which differs each time."""
    name = why.split(" ")[0]
    return name if name in MEANINGS else "malformed"


def _row(found: Hindrance) -> tuple[str, str, str, str, str, str]:
    worst = found.worst
    number = worst._replace(subject="").text.removeprefix(worst.name).strip().removeprefix("sigma ")
    name = f"{worst.name} {worst.subject.removesuffix('_joint')}".strip()
    times = f"{found.duration:.2f}", f"{found.spans[0, 0]:.2f}"
    return name, number or "–", str(len(found.spans)), *times, MEANINGS[worst.name]


def _events(session: Session) -> list[tuple[str, str]]:
    listed = [event for event in session.events if event["event"] not in ("began", "ended")]
    stamps = session.stamps([event["at"] for event in listed])
    rows = [
        (f"{stamp:.2f}", _words(event))
        for stamp, event in zip(stamps.tolist(), listed, strict=True)
    ]
    more = len(rows) - _EVENTS
    return [*rows[:_EVENTS], ("", f"and {more} more in events.jsonl")] if more > 0 else rows


def _words(event: Mapping[str, Any]) -> str:
    if event["event"] == "state":
        cause = f": {event['cause']}" if event["cause"] else ""
        return f"{event['before']} → {event['after']}{cause}"
    if event["event"] == "stopped":
        return f"stopped: {event['message']}"
    if event["event"] == "payload":
        return f"payload set to {event['mass']:g} kg"
    facts = ", ".join(f"{name} {value}" for name, value in event.get("facts", {}).items() if value)
    return f"{event.get('note', event['event'])}{f': {facts}' if facts else ''}"


def _legend(session: Session, phases: Sequence[Phase]) -> list[LegendEntry]:
    shown = {phase for _, _, phase in phases}
    fates = {record.fate for record in session.inputs}
    states = [
        LegendEntry(name, colour, "state") for name, colour in STATES.items() if name in shown
    ]
    given = [
        LegendEntry(f"input {name}", colour, "tick")
        for fate, (colour, name) in _FATES.items()
        if fate in fates
    ]
    return [*states, *given]


def _time_line(session: Session, phases: Sequence[Phase], shown: Sequence[Hindrance]) -> Markup:
    label = "States of the session, its inputs, and what hindered it, over time: "
    label += ", ".join(f"{name} {seconds:.2f} s" for name, seconds in _durations(phases).items())
    return at_both_widths(
        lambda width: _drawn(session, phases, shown, width).svg(f"session{width}", label)
    )


def _drawn(
    session: Session, phases: Sequence[Phase], shown: Sequence[Hindrance], width: int
) -> drawing.Drawing:
    rows = 2 + len(shown)
    canvas = drawing.Drawing(width, rows * _ROW + BOTTOM)
    axes = canvas.axes(LEFT, BOTTOM, RIGHT, 0)
    axes.set_ylim(0.0, rows * _ROW)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    begin, end = phases[0][0], phases[-1][1]
    drawing.prepare_time_axis(axes, begin, end, 10 if width > 600 else 5)
    per_pixel = (end - begin) / (width - LEFT - RIGHT)
    bottoms = [(rows - 1 - row) * _ROW + 3.0 for row in range(rows)]
    for bottom, title in zip(
        bottoms, ("State", "Inputs", *(found.worst.text for found in shown)), strict=True
    ):
        axes.text(begin, bottom + _BAR + 4.0, title, fontsize=11.0, va="bottom", ha="left")

    def bars(
        spans: Sequence[tuple[float, float]], pixels: float, bottom: float, colour: str
    ) -> None:
        wide = [(b, max(e - b, pixels * per_pixel)) for b, e in spans]
        axes.broken_barh(wide, (bottom, _BAR), facecolors=colour, linewidth=0.0)

    for name, colour in STATES.items():
        bars([(b, e) for b, e, phase in phases if phase == name], 1.0, bottoms[0], colour)
    stamps = session.stamps(
        [each.sent if each.received is None else each.received for each in session.inputs]
    )
    for fate, (colour, _) in _FATES.items():
        times = stamps[[record.fate == fate for record in session.inputs]]
        # One tick a pixel; those before and after the log belong to its ends.
        places = (
            begin
            + np.unique(np.round((np.clip(times, begin, end) - begin) / per_pixel)) * per_pixel
        )
        tall = 1.0 if fate in ("rejected", "late") else 0.7
        axes.vlines(places, bottoms[1], bottoms[1] + tall * _BAR, colors=colour, linewidth=1.0)
        if fate == "rejected" and len(places):
            axes.plot(
                places, np.full(len(places), bottoms[1] + _BAR), "x", color=colour, markersize=5.0
            )
    for bottom, found in zip(bottoms[2:], shown, strict=True):
        bars(found.spans.tolist(), 2.0, bottom, INK)
    return canvas


def _speed(session: Session) -> Markup:
    stamps, live = session.log.stamp, session.log.live
    lines = [
        Line("share of the wanted step", SOLVER, stamps, live["speed"] * 100.0, 1.2),
        Line("controller's speed factor", SETPOINT, stamps, live["rate"] * 100.0, 1.8),
    ]
    panel = linear_panel("Speed (%)", f"{NO_BREAK}%", lines)
    return broad(
        "speed", "Speed factor and share of the wanted step over time", Chart([panel], stamps, 170)
    )
