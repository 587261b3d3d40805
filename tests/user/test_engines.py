"""Physics engines, as their user sees them: which one simulates, and what happens without one."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

import simbridge
from simbridge import backends
from simbridge.backends import ENGINES, default_engine, is_installed
from simbridge.errors import MissingEngine
from simbridge.evaluation.evaluation import Evaluation
from simbridge.recording.run_directory import RunDirectory
from tests.patience import PATIENCE
from tests.program import WITHOUT_PAGES
from tests.sweeps.rows import rows_of

pytestmark = pytest.mark.shares_setup

# The program without PyBullet: importing it fails, as where it is not installed.
WITHOUT_PYBULLET = f"""
import sys
sys.modules["pybullet"] = None
{WITHOUT_PAGES}
"""


@pytest.fixture
def hide(monkeypatch):
    """Hides engines, as if they were not installed."""

    def call(*engines):
        for name in engines:
            monkeypatch.setitem(sys.modules, name, None)

    return call


def call_without_pybullet(*arguments):
    """Return the result of the program where PyBullet is not installed."""
    command = [sys.executable, "-c", WITHOUT_PYBULLET, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)


@pytest.fixture(scope="module")
def runs(tmp_path_factory, line, run_without_page):
    """The directory of a run in each engine, by the engine's name."""
    directories = {}
    for name in ENGINES:
        out = tmp_path_factory.mktemp("run") / name
        assert run_without_page(line, "--backend", name, "--out", out) == 0
        directories[name] = RunDirectory.open(out)
    return directories


# ---- MuJoCo in place of PyBullet


def test_a_run_is_the_same_in_both_engines(runs):
    bullet, mujoco = (Evaluation.of(runs[name].path) for name in ENGINES)

    distance = np.linalg.norm(bullet.attained[:, :3] - mujoco.attained[:, :3], axis=1)
    assert distance.max() < 1e-9


def test_the_settings_name_the_engine(runs):
    settings = runs["mujoco"].settings()

    assert settings.backend.name == "mujoco"
    assert settings.versions["mujoco"]


def test_a_session_is_the_same_in_both_engines(tmp_path):
    positions = []
    for name in ENGINES:
        with simbridge.live(
            name, robot="ur10e", realtime=False, out=tmp_path / name, report=False
        ) as session:
            session.engage()
            session.twist([0.05, -0.05, 0.1, 0.0, 0.2, 0.0])
            session.wait(0.1)
            positions.append(session.state.q)

    np.testing.assert_allclose(positions[0], positions[1], rtol=0.0, atol=1e-9)


# test_a_session_is_the_same_in_both_engines shows a stepped one, and test_session paces PyBullet.
@pytest.mark.soak
def test_a_paced_session_runs_in_mujoco(tmp_path):
    with simbridge.live("mujoco", robot="ur10e", out=tmp_path / "run", report=False) as session:
        session.engage()
        while session.state is None:
            session.wait(0.01)
        begin = session.state.q
        session.jog([0.0, 0.0, 0.0, 0.0, 0.0, 0.5])
        session.wait(0.15)
        moved = session.state.q - begin

    assert moved[5] > 0.005


def test_a_sweep_compares_engines(cli, line, tmp_path, at_once):
    grid = ("--grid", f"backend={','.join(ENGINES)}")

    answer = cli("sweep", line, *grid, "--keep", "none", "--out", tmp_path / "sweep")

    assert answer.status == 0
    rows = rows_of(tmp_path / "sweep").values()
    bullet, mujoco = (float(row["tracking_error.position_m.rms"]) for row in rows)
    assert [row["backend"] for row in rows] == list(ENGINES)
    assert abs(bullet - mujoco) < 1e-9
    extrapolation = "The servo law at gain 2000 is extrapolated from gains 300 and 100."
    assert extrapolation in answer.out
    assert extrapolation in (tmp_path / "sweep" / "sweep.html").read_text()


def test_a_sweep_runs_in_the_engine_of_its_flag(cli, line, tmp_path, at_once):
    points = tmp_path / "points.csv"
    points.write_text("solver.kp,backend\n5,\n10,pybullet\n")

    answer = cli(
        "sweep",
        line,
        "--points",
        points,
        "--backend",
        "mujoco",
        "--plan-only",
        "--out",
        tmp_path / "sweep",
    )

    assert answer.status == 0
    rows = rows_of(tmp_path / "sweep").values()
    assert [row["backend"] for row in rows] == ["mujoco", "pybullet"]


