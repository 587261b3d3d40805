"""ISO 9283-style figures: known biases, spreads, delays and corners added to real runs."""

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
# For how long the square goes along a side, s.
SIDE_TIME = 0.8
# Speed of the resting run between its stops, m/s.
SPEED = 0.1


@pytest.fixture
def square(square_lap: Path) -> Evaluation:
    """A lap of a square, which rests nowhere."""
    return Evaluation.of(RunDirectory.open(square_lap))


@pytest.fixture(scope="module")
def resting(
    tmp_path_factory: pytest.TempPathFactory, tum: Any, through: Any, run_without_page: Any
) -> Evaluation:
    """A run along x to a rest of 0.5 s, then along y to another."""
    directory = tmp_path_factory.mktemp("resting")
    points = [
        [0.7, 0.164, 0.3],
        [0.75, 0.164, 0.3],
        [0.75, 0.164, 0.3],
        [0.75, 0.214, 0.3],
        [0.75, 0.214, 0.3],
    ]
    file = tum(directory / "resting.tum", through(points, [0.0, 0.5, 1.0, 1.5, 2.0]))
    assert run_without_page(file, "--out", directory / "run") == 0
    return Evaluation.of(RunDirectory.open(directory / "run"))


def run_file(file: Path, out: Path) -> Evaluation:
    """Run a trajectory or script, and read the run back."""
    assert main(["run", str(file), "--out", str(out), "--json"]) == 0
    return Evaluation.of(RunDirectory.open(out))


def at_stop(iso: IsoFigures, number: int) -> dict[str, Figure]:
    """The figures of a stop by their symbols."""
    return {figure["symbol"]: figure for figure in iso["figures"] if figure["stop"] == number}


def of_path(iso: IsoFigures) -> dict[str, Figure]:
    """The figures of the path by their symbols."""
    return {figure["symbol"]: figure for figure in iso["figures"] if figure["stop"] is None}


def test_bias_and_spread_are_measured_exactly(square: Evaluation) -> None:
    reference = square.reference[:, :3]
    # The square lies in a horizontal plane: a shift along z is normal to all of its path.
    shifts = [1e-3 - 2e-4, 1e-3 + 2e-4, 1e-3 - 2e-4, 1e-3 + 2e-4]

    iso = iso_figures([square] * 4, [reference + UP * shift for shift in shifts])

    figures = of_path(iso)
    assert figures["AT"]["value"] == pytest.approx(1e-3, abs=2e-6)
    assert figures["RT"]["value"] == pytest.approx(2e-4, abs=2e-6)
    assert figures["AT"]["cycles"] == 4
    assert figures["AT"]["asked"] == 10
    # A constant offset is no error of speed; the corner is missed by the shift alone.
    assert figures["AV"]["value"] == pytest.approx(0.0, abs=1e-3)
    assert figures["FV"]["value"] == pytest.approx(0.0, abs=1e-6)
    assert figures["CR"]["value"] == pytest.approx(1e-3, abs=2e-5)
    assert iso["witness"] == "external"
    assert at_stop(iso, 1) == {}


def test_a_delay_is_no_pose_error(resting: Evaluation) -> None:
    late_times = np.maximum(resting.log.stamp - 0.08, 0.0)
    late = resting.reference_at(late_times)[:, :3]
    distances = np.array([4e-4, 0.0, 4e-4])
    spread = distances.mean() + 3.0 * distances.std(ddof=1)

    iso = iso_figures([resting] * 3, [late + UP * bias for bias in (6e-4, 1e-3, 1.4e-3)])

    expected_stops = [[0.75, 0.164, 0.3], [0.75, 0.214, 0.3]]
    np.testing.assert_allclose(iso["stops_m"], expected_stops, atol=1e-9)
    accuracy = figure("AP", pytest.approx(1e-3, abs=1e-9), "m", cycles=3, asked=30)
    repeatability = figure("RP", pytest.approx(spread, abs=1e-9), "m", cycles=3, asked=30)
    for number in (1, 2):
        figures = at_stop(iso, number)
        assert figures["AP"] == {**accuracy, "stop": number}
        assert figures["RP"] == {**repeatability, "stop": number}
        assert figures["stabilisation time"]["value"] == 0.0
        assert figures["OV"]["value"] == 0.0


