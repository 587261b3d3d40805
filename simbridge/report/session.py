"""The part of a report that a live session has: its states, its inputs and what hindered it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes

from simbridge.report import drawing
from simbridge.report.charts import (
    BOTTOM,
    LEFT,
    NARROW_CHART_TICKS,
    RIGHT,
    WIDE_CHART,
    WIDE_CHART_TICKS,
    Chart,
    Line,
)
from simbridge.report.over_time import draw_both_widths, linear_panel, wide_chart
from simbridge.report.palette import ALARM, ATTAINED, INK, REFERENCE, SETPOINT, SOLVER, STATES
from simbridge.report.rendering import LegendEntry
from simbridge.sessions.figures import Hindrance, SessionFigures
from simbridge.text import NO_BREAK, counted

# Height of a row of the time line with its title, pixels.
ROW_HEIGHT = 34
# Height of a row's bar, and the room below it and below its title, pixels.
BAR_HEIGHT = 14
BAR_GAP = 3.0
TITLE_GAP = 4.0
# Height of the tick of an input that was accepted or superseded, as a fraction of a bar's.
TICK_HEIGHT = 0.7
# Shortest bars of states and of hindrances, pixels.
MIN_STATE_WIDTH = 1.0
MIN_HINDRANCE_WIDTH = 2.0
# Height of the chart of the speed, pixels.
SPEED_HEIGHT = 170

# Causes with a row of their own; the table has all.
MAX_CAUSE_ROWS = 8

# Events that are listed; events.jsonl has all.
MAX_EVENTS = 300

# Colour and name of each fate of an input.
_FATES = {
    "accepted": (INK, "accepted"),
    "late": (ATTAINED, "accepted late"),
    "superseded": (REFERENCE, "superseded"),
    "rejected": (ALARM, "rejected"),
}
# The meaning of each cause's number.
MEANINGS = {
    "joint_velocity": "velocity of the joint as a fraction of its limit",
    "acceleration": "largest acceleration of a joint, for longer than a start or a turn takes",
    "joint_limit": "distance between the joint and the end of its range",
    "tool_speed": "speed of the tool, which is at its limit",
    "singularity": "smallest singular value of the Jacobian",
    "obstacle": "distance between the two bodies",
    "reach": "distance by which the target is out of reach",
    "reach_turn": "rotation by which the target is out of reach",
    "solver_lag": "distance between the solution and the target",
    "solver_lag_turn": "rotation between the solution and the target",
    "catching_up": "fraction of the limits that was used to catch up after a stall",
    "stale": "time without an input",
    "engage_again": "distance of a source that came back too far away to go on",
    "engage_again_turn": "rotation of a source that came back turned too far to go on",
    "max_jump": "distance of a refused input from the last accepted one",
    "max_turn": "rotation of a refused input from the last accepted one",
    "solver": "duration of a solver step that took longer than a period",
    "loop": "time for which the control loop stood still",
    "speed_slider": "speed factor of the controller",
    "late_commands": "fraction of full speed on the return from late commands",
    "payload": "payload of the controller, changed during the session",
    "not_engaged": "an input was refused because the session was not engaged",
    "halted": "the session was halted on request",
    "disengaged": "the session was disengaged on request",
    "paused": "the program was paused at the pendant",
}

Phase = tuple[float, float, str]
"""Start and end, s, and the state's name."""

_SPEED_LEGEND = (
    LegendEntry("controller's speed factor", SETPOINT),
    LegendEntry("fraction of the requested step executed", SOLVER, "thin"),
)


def session_part(session: SessionFigures) -> dict[str, Any]:
    """Return the contents of the template for a session; to be called within `drawing_style`.

    Returns:
        `sentences`: the states and the rejected inputs; `hindrances`, rows of their table: name,
        worst number, how often, s in all, first at s, meaning of the number; `events`: rows of
        when, s, and what. `time_line` and `speed` are drawings over time, "" if nothing was
        logged; `legend` and `speed_legend` are their legends.
    """
    hindrances = session.hindrances
    phases = session.phases

    time_line: Markup | str = ""
    speed: Markup | str = ""
    if phases:
        time_line = _time_line(session, phases, hindrances[:MAX_CAUSE_ROWS])
        speed = _speed_chart(session)

    return {
        "sentences": _sentences(session, phases),
        "hindrances": [_row(hindrance) for hindrance in hindrances],
        "events": _events(session),
        "legend": _legend(session, phases),
        "time_line": time_line,
        "speed_legend": _SPEED_LEGEND,
        "speed": speed,
    }


