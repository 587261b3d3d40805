"""The page of a judged log, like the report of a run: the sentence, plots, motions and evidence."""

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

# Largest numbers of events and of motions whose details are printed; so many events are unfolded.
MAX_OPEN = 12


def judgement_page(examination: Examination, findings: Sequence[str] = ()) -> str:
    """Return the whole page as HTML; the same for the same log.

    Args:
        examination: The judged log.
        findings: Sentences on tolerances, and on goals that did not succeed.
    """
    judgement = examination.judgement
    with drawing_style():
        error = error_plot(examination)
        worst = worst_plot(examination)
        speed = speed_plot(examination)

    whole = judgement.whole
    parts = [] if whole is None else [*whole.parts]
    sizes = [part.size.rms_rad for part in parts]
    return render(
        "judge.html",
        title=f"{PurePath(judgement.name).name}: judged",
        judgement=judgement,
        name=PurePath(judgement.name).name,
        headline=wording.headline(judgement),
        findings=findings,
        remarks=wording.remarks(judgement),
        clock=examination.log.clock.value,
        error=error,
        worst=worst,
        speed=speed,
        parts_of_error=[_part_cells(part) for part in parts],
        whole=None
        if whole is None
        else _part_cells(whole.whole) | {"source": "Whole", "colour": TRACKING},
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
    """Return the cells of a part of the error in its table, with its colour and size."""
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
