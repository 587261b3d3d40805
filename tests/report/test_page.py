"""report.html: what it says, and that it is one page that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
import math
import re
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest

from simbridge.cli.run_tables import show_run
from simbridge.evaluation.summary import what_ran
from simbridge.report.drawing import drawing_style
from simbridge.report.figure_files import write_figures
from simbridge.report.joints import joint_chart, joints
from simbridge.report.over_time import errors_over_time
from simbridge.report.verdict import (
    advice,
    delay_sentences,
    headline,
    notices,
    tolerance_check,
    with_deviation,
)
from simbridge.ur.tables import EMULATOR_SERIAL_NUMBER
from tests.records import changed
from tests.report.conftest import BUSY

pytestmark = pytest.mark.shares_setup

SECTIONS = [
    "verdict",
    "budget",
    "path",
    "worst",
    "time",
    "contour",
    "joint-contributions",
    "joints",
    "motion",
    "settings",
]
LATE: dict[str, Any] = {"solution_offset": 2e-3, "plant_offset": 4e-3, "plant_delay": 0.02}
IN_PLACE: dict[str, Any] = {"kinematics": {"placements": [np.eye(4).ravel().tolist()] * 2}}
LINES = ["sampling", "solver", "limiter", "plant", "tracking"]


def plain_spaces(text: str) -> str:
    return text.replace("\u00a0", " ")


def numbers(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"\d+(?:\.\d+)?", text)]


def table(page: Any, section: str) -> dict[str, list[str]]:
    """The rows of a section's first table: the name and the cells."""
    source = page.source.split(f'<section id="{section}">')[1].split("</table>")[0]
    rows = re.findall(r'<tr[^>]*><th scope="row"[^>]*>(.*?)</th>(.*?)</tr>', source, re.S)
    return {
        re.sub("<.*?>", "", name): re.findall(r"<td[^>]*>(.*?)</td>", cells) for name, cells in rows
    }


def test_the_headline_has_the_numbers_of_the_summary_in_mm_and_degrees(busy: Any) -> None:
    page, summary = busy
    error = summary["tracking_error"]
    expected = [
        error["position_m"]["rms"] * 1e3,
        error["position_m"]["max"] * 1e3,
        math.degrees(error["rotation_rad"]["rms"]),
        math.degrees(error["rotation_rad"]["max"]),
    ]
    before, _, after = page.text("headline").partition(": ")
    assert before == "Predicted for a Test arm with an ideal servo"
    assert numbers(after) == pytest.approx(expected, rel=5e-3)
    assert (
        "mm RMS tracking error (max" in after
        and "mm) on made_up; rotation" in after
        and "° RMS (max" in after
    )


@pytest.mark.parametrize(
    ("backend", "words"),
    [
        (
            "pybullet",
            "Predicted for a Test arm with servoj at gain 300, lookahead 0.1 s and feedforward: ",
        ),
        (
            "ursim",
            "Measured by URSim for a Test arm with servoj at gain 300, lookahead 0.1 s and feedforward: ",
        ),
        (
            "real",
            "Measured by the controller of a Test arm with servoj at gain 300, lookahead 0.1 s and feedforward: ",
        ),
    ],
)
def test_the_headline_says_whether_it_was_predicted_or_measured_and_for_which_plant(
    measured: Any, backend: str, words: str
) -> None:
    servo = {"name": backend, "servo": "servoj", "servo_gain": 300.0, "servo_lookahead": 0.1}
    _, summary = measured(settings={"backend": servo, "scenario": {"feedforward": "on"}})
    assert plain_spaces(headline(summary)).startswith(words)
    found = {"holds": False, "gain": 512.3, "lookahead_s": 0.05}
    assert "servoj found at gain 512, lookahead 0.0500 s" in plain_spaces(
        headline({**summary, "servo_law": found})
    )


