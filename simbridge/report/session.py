"""The part of a report that a live session has: its states, its inputs and what hindered it, over time and in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes

from simbridge.evaluation.live_session import Hindrance, Session
from simbridge.recording.live_record import InputRecord
from simbridge.report import drawing
from simbridge.report.charts import BOTTOM, LEFT, RIGHT, Chart, Line
from simbridge.report.over_time import NARROW, WIDE, broad, linear_panel
from simbridge.report.palette import ALARM, ATTAINED, INK, REFERENCE, SETPOINT, SOLVER, STATES
from simbridge.report.rendering import LegendEntry
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
    "stale": "without an input for",
    "max_jump": "input refused: too far from the last",
    "max_turn": "input refused: turned too far from the last",
    "solver": "a step took longer than a period",
    "speed_slider": "the controller's speed factor",
    "late_commands": "return to full speed after late commands",
    "not_engaged": "input refused",
    "halted": "asked for",
    "disengaged": "asked for",
    "paused": "at the pendant",
}


_SPEED_LEGEND = (
    LegendEntry("controller's speed factor", SETPOINT),
    LegendEntry("share of the wanted step that was made", SOLVER, "thin"),
)


@dataclass(frozen=True)
class SessionPart:
    """What the page shows of a session.

    Attributes:
        sentences: At a glance: the states and the rejected inputs.
        legend, time_line, speed_legend, speed: Drawings over time with their legends; empty where nothing was logged.
        hindrances: Rows of their table: name, worst number, how often, s in all, first at s, meaning of the number.
        events: Rows of their list: when, s, and what.
    """

    sentences: Sequence[str]
    legend: Sequence[LegendEntry]
    time_line: Markup | str
    speed_legend: Sequence[LegendEntry]
    speed: Markup | str
    hindrances: Sequence[tuple[str, str, str, str, str, str]]
    events: Sequence[tuple[str, str]]


def session_part(session: Session) -> SessionPart:
    """What the page shows of a session; to be called within `drawing_style`."""
    hindrances, phases = session.hindrances, session.phases
    sentences = [_states(phases)] if phases else ["It was never engaged: nothing moved."]
    sentences += _rejections(session.inputs)
    if missing := session.missing_periods:
        sentences.append(f"The log lacks {counted(missing, 'control period')}: their states never arrived.")
    rows = [_row(each) for each in hindrances]
    events = _events(session)
    if not phases:
        return SessionPart(sentences, (), "", (), "", rows, events)
    time_line = _time_line(session, phases, hindrances[:_ROWS])
    return SessionPart(sentences, _legend(session, phases), time_line, _SPEED_LEGEND, _speed(session), rows, events)


def _states(phases: Sequence[tuple[float, float, str]]) -> str:
    times: Counter[str] = Counter()
    for begin, end, shown in phases:
        times[shown] += end - begin  # type: ignore[assignment]  # a Counter may hold floats
    parts = [f"{shown} {_seconds(time)}" for shown, time in times.most_common()]
    return f"Its states: {', '.join(parts)}."


def _seconds(time: float) -> str:
    return f"{time:.2f}{NO_BREAK}s"


def _rejections(inputs: Sequence[InputRecord]) -> list[str]:
    reasons = Counter(_reason(record.why) for record in inputs if record.fate == "rejected")
    if not reasons:
        return []
    return [f"Rejected inputs: {', '.join(f'{why} ({number})' for why, number in reasons.most_common())}."]


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
    rows = [(f"{stamp:.2f}", _words(event)) for stamp, event in zip(stamps.tolist(), listed, strict=True)]
    more = len(rows) - _EVENTS
    return [*rows[:_EVENTS], ("", f"and {more} more in events.jsonl")] if more > 0 else rows


def _words(event: Mapping[str, Any]) -> str:
    if event["event"] == "state":
        cause = f": {event['cause']}" if event["cause"] else ""
        return f"{event['before']} → {event['after']}{cause}"
    if event["event"] == "stopped":
        return f"stopped: {event['message']}"
    facts = ", ".join(f"{name} {value}" for name, value in event.get("facts", {}).items() if value)
    return f"{event.get('note', event['event'])}{f': {facts}' if facts else ''}"


def _legend(session: Session, phases: Sequence[tuple[float, float, str]]) -> list[LegendEntry]:
    shown = {phase for _, _, phase in phases}
    fates = {record.fate for record in session.inputs}
    states = [LegendEntry(name, colour, "state") for name, colour in STATES.items() if name in shown]
    given = [LegendEntry(f"input {name}", colour, "tick") for fate, (colour, name) in _FATES.items() if fate in fates]
    return [*states, *given]


def _time_line(session: Session, phases: Sequence[tuple[float, float, str]], shown: Sequence[Hindrance]) -> Markup:
    lasted = {name: sum(end - begin for begin, end, phase in phases if phase == name) for *_, name in phases}
    label = "States of the session, its inputs, and what hindered it, over time: "
    label += ", ".join(f"{name} {seconds:.2f} s" for name, seconds in lasted.items())
    drawn = (
        Markup('<div class="{}">{}</div>').format(kind, _drawn(session, phases, shown, width, f"session{width}", label))
        for kind, width in (("wide", WIDE), ("narrow", NARROW))
    )
    return Markup("\n").join(drawn)


def _drawn(
    session: Session,
    phases: Sequence[tuple[float, float, str]],
    shown: Sequence[Hindrance],
    width: int,
    name: str,
    label: str,
) -> Markup:
    rows = 2 + len(shown)
    canvas = drawing.Drawing(width, rows * _ROW + BOTTOM)
    axes = canvas.axes(LEFT, BOTTOM, RIGHT, 0)
    axes.set_ylim(0.0, rows * _ROW)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    begin, end = phases[0][0], phases[-1][1]
    drawing.prepare_time_axis(axes, begin, end, 10 if width > 600 else 5)
    per_pixel = (end - begin) / (width - LEFT - RIGHT)
    _title(axes, begin, rows, 0, "State")
    for colour in set(STATES.values()):
        here = [(b, max(e - b, per_pixel)) for b, e, phase in phases if STATES[phase] == colour]
        _bars(axes, here, rows, 0, colour)
    _title(axes, begin, rows, 1, "Inputs")
    stamps = session.stamps([_when(record) for record in session.inputs])
    for fate, (colour, _) in _FATES.items():
        times = stamps[[record.fate == fate for record in session.inputs]]
        # One tick a pixel; those before and after the log belong to its ends.
        pixels = np.unique(np.round((np.clip(times, begin, end) - begin) / per_pixel))
        tall = 1.0 if fate in ("rejected", "late") else 0.7
        bottom = _bottom(rows, 1)
        axes.vlines(begin + pixels * per_pixel, bottom, bottom + tall * _BAR, colors=colour, linewidth=1.0)
        if fate == "rejected" and len(pixels):
            axes.plot(
                begin + pixels * per_pixel, np.full(len(pixels), bottom + _BAR), "x", color=colour, markersize=5.0
            )
    for row, found in enumerate(shown, start=2):
        _title(axes, begin, rows, row, found.worst.text)
        _bars(axes, [(b, max(e - b, 2.0 * per_pixel)) for b, e in found.spans.tolist()], rows, row, INK)
    return canvas.svg(name, label)


def _when(record: InputRecord) -> float:
    return record.sent if record.received is None else record.received


def _bottom(rows: int, row: int) -> float:
    return (rows - 1 - row) * _ROW + 3.0


def _title(axes: Axes, begin: float, rows: int, row: int, text: str) -> None:
    axes.text(begin, _bottom(rows, row) + _BAR + 4.0, text, fontsize=11.0, va="bottom", ha="left")


def _bars(axes: Axes, spans: Sequence[tuple[float, float]], rows: int, row: int, colour: str) -> None:
    axes.broken_barh(spans, (_bottom(rows, row), _BAR), facecolors=colour, linewidth=0.0)


def _speed(session: Session) -> Markup:
    stamps, live = session.log.stamp, session.log.live
    lines = [
        Line("share of the wanted step", SOLVER, stamps, live["speed"] * 100.0, 1.2),
        Line("controller's speed factor", SETPOINT, stamps, live["rate"] * 100.0, 1.8),
    ]
    panel = linear_panel("Speed (%)", f"{NO_BREAK}%", lines)
    return broad("speed", "Speed factor and share of the wanted step over time", Chart([panel], stamps, 170))
