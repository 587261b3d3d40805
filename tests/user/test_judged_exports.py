"""The judgement of a run, of its export, and the run's own report agree in what they have in
common.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from simbridge.cli.command_line import main
from simbridge.judging.judgement import judge
from simbridge.judging.read_log import read_log
from simbridge.robot.load import load_robot

pytestmark = pytest.mark.shares_setup

EXPORTS = ["rosbag2", "samples.csv"]


@pytest.fixture(scope="module")
def exported(short, run_without_page, tmp_path_factory):
    """A run of a square with its exports."""
    run = tmp_path_factory.mktemp("judged") / "run"
    assert run_without_page(short["square_tracking"], "--out", run) == 0
    for kind in ("bag", "csv"):
        assert main(["export", str(run), "--to", kind]) == 0
    return run


@cache
def judged(path: Path) -> Any:
    return judge(read_log(path), [load_robot("ur10")])


def summary_of(run: Path) -> Any:
    return json.loads((run / "summary.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", [".", *EXPORTS])
def test_the_tools_error_is_the_reports(exported, name):
    reported = summary_of(exported)["tracking_error"]

    tool = judged(exported / name).tool

    assert tool.rms_m == pytest.approx(reported["position_m"]["rms"], rel=1e-6)
    assert tool.max_m == pytest.approx(reported["position_m"]["max"], rel=1e-6)
    assert tool.rotation_rms_rad == pytest.approx(reported["rotation_rad"]["rms"], abs=1e-8)
    assert tool.rotation_max_rad == pytest.approx(reported["rotation_rad"]["max"], abs=1e-7)


@pytest.mark.parametrize("name", [".", *EXPORTS])
def test_the_delay_is_the_reports(exported, name):
    tool = judged(exported / name).tool

    assert tool.delay_s == pytest.approx(summary_of(exported)["delay_s"], abs=1e-5)


@pytest.mark.parametrize("name", [".", *EXPORTS])
def test_the_length_is_the_reports(exported, name):
    summary = summary_of(exported)

    judgement = judged(exported / name)

    assert judgement.samples == summary["samples"]
    assert judgement.duration_s == pytest.approx(summary["duration_s"])


@pytest.mark.parametrize("name", [".", *EXPORTS])
def test_the_peak_speed_is_the_reports(exported, name):
    peaks = [motion.peaks.speed.value for motion in judged(exported / name).motions]

    assert max(peaks) == pytest.approx(max(summary_of(exported)["peak_joint_velocity"]), rel=1e-6)


@pytest.mark.parametrize("name", EXPORTS)
def test_an_export_has_the_states_of_its_controller(exported, name):
    run = read_log(exported)

    export = read_log(exported / name)

    for state in ("speed_scaling", "robot_mode", "safety_mode", "program_state"):
        exported_values = getattr(export, state).values.tolist()
        assert exported_values == getattr(run, state).values.tolist()


@pytest.mark.parametrize("name", EXPORTS)
def test_an_export_shows_what_its_run_shows(exported, name):
    run = judged(exported)

    export = judged(exported / name)

    for motion, other in zip(run.motions, export.motions, strict=True):
        assert other.kind.name == motion.kind.name == "servoj"
        assert other.kind.servoj.gain == pytest.approx(motion.kind.servoj.gain, rel=1e-6)
        assert other.kind.servoj.delay_s == pytest.approx(motion.kind.servoj.delay_s, abs=1e-9)
    parts = {part.source: part.size.rms_rad for part in run.whole.parts}
    others = {part.source: part.size.rms_rad for part in export.whole.parts}
    assert others == pytest.approx(parts, rel=1e-3, abs=1e-9)