def test_what_the_emulator_measured_is_not_said_to_be_of_ursim_or_an_arm(measured: Any) -> None:
    evaluation, summary = measured()
    controller = {"serial_number": EMULATOR_SERIAL_NUMBER}
    for name in ("ursim", "real"):
        record = changed(evaluation.settings, controller=controller, backend={"name": name})
        text = headline({**summary, **what_ran(record)})
        assert text.startswith("Measured by the emulator for a Test arm with ")


def test_an_angle_that_no_arm_keeps_is_not_given_as_a_number(measured: Any) -> None:
    _, summary = measured(plant_offset=1e-7)
    assert plain_spaces(headline(summary)).endswith("on made_up; rotation below 0.01°.")


def test_rotations_that_no_arm_keeps_are_not_drawn(measured: Any) -> None:
    with drawing_style():
        _, small = errors_over_time(*measured(plant_offset=1e-7))
        _, large = errors_over_time(*measured(plant_offset=1e-3))
    assert (
        "Position error (mm); rotation below 0.0001°" in small and "Rotation error (°)" not in small
    )
    assert "Rotation error (°)" in large and "rotation below" not in large


@pytest.mark.parametrize(("offset", "panels"), [(1e-7, 1), (1e-3, 2)])
def test_a_figure_for_a_paper_has_the_panels_of_the_page(
    measured: Any, tmp_path: Path, offset: float, panels: int
) -> None:
    files = write_figures(*measured(plant_offset=offset), tmp_path, "svg")
    height = re.search(r'height="([\d.]+)pt"', files[0].read_text(encoding="utf-8"))
    assert height is not None and (float(height[1]) > 200.0) == (panels == 2)


def test_a_length_that_no_arm_keeps_is_not_given_as_a_number(measured: Any) -> None:
    _, summary = measured(plant_offset=2e-6)
    assert 0.0 < summary["tracking_error"]["position_m"]["max"] < 1e-5
    assert ": tracking error below 0.01 mm on made_up" in plain_spaces(headline(summary))


@pytest.mark.parametrize(
    ("deviation", "text"),
    [(None, "4.49 mm"), (1e-7, "4.49 mm"), (2.34e-5, "4.486 ± 0.023 mm"), (1.2e-3, "4.5 ± 1.2 mm")],
)
def test_an_uncertainty_is_shown_where_it_changes_a_digit_and_limits_the_digits(
    deviation: float | None, text: str
) -> None:
    assert plain_spaces(with_deviation(4.486e-3, deviation)) == text


def test_the_table_has_every_line_of_the_budget(busy: Any) -> None:
    page, summary = busy
    rows = table(page, "budget")
    assert list(rows) == [line.capitalize() for line in LINES] + ["Delay removed", "Contour"]
    for name, cells in rows.items():
        error = summary["delay_compensated" if name == "Delay removed" else f"{name.lower()}_error"]
        expected = [error["position_m"][key] * 1e3 for key in ("rms", "mean", "p95", "max")]
        if name == "Contour":
            assert cells[4:6] == ["–", "–"]
        else:
            expected += [math.degrees(error["rotation_rad"][key]) for key in ("rms", "max")]
        assert [float(cell) for cell in cells[: len(expected)]] == pytest.approx(
            expected, rel=5e-3, abs=1e-9
        )


def test_the_errors_as_evo_defines_them_are_those_of_the_summary(busy: Any) -> None:
    page, summary = busy
    source = page.source.split("APE and RPE</caption>")[1].split("</table>")[0]
    rows = re.findall(r'<th scope="row"[^>]*>(.*?)</th>(.*?)</tr>', source, re.S)
    for (name, cells), kind in zip(
        rows, ("absolute_pose_error", "relative_pose_error"), strict=True
    ):
        error = summary[kind]
        expected = [
            error["position_m"][key] * 1e3 for key in ("rmse", "mean", "median", "std", "max")
        ]
        expected += [math.degrees(error["rotation_rad"][key]) for key in ("rmse", "max")]
        shown = [float(cell) for cell in re.findall(r"<td data-[^>]*>(.*?)</td>", cells)]
        assert name == kind[0].upper() + "PE" and shown == pytest.approx(expected, rel=5e-3)
    assert "all pairs 100 samples (0.8 s) apart" in page.text("budget")


