"""Made-up summaries of repeated runs."""

from __future__ import annotations

from typing import Any

NO_TIMES = "No AT or RT."


def iso_view(witness: str, *missing: str) -> dict[str, Any]:
    """Return ISO 9283-style figures of a witness: none, with the reasons why."""
    return {
        "witness": witness,
        "figures": [],
        "stops_m": [],
        "limit_band_m": None,
        "missing": list(missing),
    }


def one_run(number: int, rms: float | None, outcome: str = "completed") -> dict[str, Any]:
    """Return a run of the repeats.

    Args:
        number: From 1.
        rms: Its RMS position error, m; None without a sample.
        outcome: As in summary.json.
    """
    tracking_error = None
    contour_error = None
    if rms is not None:
        position = {"rms": rms, "max": 2 * rms}
        tracking_error = {"position_m": position, "rotation_rad": {"rms": 0.0}}
        contour_error = {"position_m": {"rms": rms}}
    return {
        "run": f"{number:02}",
        "outcome": outcome,
        "tracking_error": tracking_error,
        "contour_error": contour_error,
        "delay_s": None,
    }


def summary_of(*runs: dict[str, Any]) -> dict[str, Any]:
    """Return summary.json of three repeats, of which these runs were begun."""
    completed = [run for run in runs if run["outcome"] == "completed"]
    return {
        "scenario": "line",
        "robot": "ur10",
        "solver": "forward-dynamics",
        "backend": "pybullet",
        "passed": None,
        "label": "",
        "robot_title": "UR10",
        "servo": "an ideal servo",
        "feedforward": False,
        "outcome": runs[-1]["outcome"],
        "repeats": 3,
        "completed": len(completed),
        "runs": list(runs),
        "iso_9283_style": iso_view("self-reported", NO_TIMES),
    }
