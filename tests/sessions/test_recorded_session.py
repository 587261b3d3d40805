"""A recorded live session is the scenario of a run."""

from __future__ import annotations

import shutil
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simbridge.errors import InvalidParameter, PlanRefused, SimbridgeError
from simbridge.ik.callable_solver import CallableSolver
from simbridge.planning.options import Options, Servo
from simbridge.recording.log_reader import read_log
from simbridge.recording.log_writer import LogWriter
from simbridge.recording.samples import LiveSample, LogColumns
from simbridge.robot.load import load_robot
from simbridge.running import run_ending
from simbridge.running.run_setup import prepare
from simbridge.running.runner import execute
from simbridge.sessions.recorded_session import RecordedSession
from tests.stepped_sessions import moved, stepped

# None of them looks at a page, which takes a second to draw.
pytestmark = [
    pytest.mark.usefixtures("short_pages"),
    pytest.mark.slow,
    pytest.mark.shares_setup,
]


def keep_joints(q: np.ndarray, target: object) -> np.ndarray:
    """Solve nothing: the arm never moves."""
    return q


def log_of(directory: Path) -> LogColumns:
    """Return the log of a session."""
    return read_log(directory / "log.mcap")


def copy_session(session: Path, out: Path, kept: np.ndarray, shift: float = 0.0) -> Path:
    """Copy a session with some samples of its log, and return the copy.

    The setpoints of its second half are shifted in the first joint, rad.
    """
    shutil.copytree(session, out)
    log = log_of(session)
    with LogWriter(
        out / "log.mcap", joint_names=log.joint_names, period=0.008, live=True
    ) as writer:
        for k in np.flatnonzero(kept):
            row = {
                f.name: (log.live[f.name] if f.name in log.live else getattr(log, f.name))[k]
                for f in fields(LiveSample)
            }
            row["setpoint"] = row["setpoint"] + shift * (k > len(kept) // 2) * np.eye(6)[0]
            writer.write(LiveSample(**row))
    return out


@pytest.fixture(scope="module")
def short_session(tmp_path_factory: pytest.TempPathFactory, write_short_page: Any) -> Path:
    """The directory of a session of half a second with two kinds of input."""
    out = tmp_path_factory.mktemp("short") / "hand"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_ending, "write_report", write_short_page)
        with stepped(out, robot="ur10") as session:
            session.engage()
            session.wait(0.01)
            begin = session.tool
            for k in range(4):
                session.pose(moved(begin, 0.0, 0.005 * k, 0.0))
                session.wait(0.05)
            for _ in range(3):
                session.twist([0.0, 0.0, 0.1, 0.0, 0.0, 0.5], frame="tool")
                session.wait(0.05)
            session.disengage()
            session.wait(0.1)
    return out


def test_inputs_solved_again_give_the_same_setpoints(
    live_run: Path,
) -> None:
    plan = prepare(live_run).plan
    log = log_of(live_run)

    assert np.array_equal(plan.setpoints, log.setpoint)
    assert np.array_equal(plan.solution, log.solution)
    assert np.array_equal(plan.targets, log.target)
    assert np.array_equal(plan.limited, log.limited)


@pytest.mark.parametrize(
    "changes",
    [{"servo": "ideal"}, {"lead": True}, {"servo_gain": 300.0, "tcp": (0, 0, 0.1, 0, 0, 0)}],
)
def test_they_do_so_with_other_options_of_the_session(
    changes: dict[str, object], tmp_path: Path
) -> None:
    options = {"robot": "ur10", "max_tool_speed": 0.5, "hold": "zero-order", **changes}
    with stepped(tmp_path / "hand", **options) as session:
        session.engage()
        session.wait(0.01)
        begin = session.tool
        for k in range(3):
            session.pose(moved(begin, 0.0, 0.02 * k, 0.0))
            session.wait(0.05)
        session.disengage()
        session.wait(0.1)
    settings = RecordedSession.at(tmp_path / "hand")

    assert settings is not None

    again = prepare(
        tmp_path / "hand", options=Options(feedforward="on" if "lead" in changes else None)
    ).plan
    log = log_of(tmp_path / "hand")
    # Feedforward adds samples at both ends.
    begin = np.flatnonzero((again.setpoints != log.setpoint[0]).any(axis=1))[0]
    first = np.flatnonzero((log.setpoint != log.setpoint[0]).any(axis=1))[0]
    count = len(log.setpoint) - first

    assert np.array_equal(again.setpoints[begin : begin + count], log.setpoint[first:])


@pytest.mark.parametrize(
    ("recorded", "chosen"),
    [pytest.param("ideal", "servoj", marks=pytest.mark.soak), ("servoj", "ideal")],
)
def test_another_servo_replaces_the_sessions(
    tmp_path: Path, recorded: Servo, chosen: Servo
) -> None:
    with stepped(tmp_path / "hand", robot="ur10", servo=recorded) as session:
        session.engage()
        session.twist([0.02, 0.0, 0.0, 0.0, 0.0, 0.0])
        session.wait(0.05)

    again = prepare(tmp_path / "hand", options=Options(servo=chosen))

    assert again.backend_record.servo == chosen


