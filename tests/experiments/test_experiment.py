"""`simbridge experiment`: what it prints, what it writes, what it refuses."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest

from simbridge.experiments import convergence, homogenization, outcome, tracking
from simbridge.experiments.outcome import within
from simbridge.robot import load_robot

pytestmark = pytest.mark.slow

QUICK = {
    "homogenization": ("--samples", "300"),
    "convergence": (),
    "interpolation": ("--steps", "100"),
    "tracking": ("--kp", "50", "--solver", "forward-dynamics", "closed-form"),
}
PICTURES = {
    "homogenization": {"homogenization.png"},
    "convergence": {"convergence.png"},
    "interpolation": {"interpolation.png"},
    "tracking": {"tracking.png", "gain_sweep.png"},
}


@pytest.mark.parametrize("name", QUICK)
def test_an_experiment_leaves_tables_and_plots(cli, tmp_path, monkeypatch, name):
    # Small pictures, and few gains of the sweep: those that are drawn over time.
    monkeypatch.setattr(outcome, "DOTS_PER_INCH", 50)
    monkeypatch.setattr(tracking, "GAINS", (1.0, 5.0, 50.0))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    answer = cli("experiment", name, "--out", "out", *QUICK[name])

    assert answer.status == 0, answer.message

    lines = answer.out.splitlines()
    assert max(len(line) for line in lines) <= 80
    # In a table that is too wide, cells wrap, and the end of a column's name is alone on a line.
    assert not {line.strip() for line in lines} & {
        "mm",
        "rad",
        "degrees",
        "iterations",
        "variance",
        "miss, mm",
    }
    assert "Results: out/results.json" in lines
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"results.json", *PICTURES[name]}

    written = json.loads((tmp_path / "out" / "results.json").read_text())
    assert written["experiment"] == name
    assert written["parameters"]["robot"] == "ur10"

    for picture in PICTURES[name]:
        pixels = matplotlib.image.imread(tmp_path / "out" / picture)[..., :3]
        assert min(pixels.shape[:2]) > 150
        # A number for each colour: rows are slow to sort.
        assert len(np.unique(np.rint(255.0 * pixels) @ [1 << 16, 1 << 8, 1])) > 10


def test_json_prints_the_results_file(cli, tmp_path, without_plots):
    out = tmp_path / "out"
    printed = json.loads(cli("experiment", "convergence", "--out", out, "--json").out)

    assert printed.pop("directory") == str(out)
    assert printed == json.loads((out / "results.json").read_text())


def test_the_papers_arm_has_expected_figures(cli, tmp_path, without_plots):
    answer = cli("experiment", "convergence", "--out", tmp_path / "out")
    row = next(
        line for line in answer.out.splitlines() if line.startswith("forward-dynamics, below 10 mm")
    )

    assert row.split()[-3:] == ["16", "16", "yes"]


@pytest.mark.parametrize("other", [("--robot", "ur5e"), ("--iterations", "100")])
def test_another_arm_has_no_expected_figures(cli, tmp_path, other, without_plots):
    answer = cli("experiment", "convergence", "--out", tmp_path / "out", "--json", *other)

    assert json.loads(answer.out)["expected"] == []


def test_an_unexpected_figure_is_marked(cli, tmp_path, monkeypatch, without_plots):
    known = (
        within("forward-dynamics, left, mm", 5.0, 0.1, "nobody"),
        within("jacobian-transpose, left, mm", 24, 1, "all"),
    )
    monkeypatch.setattr(convergence, "EXPECTED", known)

    answer = cli("experiment", "convergence", "--out", tmp_path / "out", "--json")

    assert answer.status == 0
    assert [figure["holds"] for figure in json.loads(answer.out)["expected"]] == [False, True]


# test_a_gives_the_known_means_variances_and_alpha compares the figures of 100,000 samples.
@pytest.mark.parametrize(("samples", "compared"), [(299, False), (300, True)])
def test_few_samples_are_not_compared(cli, tmp_path, monkeypatch, samples, compared, without_plots):
    monkeypatch.setattr(homogenization, "SAMPLES", 300)

    answer = cli("experiment", "homogenization", "--samples", samples, "--out", tmp_path / "out")

    assert answer.status == 0
    assert ("holds" in answer.out) == compared
    assert ("fewer are not compared" in answer.out) != compared


def test_what_never_happened_is_null(cli, tmp_path, without_plots):
    answer = cli(
        "experiment", "convergence", "--iterations", 3, "--out", tmp_path / "out", "--json"
    )

    assert json.loads(answer.out)["figures"]["forward-dynamics, below 10 mm at iteration"] is None


def test_named_solvers_keep_their_order(cli, tmp_path, without_plots):
    chosen = ("feedback", "closed-form", "feedback")
    answer = cli(
        "experiment", "convergence", "--solver", *chosen, "--out", tmp_path / "out", "--json"
    )

    assert list(json.loads(answer.out)["errors"]) == ["feedback", "closed-form"]


@pytest.fixture
def custom_solver(tmp_path, monkeypatch):
    """The name of a custom solver, a function in a module in the working directory."""
    (tmp_path / "my_ik.py").write_text(
        "import simbridge\n\n"
        "exact = simbridge.ClosedForm(simbridge.load_robot('ur10'))\n\n"
        "def nearest(q, target):\n"
        "    return exact.solve(target, q).q\n"
    )
    monkeypatch.chdir(tmp_path)
    yield "my_ik:nearest"
    sys.modules.pop("my_ik", None)


OWN = {
    "homogenization": ("--samples", "20"),
    "convergence": ("--iterations", "20"),
    "interpolation": ("--steps", "20"),
    "tracking": ("--kp", "50"),
}


# The convergence takes the same way through the program as the others.
MORE = dict.fromkeys(("homogenization", "tracking", "interpolation"), pytest.mark.soak)


@pytest.mark.parametrize("name", [pytest.param(name, marks=MORE.get(name, ())) for name in OWN])
def test_a_custom_solver_takes_part_in_every_experiment(cli, custom_solver, name, without_plots):
    both = ("--solver", custom_solver, "closed-form")

    answer = cli("experiment", name, *both, *OWN[name], "--out", "out", "--json")

    assert answer.status == 0, answer.message

    results = json.loads(answer.out)
    # It returns the closed form's solution, so every figure except time is the same.
    if name == "tracking":
        custom, exact = results["laps"]
        assert (custom.pop("solver"), exact.pop("solver")) == (custom_solver, "closed-form")
        assert custom["rms_m"] < 1e-9
        assert custom["predicted_rms_m"] is None
        exact_settings = [setting for setting in results["dial"] if setting["kp"] is None]
        assert [item["solver"] for item in exact_settings] == [custom_solver, "closed-form"]
        assert exact_settings[0]["off_path_rms_m"] == pytest.approx(
            exact_settings[1]["off_path_rms_m"], rel=1e-6
        )
        return
    part = {
        "homogenization": "matrices",
        "convergence": "errors",
        "interpolation": "edges",
    }[name]
    custom, exact = (results[part][solver] for solver in (custom_solver, "closed-form"))

    if name == "homogenization":
        assert np.allclose(custom["mean"], exact["mean"], atol=1e-9)
    elif name == "convergence":
        assert np.allclose(custom, exact, atol=1e-9)
    else:
        assert [edge["iterations_to_1_mm"] for edge in custom] == [1.0] * 4


@pytest.mark.soak
def test_a_custom_solver_is_in_every_table(cli, custom_solver, tmp_path):
    answer = cli("experiment", "tracking", "--solver", custom_solver, "--kp", 50, "--out", "out")

    assert answer.status == 0, answer.message

    rows = [line for line in answer.out.splitlines() if line.startswith(custom_solver)]
    assert len(rows) == 2  # the square, and the gain sweep
    assert (tmp_path / "out" / "tracking.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("convergence", "--robot", "ur11"), "There is no robot 'ur11'. The number of an arm"),
        (("convergence", "--solver", "newton"), "There is no solver 'newton'."),
        (("convergence", "--solver", "feedback", "newton"), "There is no solver 'newton'."),
        (("convergence", "--kp", "8"), "must stay below 8"),
        (("homogenization", "--samples", "1"), "samples"),
        (("tracking", "--kp", "0"), "kp"),
        (("tracking", "--target-rate", "500"), "target-rate"),
        (
            ("tracking", "--solver", "no_module_for_tests:step"),
            "importing no_module_for_tests failed",
        ),
        (("tracking", "--solver", "json:dump"), "The solver json:dump failed with"),
        (("solvers", "--robot", "planar3r", "--solver", "closed-form"), "planar3r"),
    ],
)
def test_invalid_arguments_are_refused_and_leave_no_directory(cli, tmp_path, given, message):
    answer = cli("experiment", *given, "--out", tmp_path / "out")

    assert answer.status == 2
    assert message in answer.message
    assert not (tmp_path / "out").exists()


def test_a_directory_that_exists_is_never_overwritten(cli, tmp_path):
    answer = cli("experiment", "convergence", "--out", tmp_path)

    assert answer.status == 2
    assert "already exists" in answer.message
    assert list(tmp_path.iterdir()) == []


def test_packages_may_be_separated_by_blanks(cli, tmp_path, monkeypatch, without_plots):
    """A refusal suggests packages with commas between them: that text is accepted as it is."""
    monkeypatch.chdir(tmp_path)
    Path("arm.urdf").write_text(load_robot("ur10").urdf)
    words = ("experiment", "homogenization", "--samples", "20", "--robot", "arm.urdf", "--package")
    packages = (f"one={tmp_path},other={tmp_path}", f"third={tmp_path}")

    assert cli(*words, *packages).status == 0

    answer = cli(*words, *packages, "last=nowhere")
    assert answer.status == 2
    assert "last=nowhere" in answer.message
