"""A scenario on a controller: what was sent, what was received, and what the run directory records.

The controller is emulated, in its own process, and keeps its own record.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import simbridge
from simbridge.emulator.record_file import Recorded
from simbridge.evaluation.evaluation import Evaluation
from simbridge.planning.plan import Plan
from simbridge.recording.run_directory import RunDirectory
from simbridge.robot.kinematics import tool_path
from simbridge.running.run_setup import prepare
from simbridge.servo.law import LOOKAHEAD
from simbridge.servo.plant import JOINT_LAG
from tests.backends.trial import Trial, write_line
from tests.controllers import REALTIME_FLAGS, tick

SERVOJ = 11
SMALL_SQUARE = """
from simbridge import Robot, Scenario
from simbridge.trajectory import square

def scenario(robot: Robot) -> Scenario:
    return Scenario(square(side=0.1, speed=0.2, laps=1))
"""


@dataclass
class Recording:
    """A run, and the controller's record of it."""

    robot: str
    scenario: str
    directory: Path
    record: Recorded

    def received(self, count: int) -> np.ndarray:
        """The last servoj setpoints (count, n) that arrived, without repetitions of the very last."""
        setpoints = []
        for names, values in self.record.inputs:
            registers = dict(zip(names, values, strict=True))
            command = next(
                (
                    value
                    for name, value in registers.items()
                    if name.startswith("input_int_register")
                ),
                None,
            )
            if command == SERVOJ:
                numbers = [
                    value
                    for name, value in registers.items()
                    if name.startswith("input_double_register")
                ]
                setpoints.append(numbers[:6])
        array = np.array(setpoints)
        moving = np.flatnonzero((np.diff(array, axis=0) != 0.0).any(axis=1))
        return array[: moving[-1] + 2][-count:]


@pytest.fixture(
    scope="module",
    params=[
        ("e-Series", "small square"),
        ("CB3", "small square"),
        pytest.param(("e-Series", "square_tracking"), marks=pytest.mark.soak),
        pytest.param(("CB3", "square_tracking"), marks=pytest.mark.soak),
    ],
    ids=" ".join,
)
def recording(request, controllers, tmp_path_factory):
    kind, scenario = request.param
    directory = tmp_path_factory.mktemp("square")
    if scenario == "small square":
        scenario = str(directory / "small_square.py")
        Path(scenario).write_text(SMALL_SQUARE)
    robot = {"e-Series": "ur10e", "CB3": "ur10"}[kind]
    controller = controllers.ready(kind)
    begin = tick(controller)
    with Trial(controller, directory, scenario, "--backend", "ursim", "--robot", robot) as trial:
        assert trial.wait_for_end() == (0, "")
    return Recording(robot, scenario, trial.out, controller.record(after=begin))


def positions(log, period):
    return log.plan_time / period


def test_the_square_is_completed_and_the_controllers_time_only_goes_forward(recording):
    summary = RunDirectory.open(recording.directory).summary()
    log = RunDirectory.open(recording.directory).log()
    assert summary["outcome"] == "completed" and summary["backend"] == "ursim"
    assert (
        log.complete
        and (np.diff(log.stamp) > 0.0).all()
        and (np.diff(log.host_monotonic) >= 0.0).all()
    )
    loop = summary["loop"]
    assert 0 <= loop["missed_states"] <= 0.01 * summary["samples"]
    assert len(log.index) + loop["missed_states"] == log.index[-1] + 1
    assert loop["period_mean_s"] >= summary["period_s"] * 0.99
    assert (
        loop["period_max_s"]
        >= loop["period_p999_s"]
        >= loop["period_mean_s"]
        > loop["period_std_s"]
        > 0.0
    )
    assert 0.0 < loop["state_age_mean_s"] < 0.1


def test_every_setpoint_arrives_in_order_and_the_plan_is_the_same_as_in_simulation(recording):
    here = prepare(recording.scenario, robot=recording.robot, backend="pybullet").plan
    plan = RunDirectory.open(recording.directory).plan(Plan.from_arrays)
    assert np.array_equal(plan.setpoints, here.setpoints) and plan.period == here.period
    log = RunDirectory.open(recording.directory).log()
    sent = log.index[-1] + 1
    received = recording.received(sent)
    assert np.array_equal(received[log.index], log.setpoint)
    # Where this computer delayed the controller by more than 8 ms, the plan waited, and continues between samples.
    position = positions(log, here.period)
    whole = np.abs(position - np.round(position)) < 1e-6
    # A millionth of a sample beside it is, at the speed limit of 3.3 rad/s, less than 1e-8 rad.
    assert log.setpoint[whole] == pytest.approx(
        plan.setpoints[np.round(position[whole]).astype(int)], abs=1e-8
    )
    assert (np.diff(position) <= np.diff(log.index) + 1e-6).all()
    assert position[-1] == pytest.approx(len(plan.setpoints) - 1, abs=1e-6)
    undisturbed = log.speed_scaling.min() == 1.0 and sent == len(plan.setpoints)
    assert not undisturbed or np.array_equal(received, plan.setpoints)


def test_the_states_and_the_error_are_those_of_the_controllers_own_record(recording):
    log = RunDirectory.open(recording.directory).log()
    run = Evaluation.of(RunDirectory.open(recording.directory))
    ticks = np.round(log.stamp / run.plan.period).astype(int)
    own = recording.record.actual_q
    found = [
        begin
        for begin in np.flatnonzero((own == log.position[0]).all(axis=1))
        if begin + ticks[-1] < len(own) and np.array_equal(own[begin + ticks], log.position)
    ]
    assert len(found) >= 1
    attained = tool_path(simbridge.load_robot(recording.robot), own[found[0] + ticks])
    error = np.linalg.norm(run.reference[:, :3] - attained[:, :3], axis=1)
    reported = RunDirectory.open(recording.directory).summary()["tracking_error"]["position_m"]
    assert reported["rms"] == pytest.approx(np.sqrt(np.mean(error**2)), abs=1e-12)
    assert reported["max"] == pytest.approx(error.max(), abs=1e-12)
    # At 0.2 m/s, or slower where this computer delayed the controller, servoj's lag is most of the error.
    lag = LOOKAHEAD - run.plan.period + JOINT_LAG
    assert 0.9 * 0.2 * log.speed_scaling.mean() * lag < reported["rms"] < 0.2 * 0.05


def test_the_settings_name_the_controller_and_the_tuning_of_servoj(recording):
    settings = RunDirectory.open(recording.directory).settings()
    controller = settings.controller
    assert controller.model.lower() == recording.robot
    assert controller.ursim
    assert controller.polyscope.startswith({"ur10e": "5.12", "ur10": "3.15"}[recording.robot])
    assert settings.backend.servo_gain == 2000.0
    assert settings.backend.servo_lookahead == 0.03


def test_the_tool_and_the_load_are_set_on_the_controller(cli, e_series, tmp_path, without_pages):
    given = ["--tcp", "0.01", "0", "0.15", "0", "0", "0.3", "--payload", "1.25"]
    flags = [
        "--backend",
        "ursim",
        "--robot",
        "ur10e",
        "--host",
        e_series.host,
        *REALTIME_FLAGS,
        *given,
    ]
    answer = cli("run", write_line(tmp_path, 0.5), *flags, "--out", tmp_path / "run")
    assert answer.status == 0, answer.err
    state = e_series.state()
    assert state["payload"] == 1.25
    assert state["tcp_offset"] == pytest.approx([0.01, 0.0, 0.15, 0.0, 0.0, 0.3], abs=1e-12)
    assert RunDirectory.open(tmp_path / "run").settings().robot.payload == 1.25
