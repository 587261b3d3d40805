"""sweep.html: what it draws for one, two and more parameters, and what it says of points without
figures.
"""

from __future__ import annotations

import re

import pytest

from simbridge.sweeps import sweep_figures
from simbridge.sweeps import sweep_page as page_module
from simbridge.sweeps.results import MAIN_FIGURE
from simbridge.sweeps.sweep_page import MAX_LISTED, sweep_page
from tests.properties import variants
from tests.sweeps.rows import made_rows

pytestmark = pytest.mark.shares_setup


def test_lines_show_median_and_spread():
    page = sweep_page(
        made_rows(lambda kp, seed: 10 / kp + 0.1 * seed, kp=(1, 2, 5), sample_seed=(0, 1, 2)),
        "mine",
    )

    assert "shaded: their range" in page
    assert 'aria-label="Tracking error' in page
    assert (
        "The smallest RMS tracking error is 2.00 mm, with solver.kp 5; the largest 10.2 mm." in page
    )


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (lambda kp: 2.54, "All 3 points have the same RMS tracking error: 2.54 mm."),
        (
            lambda kp: max(kp, 2.0),
            "The smallest RMS tracking error is 2.00 mm, with solver.kp 1 (and 1 other point); the "
            "largest 5.00 mm.",
        ),
    ],
)
def test_equal_errors_are_said_to_be_equal(error, sentence):
    assert sentence in sweep_page(made_rows(error, kp=(1, 2, 5)), "mine")


def test_over_two_parameters_a_map_shows_each_value():
    page = sweep_page(
        made_rows(lambda kp, gain: kp + gain / 1000, kp=(1, 2), servo_gain=(500, 2000)), "mine"
    )

    assert all(f">{value}</text>" in page for value in ("1.50", "2.50", "3.00", "4.00"))


def test_a_third_parameter_repeats_the_map():
    rows = made_rows(
        lambda kp, gain, n: kp + n, kp=(1, 2), servo_gain=(500, 2000), sample_rate=(20, 125)
    )
    page = sweep_page(rows, "mine")

    assert (
        "Tracking error, RMS (mm): sample-rate 20" in page
        or "Tracking error, RMS (mm): servo-gain 500" in page
    )
    assert "Parallel coordinates" not in page


def test_more_parameters_are_parallel_coordinates(monkeypatch):
    monkeypatch.setattr(sweep_figures, "MAX_DRAWN", 130)
    rows = made_rows(
        lambda a, b, c: a + b + c, kp=range(1, 8), servo_gain=range(500, 507), payload=range(7)
    )
    page = sweep_page(rows, "mine")

    assert "over 3 parameters: " in page
    assert "Showing one point in 3" in page
    assert f"{len(rows) - MAX_LISTED} more points are in results.csv" in page


def test_solvers_are_lines_with_a_legend():
    solvers = ("feedback", "pseudoinverse")
    page = sweep_page(
        made_rows(lambda gain, solver: gain / 1000, servo_gain=(500, 900), solver=solvers), "mine"
    )

    assert all(f"</span>{name}</li>" in page for name in solvers)


def drawn_dots(page, name):
    """Return how many dots the drawing with an alternative text like this has."""
    drawing = re.search(rf'aria-label="[^"]*{name}.*?</svg>', page, re.DOTALL)[0]
    return len(re.findall("<use ", drawing))


@pytest.mark.parametrize("count", [2, 12])
def test_every_point_is_drawn_by_category(count):
    solvers = [f"solver_{number}" for number in range(count)]
    rows = made_rows(
        lambda solver, seed: 1.0 + 0.1 * seed, solver=solvers, sample_seed=(0, 1, 2, 3)
    )

    page = sweep_page(rows, "mine")

    assert drawn_dots(page, "RMS \\(mm\\) by solver") == len(rows)
    assert all(f">{name}</text>" in page for name in solvers)


def test_long_categories_keep_every_value():
    robots = ("ur5e", "ur10")
    solvers = ("damped-least-squares", "selectively-damped-least-squares")
    rows = made_rows(
        lambda robot, solver, feedforward: 1.0,
        robot=robots,
        solver=solvers,
        feedforward=("off", "on"),
    )

    page = sweep_page(rows, "mine")

    drawing = re.search(
        r'aria-label="[^"]* by robot, solver, feedforward.*?</svg>', page, re.DOTALL
    )
    names = re.findall(r">([^<]*, (?:off|on))</text>", drawing[0])
    assert len(set(names)) == len(rows)
    assert {name.split(", ")[0] for name in names} == set(robots)
    assert "ur5e, damped-least-squares, off" in names


