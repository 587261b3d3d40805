"""`simbridge identify` at the command line: JSON keys, table, plant.toml, refusals."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from tests.identification.controller import Sender, recorded, wandering
from tests.program import Answer, answer_to

pytestmark = [pytest.mark.slow, pytest.mark.shares_setup]

RECORDING = Path(__file__).parents[1] / "data" / "ur3e_moves" / "moves.csv.gz"


@pytest.fixture(scope="module")
def servoj(tmp_path_factory) -> tuple[Path, Path]:
    """A recording of servoj (gain 300, lookahead 0.1 s) and a file of its commands."""
    folder = tmp_path_factory.mktemp("servoj")
    random = np.random.default_rng(1)
    sender = Sender(0.01, 0.0015, 0.1, 0.02)
    commands = wandering(200, 0.01, random)
    rows = recorded(commands, sender.taken(200, random), sender, gain=300.0, lookahead=0.1)
    rows["actual_q"] = rows["target_q"] - 0.0005 * rows["target_qd"]
    names = ["timestamp"] + [
        f"{name}_{i}" for name in rows if name != "timestamp" for i in range(6)
    ]
    table = np.column_stack([rows[name] for name in rows])[::4]
    recording = folder / "recording.csv"
    sent = folder / "commands.csv"
    np.savetxt(recording, table, fmt="%.17g", header=" ".join(names), comments="")
    np.savetxt(
        sent,
        commands,
        fmt="%.17g",
        delimiter=",",
        header=",".join(f"q_{i}" for i in range(6)),
        comments="",
    )
    return recording, sent


@pytest.fixture(scope="module")
def identified(servoj, tmp_path_factory) -> tuple[Any, Path]:
    """What `simbridge identify` prints as JSON of the recording, and its plant.toml."""
    recording, commands = servoj
    plant = tmp_path_factory.mktemp("plant") / "plant.toml"
    flags = ["--commands", str(commands), "--robot", "ur5e", "--json", "--out", str(plant)]
    answer = answer_to("identify", recording, *flags)
    assert answer.status == 0
    return json.loads(answer.out), plant


@pytest.fixture(scope="module")
def identified_moves(tmp_path_factory) -> tuple[Answer, Path]:
    """The answer of `simbridge identify` for moves without servoj, and the file for the plant."""
    plant = tmp_path_factory.mktemp("moves") / "plant.toml"
    return answer_to("identify", RECORDING, "--robot", "ur3e", "--out", plant), plant


def test_json_has_a_reason_for_every_null(identified):
    result, _ = identified

    assert result["servoj"]["gain"] == pytest.approx(300.0, rel=1e-6)
    assert result["servoj"]["lookahead_s"] == 0.1
    assert result["servoj"]["phase_s"] == pytest.approx(0.0015, abs=1e-7)
    assert set(result["servoj"]["uncertainty"]) == {"gain", "lookahead_s"}
    assert set(result["servoj"]["residual_rad"]) == {"median", "p99"}
    assert result["servoj"]["residual_rad"]["median"] < 1e-6
    assert result["prediction"]["rms_rad"] < 1e-8
    assert set(result["prediction"]) == {"rms_rad", "median_rad", "max_rad", "restarts"}
    assert result["joint_servo"]["lag_s"] == pytest.approx(0.0005, abs=1e-6)
    assert len(result["joint_servo"]["per_joint"]) == 6
    for name in ("kinematics", "payload_kg", "friction"):
        assert result[name] is None
        assert "not recorded" in result["not_identified"][name]


def test_values_are_printed_to_their_deviation(cli, servoj, tmp_path):
    recording, commands = servoj
    header, *lines = recording.read_text().splitlines()
    rounded = tmp_path / "rounded.csv"
    rows = [" ".join(f"{float(word):.6f}" for word in line.split()) for line in lines]
    rounded.write_text("\n".join([header, *rows]) + "\n")
    cut = tmp_path / "commands.csv"
    cut.write_text(commands.read_text().rstrip("\n"))

    table = cli("identify", rounded, "--commands", cut, "--robot", "ur5e").out

    assert re.search(f"{re.escape(str(cut))}: .* may be truncated", table)

    for row in ("servoj gain", "servoj lookahead"):
        value, deviation, _ = re.search(rf"{row} +(\S+) +(\S+) +(\S+)", table).groups()
        assert len(value.split(".")[1]) == len(deviation.split(".")[1])
        assert len(deviation.strip("0.")) == 1


def test_the_result_is_a_dozen_lines(identified_moves):
    answer, _ = identified_moves
    moves = answer.out

    assert len(moves.splitlines()) <= 12
    assert "-0.00" not in moves.replace("\u2212", "-")
    assert re.search(r"TCP in the flange +0\.\d+ +\(", moves)
    assert "Not identified: prediction, servoj" in moves


def test_verbose_gives_the_reasons(cli):
    moves = cli("identify", RECORDING, "--robot", "ur3e", "--verbose").out

    assert re.search("servoj: no command was held while the arm moved.*\n", moves)
    assert "its rotation vector" in moves


def test_plant_toml_holds_values_and_their_source(identified, servoj):
    recording, _ = servoj
    _, plant = identified

    written = msgspec.toml.decode(plant.read_bytes(), type=dict)
    assert written["servoj"].keys() == {"gain", "lookahead_s", "phase_s"}
    assert written["servoj"]["lookahead_s"] == 0.1
    assert written["joint_servo"]["lag_s"] == pytest.approx(0.0005, abs=1e-6)
    assert written["source"]["recording"] == str(recording)
    assert written["source"]["robot"] == "ur5e"


def test_a_recording_without_servoj_makes_no_plant(identified_moves):
    answer, plant = identified_moves

    assert answer.status == 2
    reason = "servoj's tuning was not identified: no command was held while the arm moved"
    assert reason in answer.message
    assert not plant.exists()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["none.csv"], "file not found"),
        ([RECORDING, "--robot", "ur99"], "There is no robot 'ur99'"),
        ([RECORDING, "--commands", "none.csv"], "file not found"),
        ([RECORDING, "--kinematics", "mine.toml"], "name it with --robot"),
    ],
)
def test_what_cannot_be_read_is_refused(cli, arguments, reason):
    answer = cli("identify", *arguments)

    assert answer.status == 2
    assert reason in answer.message


@pytest.mark.skipif(
    "SIMBRIDGE_RECORDINGS" not in os.environ, reason="SIMBRIDGE_RECORDINGS names no recordings"
)
@pytest.mark.parametrize(
    ("file", "robot", "name", "low", "high"),
    [
        ("ursim_ur5e/moves", "ur5e", ("joint_servo", "lag_s"), 0.0, 1e-4),
        ("ursim_ur5e/moves", "ur5e", ("kinematics", "residual_m", "rms"), 0.0, 1e-5),
        ("ur5e_calibrated/moves_500hz", "ur5e", ("kinematics", "residual_m", "rms"), 0.0, 5e-6),
        ("ur5e_servoj/replay_begin", "ur5e", ("joint_servo", "lag_s"), 3e-4, 7e-4),
        ("ur5e_servoj/replay_begin", "ur5e", ("joint_servo", "residual_rad", "rms"), 0.0, 1e-4),
        ("ur3e_moves_mit/fig9", "ur3e", ("payload_kg", "value"), 1.04, 1.10),
        ("ur10_cb3_static/still", "ur10", ("payload_kg", "value"), 1.85, 1.95),
    ],
)
def test_real_arms(cli, file, robot, name, low, high):
    recording = Path(os.environ["SIMBRIDGE_RECORDINGS"]) / f"{file}.csv.gz"
    answer = cli("identify", recording, "--robot", robot, "--json")
    value = json.loads(answer.out)
    for key in name:
        value = value[key]

    assert low <= value <= high
