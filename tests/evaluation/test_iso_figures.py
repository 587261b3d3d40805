"""ISO 9283-style figures of several runs: known biases, spreads, delays, corners and overshoots added to real runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from simbridge.cli.command_line import main
from simbridge.errors import UnusableSamples
from simbridge.evaluation.evaluation import Evaluation
from simbridge.evaluation.iso_figures import IsoFigures, iso_figures
from simbridge.evaluation.metrics.iso9283 import Figure, figure
from simbridge.recording.run_directory import RunDirectory

pytestmark = [pytest.mark.usefixtures("without_pages"), pytest.mark.shares_setup]

Array = NDArray[Any]

UP = np.array([0.0, 0.0, 1.0])
SPEED = 0.1
"""Speed of the resting run between its stops, m/s."""


@pytest.fixture
def square(square_run: Path) -> Evaluation:
    return Evaluation.of(RunDirectory.open(square_run))


@pytest.fixture(scope="module")
def resting(
    tmp_path_factory: pytest.TempPathFactory, tum: Any, through: Any, run_without_page: Any
) -> Evaluation:
    """A run along x to a rest of 0.5 s, then along y to another."""
    points = [
        [0.7, 0.164, 0.3],
        [0.75, 0.164, 0.3],
        [0.75, 0.164, 0.3],
        [0.75, 0.214, 0.3],
        [0.75, 0.214, 0.3],
    ]
    directory = tmp_path_factory.mktemp("resting")
    file = tum(directory / "resting.tum", through(points, [0.0, 0.5, 1.0, 1.5, 2.0]))
    assert run_without_page(file, "--out", directory / "run") == 0
    return Evaluation.of(RunDirectory.open(directory / "run"))


def at_stop(found: IsoFigures, number: int) -> dict[str, Figure]:
    return {figure["symbol"]: figure for figure in found["figures"] if figure["stop"] == number}


def of_path(found: IsoFigures) -> dict[str, Figure]:
    return {figure["symbol"]: figure for figure in found["figures"] if figure["stop"] is None}


def test_cycles_with_a_bias_and_a_spread_have_exactly_these_figures(square: Evaluation) -> None:
    reference = square.reference[:, :3]
    # The square lies in a horizontal plane: a shift along z is normal to all of its path.
    found = iso_figures(
        [square] * 4, [reference + UP * (1e-3 + side * 2e-4) for side in (-1.0, 1.0, -1.0, 1.0)]
    )
    figures = of_path(found)
    assert {symbol: figures[symbol]["value"] for symbol in ("AT", "RT")} == pytest.approx(
        {"AT": 1e-3, "RT": 2e-4}, abs=2e-6
    )
    assert (figures["AT"]["cycles"], figures["AT"]["asked"]) == (4, 10)
    # A constant offset is no error of speed; the corner is missed by the shift alone.
    assert figures["AV"]["value"] == pytest.approx(0.0, abs=1e-3)
    assert figures["FV"]["value"] == pytest.approx(0.0, abs=1e-6)
    assert figures["CR"]["value"] == pytest.approx(1e-3, abs=2e-5)
    assert (found["witness"], at_stop(found, 1)) == ("external", {})


def test_poses_are_measured_where_the_target_rests_so_that_a_delay_is_no_error_of_them(
    resting: Evaluation,
) -> None:
    t = resting.log.stamp
    late = [
        resting.reference_at(np.maximum(t - 0.08, 0.0))[:, :3] + UP * b
        for b in (6e-4, 1e-3, 1.4e-3)
    ]
    found = iso_figures([resting] * 3, late)
    np.testing.assert_allclose(
        found["stops_m"], [[0.75, 0.164, 0.3], [0.75, 0.214, 0.3]], atol=1e-9
    )
    for number in (1, 2):
        figures = at_stop(found, number)
        lengths = np.array([4e-4, 0.0, 4e-4])
        assert figures["AP"] == {
            **figure("AP", pytest.approx(1e-3, abs=1e-9), "m", 3, 30),
            "stop": number,
        }
        spread = lengths.mean() + 3.0 * lengths.std(ddof=1)
        assert figures["RP"] == {
            **figure("RP", pytest.approx(spread, abs=1e-9), "m", 3, 30),
            "stop": number,
        }
        assert (figures["stabilisation time"]["value"], figures["OV"]["value"]) == (0.0, 0.0)


def test_an_oscillation_of_known_height_and_length_is_found_at_its_stop_only(
    resting: Evaluation,
) -> None:
    t = resting.log.stamp
    # A swing of 2 mm along z, 50 ms after the arrival at 0.5 s; gone 0.2 s later.
    swing = np.where((t > 0.55) & (t < 0.75), 2e-3 * np.sin(np.pi * (t - 0.55) / 0.2), 0.0)
    found = iso_figures([resting] * 2, [resting.reference[:, :3] + swing[:, None] * UP] * 2)
    first, second = at_stop(found, 1), at_stop(found, 2)
    assert found["limit_band_m"] == 1e-4
    assert first["OV"]["value"] == pytest.approx(2e-3, rel=5e-3)
    # In as far as 0.1 mm before the stop, at SPEED; in for good as the sine falls below 0.1 mm.
    lasting = 0.25 - 0.2 / np.pi * np.arcsin(0.05) + 1e-4 / SPEED
    assert first["stabilisation time"]["value"] == pytest.approx(lasting, abs=3e-3)
    assert (second["OV"]["value"], second["stabilisation time"]["value"]) == (0.0, 0.0)


def test_noise_of_an_external_recording_widens_the_band_and_its_mean_is_the_pose(
    resting: Evaluation,
) -> None:
    noise = np.random.default_rng(2).normal(0.0, 2e-4, (len(resting.log.stamp), 3))
    found = iso_figures([resting], [resting.reference[:, :3] + noise])
    assert found["limit_band_m"] == pytest.approx(3.0 * np.sqrt(3.0) * 2e-4, rel=0.35)
    accuracy = at_stop(found, 1)["AP"]["value"]
    assert accuracy is not None and accuracy < 3e-4


def test_an_arm_that_still_moves_at_the_end_of_a_rest_has_no_figures_there(
    resting: Evaluation,
) -> None:
    t = resting.log.stamp
    crawling = resting.reference[:, :3] + UP * (0.02 * np.maximum(1.0 - t, 0.0))[:, None]
    found = iso_figures([resting] * 2, [crawling, resting.reference[:, :3]])
    assert at_stop(found, 1) == {} and at_stop(found, 2)["AP"]["value"] == pytest.approx(
        0.0, abs=1e-9
    )
    assert (
        "No figures of stop 1: the arm still moved at the end of the rest in 1 of 2 cycles."
        in " ".join(found["missing"])
    )


def test_a_path_without_rests_has_no_pose_figures(square: Evaluation) -> None:
    found = iso_figures([square, square])
    assert "AP" not in {figure["symbol"] for figure in found["figures"]} and found["stops_m"] == []
    assert any(
        sentence.startswith(
            "No AP, RP, stabilisation time or OV: the target does not rest anywhere"
        )
        for sentence in found["missing"]
    )


def test_a_rest_at_the_start_is_no_stop(tum: Any, through: Any, tmp_path: Path) -> None:
    points = [[0.7, 0.164, 0.3], [0.7, 0.164, 0.3], [0.75, 0.164, 0.3]]
    file = tum(tmp_path / "start.tum", through(points, [0.0, 0.5, 1.0]))
    assert main(["run", str(file), "--out", str(tmp_path / "run"), "--json"]) == 0
    found = iso_figures([Evaluation.of(RunDirectory.open(tmp_path / "run"))])
    assert "does not rest anywhere for 0.2 s except at its start" in found["missing"][0]


def test_two_corners_at_consecutive_waypoints_have_figures_and_an_octagon_has_none(
    tum: Any, through: Any, tmp_path: Path
) -> None:
    found = {}
    for name, headings in (("bent", [0.0, 60.0, 120.0]), ("octagon", [0.0, 45.0, 90.0, 135.0])):
        angle = np.deg2rad([0.0, *headings])
        steps = 0.06 * np.column_stack([np.cos(angle), np.sin(angle), 0.0 * angle])
        points = np.array([0.7, 0.1, 0.3]) + np.cumsum(steps, axis=0)
        file = tum(tmp_path / f"{name}.tum", through(points, 0.6 * np.arange(len(points))))
        assert main(["run", str(file), "--out", str(tmp_path / name), "--json"]) == 0
        found[name] = iso_figures([Evaluation.of(RunDirectory.open(tmp_path / name))])
    assert 0.0 < (of_path(found["bent"])["CR"]["value"] or 1.0) < 2e-3
    assert "CR" not in of_path(found["octagon"])
    assert (
        "No CR or CO: only 3 sharp turns next to others, as in a coarsely sampled arc"
        in " ".join(found["octagon"]["missing"])
    )


def test_speeds_are_smoothed_so_that_position_noise_is_no_fluctuation(square: Evaluation) -> None:
    reference, t = square.reference[:, :3], square.log.stamp
    noise = np.random.default_rng(1).normal(0.0, 2e-5, reference.shape)
    fluctuation = of_path(iso_figures([square], [reference + noise]))["FV"]["value"]
    plain = np.linalg.norm(np.diff(reference + noise, axis=0), axis=1) / np.diff(t)
    assert fluctuation is not None and 0.0 < fluctuation < 0.75 * np.ptp(plain)


def test_the_velocity_accuracy_of_a_faster_motion_is_its_excess(square: Evaluation) -> None:
    centre = square.reference[:, :3].mean(axis=0)
    larger = [centre + (1.0 + part) * (square.reference[:, :3] - centre) for part in (0.01, 0.03)]
    figures = of_path(iso_figures([square] * 2, larger))
    assert figures["AV"]["value"] == pytest.approx(2.0, abs=1e-6)
    assert figures["RV"]["value"] == pytest.approx(300.0 * np.std([0.01, 0.03], ddof=1), abs=1e-6)


def test_rounded_and_overshot_corners_of_a_whole_square_are_found_to_the_sample(
    square: Evaluation,
) -> None:
    radius, beyond = 0.02, 3e-3
    t, reference = square.log.stamp, square.reference[:, :3].copy()
    side = 0.4
    for number, corner_time in enumerate((2.0, 4.0)):
        corner = square.reference_at(np.array([corner_time]))[0, :3]
        arriving, leaving = (
            (square.reference_at(np.array([at]))[0, :3] - corner) / -(0.5 * side) * sign
            for at, sign in ((corner_time - 1.0, 1.0), (corner_time + 1.0, -1.0))
        )
        ahead = 0.2 * (t - corner_time)
        if number == 0:
            near = np.abs(ahead) <= radius
            angle = (ahead[near, None] + radius) / (2.0 * radius) * 0.5 * np.pi
            centre = corner + radius * (leaving - arriving)
            reference[near] = centre + radius * (np.sin(angle) * arriving - np.cos(angle) * leaving)
        else:
            bump = beyond * np.clip(1.0 - np.abs(ahead - 0.03) / 0.03, 0.0, 1.0)
            reference += bump[:, None] * arriving
    figures = of_path(iso_figures([square], [reference]))
    assert figures["CR"]["value"] == pytest.approx(radius * (np.sqrt(2.0) - 1.0), abs=5e-5)
    assert figures["CO"]["value"] == pytest.approx(beyond, abs=1e-4)


def test_a_run_repeats_itself_exactly(square: Evaluation) -> None:
    found = of_path(iso_figures([square, square]))
    assert found["RT"]["value"] == pytest.approx(0.0, abs=1e-12)
    assert found["RV"]["value"] == pytest.approx(0.0, abs=1e-9)
    # Where servoj cuts a corner, the lag along one leg is a distance across the other.
    contour, tracking = square.contour.distance.max(), square.budget.tracking.distance.max()
    assert found["AT"]["value"] is not None and contour <= found["AT"]["value"] <= 1.1 * tracking


def test_a_target_that_jumps_has_stops_and_no_path(tum: Any, through: Any, tmp_path: Path) -> None:
    points = [[0.7, 0.164, 0.3], [0.705, 0.164, 0.3], [0.705, 0.164, 0.3]]
    script = tmp_path / "jump.py"
    tum(tmp_path / "jump.tum", through(points, [0.0, 0.5, 2.0]))
    script.write_text(
        "from simbridge import Scenario\n"
        "from simbridge.trajectory import read_trajectory\n\n\n"
        "def scenario(robot):\n"
        f"    path = read_trajectory({str(tmp_path / 'jump.tum')!r})\n"
        "    return Scenario(trajectory=path, hold='zero-order', on_limits='limit')\n"
    )
    assert main(["run", str(script), "--out", str(tmp_path / "run"), "--json"]) == 0
    found = iso_figures([Evaluation.of(RunDirectory.open(tmp_path / "run"))])
    assert (
        set(at_stop(found, 1)) == {"AP", "RP", "stabilisation time", "OV"} and of_path(found) == {}
    )
    assert any("jumps between poses" in sentence for sentence in found["missing"])


def test_no_runs_and_runs_of_different_trajectories_are_refused(
    square: Evaluation, line_run: Path
) -> None:
    with pytest.raises(UnusableSamples, match="there are none"):
        iso_figures([])
    other = Evaluation.of(RunDirectory.open(line_run))
    with pytest.raises(UnusableSamples, match="not runs of one trajectory"):
        iso_figures([square, other])