def _sentences(session: SessionFigures, phases: Sequence[Phase]) -> list[str]:
    """Return the states, the rejected inputs, and what the log lacks, as sentences."""
    sentences = [_states(phases)] if phases else ["The session was never engaged: nothing moved."]

    rejected = [record for record in session.inputs if record.fate == "rejected"]
    reasons = Counter(record.cause["kind"] if record.cause else "malformed" for record in rejected)
    if reasons:
        counts = ", ".join(f"{why} ({number})" for why, number in reasons.most_common())
        sentences.append(f"Rejected inputs: {counts}.")

    missing = session.missing_periods
    if missing:
        periods = counted(missing, "control period")
        sentences.append(f"The log lacks {periods}: their states never arrived.")
    return sentences


def _states(phases: Sequence[Phase]) -> str:
    """Return the session's states with their durations, the longest first, as a sentence."""
    durations = _durations(phases)
    longest_first = sorted(durations, key=durations.__getitem__, reverse=True)
    states = [f"{name} {durations[name]:.2f}{NO_BREAK}s" for name in longest_first]
    return f"Time in each state: {', '.join(states)}."


def _durations(phases: Sequence[Phase]) -> dict[str, float]:
    """Return the duration of each state, s, in the order in which they first came."""
    durations: dict[str, list[float]] = {}
    for begin, end, name in phases:
        durations.setdefault(name, []).append(end - begin)
    return {name: sum(parts) for name, parts in durations.items()}


def _row(hindrance: Hindrance) -> tuple[str, ...]:
    """Return the row of a hindrance in the table (see `session_part`)."""
    worst = hindrance.worst
    return (
        f"{worst.kind} {worst.short_subject}".strip(),
        worst.number or "–",
        str(len(hindrance.spans)),
        f"{hindrance.duration:.2f}",
        f"{hindrance.spans[0, 0]:.2f}",
        MEANINGS[worst.kind],
    )


def _events(session: SessionFigures) -> list[tuple[str, str]]:
    """Return the instant, s, and the description of each event, as text."""
    listed = [event for event in session.events if event["event"] not in ("began", "ended")]
    stamps = session.stamps([event["at"] for event in listed])
    rows = []
    for stamp, event in zip(stamps.tolist(), listed, strict=True):
        rows.append((f"{stamp:.2f}", _describe_event(event)))

    more = len(rows) - MAX_EVENTS
    if more > 0:
        rows = [*rows[:MAX_EVENTS], ("", f"and {more} more in events.jsonl")]
    return rows


def _describe_event(event: Mapping[str, Any]) -> str:
    """Return a line of events.jsonl in words."""
    if event["event"] == "state":
        cause = f": {event['cause']['text']}" if event["cause"] else ""
        return f"{event['before']} → {event['after']}{cause}"
    if event["event"] == "stopped":
        return f"stopped: {event['message']}"
    if event["event"] == "payload":
        return f"payload set to {event['mass']:g} kg"

    text = event.get("note", event["event"])
    facts = [f"{name} {value}" for name, value in event.get("facts", {}).items() if value]
    return f"{text}: {', '.join(facts)}" if facts else text


def _legend(session: SessionFigures, phases: Sequence[Phase]) -> list[LegendEntry]:
    """Return the legend of the time line: the states and the inputs' fates that it shows."""
    states = {name for _, _, name in phases}
    fates = {record.fate for record in session.inputs}

    entries = []
    for name, colour in STATES.items():
        if name in states:
            entries.append(LegendEntry(name, colour, "state"))
    for fate, (colour, name) in _FATES.items():
        if fate in fates:
            entries.append(LegendEntry(f"input {name}", colour, "tick"))
    return entries


def _time_line(
    session: SessionFigures, phases: Sequence[Phase], shown: Sequence[Hindrance]
) -> Markup:
    """Return the time line for wide and for narrow screens."""
    durations = [f"{name} {seconds:.2f} s" for name, seconds in _durations(phases).items()]
    subject = "States of the session, its inputs, and what hindered it, over time"
    label = f"{subject}: {', '.join(durations)}"
    return draw_both_widths(
        lambda width: _draw_time_line(session, phases, shown, width).svg(f"session{width}", label)
    )


