"""The colours of the pages: a colour means one thing on every page.

They are those of Okabe and Ito ("Color Universal Design", 2008), which remain distinct for every
kind of colour vision; grey and black stand for the reference and for the whole error.
"""

from __future__ import annotations

import re

REFERENCE = "#9a9a9a"
SETPOINT = "#0072b2"
ATTAINED = "#d55e00"

SAMPLING = "#cc79a7"
SOLVER = "#009e73"
LIMITER = "#e69f00"
PLANT = "#56b4e9"
TRACKING = "#1a1a1a"

# Colours of the parts of the error budget, and of the whole, by the names in
# `simbridge.evaluation.metrics.tracking`.
ERRORS = {
    "sampling": SAMPLING,
    "solver": SOLVER,
    "limiter": LIMITER,
    "plant": PLANT,
    "servo law": PLANT,
    "rest": PLANT,
    "tracking": TRACKING,
}

# Colours of compared runs, in their order.
RUNS = (SETPOINT, ATTAINED, SOLVER, SAMPLING, LIMITER, PLANT, TRACKING)

# Colours of the states of a live session, by the names in `simbridge.sessions.causes`:
# ColorBrewer's PRGn and PuOr.
STATES = {
    "idle": "#f0f0f0",
    "engaged": "#c8c8c8",
    "tracking": "#7fbf7b",
    "braking": "#e08214",
    "holding": "#9970ab",
    "paused": "#40004b",
}

# Dashes of lines that share axes: lengths of dash and gap, in pixels, by the name of their swatch
# in page.css.
DASHES = {
    "": (),
    "long": (9.0, 3.0),
    "short": (4.0, 3.0),
    "mixed": (9.0, 3.0, 2.0, 3.0),
    "dotted": (2.0, 3.0),
}

# Dashes of the parts of the error that are not drawn solid.
ERROR_DASHES = {"sampling": "short", "solver": "long", "limiter": "mixed"}

# Dashes of compared runs: a line that lies on another leaves it visible.
RUN_DASHES = ("", "long", "short", "mixed", "dotted", "", "long")

LIMIT = "#1a1a1a"
INK = "#333333"
GRID = "#e4e4e4"
GROUND = "#ffffff"
ALARM = "#b3261e"

# The colours that follow the page, which is light or dark, and the variables of page.css that hold
# them.
PAGE_VARIABLES = {
    TRACKING: "--ink",
    INK: "--label",
    GRID: "--grid",
    GROUND: "--ground",
    ALARM: "--alarm",
}
_PAGE_COLOUR = re.compile("|".join(PAGE_VARIABLES))


def on_page(style: str) -> str:
    """Return a colour, or a style that names colours, as a page uses it.

    The colours of text and ground follow the page, which is light or dark.
    """
    return _PAGE_COLOUR.sub(lambda colour: f"var({PAGE_VARIABLES[colour[0]]})", style)