def test_categories_beside_a_number_have_their_own_figure():
    rows = made_rows(
        lambda kp, solver: 10.0 / kp, kp=(5, 10), solver=[f"solver_{n}" for n in range(9)]
    )

    page = sweep_page(rows, "mine")

    assert "Showing 7 of 9 combinations." in page
    assert drawn_dots(page, "RMS \\(mm\\) by solver") == len(rows)


def test_best_and_worst_reports_are_linked():
    rows = made_rows(lambda kp: kp, kp=(1, 2, 3))
    rows[0]["directory"] = "runs/best"
    rows[2]["directory"] = "runs/worst"

    page = sweep_page(rows, "mine")

    assert '<a href="runs/best/report.html">Best point: report</a>' in page
    assert '<a href="runs/worst/report.html">Worst point: report</a>' in page


def test_the_front_has_unbeaten_points():
    # Of growing roughness: the first is the smoothest, the third the nearest; the second and the
    # fourth are beaten.
    errors = dict(zip((1, 2, 3, 4), (3.0, 4.0, 1.0, 2.0), strict=True))

    assert "Blue: Pareto-optimal (2 points), marked in the table." in sweep_page(
        made_rows(lambda kp: errors[kp], kp=(1, 2, 3, 4)), "mine"
    )


def test_small_differences_are_not_magnified():
    rows = made_rows(lambda kp: 10.0 / kp, kp=(5, 10, 20))
    for row in rows:
        row["smoothness.tool.sparc"] = f"{-1.40358 - 1e-6 * float(row['solver.kp'])}"
        row["joint_effort.torque.rms"] = "52.5"

    page = sweep_page(rows, "mine")

    assert "Blue: Pareto-optimal (3 points), marked in the table.</p>" in page
    assert "Blue: Pareto-optimal (1 point), marked in the table.</p>" in page
    assert re.findall(r">[\u2212-]?1\.403\d+<", page) == []


@pytest.mark.parametrize(
    "values",
    [
        {"kp": (5, 10, 20)},
        {"kp": (5, 10), "servo_gain": (500, 900)},
        {"kp": range(1, 5), "servo_gain": range(500, 504), "payload": range(10, 14)},
    ],
)
@pytest.mark.parametrize("scale", variants([1.0, 1e-7], 1e-7))
def test_rounding_differences_are_not_magnified(values, scale):
    page = sweep_page(
        made_rows(lambda *numbers: scale * (4.49 + 1e-7 * sum(numbers)), **values), "mine"
    )

    for drawing in re.findall("<svg.*?</svg>", page, re.DOTALL):
        labels = re.findall(r"<text[^>]*>([^<]*)<", drawing)
        assert len({*labels}) == len(labels) or 'class="figure paper"' in drawing
        assert not [label for label in labels if label.startswith("4.490")]


def test_points_show_report_or_command():
    rows = made_rows(lambda kp: kp, kp=(1, 2))
    rows[0]["directory"] = "runs/0"

    page = sweep_page(rows, "mine")

    assert 'href="runs/0/report.html"' in page
    assert "simbridge run circle --solver.kp 2" in page


@pytest.mark.parametrize("count", [0, 1, 2])
def test_points_without_figures_are_named_with_the_reason(count):
    rows = made_rows(lambda kp: kp, kp=(1, 2))
    for row in rows[:count]:
        row |= {
            MAIN_FIGURE: "",
            "outcome": "refused",
            "reason": f"The joint <wrist> moves at {row['solver.kp']} rad/s.",
        }

    page = sweep_page(rows, "mine")

    assert ("refused" in page) == (count > 0)
    assert "<wrist>" not in page
    assert ("No points have results." in page) == (count == 2)
    assert ("2 points refused, such as: The joint" in page) == (count == 2)


def test_the_table_marks_points_of_fronts(monkeypatch):
    monkeypatch.setattr(page_module, "MAX_LISTED", 20)
    # The rougher, the smaller the error, and the smaller the torque: one point is on the front of
    # effort.
    rows = made_rows(lambda kp: 10.0 / kp, kp=range(70, 0, -1))
    for row in rows:
        row["joint_effort.torque.rms"] = f"{100.0 / float(row['solver.kp'])}"
        row["smoothness.tool.sparc"] = f"{-float(row['solver.kp'])}"

    page = sweep_page(rows, "mine")

    assert "against smoothness" in page
    assert "against effort" in page
    assert page.count(">smoothness, effort</td>") == 1
    assert page.count(">smoothness</td>") == 69
    assert "more points are in results.csv" not in page


def test_names_in_the_table_are_left_aligned_as_words():
    page = sweep_page(
        made_rows(lambda kp, solver: kp, kp=(1, 2), solver=("pseudoinverse", "mine:make")), "mine"
    )

    assert 'class="word">solver</th>' in page
    assert 'class="word">solver.kp</th>' not in page
