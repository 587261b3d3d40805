"""The part of a report that a live session has, over time and in words.

It shows the session's states, its inputs and what hindered it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes

from simbridge.report import drawing
from simbridge.report.charts import BOTTOM, LEFT, RIGHT, Chart, Line
from simbridge.report.over_time import at_both_widths, broad, linear_panel
from simbridge.report.palette import ALARM, ATTAINED, INK, REFERENCE, SETPOINT, SOLVER, STATES
from simbridge.report.rendering import LegendEntry
from simbridge.sessions.figures import Hindrance, SessionFigures
from simbridge.text import NO_BREAK, counted

# Height of a row of the time line with its title, and of its bar, pixels.
ROW_HEIGHT = 34
BAR_HEIGHT = 14

# Causes with a row of their own; the table has all.
MAX_CAUSE_ROWS = 8

# Events that are listed; events.jsonl has all.
MAX_EVENTS = 300

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


def session_part(session: SessionFigures) -> dict[str, Any]:
    """Return what the template shows of a session; to be called within `drawing_style`.

    Returns:
        `sentences`: the states and the rejected inputs; `hindrances`, rows of their table: name,
        worst number, how often, s in all, first at s, meaning of the number; `events`: rows of
        when, s, and what. `time_line` and `speed` are drawings over time with their legends; ""
        where nothing was logged.
    """
    hindrances = session.hindrances
    phases = session.phases
    sentences = [_states(phases)] if phases else ["It was never engaged: nothing moved."]
    reasons = Counter(_reason(record.why) for record in session.inputs if record.fate == "rejected")
    if reasons:
        words = ", ".join(f"{why} ({number})" for why, number in reasons.most_common())
        sentences.append(f"Rejected inputs: {words}.")
    missing = session.missing_periods
    if missing:
        periods = counted(missing, "control period")
        sentences.append(f"The log lacks {periods}: their states never arrived.")
    return {
        "sentences": sentences,
        "hindrances": [_row(hindrance) for hindrance in hindrances],
        "events": _events(session),
        "legend": _legend(session, phases),
        "time_line": _time_line(session, phases, hindrances[:MAX_CAUSE_ROWS]) if phases else "",
        "speed_legend": _SPEED_LEGEND,
        "speed": _speed(session) if phases else "",
    }


def _states(phases: Sequence[Phase]) -> str:
    """Return the session's states with their durations, the longest first, as a sentence."""
    times = _durations(phases)
    parts = [
        f"{shown} {times[shown]:.2f}{NO_BREAK}s"
        for shown in sorted(times, key=times.__getitem__, reverse=True)
    ]
    return f"Its states: {', '.join(parts)}."


def _durations(phases: Sequence[Phase]) -> dict[str, float]:
    """Return the duration of each state, s, in the order in which they first came."""
    return {
        name: sum(end - begin for begin, end, phase in phases if phase == name)
        for *_, name in phases
    }


def _reason(why: str) -> str:
    """Return the reason of a rejection without its number, which differs each time."""
    name = why.split(" ")[0]
    return name if name in MEANINGS else "malformed"


def _row(hindrance: Hindrance) -> tuple[str, ...]:
    """Return the row of a hindrance in the table (see `session_part`)."""
    worst = hindrance.worst
    number = worst._replace(subject="").text.removeprefix(worst.name).strip().removeprefix("sigma ")
    return (
        f"{worst.name} {worst.subject.removesuffix('_joint')}".strip(),
        number or "–",
        str(len(hindrance.spans)),
        f"{hindrance.duration:.2f}",
        f"{hindrance.spans[0, 0]:.2f}",
        MEANINGS[worst.name],
    )


def _events(session: SessionFigures) -> list[tuple[str, str]]:
    """Return when each event happened, s, and what it was, as text."""
    listed = [event for event in session.events if event["event"] not in ("began", "ended")]
    stamps = session.stamps([event["at"] for event in listed])
    rows = [
        (f"{stamp:.2f}", _describe_event(event))
        for stamp, event in zip(stamps.tolist(), listed, strict=True)
    ]
    more = len(rows) - MAX_EVENTS
    return [*rows[:MAX_EVENTS], ("", f"and {more} more in events.jsonl")] if more > 0 else rows


def _describe_event(event: Mapping[str, Any]) -> str:
    """Return a line of events.jsonl in words."""
    if event["event"] == "state":
        cause = f": {event['cause']}" if event["cause"] else ""
        return f"{event['before']} → {event['after']}{cause}"
    if event["event"] == "stopped":
        return f"stopped: {event['message']}"
    if event["event"] == "payload":
        return f"payload set to {event['mass']:g} kg"
    facts = ", ".join(f"{name} {value}" for name, value in event.get("facts", {}).items() if value)
    return f"{event.get('note', event['event'])}{f': {facts}' if facts else ''}"