def test_doctor_checks_mujoco(cli):
    answer = cli("doctor", "--backend", "mujoco")

    assert answer.status == 0
    assert "MuJoCo moved ur10 through 8 ms" in " ".join(answer.out.split())


# ---- engines that are not installed


def test_pybullet_is_the_default():
    assert default_engine() == "pybullet"


def test_mujoco_is_the_default_without_pybullet(hide):
    hide("pybullet")

    assert default_engine() == "mujoco"


def test_a_folder_of_that_name_is_no_engine(hide, monkeypatch, tmp_path):
    (tmp_path / "no_such_engine").mkdir()
    monkeypatch.syspath_prepend(tmp_path)

    assert not is_installed("no_such_engine")


def test_a_run_without_pybullet_names_its_engine(line, tmp_path):
    out = tmp_path / "run"

    result = call_without_pybullet("run", line, "--out", out)

    assert result.returncode == 0, result.stderr
    assert "Simulated with MuJoCo: PyBullet is not installed." in result.stdout
    assert json.loads((out / "summary.json").read_text())["backend"] == "mujoco"


def test_a_missing_engine_names_the_installed_one(cli, hide, line, tmp_path):
    hide("pybullet")

    answer = cli("run", line, "--backend", "pybullet", "--out", tmp_path / "run")

    assert answer.status == 2
    assert "Use --backend mujoco" in answer.message
    assert not (tmp_path / "run").exists()


def test_without_an_engine_a_run_says_what_to_install(cli, hide, line, tmp_path):
    hide(*ENGINES)

    answer = cli("run", line, "--out", tmp_path / "run")

    assert answer.status == 2
    assert 'MuJoCo with: pip install "simbridge[mujoco]"' in answer.message
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("version", "machine", "command"),
    [
        ((3, 11), "x86_64", "pip install pybullet"),
        ((3, 13), "x86_64", "pip install pybullet-arm64"),
        ((3, 14), "x86_64", ""),
        ((3, 11), "aarch64", ""),
    ],
)
def test_pybullet_is_only_installed_from_a_wheel(version, machine, command):
    assert backends.pybullet_command(version, machine) == command


def test_an_engine_without_a_wheel_is_not_advised(cli, hide, line, monkeypatch, tmp_path):
    hide("pybullet")
    engine = backends.Engine("PyBullet", "")
    monkeypatch.setitem(backends.ENGINES, "pybullet", engine)

    answer = cli("run", line, "--backend", "pybullet", "--out", tmp_path / "run")

    assert answer.status == 2
    assert "no wheel of it for this Python" in answer.message
    assert "pip install" not in answer.message


def test_without_an_engine_plans_are_checked(cli, hide, line):
    hide(*ENGINES)

    assert cli("check", line).status == 0


def test_without_an_engine_doctor_fails(cli, hide):
    hide(*ENGINES)

    answer = cli("doctor")

    assert answer.status == 2
    assert "simbridge[mujoco]" in answer.out


def test_without_its_engine_a_session_does_not_begin(hide, tmp_path):
    hide("mujoco")

    with pytest.raises(MissingEngine) as refusal:
        simbridge.live("mujoco", out=tmp_path / "run")

    assert refusal.value.engine == "MuJoCo"
    assert refusal.value.installed == ("pybullet",)


def test_a_sweep_without_its_engine_makes_no_point(cli, hide, line, tmp_path):
    hide("mujoco")

    answer = cli("sweep", line, "--backend", "mujoco", "--out", tmp_path / "sweep")

    assert answer.status == 2
    assert "MuJoCo is not installed" in answer.message
    assert not (tmp_path / "sweep").exists()


def test_the_studio_refuses_an_engine_that_is_missing(cli, hide):
    hide("mujoco")

    answer = cli("studio", "--backend", "mujoco", "--no-browser")

    assert answer.status == 2
    assert "MuJoCo is not installed" in answer.message


def test_only_the_default_engine_is_said_to_replace_another(monkeypatch):
    monkeypatch.setattr(backends, "SIMULATION", "mujoco")

    assert backends.replacement_note("mujoco")
    assert not backends.replacement_note("pybullet")
    assert not backends.replacement_note("real")