def test_a_rotation_with_another_delay_than_the_position_has_its_own_sentence(
    measured: Any,
) -> None:
    _, summary = measured(plant_delay=0.02)
    assert "The rotation lagged" not in delay_sentences(summary)
    later = {"delay_s": 0.001, "rotation_delay_s": 0.02, "solver_rotation_delay_s": 0.015}
    text = delay_sentences({**summary, **later}).replace("\u00a0", " ")
    assert "The arm lagged the reference by 1.00 ms" in text
    both = "15.0 ms from the solver and 20.0 ms from the plant"
    assert f"The rotation lagged the reference by 20.0 ms: {both}. With this delay" in text
    none = delay_sentences({**summary, "delay_s": 0.0, "rotation_delay_s": 0.0})
    assert none.startswith("No time shift reduces the position error, so its delay counts as 0")
    unknown = delay_sentences({**summary, "delay_s": None}).replace("\u00a0", " ")
    assert unknown.startswith("The delay of the position could not be measured; of its parts: ")
    assert "The rotation lagged the reference by 20.0 ms" in unknown


def test_a_tool_that_turns_in_place_has_the_delay_of_its_rotation_and_the_remaining_error_in_degrees(
    report: Any,
) -> None:
    # The one joint's axis goes through the TCP.
    page, summary = report(
        joints=1, plant_delay=0.02, settings=IN_PLACE, summary={"predicted_lag_s": 0.01234}
    )
    assert summary["delay_of"] == "rotation"
    verdict = page.text("verdict")
    assert "The arm turned in place and lagged the reference by 20.0 ms: " in verdict
    assert re.search(r"With this delay removed, <?[\d.]+° RMS would remain", verdict)
    assert "predicted" not in verdict and "mm RMS would remain" not in verdict
    budget = page.text("budget")
    assert (
        "Total – 20.0 reference to attained" in budget
        and "Predicted lag – – of the solver" in budget
    )


@pytest.fixture(scope="module")
def late(report: Any) -> Any:
    """A run with a delay that passed its tolerance."""
    tolerance = {"position_m": 1.0, "rotation_rad": math.radians(30.0)}
    return report(**LATE, summary={"predicted_lag_s": 0.01234}, tolerance=tolerance)


@pytest.fixture(scope="module")
def troubled(report: Any) -> Any:
    """A run that missed its tolerance, with limited setpoints, saturated torques and a slow controller."""
    effort = np.zeros((200, 3))
    effort[20:23, 1] = -100.0
    effort[22, 2] = 100.0
    limited = np.zeros(200, dtype=bool)
    limited[50:75] = limited[100:101] = True
    loop = {
        "period_mean_s": 0.008,
        "period_max_s": 0.0123,
        "missed_deadlines": 3,
        "missed_states": 0,
    }
    near = {"near_singularity": {"threshold": 0.1, "share": 1e-5, "smallest_singular_value": 0.05}}
    tolerance = {"position_m": 1e-4, "rotation_rad": math.radians(30.0)}
    return report(
        **LATE,
        effort=effort,
        limited=limited,
        speed_scaling=0.5,
        summary={"loop": loop, **near},
        tolerance=tolerance,
    )


def test_the_delays_are_given_in_ms(late: Any) -> None:
    page, summary = late
    verdict = page.text("verdict")
    assert summary["delay_s"] > 0.01
    assert f"The arm lagged the reference by {summary['delay_s'] * 1e3:.1f} ms" in verdict
    assert "12.3 ms predicted" in verdict
    budget = page.text("budget")
    late = (summary["plant_delay_s"], summary["plant_rotation_delay_s"])
    assert (
        "Plant {:.1f} {:.1f} setpoint to attained".format(*(1e3 * seconds for seconds in late))
        in budget
    )
    assert "Delay, ms position rotation Meaning" in budget
    assert "Predicted lag 12.3" in budget


