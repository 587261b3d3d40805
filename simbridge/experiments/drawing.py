"""The look of the experiments' pictures: that of the report's, with a colour of its own for every solver."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from simbridge.errors import OutputError
from simbridge.report.drawing import drawing_style
from simbridge.report.palette import ATTAINED, LIMITER, PLANT, REFERENCE, SAMPLING, SETPOINT, SOLVER, TRACKING

WANTED = REFERENCE
"""The colour of what is wanted."""

# Okabe and Ito's, which can be told apart with every kind of colour vision; one more for the closed form.
_COLOURS = {
    "forward-dynamics": SETPOINT,
    "jacobian-transpose": ATTAINED,
    "pseudoinverse": SOLVER,
    "damped-least-squares": SAMPLING,
    "selectively-damped": LIMITER,
    "feedback": PLANT,
    "constrained": TRACKING,
    "closed-form": "#8c6d46",
}
_OTHERS = "#6a51a3"
_STYLE: dict[Any, Any] = {
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.labelsize": 9.0,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "axes.titley": None,
    "lines.linewidth": 1.4,
    "savefig.facecolor": "white",
}
_DOTS_PER_INCH = 120
_PAD = 0.08  # inches


def colour_of(solver: str) -> str:
    """The colour of a solver; those that are not ours share one."""
    return _COLOURS.get(solver, _OTHERS)


@dataclass(frozen=True)
class Picture:
    """A picture that is drawn when it is saved.

    Attributes:
        width, height: In inches.
        draw: What fills an empty figure.
    """

    width: float
    height: float
    draw: Callable[[Figure], None]

    def save(self, path: Path) -> None:
        """Write a PNG, the same every time.

        Raises:
            OutputError: It cannot be written.
        """
        with drawing_style(), matplotlib.rc_context(_STYLE):
            figure = Figure(figsize=(self.width, self.height), layout=ConstrainedLayoutEngine(w_pad=_PAD, h_pad=_PAD))
            FigureCanvasAgg(figure)
            self.draw(figure)
            try:
                figure.savefig(path, dpi=_DOTS_PER_INCH, metadata={"Software": None})
            except OSError as error:
                raise OutputError(path, error.strerror or str(error)) from None