def test_an_oscillation_counts_at_its_stop(resting: Evaluation) -> None:
    t = resting.log.stamp
    # A swing of 2 mm along z, 50 ms after the arrival at 0.5 s; gone 0.2 s later.
    swing = np.where((t > 0.55) & (t < 0.75), 2e-3 * np.sin(np.pi * (t - 0.55) / 0.2), 0.0)
    positions = resting.reference[:, :3] + swing[:, None] * UP

    iso = iso_figures([resting] * 2, [positions] * 2)

    first = at_stop(iso, 1)
    second = at_stop(iso, 2)
    assert iso["limit_band_m"] == 1e-4
    assert first["OV"]["value"] == pytest.approx(2e-3, rel=5e-3)
    # In as far as 0.1 mm before the stop, at SPEED; in for good as the sine falls below 0.1 mm.
    lasting = 0.25 - 0.2 / np.pi * np.arcsin(0.05) + 1e-4 / SPEED
    assert first["stabilisation time"]["value"] == pytest.approx(lasting, abs=3e-3)
    assert second["OV"]["value"] == 0.0
    assert second["stabilisation time"]["value"] == 0.0


def test_noise_widens_the_limit_band(resting: Evaluation) -> None:
    noise = np.random.default_rng(2).normal(0.0, 2e-4, (len(resting.log.stamp), 3))

    iso = iso_figures([resting], [resting.reference[:, :3] + noise])

    assert iso["limit_band_m"] == pytest.approx(3.0 * np.sqrt(3.0) * 2e-4, rel=0.35)
    # The attained pose is the mean of the noise.
    accuracy = at_stop(iso, 1)["AP"]["value"]
    assert accuracy is not None
    assert accuracy < 3e-4


def test_a_moving_arm_has_no_figures(resting: Evaluation) -> None:
    reference = resting.reference[:, :3]
    height = 0.02 * np.maximum(1.0 - resting.log.stamp, 0.0)
    crawling = reference + UP * height[:, None]

    iso = iso_figures([resting] * 2, [crawling, reference])

    assert at_stop(iso, 1) == {}
    assert at_stop(iso, 2)["AP"]["value"] == pytest.approx(0.0, abs=1e-9)
    reason = "No figures of stop 1: the arm still moved at the end of the rest in 1 of 2 cycles."
    assert reason in " ".join(iso["missing"])


def test_a_path_without_rests_has_no_pose_figures(square: Evaluation) -> None:
    iso = iso_figures([square, square])

    assert "AP" not in of_path(iso)
    assert iso["stops_m"] == []
    reason = "No AP, RP, stabilisation time or OV: the target never rests"
    assert any(sentence.startswith(reason) for sentence in iso["missing"])


def test_a_rest_at_the_start_is_no_stop(tum: Any, through: Any, tmp_path: Path) -> None:
    points = [[0.7, 0.164, 0.3], [0.7, 0.164, 0.3], [0.75, 0.164, 0.3]]
    file = tum(tmp_path / "start.tum", through(points, [0.0, 0.3, 0.7]))

    iso = iso_figures([run_file(file, tmp_path / "run")])

    assert iso["stops_m"] == []
    assert "never rests for 0.2 s except at its start" in iso["missing"][0]


def test_an_octagon_has_no_corners(tum: Any, through: Any, tmp_path: Path) -> None:
    def iso_of_turns(name: str, headings: list[float]) -> IsoFigures:
        """The figures of a path with 4 cm in each direction, in degrees."""
        angle = np.deg2rad(headings)
        steps = 0.04 * np.column_stack([np.cos(angle), np.sin(angle), 0.0 * angle])
        points = np.array([0.7, 0.1, 0.3]) + np.cumsum(steps, axis=0)
        file = tum(tmp_path / f"{name}.tum", through(points, 0.4 * np.arange(len(points))))
        return iso_figures([run_file(file, tmp_path / name)])

    bent = iso_of_turns("bent", [0.0, 0.0, 60.0, 120.0])
    octagon = iso_of_turns("octagon", [0.0, 0.0, 45.0, 90.0, 135.0])

    rounding = of_path(bent)["CR"]["value"]
    assert rounding is not None
    assert 0.0 < rounding < 2e-3
    assert "CR" not in of_path(octagon)
    reason = "No CR or CO: only 3 sharp turns next to others, as in a coarsely sampled arc"
    assert reason in " ".join(octagon["missing"])


def test_position_noise_is_no_fluctuation(square: Evaluation) -> None:
    reference = square.reference[:, :3]
    noise = np.random.default_rng(1).normal(0.0, 2e-5, reference.shape)
    noisy = reference + noise

    iso = iso_figures([square], [noisy])

    fluctuation = of_path(iso)["FV"]["value"]
    unsmoothed_speeds = np.linalg.norm(np.diff(noisy, axis=0), axis=1) / np.diff(square.log.stamp)
    assert fluctuation is not None
    assert 0.0 < fluctuation < 0.75 * np.ptp(unsmoothed_speeds)