@pytest.mark.parametrize(
    ("line", "source", "options"),
    [
        ("target", "sampling", "--hold and --sample-rate affect it"),
        (
            "solution",
            "the solver",
            "--solver.kp, --solver.iterations and another --solver affect it",
        ),
        (
            "setpoint",
            "the limiter (0 of 200 setpoints changed)",
            "--speed-scale below 1 reduces it",
        ),
        ("plant", "the plant", "no option affects it"),
    ],
)
def test_the_largest_part_of_the_error_is_named_with_its_share_and_what_acts_on_it(
    measured: Any, line: str, source: str, options: str
) -> None:
    offsets = {f"{name}_offset": 1e-4 for name in ("target", "solution", "setpoint", "plant")}
    _, summary = measured(**(offsets | {f"{line}_offset": 5e-3}))
    part = {"target": "sampling", "solution": "solver", "setpoint": "limiter"}.get(line, line)
    # All offsets are along one axis: shares are those of the lengths.
    share = 5e-3 / (5e-3 + 3e-4)
    assert summary["error_shares"]["position"][part] == pytest.approx(share, rel=0.01)
    assert (
        plain_spaces(advice(summary))
        == f"{100 * share:.0f} % of the position error comes from {source}; {options}."
    )


def test_shares_add_up_and_one_that_is_opposite_is_negative(measured: Any) -> None:
    _, summary = measured(solution_offset=5e-3, plant_offset=-1e-3)
    for shares in summary["error_shares"].values():
        assert sum(
            shares[part] for part in ("sampling", "solver", "limiter", "plant")
        ) == pytest.approx(1.0)
        assert shares["plant"] == pytest.approx(-0.25, abs=0.01)


def test_what_dominates_is_on_the_page(busy: Any) -> None:
    page, summary = busy
    assert plain_spaces(advice(summary)) in page.text("verdict")


def test_a_run_without_errors_says_so(measured: Any) -> None:
    _, summary = measured()
    assert ": 0 mm RMS tracking error (max 0 mm) on made_up." in plain_spaces(headline(summary))
    assert advice(summary) == "There is no error beyond rounding."


def test_without_a_tolerance_nothing_is_judged(busy: Any) -> None:
    page, _ = busy
    assert not page.has("badge")


@pytest.mark.parametrize(("run", "word"), [("late", "Passed"), ("troubled", "Failed")])
def test_a_tolerance_is_judged_and_compared(request: Any, run: str, word: str) -> None:
    page, summary = request.getfixturevalue(run)
    judgement = page.text("judgement")
    assert judgement.startswith(word)
    assert tolerance_check(summary)[1].replace("\u00a0", " ") in judgement
    rms = summary["tracking_error"]["position_m"]["rms"] * 1e3
    assert numbers(judgement)[:2] == pytest.approx(
        [rms, summary["tolerance"]["position_m"] * 1e3], rel=5e-3
    )
    assert "is within 30°" in judgement
    assert page.has(word.lower())


def test_a_curve_that_is_nowhere_on_the_axes_is_accounted_for(measured: Any) -> None:
    with drawing_style():
        entries, _ = errors_over_time(*measured(solution_offset=1e-9, plant_offset=0.5))
    names = [entry.name for entry in entries]
    assert {"sampling (zero)", "limiter (zero)", "solver (too small to show)", "plant"} <= set(
        names
    )


def test_a_completed_run_has_no_notice(busy: Any) -> None:
    page, _ = busy
    assert not page.has("notice")


def test_a_run_that_ended_early_says_why_before_anything_else_and_has_not_passed(
    report: Any,
) -> None:
    tolerance = {"position_m": 1.0, "rotation_rad": 1.0}
    page, summary = report(
        outcome="GuardStop: joint 2 is 0.3 rad away", complete=False, tolerance=tolerance
    )
    assert "The run did not complete: GuardStop: joint 2 is 0.3 rad away. 200 of 200" in page.text(
        "failure"
    )
    assert page.source.index("GuardStop") < page.source.index("RMS tracking")
    assert " on made_up until the run ended early" in page.text("headline")
    assert summary["passed"]
    assert page.text("judgement").startswith("Incomplete")
    assert not page.has("passed")