def _draw_time_line(
    session: SessionFigures, phases: Sequence[Phase], shown: Sequence[Hindrance], width: int
) -> drawing.Drawing:
    """Draw states, inputs and hindrances below each other, at a width in pixels."""
    titles = ["State", "Inputs", *(hindrance.worst.text for hindrance in shown)]
    begin = phases[0][0]
    end = phases[-1][1]
    # The length of a pixel on the time axis, s.
    pixel = (end - begin) / (width - LEFT - RIGHT)

    # Axes whose vertical unit is a pixel.
    height = len(titles) * ROW_HEIGHT
    canvas = drawing.Drawing(width, height + BOTTOM)
    axes = canvas.axes(LEFT, BOTTOM, RIGHT, 0)
    axes.set_ylim(0.0, height)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    ticks = WIDE_CHART_TICKS if width > WIDE_CHART else NARROW_CHART_TICKS
    drawing.prepare_time_axis(axes, begin, end, ticks=ticks)

    # The titles of the rows, from the top down.
    bottoms = []
    for number, title in enumerate(titles):
        bottom = (len(titles) - 1 - number) * ROW_HEIGHT + BAR_GAP
        title_bottom = bottom + BAR_HEIGHT + TITLE_GAP
        axes.text(begin, title_bottom, title, fontsize=drawing.TEXT_SIZE, va="bottom", ha="left")
        bottoms.append(bottom)

    # Draw the bars and ticks of the rows.
    shortest = MIN_STATE_WIDTH * pixel
    for name, colour in STATES.items():
        spans = [(since, until) for since, until, phase in phases if phase == name]
        _draw_bars(axes, spans, bottom=bottoms[0], colour=colour, shortest=shortest)
    _draw_inputs(axes, session, bottom=bottoms[1], begin=begin, end=end, pixel=pixel)
    shortest = MIN_HINDRANCE_WIDTH * pixel
    for bottom, hindrance in zip(bottoms[2:], shown, strict=True):
        spans = hindrance.spans.tolist()
        _draw_bars(axes, spans, bottom=bottom, colour=INK, shortest=shortest)
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
        axes: The axes to draw on.
        session: The session.
        bottom: Lower edge of the row of ticks.
        begin: Start of the time axis, s.
        end: End of the time axis, s.
        pixel: Width of a pixel, s.
    """
    # An input that the loop never took counts from when it was sent.
    times = []
    for record in session.inputs:
        times.append(record.sent if record.received is None else record.received)
    stamps = session.stamps(times)

    for fate, (colour, _) in _FATES.items():
        ticks = stamps[[record.fate == fate for record in session.inputs]]
        # One tick a pixel; those before and after the log belong to its ends.
        pixels = np.unique(np.round((np.clip(ticks, begin, end) - begin) / pixel))
        ticks = begin + pixels * pixel
        # The ticks of inputs that were not accepted in time stand out: they are longer.
        height = 1.0 if fate in ("rejected", "late") else TICK_HEIGHT
        top = bottom + height * BAR_HEIGHT
        axes.vlines(ticks, bottom, top, colors=colour, linewidth=1.0)
        if fate == "rejected" and len(ticks):
            tops = np.full(len(ticks), bottom + BAR_HEIGHT)
            axes.plot(ticks, tops, "x", color=colour, markersize=5.0)


def _speed_chart(session: SessionFigures) -> Markup:
    """Return the chart of the controller's speed factor, and of how much of each step was made."""
    stamps = session.log.stamp
    # In the log, `speed` is the fraction of a period's requested step that was made, and `rate` is
    # the controller's speed factor.
    step_percentage = session.log.live["speed"] * 100.0
    factor_percentage = session.log.live["rate"] * 100.0
    lines = [
        Line("fraction of the requested step", SOLVER, stamps, step_percentage, 1.2),
        Line("controller's speed factor", SETPOINT, stamps, factor_percentage, 1.8),
    ]
    panel = linear_panel("Speed (%)", f"{NO_BREAK}%", lines)
    chart = Chart([panel], stamps, SPEED_HEIGHT)
    return wide_chart(
        "speed", "Speed factor and fraction of the requested step executed, over time", chart
    )
