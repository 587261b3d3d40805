"""A scenario on a controller: what went over the wire, what came back, and what the run directory says of it.

The controller is emulated, in a process of its own, and keeps a record of its own.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import simbridge
from simbridge.emulator.handle import Emulator, Recorded
from simbridge.evaluation.evaluation import Evaluation
from simbridge.planning.plan import Plan
from simbridge.recording.run_directory import RunDirectory
from simbridge.robot.kinematics import tool_path
from simbridge.running.preparation import prepare
from tests.backends.fault_trial import line

SETUPS = {"5.12": ("ur10e", "127.0.0.46"), "3.15": ("ur10", "127.0.0.47")}
SERVOJ = 11


@dataclass
class Ran:
    """A run, and what the controller recorded meanwhile."""

    robot: str
    directory: Path
    record: Recorded

    def received(self, count: int) -> np.ndarray:
        """The last servoj setpoints (count, n) that arrived, but for repetitions of the very last."""
        setpoints = []
        for names, values in self.record.inputs:
            told = dict(zip(names, values, strict=True))
            command = next((value for name, value in told.items() if name.startswith("input_int_register")), None)
            if command == SERVOJ:
                numbers = [value for name, value in told.items() if name.startswith("input_double_register")]
                setpoints.append(numbers[:6])
        array = np.array(setpoints)
        moving = np.flatnonzero((np.diff(array, axis=0) != 0.0).any(axis=1))
        return array[: moving[-1] + 2][-count:]


@pytest.fixture(scope="module", params=SETUPS)
def ran(request, tmp_path_factory):
    robot, host = SETUPS[request.param]
    out = tmp_path_factory.mktemp("square") / "run"
    command = ["run", "square_tracking", "--backend", "ursim", "--robot", robot, "--host", host, "--out", str(out)]
    with Emulator(robot, polyscope=request.param, host=host) as controller:
        ended = subprocess.run([sys.executable, "-m", "simbridge", *command], capture_output=True, text=True)
        assert ended.returncode == 0, ended.stderr
        return Ran(robot, out, controller.record())


def positions(log, period):
    return log.plan_time / period


def test_the_square_is_completed_and_the_controllers_time_only_goes_forward(ran):
    summary = RunDirectory.open(ran.directory).summary()
    log = RunDirectory.open(ran.directory).log()
    assert summary["outcome"] == "completed" and summary["backend"] == "ursim"
    assert log.complete and (np.diff(log.stamp) > 0.0).all() and (np.diff(log.host_monotonic) >= 0.0).all()
    loop = summary["loop"]
    assert 0 <= loop["missed_states"] <= 0.01 * summary["samples"]
    assert len(log.index) + loop["missed_states"] == log.index[-1] + 1
    assert loop["period_mean_s"] >= summary["period_s"] * 0.99
    assert loop["period_max_s"] >= loop["period_p999_s"] >= loop["period_mean_s"] > loop["period_std_s"] > 0.0
    assert 0.0 < loop["state_age_mean_s"] < 0.1


def test_every_setpoint_of_the_plan_arrives_in_order_and_is_the_one_that_was_planned_for_pybullet(ran):
    here = prepare("square_tracking", robot=ran.robot, backend="pybullet").plan
    plan = RunDirectory.open(ran.directory).plan(Plan.from_arrays)
    assert np.array_equal(plan.setpoints, here.setpoints) and plan.period == here.period
    log = RunDirectory.open(ran.directory).log()
    sent = log.index[-1] + 1
    received = ran.received(sent)
    assert np.array_equal(received[log.index], log.setpoint)
    # Where the machine itself held the controller up for more than 8 ms the plan waited, and goes on between samples.
    position = positions(log, here.period)
    whole = np.abs(position - np.round(position)) < 1e-6
    assert np.array_equal(log.setpoint[whole], plan.setpoints[np.round(position[whole]).astype(int)])
    assert (np.diff(position) <= np.diff(log.index) + 1e-6).all()
    assert position[-1] == pytest.approx(len(plan.setpoints) - 1, abs=1e-6)
    undisturbed = log.speed_scaling.min() == 1.0 and sent == len(plan.setpoints)
    assert not undisturbed or np.array_equal(received, plan.setpoints)


def test_the_states_are_those_of_the_controllers_own_record_and_so_is_the_error(ran):
    log = RunDirectory.open(ran.directory).log()
    run = Evaluation.of(RunDirectory.open(ran.directory))
    ticks = np.round(log.stamp / run.plan.period).astype(int)
    own = ran.record.actual_q
    found = [
        begin
        for begin in np.flatnonzero((own == log.position[0]).all(axis=1))
        if begin + ticks[-1] < len(own) and np.array_equal(own[begin + ticks], log.position)
    ]
    assert len(found) >= 1
    attained = tool_path(simbridge.load_robot(ran.robot), own[found[0] + ticks])
    error = np.linalg.norm(run.reference[:, :3] - attained[:, :3], axis=1)
    told = RunDirectory.open(ran.directory).summary()["tracking_error"]["position_m"]
    assert told["rms"] == pytest.approx(np.sqrt(np.mean(error**2)), abs=1e-12)
    assert told["max"] == pytest.approx(error.max(), abs=1e-12)
    # servoj trails by its lookahead, which is most of the error.
    assert 0.2 * 0.025 < told["rms"] < 0.2 * 0.05


def test_the_run_says_which_controller_it_was_and_how_servoj_was_used(ran):
    settings = RunDirectory.open(ran.directory).settings()
    controller = settings["controller"]
    assert controller["model"].lower() == ran.robot and controller["ursim"]
    assert controller["polyscope"].startswith({"ur10e": "5.12", "ur10": "3.15"}[ran.robot])
    assert settings["backend"]["servo_gain"] == 2000.0 and settings["backend"]["servo_lookahead"] == 0.03


def test_the_tool_and_the_load_are_set_on_the_controller(tmp_path):
    host = "127.0.0.48"
    given = ["--tcp", "0.01", "0", "0.15", "0", "0", "0.3", "--payload", "1.25"]
    command = ["run", line(tmp_path, 0.5), "--backend", "ursim", "--robot", "ur10e", "--host", host, *given]
    with Emulator("ur10e", polyscope="5.12", host=host) as controller:
        ended = subprocess.run(
            [sys.executable, "-m", "simbridge", *map(str, command), "--out", str(tmp_path / "run")],
            capture_output=True,
            text=True,
        )
        assert ended.returncode == 0, ended.stderr
        state = controller.state()
    assert state["payload"] == 1.25
    assert state["tcp_offset"] == pytest.approx([0.01, 0.0, 0.15, 0.0, 0.0, 0.3], abs=1e-12)
    assert RunDirectory.open(tmp_path / "run").settings()["robot"]["payload"] == 1.25


def test_a_live_arm_follows_targets_and_keeps_the_controllers_time():
    host = "127.0.0.49"
    with Emulator("ur10e", polyscope="5.12", host=host) as controller:
        robot = simbridge.load_robot("ur10e")
        with simbridge.connect("ursim", robot=robot, host=host) as arm:
            states = [arm.read()]
            target = tool_path(robot, states[0].q[None])[0]
            for _ in range(500):
                target[2] -= 0.05 * arm.period
                states.append(arm.servo(target))
            begin = tool_path(robot, states[0].q[None])[0]
            end = tool_path(robot, states[-1].q[None])[0]
        record = controller.record()
    # Half a metre a minute downwards, less what the servo trails.
    assert begin[2] - end[2] == pytest.approx(0.05, abs=0.005)
    assert np.allclose(begin[:2], end[:2], atol=1e-4)
    timestamps = [state.timestamp for state in states]
    assert (np.diff(timestamps) >= 0.0).all() and timestamps[-1] - timestamps[0] >= 499 * arm.period
    in_force = record.setpoint[~np.isnan(record.setpoint).any(axis=1)]
    assert (in_force == states[-1].setpoint).all(axis=1).any()