def test_a_log_that_was_cut_off_is_reported(measured: Any) -> None:
    (notice,) = notices(*measured(complete=False))
    assert notice.kind == "failure" and "The log was not closed" in notice.text


def test_limited_setpoints_are_counted_and_timed(troubled: Any) -> None:
    page, _ = troubled
    caution = page.text("caution")
    assert (
        "The limiter changed 26 of 200 setpoints (13 %), from 0.40 to 0.59 s and at 0.80 s"
        in caution
    )
    assert "setpoints limited" in page.text("time")


def test_saturated_torques_are_counted_by_joint(troubled: Any) -> None:
    page, summary = troubled
    assert summary["saturated_samples"] == 3
    expected = (
        "at its limit in 3 of 200 samples (joint_2 in 3 and joint_3 in 1), from 0.16 to 0.18 s"
    )
    assert expected in page.text("caution")


def test_a_small_share_of_the_samples_near_a_singularity_is_shown_as_such(troubled: Any) -> None:
    page, _ = troubled
    assert "Samples near a singularity <0.01 % smallest singular value below 0.1" in page.text(
        "motion"
    )


def test_a_controller_that_slowed_down_is_reported(troubled: Any) -> None:
    page, _ = troubled
    assert "speed scaling 0.50 on average" in page.text("caution")


def test_pauses_are_counted_and_timed_and_are_no_slower_motion(
    report: Any, capsys: pytest.CaptureFixture
) -> None:
    state, scaling = np.full(200, 2), np.ones(200)
    # Pausing, paused, and in the second pause to the end of the log.
    state[50:52], state[52:75], state[190:] = 3, 4, 4
    # The scaling is reported a sample later.
    scaling[51:76] = scaling[191:] = 0.0
    loop = dict.fromkeys(("period_mean_s", "period_std_s", "period_p999_s", "period_max_s"), 0.008)
    loop |= {"missed_deadlines": 0, "missed_states": 0}
    page, summary = report(runtime_state=state, speed_scaling=scaling, summary={"loop": loop})
    assert summary["pauses"] == {"count": 2, "duration_s": pytest.approx(0.008 * (25 + 9))}
    assert summary["speed_scaling"] == {"min": 1.0, "mean": 1.0}
    sentence = "The controller's program was paused 2 times, for 0.3 s in all."
    assert sentence in page.text("caution") and "speed scaling" not in page.text("caution")
    show_run(summary, Path("run"))
    printed = capsys.readouterr().out.replace("\u00a0", " ")
    assert sentence in printed and "speed scaling" not in printed


def test_the_control_loop_is_shown_where_it_was_measured(troubled: Any, busy: Any) -> None:
    page, _ = troubled
    assert (
        "Period, mean 8.00 ms Period, longest 12.3 ms Missed deadlines 3 Missed states 0"
        in page.text("loop")
    )
    assert not busy[0].has("loop")


def test_the_joints_are_compared_with_their_limits(report: Any) -> None:
    page, _ = report(samples=500, swing=0.2, effort=25.0)
    name, cells = next(iter(table(page, "joints").items()))
    assert name == "joint_1"
    assert numbers(cells[0])[0] == pytest.approx(math.degrees(0.1), abs=0.06)
    assert numbers(cells[1])[0] == pytest.approx(math.degrees(3.0 - 0.5), abs=0.2)
    # 0.2 rad at 2 rad/s, of 2 rad/s.
    assert numbers(cells[2])[0] == pytest.approx(math.degrees(0.4), rel=0.01)
    assert numbers(cells[3])[0] == pytest.approx(20.0, abs=0.5)
    assert cells[5] == "25\u00a0% of 100"


def test_every_section_and_figure_is_there(busy: Any) -> None:
    page, _ = busy
    assert [name for name in page.ids if name in SECTIONS] == SECTIONS
    labels = [attributes["aria-label"] or "" for tag, attributes in page.elements if tag == "svg"]
    # Three views, the worst spot, the coloured path, the error over time wide and narrow, the lag, three joints.
    assert len(labels) == 3 + 1 + 1 + 2 + 1 + 3
    assert all("mm" in label or "°" in label for label in labels)