@pytest.mark.filterwarnings("ignore:--servo-gain 300 replaces the gain")
def test_a_replaced_gain_is_replaced_again(tmp_path: Path) -> None:
    plant = tmp_path / "plant.toml"
    plant.write_text("[servoj]\ngain = 1000.0\nlookahead_s = 0.05\nphase_s = 0.0005\n")
    with stepped(tmp_path / "hand", robot="ur10", plant=plant, servo_gain=300.0) as session:
        session.engage()
        session.wait(0.01)
        session.pose(moved(session.tool, 0.0, 0.05, 0.0))
        session.wait(0.1)
        session.disengage()
        session.wait(0.1)
    again = prepare(tmp_path / "hand")

    assert np.array_equal(again.plan.setpoints, log_of(tmp_path / "hand").setpoint)

    backend = again.backend_record

    assert backend.servo_gain == 300.0
    assert backend.servo_lookahead == 0.05
    assert backend.phase == 0.0005


def test_recorded_setpoints_are_replayed(live_run: Path) -> None:
    plan = prepare(live_run, options=Options(plan=live_run)).plan

    assert np.array_equal(plan.setpoints, log_of(live_run).setpoint)


@pytest.mark.soak
def test_a_session_solved_again_is_replayed(live_run: Path, tmp_path: Path) -> None:
    first = execute(prepare(live_run, solver="damped-least-squares"), out=tmp_path / "first")
    again = prepare(live_run, options=Options(plan=tmp_path / "first"))

    assert first.summary["outcome"] == "completed"
    assert first.summary["solver"] == again.solver.name == "damped-least-squares"
    assert np.array_equal(again.plan.setpoints, log_of(tmp_path / "first").setpoint)


def test_another_solver_is_given_the_same_inputs(short_session: Path) -> None:
    plan = prepare(short_session, solver="damped-least-squares").plan
    # It may need a period more to come to rest.
    difference = np.abs(plan.setpoints[:50] - log_of(short_session).setpoint[:50]).max()

    assert 0.0 < difference < 0.1


def test_periods_that_the_log_lacks_are_counted_in_a_warning(
    short_session: Path, tmp_path: Path
) -> None:
    kept = np.ones(len(log_of(short_session).stamp), dtype=bool)
    kept[[25, 26, 40]] = False
    with pytest.warns(UserWarning, match="lacks 3 control periods, whose states never arrived"):
        prepare(copy_session(short_session, tmp_path / "hand", kept))


def test_setpoints_that_jump_are_refused(short_session: Path, tmp_path: Path) -> None:
    every = np.ones(len(log_of(short_session).stamp), dtype=bool)
    jumping = copy_session(short_session, tmp_path / "hand", every, shift=0.1)

    with pytest.raises(
        PlanRefused,
        match="those of a live session jump where the controller paused or stopped the arm",
    ):
        prepare(jumping, options=Options(plan=jumping))


def test_a_session_never_engaged_is_refused(never_engaged: Path) -> None:
    with pytest.raises(SimbridgeError, match="contains no samples: the session was never engaged"):
        prepare(never_engaged)


def test_a_killed_session_is_solved_again(killed_session: Path) -> None:
    log = log_of(killed_session)
    for options in (Options(), Options(plan=killed_session)):
        plan = prepare(killed_session, options=options).plan
        assert np.array_equal(plan.setpoints[: len(log.setpoint)], log.setpoint)
        assert len(log.setpoint) > 100
        # Where the record ends in motion the arm is braked.
        assert np.abs(np.diff(plan.setpoints[-2:], axis=0)).max() < 1e-12


def test_missing_inputs_end_the_repetition(short_session: Path, tmp_path: Path) -> None:
    out = tmp_path / "hand"
    shutil.copytree(short_session, out)
    inputs = (out / "inputs.jsonl").read_text().splitlines(keepends=True)
    (out / "inputs.jsonl").write_text("".join(inputs[:-2]))
    with pytest.warns(
        UserWarning, match="does not hold input [0-9]+: the session is solved again until then"
    ):
        plan = prepare(out).plan
    log = log_of(out)
    used = np.flatnonzero(log.live["input"])[-2]

    assert np.array_equal(plan.setpoints[:used], log.setpoint[:used])
    assert used <= plan.samples < len(log.stamp)


def test_a_session_is_not_repeated_at_another_speed_or_period(live_run: Path) -> None:
    with pytest.raises(InvalidParameter, match="repeated as it was, without --speed-scale"):
        prepare(live_run, options=Options(speed_scale=0.5))
    with pytest.raises(InvalidParameter, match="without --start and options of reading a file"):
        prepare(live_run, options=Options(start="home", gaps="hold"))
    with pytest.raises(InvalidParameter, match=r"the session's, 0\.002 s"):
        prepare(live_run, options=Options(period=0.004))


def test_a_solver_object_has_to_be_passed_again(tmp_path: Path) -> None:
    solver = CallableSolver(load_robot("ur10"), keep_joints)
    out = tmp_path / "hand"
    with stepped(out, robot="ur10", solver=solver) as session:
        session.engage()
        session.twist([0.1, 0.0, 0.0, 0.0, 0.0, 0.0])
        session.wait(0.1)

    with pytest.raises(
        InvalidParameter, match=r"given with --solver .*: that of .* was an object of a program"
    ):
        prepare(out)
    assert prepare(out, solver="pseudoinverse").solver.name == "pseudoinverse"
    assert prepare(out, options=Options(plan=out)).plan.samples > 10


def test_a_solver_that_was_given_by_name_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "still_ik.py").write_text("def step(q, target):\n    return q\n")
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "hand"
    with stepped(out, robot="ur10", solver="still_ik:step") as session:
        session.engage()
        session.twist([0.1, 0.0, 0.0, 0.0, 0.0, 0.0])
        session.wait(0.1)
    prepared = prepare(out)

    assert prepared.solver.name == "still_ik:step"
    assert np.array_equal(prepared.plan.setpoints, log_of(out).setpoint)
