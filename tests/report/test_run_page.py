"""report.html: what it says, and that it is one page that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
import math
import re
import subprocess
import sys
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest

from simbridge.cli.run_tables import show_run
from simbridge.evaluation.evaluation import Evaluation
from simbridge.report.verdict import advice, notices, tolerance_check
from tests.properties import variants
from tests.report.pages import numbers, plain_spaces, table_rows

pytestmark = pytest.mark.shares_setup

SECTIONS = [
    "verdict",
    "time",
    "budget",
    "path",
    "worst",
    "contour",
    "joint-contributions",
    "joints",
    "motion",
    "settings",
]
# Three views, the worst sample, the coloured path, the error over time wide and narrow, the lag,
# and three joints.
DRAWINGS = 3 + 1 + 1 + 2 + 1 + 3
LATE = {"solution_offset": 2e-3, "plant_offset": 4e-3, "plant_delay": 0.02}


@pytest.fixture(scope="module")
def late(report):
    """A run of 2000 samples with a delay that passed its tolerance."""
    tolerance = {"position_m": 1.0, "rotation_rad": math.radians(30.0)}
    noisy = {**LATE, "joints": 1, "samples": 2000, "noise": 1e-4}
    return report(**noisy, summary={"predicted_lag_s": 0.01234}, tolerance=tolerance)


@pytest.fixture(scope="module")
def troubled(report):
    """A run that missed its tolerance, with limited setpoints, saturated torques and a slow
    controller.
    """
    effort = np.zeros((200, 3))
    effort[20:23, 1] = -100.0
    effort[22, 2] = 100.0
    limited = np.zeros(200, dtype=bool)
    limited[50:75] = True
    limited[100] = True

    loop = {
        "period_mean_s": 0.008,
        "period_max_s": 0.0123,
        "missed_deadlines": 3,
        "missed_states": 0,
    }
    near_singularity = {"threshold": 0.1, "share": 1e-5, "smallest_singular_value": 0.05}
    return report(
        **LATE,
        effort=effort,
        limited=limited,
        speed_scaling=0.5,
        summary={"loop": loop, "near_singularity": near_singularity},
        tolerance={"position_m": 1e-4, "rotation_rad": math.radians(30.0)},
    )


def test_headline_has_the_numbers_of_the_summary(busy):
    page, summary = busy

    source, _, sizes = page.text("headline").partition(": ")

    assert source == "Predicted for a Test arm with an ideal servo"
    error = summary["tracking_error"]
    assert numbers(sizes) == pytest.approx(
        [
            error["position_m"]["rms"] * 1e3,
            error["position_m"]["max"] * 1e3,
            math.degrees(error["rotation_rad"]["rms"]),
            math.degrees(error["rotation_rad"]["max"]),
        ],
        rel=5e-3,
    )
    assert "mm RMS tracking error (max" in sizes
    assert "mm) on made_up; rotation" in sizes
    assert "° RMS (max" in sizes


def test_budget_has_every_part(busy):
    page, summary = busy
    keys = {
        "Sampling": "sampling_error",
        "Solver": "solver_error",
        "Limiter": "limiter_error",
        "Plant": "plant_error",
        "Tracking": "tracking_error",
        "Delay removed": "delay_compensated",
        "Contour": "contour_error",
    }

    rows = page.rows("budget")

    assert list(rows) == list(keys)
    for name, cells in rows.items():
        error = summary[keys[name]]
        expected = [error["position_m"][key] * 1e3 for key in ("rms", "mean", "p95", "max")]
        if name == "Contour":
            assert cells[4:6] == ["–", "–"]
        else:
            expected += [math.degrees(error["rotation_rad"][key]) for key in ("rms", "max")]
        shown = [float(cell) for cell in cells[: len(expected)]]
        assert shown == pytest.approx(expected, rel=5e-3, abs=1e-9)


def test_evo_errors_are_those_of_the_summary(busy):
    page, summary = busy
    keys = {"APE": "absolute_pose_error", "RPE": "relative_pose_error"}

    rows = table_rows(page.source.split("APE and RPE</caption>")[1].split("</table>")[0])

    assert list(rows) == list(keys)
    for name, key in keys.items():
        error = summary[key]
        position = [error["position_m"][k] * 1e3 for k in ("rmse", "mean", "median", "std", "max")]
        rotation = [math.degrees(error["rotation_rad"][k]) for k in ("rmse", "max")]
        shown = [float(cell) for cell in rows[name][: len(position + rotation)]]
        assert shown == pytest.approx(position + rotation, rel=5e-3)
    assert "all pairs 100 samples (0.8 s) apart" in page.text("budget")


def test_tool_turning_in_place_has_rotation_figures(words):
    # The one joint's axis goes through the TCP.
    in_place = {"kinematics": {"placements": [np.eye(4).ravel().tolist()] * 2}}

    page, summary = words(
        joints=1, plant_delay=0.02, settings=in_place, summary={"predicted_lag_s": 0.01234}
    )

    assert summary["delay_of"] == "rotation"

    delays = page.text("budget")
    assert "The arm turned in place and lagged the reference by 20.0 ms: " in delays
    assert re.search(r"With this delay removed, <?[\d.]+° RMS would remain", delays)
    assert "ms predicted" not in delays
    assert "mm RMS would remain" not in delays

    budget = page.text("budget")
    assert "Total – 20.0 reference to attained" in budget
    assert "Predicted lag – – of the solver" in budget


def test_delays_are_in_milliseconds(late):
    page, summary = late
    position_delay = 1e3 * summary["plant_delay_s"]
    rotation_delay = 1e3 * summary["plant_rotation_delay_s"]

    budget = page.text("budget")

    assert summary["delay_s"] > 0.01
    assert f"The arm lagged the reference by {summary['delay_s'] * 1e3:.1f} ms" in budget
    assert "12.3 ms predicted" in budget
    assert "Delay, ms position rotation Meaning" in budget
    assert f"Plant {position_delay:.1f} {rotation_delay:.1f} setpoint to attained" in budget
    assert "Predicted lag 12.3" in budget


def test_advice_is_on_the_page(busy):
    page, summary = busy

    assert plain_spaces(advice(summary)) in page.text("verdict")


def test_no_tolerance_is_no_judgement(busy):
    page, _ = busy

    assert not page.has("badge")


@pytest.mark.parametrize(("run", "judgement"), [("late", "Passed"), ("troubled", "Failed")])
def test_tolerance_is_judged(request, run, judgement):
    page, summary = request.getfixturevalue(run)
    error_mm = summary["tracking_error"]["position_m"]["rms"] * 1e3
    tolerance_mm = summary["tolerance"]["position_m"] * 1e3

    text = page.text("judgement")

    assert text.startswith(judgement)
    assert plain_spaces(tolerance_check(summary)[1]) in text
    assert numbers(text)[:2] == pytest.approx([error_mm, tolerance_mm], rel=5e-3)
    assert "is within 30°" in text
    assert page.has(judgement.lower())


def test_completed_run_has_no_notice(busy):
    page, _ = busy

    assert not page.has("notice")


def test_early_end_comes_first_and_fails(words):
    page, summary = words(
        joints=1,
        outcome="GuardStop: joint 2 is 0.3 rad away",
        complete=False,
        tolerance={"position_m": 1.0, "rotation_rad": 1.0},
    )

    failure = "The run did not complete: GuardStop: joint 2 is 0.3 rad away. 200 of 200"
    assert failure in page.text("failure")
    assert page.source.index("GuardStop") < page.source.index("RMS tracking")
    assert " on made_up until the run ended early" in page.text("headline")
    assert summary["passed"]
    assert page.text("judgement").startswith("Incomplete")
    assert not page.has("passed")


def test_limited_setpoints_are_counted_and_timed(troubled):
    page, _ = troubled

    limited = "The limiter changed 26 of 200 setpoints (13 %), from 0.40 to 0.59 s and at 0.80 s"
    assert limited in page.text("caution")
    assert "setpoints limited" in page.text("time")


def test_saturated_torques_are_counted_by_joint(troubled):
    page, summary = troubled

    times = "at its limit in 3 of 200 samples (joint_2 in 3 and joint_3 in 1), from 0.16 to 0.18 s"
    assert summary["saturated_samples"] == 3
    assert times in page.text("caution")


def test_tiny_share_near_a_singularity_is_shown(troubled):
    page, _ = troubled

    share = "Samples near a singularity <0.01 % smallest singular value below 0.1"
    assert share in page.text("motion")


def test_slowed_controller_is_reported(troubled):
    page, _ = troubled

    assert "speed scaling 0.50 on average" in page.text("caution")


def test_pauses_are_no_slower_motion(measured, capsys):
    state = np.full(200, 2)
    # Pausing, and paused.
    state[50:52] = 3
    state[52:75] = 4
    # A second pause, to the end of the log.
    state[190:] = 4
    # The scaling is reported a sample later.
    scaling = np.ones(200)
    scaling[51:76] = 0.0
    scaling[191:] = 0.0
    loop = {
        "period_mean_s": 0.008,
        "period_std_s": 0.008,
        "period_p999_s": 0.008,
        "period_max_s": 0.008,
        "missed_deadlines": 0,
        "missed_states": 0,
    }

    evaluation, summary = measured(
        runtime_state=state, speed_scaling=scaling, summary={"loop": loop}
    )
    show_run(summary, Path("run"))
    cautions = " ".join(notice.text for notice in notices(evaluation, summary))

    assert summary["pauses"] == {"count": 2, "duration_s": pytest.approx(0.008 * (25 + 9))}
    assert summary["speed_scaling"] == {"min": 1.0, "mean": 1.0}
    for text in map(plain_spaces, (cautions, capsys.readouterr().out)):
        assert "The controller's program was paused 2 times, for a total of 0.3 s." in text
        assert "speed scaling" not in text


def test_loop_is_shown_where_it_was_measured(troubled, busy):
    page, _ = troubled
    page_without_loop, _ = busy

    row = "Period, mean 8.00 ms Period, longest 12.3 ms Missed deadlines 3 Missed states 0"
    assert row in page.text("loop")
    assert not page_without_loop.has("loop")


def test_joints_are_compared_with_their_limits(words):
    page, _ = words(samples=500, joints=1, swing=0.2, effort=25.0)

    name, cells = next(iter(page.rows("joints").items()))
    assert name == "joint_1"
    assert numbers(cells[0])[0] == pytest.approx(math.degrees(0.1), abs=0.06)
    assert numbers(cells[1])[0] == pytest.approx(math.degrees(3.0 - 0.5), abs=0.2)
    # 0.2 rad at 2 rad/s, of 2 rad/s.
    assert numbers(cells[2])[0] == pytest.approx(math.degrees(0.4), rel=0.01)
    assert numbers(cells[3])[0] == pytest.approx(20.0, abs=0.5)
    assert cells[5] == "25\u00a0% of 100"


def test_every_section_and_drawing_is_there(busy):
    page, _ = busy

    labels = [attributes["aria-label"] or "" for tag, attributes in page.elements if tag == "svg"]
    assert [name for name in page.ids if name in SECTIONS] == SECTIONS
    assert len(labels) == DRAWINGS
    assert all("mm" in label or "°" in label for label in labels)


def test_every_axis_has_a_unit(busy):
    page, _ = busy

    titles = ["x (mm)", "y (mm)", "z (mm)", "Position error (mm)", "Rotation error (°)", "Time (s)"]
    for title in titles:
        assert title in page.source
    for title in ["Position (°", "Velocity (°/s", "Torque (N m"]:
        assert page.source.count(f">{title})<") == 3


def test_page_loads_nothing(busy):
    page, _ = busy

    assert "://" not in page.source
    tags = {tag for tag, _ in page.elements}
    assert not tags & {"iframe", "object", "embed", "img", "image", "base"}
    for _, attributes in page.elements:
        assert "src" not in attributes
        assert (attributes.get("href") or "#").startswith(("#", "data:,"))
        assert not any(name.startswith("on") for name in attributes)

    # The policy lets a browser run the one script, and load nothing.
    (script,) = re.findall(r"<script>(.*?)</script>", page.source, re.S)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policies = [
        attributes["content"]
        for _, attributes in page.elements
        if attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policies == [
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data:"
    ]

    body = page.source.split("<script>")[0]
    for reference in re.findall(r"url\(([^)]*)\)", body):
        assert reference.startswith("#")


def test_references_lead_to_unique_identifiers(busy):
    page, _ = busy

    body = page.source.split("<script>")[0]
    references = re.findall(r'href="#([^"]*)"', body) + re.findall(r"url\(#([^)]*)\)", body)
    assert page.source.startswith("<!DOCTYPE html>")
    assert len(page.ids) == len(set(page.ids))
    assert set(references) <= set(page.ids)


def test_names_are_shown_and_never_run(report):
    hostile = '<script>alert("1")</script>&amp;{title}'
    settings = {
        "scenario": {"name": hostile, "description": hostile},
        "robot": {"title": hostile, "joint_names": [f"{hostile}{i}" for i in range(3)]},
        "solver": {"name": hostile, "parameters": {hostile: hostile}},
    }

    page, _ = report(**LATE, settings=settings, outcome=hostile)

    assert page.source.count("<script") == 1
    assert page.text("h1") == hostile
    assert page.text("description") == hostile
    assert hostile in page.text("headline")
    assert hostile in page.text("failure")
    assert f"{hostile}2" in page.text("joints")
    assert f"{hostile}: {hostile} {hostile}" in page.text("settings")


def test_all_settings_are_on_the_page(busy):
    page, _ = busy

    assert "kp [50, 50, 50, 50, 50, 50]" in page.text("settings")
    assert "max_velocity_jump 1" in page.text("details")


def test_settings_of_matplotlib_change_nothing(report, edge):
    name = "a gap in the torques"
    page, _ = edge(name)
    settings = {"font.size": 30.0, "text.usetex": True, "axes.grid": False, "svg.fonttype": "path"}

    with matplotlib.rc_context(settings):
        same_page, _ = report(**EDGES[name])

    assert same_page.source == page.source


def test_page_of_2000_samples_is_small(late):
    page, _ = late

    assert len(page.source.encode()) < 1_500_000


@pytest.mark.soak
def test_page_of_a_noisy_minute_is_small(report):
    page, _ = report(**LATE, joints=6, samples=30_000, period=0.002, noise=1e-3)

    assert len(page.source.encode()) < 3_000_000


# Runs at the edge of what can be shown have a page, too, and cause no warning.
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
    "no motion and no error",
    "a gap in the torques",
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


def test_run_without_samples_says_so(words):
    page, _ = words(samples=0, outcome="ApproachRefused: too far", complete=False)

    headline = "The Test arm did not track made_up: no sample was recorded."
    assert page.text("headline") == headline
    assert "ApproachRefused: too far" in page.text("failure")
    assert page.has("settings")
    assert not page.has("path")


def test_missing_delay_is_said(edge):
    page, summary = edge("no motion and no error")

    assert summary["delay_s"] is None
    assert "The delay of the position could not be measured." in page.text("budget")
    assert "Total – – reference to attained" in page.text("budget")
    assert "Delay removed" not in page.text("budget")


def test_path_without_motion_says_so(edge):
    page, _ = edge("no motion and no error")

    # In the three views, and in the path that the error colours.
    assert page.text("path").count("It does not move.") == 4


def test_flat_views_are_magnified(report):
    # The first joint moves the tool in the xz plane, the second one a little out of it.
    page, _ = report(**EDGES["a path that is nearly flat"])

    note = r"Flat in this view: y varies by 0\.\d+ mm and is magnified \d+ times\."
    path = page.text("path")
    assert len(re.findall(note, path)) == 2
    assert "Δy is relative to y =" in path


def test_path_seen_as_a_line_says_so(edge):
    # Its one joint moves the tool in a plane.
    page, _ = edge("a gap in the torques")

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