def test_every_axis_has_a_unit(busy: Any) -> None:
    page, _ = busy
    for text in [
        "x (mm)",
        "y (mm)",
        "z (mm)",
        "Position error (mm)",
        "Rotation error (°)",
        "Time (s)",
    ]:
        assert text in page.source
    assert all(
        page.source.count(f">{text})<") == 3
        for text in ["Position (°", "Velocity (°/s", "Torque (N m"]
    )


def test_the_page_loads_nothing(busy: Any) -> None:
    page, _ = busy
    assert "://" not in page.source
    tags = {tag for tag, _ in page.elements}
    assert not tags & {"iframe", "object", "embed", "img", "image", "base"}
    for _, attributes in page.elements:
        assert "src" not in attributes
        assert (attributes.get("href") or "#").startswith(("#", "data:,"))
        assert not any(name.startswith("on") for name in attributes)
    policy = [
        a["content"] for tag, a in page.elements if a.get("http-equiv") == "Content-Security-Policy"
    ]
    (script,) = re.findall(r"<script>(.*?)</script>", page.source, re.S)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy == [
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:"
    ]
    drawn = page.source.split("<script>")[0]
    assert all(reference.startswith("#") for reference in re.findall(r"url\(([^)]*)\)", drawn))


def test_the_page_is_well_formed_and_its_identifiers_are_unique_and_found(busy: Any) -> None:
    page, _ = busy
    assert page.source.startswith("<!DOCTYPE html>")
    assert len(page.ids) == len(set(page.ids))
    drawn = page.source.split("<script>")[0]
    used = re.findall(r'href="#([^"]*)"', drawn) + re.findall(r"url\(#([^)]*)\)", drawn)
    assert set(used) <= set(page.ids)


def test_names_are_shown_as_they_are_and_never_run(report: Any) -> None:
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
    assert hostile in page.text("headline") and hostile in page.text("failure")
    assert f"{hostile}2" in page.text("joints")
    assert f"{hostile}: {hostile} {hostile}" in page.text("settings")


def test_all_settings_are_on_the_page(busy: Any) -> None:
    page, _ = busy
    assert "kp [50, 50, 50, 50, 50, 50]" in page.text("settings")
    assert "max_velocity_jump 1" in page.text("details")


def test_matplotlibs_settings_leave_the_page(report: Any, busy: Any) -> None:
    with matplotlib.rc_context(
        {"font.size": 30.0, "text.usetex": True, "axes.grid": False, "svg.fonttype": "path"}
    ):
        assert report(**BUSY)[0].source == busy[0].source


def test_a_page_of_2000_samples_is_small(report: Any) -> None:
    page, _ = report(**LATE, samples=2000, noise=1e-4)
    assert len(page.source.encode()) < 1_500_000


@pytest.mark.soak
def test_a_page_of_a_noisy_minute_of_six_joints_at_500_hz_is_below_3_mb(report: Any) -> None:
    page, _ = report(**LATE, joints=6, samples=30_000, period=0.002, noise=1e-3)
    assert len(page.source.encode()) < 3_000_000


def test_a_peak_of_a_single_sample_is_drawn_however_long_the_run(measured: Any) -> None:
    effort = np.zeros((30_000, 3))
    effort[12_345, 2] = 70.0
    evaluation, _ = measured(samples=30_000, period=0.002, effort=effort)
    with drawing_style():
        figure = joint_chart(joints(evaluation)[2], evaluation.log.stamp, 2).split(
            "joint_3: position"
        )[1]
    # The axes reach up to the limit at 100; a curve without its peak would be a straight line.
    curve = re.findall(r'<path d="([^"]*)" clip-path[^>]*#d55e00', figure)[-1]
    heights = {y for _, y in re.findall(r"([\d.]+) ([\d.]+)", curve)}
    assert len(heights) > 1