def _legend(session: SessionFigures, phases: Sequence[Phase]) -> list[LegendEntry]:
    """Return the legend of the time line: the states and the inputs' fates that it shows."""
    shown = {phase for _, _, phase in phases}
    fates = {record.fate for record in session.inputs}
    states = [
        LegendEntry(name, colour, "state") for name, colour in STATES.items() if name in shown
    ]
    inputs = [
        LegendEntry(f"input {name}", colour, "tick")
        for fate, (colour, name) in _FATES.items()
        if fate in fates
    ]
    return [*states, *inputs]


def _time_line(
    session: SessionFigures, phases: Sequence[Phase], shown: Sequence[Hindrance]
) -> Markup:
    """Return the time line for wide and for narrow screens."""
    label = "States of the session, its inputs, and what hindered it, over time: "
    label += ", ".join(f"{name} {seconds:.2f} s" for name, seconds in _durations(phases).items())
    return at_both_widths(
        lambda width: _draw_time_line(session, phases, shown, width).svg(f"session{width}", label)
    )


def _draw_time_line(
    session: SessionFigures, phases: Sequence[Phase], shown: Sequence[Hindrance], width: int
) -> drawing.Drawing:
    """Draw states, inputs and hindrances below each other, at a width in pixels."""
    count = 2 + len(shown)
    canvas = drawing.Drawing(width, count * ROW_HEIGHT + BOTTOM)
    axes = canvas.axes(LEFT, BOTTOM, RIGHT, 0)
    axes.set_ylim(0.0, count * ROW_HEIGHT)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    begin, end = phases[0][0], phases[-1][1]
    drawing.prepare_time_axis(axes, begin, end, 10 if width > 600 else 5)
    pixel = (end - begin) / (width - LEFT - RIGHT)

    # The rows, from the top down.
    titles = ["State", "Inputs", *(hindrance.worst.text for hindrance in shown)]
    bottoms = []
    for number, title in enumerate(titles):
        bottom = (count - 1 - number) * ROW_HEIGHT + 3.0
        axes.text(begin, bottom + BAR_HEIGHT + 4.0, title, fontsize=11.0, va="bottom", ha="left")
        bottoms.append(bottom)

    for name, colour in STATES.items():
        spans = [(since, until) for since, until, phase in phases if phase == name]
        _draw_bars(axes, spans, bottom=bottoms[0], colour=colour, shortest=1.0 * pixel)
    _draw_inputs(axes, session, bottom=bottoms[1], begin=begin, end=end, pixel=pixel)
    for bottom, hindrance in zip(bottoms[2:], shown, strict=True):
        spans = hindrance.spans.tolist()
        _draw_bars(axes, spans, bottom=bottom, colour=INK, shortest=2.0 * pixel)
    return canvas


def _draw_bars(
    axes: Axes,
    spans: Sequence[tuple[float, float]],
    *,
    bottom: float,
    colour: str,
    shortest: float,
) -> None:
    """Draw a bar for each span of time, s, none of them shorter than `shortest`, s."""
    bars = [(begin, max(end - begin, shortest)) for begin, end in spans]
    axes.broken_barh(bars, (bottom, BAR_HEIGHT), facecolors=colour, linewidth=0.0)


def _draw_inputs(
    axes: Axes, session: SessionFigures, *, bottom: float, begin: float, end: float, pixel: float
) -> None:
    """Draw a tick for each input, by its fate.

    Args:
        axes: Where.
        session: The session.
        bottom: Of the row.
        begin: Begin of the time axis, s.
        end: End of the time axis, s.
        pixel: Width of a pixel, s.
    """
    times = [
        record.sent if record.received is None else record.received for record in session.inputs
    ]
    stamps = session.stamps(times)
    for fate, (colour, _) in _FATES.items():
        ticks = stamps[[record.fate == fate for record in session.inputs]]
        # One tick a pixel; those before and after the log belong to its ends.
        pixels = np.unique(np.round((np.clip(ticks, begin, end) - begin) / pixel))
        ticks = begin + pixels * pixel
        height = 1.0 if fate in ("rejected", "late") else 0.7
        top = bottom + height * BAR_HEIGHT
        axes.vlines(ticks, bottom, top, colors=colour, linewidth=1.0)
        if fate == "rejected" and len(ticks):
            tops = np.full(len(ticks), bottom + BAR_HEIGHT)
            axes.plot(ticks, tops, "x", color=colour, markersize=5.0)


def _speed(session: SessionFigures) -> Markup:
    """Return the controller's speed factor, and how much of each wanted step was made."""
    stamps, live = session.log.stamp, session.log.live
    lines = [
        Line("share of the wanted step", SOLVER, stamps, live["speed"] * 100.0, 1.2),
        Line("controller's speed factor", SETPOINT, stamps, live["rate"] * 100.0, 1.8),
    ]
    panel = linear_panel("Speed (%)", f"{NO_BREAK}%", lines)
    return broad(
        "speed", "Speed factor and share of the wanted step over time", Chart([panel], stamps, 170)
    )
