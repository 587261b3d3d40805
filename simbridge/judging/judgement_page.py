"""Makes the page of a judged log: the headline, plots, motions and evidence."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from simbridge.judging import wording
from simbridge.judging.judgement import Examination, JudgedMotion
from simbridge.judging.plots import error_plot, part_colour, speed_plot, worst_plot
from simbridge.judging.tracking_errors import SignalDifference
from simbridge.report.drawing import drawing_style
from simbridge.report.palette import TRACKING
from simbridge.report.rendering import render
from simbridge.text import millimetres, milliradians

# Largest number of events, and of motions, that the page shows unfolded.
MAX_OPEN = 12


def judgement_page(examination: Examination, findings: Sequence[str] = ()) -> str:
    """Return the whole page as HTML, which is always the same for the same log.

    Args:
        examination: The judged log.
        findings: Sentences on tolerances, and on goals that did not succeed.
    """
    judgement = examination.judgement
    with drawing_style():
        error = error_plot(examination)
        worst = worst_plot(examination)
        speed = speed_plot(examination)

    # The table of the parts of the error, with the whole error in the last row.
    parts: list[SignalDifference] = []
    whole_cells: dict[str, Any] | None = None
    if judgement.whole is not None:
        parts = list(judgement.whole.parts)
        whole_cells = _part_cells(judgement.whole.whole)
        whole_cells |= {"source": "Whole", "colour": TRACKING}
    sizes = [part.size.rms_rad for part in parts]

    name = PurePath(judgement.name).name
    return render(
        "judge.html",
        title=f"{name}: judged",
        judgement=judgement,
        name=name,
        headline=wording.headline(judgement),
        findings=findings,
        remarks=wording.remarks(judgement),
        clock=examination.log.clock.value,
        error=error,
        worst=worst,
        speed=speed,
        parts_of_error=[_part_cells(part) for part in parts],
        whole=whole_cells,
        largest=max(sizes, default=0.0),
        columns=wording.COLUMNS,
        text_columns=wording.TEXT_COLUMNS,
        motions=[wording.motion_row(judged) for judged in judgement.motions],
        evidence=[wording.evidence(judged) for judged in judgement.motions],
        predictions=_prediction_rows(judgement.motions),
        events=wording.events(judgement),
        max_open=MAX_OPEN,
        limits=[wording.limit_row(judged) for judged in judgement.motions],
        arm_facts=wording.arm_facts(judgement.arm),
        missing=[(item.quantity, f"would show {item.would_show}") for item in judgement.missing],
    )


def _part_cells(part: SignalDifference) -> dict[str, Any]:
    """Return a part of the error for its row in the table: cells, colour, and size in rad."""
    size = part.size
    return {
        "source": part.source[0].upper() + part.source[1:],
        "colour": part_colour(part),
        "size": size.rms_rad,
        "cells": (
            wording.lag_number(part),
            milliradians(size.rms_rad),
            milliradians(size.max_rad),
            millimetres(size.tool_rms_m),
            millimetres(size.tool_max_m),
        ),
        "between": f"{part.leading} to {part.trailing}",
    }


def _prediction_rows(motions: tuple[JudgedMotion, ...]) -> list[tuple[str, ...]]:
    """Return the rows of the table of predictions."""
    rows: list[tuple[str, ...]] = []
    for judged in motions:
        for prediction in judged.predictions:
            rows.append(
                (
                    str(judged.motion.number),
                    wording.variant_name(prediction),
                    milliradians(prediction.rms_rad),
                    milliradians(prediction.max_rad),
                    millimetres(prediction.tool_rms_m),
                    wording.prediction_remark(prediction),
                )
            )
    return rows