def test_a_faster_motion_has_its_excess(square: Evaluation) -> None:
    excesses = [0.01, 0.03]
    reference = square.reference[:, :3]
    centre = reference.mean(axis=0)
    larger = [centre + (1.0 + excess) * (reference - centre) for excess in excesses]

    figures = of_path(iso_figures([square] * 2, larger))

    assert figures["AV"]["value"] == pytest.approx(2.0, abs=1e-6)
    assert figures["RV"]["value"] == pytest.approx(300.0 * np.std(excesses, ddof=1), abs=1e-6)


def test_corners_are_measured_to_the_sample(square: Evaluation) -> None:
    radius = 0.02
    overshoot = 3e-3
    t = square.log.stamp
    positions = square.reference[:, :3].copy()

    def corner_at(time: float) -> tuple[Array, Array, Array]:
        """Position of a corner, and the directions of its legs, from the middles of these."""
        away = 0.5 * SIDE_TIME
        corner, before, after = square.reference_at(np.array([time, time - away, time + away]))[
            :, :3
        ]
        half_side = 0.2 * away
        return corner, (corner - before) / half_side, (after - corner) / half_side

    # The first corner is rounded.
    corner, arriving, leaving = corner_at(SIDE_TIME)
    ahead = 0.2 * (t - SIDE_TIME)
    is_near = np.abs(ahead) <= radius
    angle = (ahead[is_near, None] + radius) / (2.0 * radius) * 0.5 * np.pi
    centre = corner + radius * (leaving - arriving)
    positions[is_near] = centre + radius * (np.sin(angle) * arriving - np.cos(angle) * leaving)

    # The second one is overshot.
    _, arriving, _ = corner_at(2.0 * SIDE_TIME)
    ahead = 0.2 * (t - 2.0 * SIDE_TIME)
    bump = overshoot * np.clip(1.0 - np.abs(ahead - 0.03) / 0.03, 0.0, 1.0)
    positions += bump[:, None] * arriving

    figures = of_path(iso_figures([square], [positions]))

    assert figures["CR"]["value"] == pytest.approx(radius * (np.sqrt(2.0) - 1.0), abs=5e-5)
    assert figures["CO"]["value"] == pytest.approx(overshoot, abs=1e-4)


def test_a_run_repeats_itself_exactly(square: Evaluation) -> None:
    figures = of_path(iso_figures([square, square]))

    assert figures["RT"]["value"] == pytest.approx(0.0, abs=1e-12)
    assert figures["RV"]["value"] == pytest.approx(0.0, abs=1e-9)
    accuracy = figures["AT"]["value"]
    assert accuracy is not None
    assert 0.0 < accuracy <= 1.1 * square.budget.tracking.distance.max()


# That AT is exact, test_bias_and_spread_are_measured_exactly shows.
@pytest.mark.soak
def test_a_cut_corner_counts_for_the_accuracy(square_run: Path) -> None:
    laps = Evaluation.of(RunDirectory.open(square_run))

    accuracy = of_path(iso_figures([laps, laps]))["AT"]["value"]

    # Where servoj cuts a corner, the lag along one leg is a distance across the other.
    assert accuracy is not None
    assert accuracy >= laps.contour.distance.max()


def test_a_target_that_jumps_has_no_path(tum: Any, through: Any, tmp_path: Path) -> None:
    points = [[0.7, 0.164, 0.3], [0.705, 0.164, 0.3], [0.705, 0.164, 0.3]]
    file = tum(tmp_path / "jump.tum", through(points, [0.0, 0.3, 1.0]))
    script = tmp_path / "jump.py"
    script.write_text(
        "from simbridge import Scenario\n"
        "from simbridge.trajectory import read_trajectory\n\n\n"
        "def scenario(robot):\n"
        f"    path = read_trajectory({str(file)!r})\n"
        "    return Scenario(trajectory=path, hold='zero-order', on_limits='limit')\n"
    )

    iso = iso_figures([run_file(script, tmp_path / "run")])

    assert set(at_stop(iso, 1)) == {"AP", "RP", "stabilisation time", "OV"}
    assert of_path(iso) == {}
    assert any("jumps between poses" in sentence for sentence in iso["missing"])


def test_only_runs_of_one_trajectory_have_figures(square: Evaluation, resting: Evaluation) -> None:
    with pytest.raises(UnusableSamples, match="there are none"):
        iso_figures([])
    with pytest.raises(UnusableSamples, match="not runs of one trajectory"):
        iso_figures([square, resting])
