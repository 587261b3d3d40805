"""Drop the waiting events of the studio that later ones replace.

A slider that is moved, or a page that floods, sends more events than the loop can show. Of the
values of one control only the newest counts, unless something was done in between that depends on
an earlier one.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from simbridge.browser.events import BACKGROUND, PageEvent

# Events that set a value whatever it was before, and are not read by each other.
SETTERS = frozenset(
    {
        "change",
        "drag",
        "goal",
        "goal turn",
        "clicked goal",
        "hold go",
        "rival",
        "scenario",
        "scrub",
        "solver",
        "speed",
    }
)
# Events that set the start, for which each reads where the goal or the arm is.
STARTERS = frozenset({"start", "clicked start", "home", "here"})


def without_superseded(events: Sequence[PageEvent]) -> list[PageEvent]:
    """Return events without those that a later one of the same page and control makes void.

    Their order stays.
    """
    kept: list[PageEvent] = []
    # What a later event sets again, before anything reads it.
    set_again: set[Hashable] = set()

    for event in reversed(events):
        control = _control_of(event)
        if control is not None and control in set_again:
            continue
        kept.append(event)
        if control is None or event.name in STARTERS:
            # Whatever was set before is read here.
            set_again.clear()
        if control is not None and event.name != "here":
            set_again.add(control)

    kept.reverse()
    return kept


def _control_of(event: PageEvent) -> Hashable | None:
    """Return what names the value that an event sets; None if it does more than that."""
    if event.page == BACKGROUND:
        return None
    if event.name in STARTERS:
        return event.page, "start"
    if event.name not in SETTERS:
        return None

    if event.name == "change":
        control, _ = event.value
        return event.page, "change", control
    if event.name == "drag":
        phase, _ = event.value
        # A drag begins and ends once.
        return (event.page, "drag") if phase == "update" else None
    return event.page, event.name
