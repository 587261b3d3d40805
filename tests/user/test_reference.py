"""--reference: the file's poses are noisy targets, errors are measured from another file."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pytest
from evo.core import metrics, sync
from evo.tools import file_interface

from simbridge import load_robot
from simbridge.planning.options import Options
from simbridge.recording.run_directory import RunDirectory
from simbridge.report.repeat_command import repeat_command
from simbridge.robot.kinematics import tool_path
from simbridge.running.run_setup import prepare
from simbridge.trajectory import Trajectory, write_tum

# None of them looks at a page of a run.
pytestmark = [pytest.mark.usefixtures("without_pages"), pytest.mark.shares_setup]

# A sample each control period of a UR10, s.
PERIOD = 0.008
NOISE = 2e-5


def circle(times) -> np.ndarray:
    """Poses (T, 7) on a circle of 0.1 m in 8 s, tool down."""
    angles = 2.0 * np.pi * times / 8.0
    poses = np.zeros((len(times), 7))
    poses[:, 0] = 0.7 + 0.1 * np.cos(angles)
    poses[:, 1] = 0.1 + 0.1 * np.sin(angles)
    poses[:, 2] = 0.3
    poses[:, 3] = 1.0
    return poses


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("reference")


@pytest.fixture(scope="module")
def truth(folder) -> Path:
    """The true motion, 3 s of it."""
    times = PERIOD * np.arange(376)
    path = folder / "truth.tum"
    write_tum(path, times, circle(times))
    return path


@pytest.fixture(scope="module")
def noisy(folder) -> Path:
    """Noisy samples of it, from 1 s to 2 s."""
    times = PERIOD * np.arange(125, 251)
    poses = circle(times)
    poses[:, :3] += np.random.default_rng(5).normal(0.0, NOISE, (len(times), 3))
    path = folder / "noisy.tum"
    write_tum(path, times, poses)
    return path


@pytest.fixture(scope="module")
def first_run(noisy, truth, folder, run_without_page) -> Path:
    """The directory of a run of the samples, to which the reference was given by its name alone."""
    run = folder / "first"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        flags = ("--reference", truth.name, "--on-limits", "limit", "--out", run)
        assert run_without_page(noisy, *flags) == 0
    return run


def reads(options: dict[str, object], file: Path, robot) -> tuple[Trajectory, Trajectory]:
    """The path of a plan and the samples that the solver gets."""
    plan = prepare(str(file), robot=robot, options=Options(on_limits="limit", **options)).plan
    assert plan.source_samples is not None
    return plan.trajectory, plan.source_samples


def test_evo_confirms_the_noise_of_the_targets(first_run, noisy, truth) -> None:
    files = [file_interface.read_tum_trajectory_file(path) for path in (truth, noisy)]
    ape = metrics.APE(metrics.PoseRelation.translation_part)
    ape.process_data(sync.associate_trajectories(*files))
    sampling = RunDirectory.open(first_run).summary()["sampling_error"]["position_m"]
    for name, statistic in (("rms", "rmse"), ("mean", "mean"), ("max", "max")):
        evos = ape.get_statistic(metrics.StatisticsType[statistic])
        assert sampling[name] == pytest.approx(evos, abs=1e-9)
    assert sampling["rms"] == pytest.approx(np.sqrt(3.0) * NOISE, rel=0.1)


def test_both_files_are_described(cli, noisy, truth) -> None:
    checked = cli("check", noisy, "--reference", truth, "--on-limits", "limit")

    assert checked.status == 0, checked.err
    assert "noisy.tum was read as 126 poses" in checked.out
    assert "truth.tum was read as 376 poses" in checked.out


def test_the_page_repeats_the_run(first_run, cli, truth, tmp_path, monkeypatch) -> None:
    command = repeat_command(RunDirectory.open(first_run).settings(), first_run) or ""

    monkeypatch.chdir(tmp_path)
    answer = cli(*shlex.split(command)[1:], "--out", tmp_path / "again")

    assert f"--reference {truth}" in command
    assert answer.status == 0, answer.err
    plans = [np.load(run / "plan.npz") for run in (first_run, tmp_path / "again")]
    for name in ("setpoints", "given_poses", "trajectory_poses"):
        np.testing.assert_array_equal(plans[0][name], plans[1][name])


def test_a_plan_is_not_replayed_without_it(first_run, cli, noisy) -> None:
    refused = cli("check", noisy, "--plan", first_run)

    assert refused.status == 2
    assert "made for this scenario" in refused.message


def test_both_are_placed_alike(noisy, truth) -> None:
    robot = load_robot("ur10")
    path, samples = reads({"reference": truth}, noisy, robot)

    for placement in ({"anchor": "start"}, {"transform": (0.0, 0.1, 0.0, 0.0, 0.0, 0.0, 1.0)}):
        moved_path, moved_samples = reads({"reference": truth, **placement}, noisy, robot)

        np.testing.assert_allclose(
            np.linalg.norm(moved_path.poses[:, :3] - moved_samples.poses[:, :3], axis=1),
            np.linalg.norm(path.poses[:, :3] - samples.poses[:, :3], axis=1),
            atol=1e-9,
        )

    moved_path, moved_samples = reads({"reference": truth, "anchor": "start"}, noisy, robot)
    np.testing.assert_allclose(
        moved_samples.start, tool_path(robot, robot.home[None])[0], atol=1e-9
    )


def test_both_are_slowed_down_alike(noisy, truth) -> None:
    path, samples = reads({"reference": truth, "speed_scale": 0.5}, noisy, load_robot("ur10"))

    np.testing.assert_allclose(path.elapsed, samples.elapsed, atol=1e-9)
    assert samples.duration == pytest.approx(2.0)


@pytest.mark.parametrize("scenario", ["circle", "script"])
def test_a_script_with_a_reference_is_refused(cli, truth, tmp_path, scenario: str) -> None:
    if scenario == "script":
        scenario = tmp_path / "mine.py"
        scenario.write_text("def scenario(robot): ...\n")

    refused = cli("check", scenario, "--reference", truth)

    assert refused.status == 2
    assert "--gaps and --reference" in refused.message


def test_recorded_joints_with_a_reference_are_refused(cli, truth, tmp_path) -> None:
    times = 0.02 * np.arange(100)
    joints = np.tile(load_robot("ur10").home, (len(times), 1))
    header = ",".join(["timestamp", *(f"actual_q_{joint}" for joint in range(6))])
    path = tmp_path / "q.csv"
    rows = np.column_stack([times, joints])
    np.savetxt(path, rows, fmt="%.17g", delimiter=",", header=header, comments="")

    refused = cli("check", path, "--from", "actual_q", "--reference", truth)

    assert refused.status == 2
    assert "omit --reference" in refused.message


def test_sampled_targets_with_a_reference_are_refused(cli, noisy, truth) -> None:
    refused = cli("check", noisy, "--reference", truth, "--sample-rate", 20)

    assert refused.status == 2
    assert "left out with --reference" in refused.message


def test_a_reference_that_is_too_short_is_refused(cli, noisy, truth) -> None:
    refused = cli("check", truth, "--reference", noisy)

    assert refused.status == 2
    assert "lacks the first 1.000 s and the last 1.000 s" in refused.message


@pytest.fixture
def ahead(truth, tmp_path) -> Path:
    """The true motion by a clock that is 2.5 s ahead of that of the noisy samples."""
    poses = file_interface.read_tum_trajectory_file(truth)
    path = tmp_path / "ahead.tum"
    write_tum(path, poses.timestamps + 2.5, circle(poses.timestamps))
    return path


def test_evos_offset_is_the_opposite_one(cli, noisy, ahead, tmp_path) -> None:
    offset = ("--reference-offset", "-2.5")
    out = ("--out", tmp_path / "run", "--on-limits", "limit", "--json")
    answer = cli("run", noisy, "--reference", ahead, *offset, *out)

    assert answer.status == 0, answer.err
    files = [file_interface.read_tum_trajectory_file(path) for path in (ahead, noisy)]
    ape = metrics.APE(metrics.PoseRelation.translation_part)
    ape.process_data(sync.associate_trajectories(*files, offset_2=2.5))
    sampling = json.loads(answer.out)["sampling_error"]["position_m"]
    for name, statistic in (("rms", "rmse"), ("mean", "mean"), ("max", "max")):
        evos = ape.get_statistic(metrics.StatisticsType[statistic])
        assert sampling[name] == pytest.approx(evos, abs=1e-9)
    settings = RunDirectory.open(tmp_path / "run").settings()
    assert "--reference-offset -2.5" in (repeat_command(settings, tmp_path / "run") or "")


def test_clocks_that_differ_are_refused_with_the_flag(cli, noisy, tmp_path) -> None:
    times = PERIOD * np.arange(376)
    late = tmp_path / "late.tum"
    write_tum(late, times + 12.5, circle(times))

    refused = cli("check", noisy, "--reference", late)

    assert refused.status == 2
    assert "lacks all of it" in refused.message
    assert "is at 1.000 to 2.000 s, the reference at 12.500 to 15.500 s" in refused.message
    flag = "--reference-offset -11.500000"
    assert (
        f"{flag} (a guess that assumes both recordings start at the same instant)"
    ) in refused.message
    answer = cli("check", noisy, "--reference", late, *flag.split(), "--on-limits", "limit")
    assert answer.status == 0, answer.err


def test_an_offset_joins_a_dated_clock_and_another(cli, noisy, tmp_path) -> None:
    times = PERIOD * np.arange(376)
    dated = tmp_path / "dated.tum"
    write_tum(dated, times + 1_764_097_182.0, circle(times))

    refused = cli("check", noisy, "--reference", dated)

    assert refused.status == 2
    assert "--reference-offset -1764097181.000000 (a guess" in refused.message
    shift = ("--reference-offset", "-1764097182")
    answer = cli("check", noisy, "--reference", dated, *shift, "--on-limits", "limit")
    assert answer.status == 0, answer.err


def test_an_offset_without_a_reference_is_refused(cli, noisy) -> None:
    refused = cli("check", noisy, "--reference-offset", "1")

    assert refused.status == 2
    assert "used with --reference FILE" in refused.message
