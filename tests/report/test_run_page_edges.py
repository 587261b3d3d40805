"""Runs at the edge of what can be shown: a page all the same, and never a warning."""

from __future__ import annotations

import math
import re
import subprocess
import sys
import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest

from simbridge.evaluation.evaluation import Evaluation
from tests.properties import variants

pytestmark = pytest.mark.shares_setup


def turn_about_x(angle: float) -> list[float]:
    """Return a placement 0.2 m along x, turned about x by an angle, rad."""
    cosine = math.cos(angle)
    sine = math.sin(angle)
    return [1, 0, 0, 0.2, 0, cosine, -sine, 0, 0, sine, cosine, 0, 0, 0, 0, 1]


NEARLY_FLAT = {
    "kinematics": {
        "placements": [turn_about_x(0.5 * math.pi), turn_about_x(0.01), turn_about_x(0.0)]
    }
}

UNLIMITED = {
    "position_min": [-math.inf] * 3,
    "position_max": [math.inf] * 3,
    "max_velocity": [math.inf] * 3,
    "max_effort": [math.inf] * 3,
}

EDGES: dict[str, dict[str, Any]] = {
    "one sample": {"samples": 1, "joints": 1, "plant_offset": 1e-3},
    "two samples": {"samples": 2, "joints": 1, "plant_offset": 1e-3},
    "five samples": {"samples": 5, "plant_offset": 1e-3},
    "one sample without an error": {"samples": 1, "joints": 1},
    "one joint": {"joints": 1, "plant_offset": 1e-3},
    "twelve joints": {"joints": 12, "plant_offset": 1e-3},
    "no error": {"joints": 1},
    "an error of rounding": {"joints": 1, "plant_offset": 1e-16},
    "no motion": {"swing": 0.0, "plant_offset": 1e-3},
    "no motion and no error": {"swing": 0.0},
    "a motion of a micrometre": {"joints": 2, "swing": 1e-6, "plant_offset": 1e-9},
    "an arm that is stuck half a turn away": {"joints": 1, "plant_offset": math.pi},
    "all setpoints limited": {
        "joints": 1,
        "limited": np.ones(200, dtype=bool),
        "setpoint_offset": 1e-3,
    },
    "every other setpoint limited": {
        "joints": 1,
        "limited": np.arange(200) % 2 == 0,
        "setpoint_offset": 1e-3,
    },
    "torques unknown": {"joints": 1, "effort": math.nan},
    "torques at times unknown": {
        "joints": 1,
        "effort": np.where(np.arange(200) % 7 < 3, math.nan, 5.0)[:, None],
    },
    "torques infinite": {"joints": 1, "effort": math.inf},
    "a gap in the torques": {
        "joints": 1,
        "effort": np.where(np.arange(200) // 40 == 2, math.nan, 5.0)[:, None],
    },
    "a path that is nearly flat": {"joints": 2, "plant_offset": 1e-3, "settings": NEARLY_FLAT},
    "continuous joints": {"settings": {"robot": UNLIMITED}},
    "prismatic joints": {"settings": {"kinematics": {"prismatic": [True, False, True]}}},
    "currents instead of torques": {"effort": 200.0, "settings": {"backend": {"effort_unit": "A"}}},
}


# The edges that `make test` tries.
TESTED = (
    "one sample",
    "one sample without an error",
    "no motion and no error",
    "twelve joints",
    "torques at times unknown",
    "prismatic joints",
    "currents instead of torques",
)


@pytest.fixture(scope="module")
def edge(report):
    """The page and the summary of one of EDGES, made once; a warning meanwhile is an error."""

    @cache
    def make(name):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", "Compiling")
            return report(**EDGES[name])

    return make


@pytest.mark.parametrize("name", variants(EDGES, *TESTED))
def test_every_run_has_a_page(edge, name):
    joints = EDGES[name].get("joints", 3)

    page, summary = edge(name)

    drawings = [tag for tag, _ in page.elements if tag == "svg"]
    assert page.text("headline")
    assert "nan" not in page.source.lower().replace("nano", "")
    assert len(drawings) == 8 + joints
    assert len(summary["peak_joint_velocity"]) == joints


def test_run_without_samples_says_so(report):
    page, _ = report(samples=0, outcome="ApproachRefused: too far", complete=False)

    headline = "The Test arm tracked nothing of made_up: no sample was recorded."
    assert page.text("headline") == headline
    assert "ApproachRefused: too far" in page.text("failure")
    assert page.has("settings")
    assert not page.has("path")


def test_missing_delay_is_said(edge):
    page, summary = edge("no motion")

    assert summary["delay_s"] is None
    assert "The delay of the position could not be measured." in page.text("verdict")
    assert "Total – – reference to attained" in page.text("budget")
    assert "Delay removed" not in page.text("budget")


def test_path_without_motion_says_so(edge):
    page, _ = edge("no motion and no error")

    assert page.text("path").count("It does not move.") == 3


def test_flat_views_are_magnified(edge):
    # The first joint moves the tool in the xz plane, the second one a little out of it.
    page, _ = edge("a path that is nearly flat")

    note = r"Flat in this view: y varies by 0\.\d+ mm and is magnified \d+ times\."
    path = page.text("path")
    assert len(re.findall(note, path)) == 2
    assert "Δy is relative to y =" in path


def test_path_seen_as_a_line_says_so(edge):
    page, _ = edge("one joint")

    assert page.text("path").count("Flat in this view: y does not change.") == 2


def test_continuous_joints_have_no_limit(edge):
    page, _ = edge("continuous joints")

    assert page.text("joints").count("no limit") == 3 * 3 + 3


def test_prismatic_joints_have_mm_and_newtons(edge):
    page, _ = edge("prismatic joints")

    assert page.source.count(">Position (mm)<") == 2
    assert page.source.count(">Position (°)<") == 1
    assert page.source.count(">Force (N)<") == 2
    assert page.source.count(">Torque (N m)<") == 1


def test_currents_have_no_torque_limits(edge):
    page, _ = edge("currents instead of torques")

    assert "200 A no limit" in page.text("joints")
    assert page.source.count(">Current (A)<") == 3
    assert not page.has("notice")


def test_gap_in_torques_stays_a_gap(edge):
    page, _ = edge("a gap in the torques")

    drawing = page.source.split("joint_1: position")[1].split("</svg>")[0]
    curve = drawing.split("#d55e00")[2].rsplit('<path d="', 1)[1].split('"')[0]
    assert curve.count("M") == 2


def test_drawing_is_imported_for_a_report_only():
    imports = f"import sys, {Evaluation.__module__}, simbridge.report"
    code = f"{imports}; print('matplotlib' in sys.modules)"

    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert process.stdout.strip() == "False"
