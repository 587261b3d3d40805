"""What keeps a run from beginning: told in one paragraph that says what to do, and the arm has not moved.

Until the servo process starts there is nothing but questions to the controller, so the command line is called in this
process.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from simbridge.backends import servo_client
from simbridge.backends.controller import RealBackend, UrsimBackend
from simbridge.cli import command_line
from simbridge.errors import SimbridgeError
from simbridge.recording.run_directory import RunDirectory
from simbridge.robot import load_robot
from simbridge.robot.kinematics import tool_path
from simbridge.ur.errors import (
    ConnectionLost,
    ModelMismatch,
    NotConfirmed,
    NotURSim,
    ProgramRunning,
    ProgramStopped,
    ProtectiveStop,
    RegistersInUse,
    RemoteControlDisabled,
)
from tests.backends.fault_trial import HOME, Bench, line, move, never_moved
from tests.ur.registers import take

URSIM, REAL, NOBODY = "127.0.0.43", "127.0.0.44", "127.0.0.45"
CALIBRATION = Path(__file__).parents[1] / "data" / "ur10e_calibration.toml"
ROBOT = load_robot("ur10e")


@pytest.fixture(scope="module")
def ursim_bench():
    with Bench("ur10e", "5.12", URSIM) as bench:
        yield bench


@pytest.fixture(scope="module")
def real_bench():
    with Bench("ur10e", "5.12", REAL, calibration=CALIBRATION) as bench:
        yield bench


@pytest.fixture
def ursim(ursim_bench):
    return ursim_bench.ready()


@pytest.fixture
def real(real_bench):
    return real_bench.ready()


@pytest.fixture
def refused(cli, monkeypatch, tmp_path):
    """Runs `simbridge run`, which must refuse; the error it told, as it told it."""
    errors: list[SimbridgeError] = []
    told = command_line.report_error
    monkeypatch.setattr(command_line, "tell_error", lambda error: errors.append(error) or told(error))

    def run(*arguments: object) -> SimbridgeError:
        answer = cli("run", line(tmp_path), *arguments, "--out", tmp_path / "run")
        assert answer.status == 2 and answer.out == ""
        assert str(errors[0]) in answer.message and "\n\n" not in answer.err.strip()
        left = tmp_path.rglob(".*")
        assert list(left) == []
        return errors[0]

    return run


def tick(controller):
    return controller.state()["tick"]


BUSY = "def busy():\nwhile True:\nsync()\nend\nend\n"


@pytest.mark.parametrize(
    ("fault", "kind", "told"),
    [
        pytest.param(
            lambda controller: take(controller, "input_double_register_4"),
            RegistersInUse,
            "input_double_register_4",
            id="registers taken by another client",
        ),
        pytest.param(
            lambda controller: controller.do("remote_control", on=False),
            RemoteControlDisabled,
            "Remote Control",
            id="local control",
        ),
        pytest.param(
            lambda controller: controller.do("mute", port=29999), ConnectionLost, "port 29999", id="dashboard silent"
        ),
        pytest.param(
            lambda controller: controller.do("mute", port=30004), ConnectionLost, "port 30004", id="RTDE silent"
        ),
    ],
)
def test_what_is_in_the_way_is_told_and_the_arm_has_not_moved(fault, kind, told, ursim, refused):
    begin = tick(ursim)
    fault(ursim)
    error = refused("--robot", "ur10e", "--backend", "ursim", "--host", URSIM)
    assert type(error) is kind and told in str(error)
    assert never_moved(ursim, begin)
    assert ursim.state()["runtime_state"] == "STOPPED"


@pytest.mark.parametrize(("command", "state"), [("play_program", "PLAYING"), ("pause_program", "PAUSED")])
def test_a_program_that_runs_already_is_left_alone(command, state, ursim, refused):
    ursim.do("run_script", source=BUSY)
    ursim.wait_for("runtime_state", "PLAYING")
    ursim.do(command)
    begin = tick(ursim)
    error = refused("--robot", "ur10e", "--backend", "ursim", "--host", URSIM)
    assert type(error) is ProgramRunning and "Stop it at the pendant" in str(error)
    assert ursim.state()["runtime_state"] == state
    assert never_moved(ursim, begin)


def test_another_model_is_refused_with_the_flag_that_would_do(ursim, refused):
    begin = tick(ursim)
    error = refused("--robot", "ur10", "--backend", "ursim", "--host", URSIM)
    assert type(error) is ModelMismatch and "--robot ur10e" in str(error)
    assert never_moved(ursim, begin)


def test_a_real_arm_where_ursim_was_meant_is_refused(real, refused):
    begin = tick(real)
    error = refused("--robot", "ur10e", "--backend", "ursim", "--host", REAL)
    assert type(error) is NotURSim and "--backend real" in str(error)
    assert never_moved(real, begin)


def test_where_nothing_listens_the_port_and_the_way_to_start_ursim_are_told(refused):
    error = refused("--robot", "ur10e", "--backend", "ursim", "--host", NOBODY)
    assert type(error) is ConnectionLost and error.port == 30004
    assert "docker run" in str(error) and "ROBOT_MODEL=UR10" in str(error) and "ursim_e-series" in str(error)


@pytest.mark.parametrize("port", [29999, 30004])
def test_a_port_that_falls_silent_before_the_first_motion_is_named_within_the_connect_deadline(
    port, ursim, monkeypatch
):
    monkeypatch.setattr(servo_client, "CONNECT_TIMEOUT", 3.0)
    begin = tick(ursim)
    with UrsimBackend(ROBOT, URSIM) as arm:
        ursim.do("mute", port=port)
        with pytest.raises(ConnectionLost) as caught:
            arm.move_to(HOME + 0.05)
    assert caught.value.port == port
    assert never_moved(ursim, begin)


# A real arm


def cell(directory, **changes):
    """A cell file that agrees with the emulator, but for the changes."""
    facts = {"serial_number": '"20261234567"', "tcp": "[0, 0, 0, 0, 0, 0]", "payload": "0.0", "mounting": '"floor"'}
    path = directory / "cell.toml"
    path.write_text("".join(f"{name} = {value}\n" for name, value in (facts | changes).items() if value))
    return path


def test_a_real_arm_does_not_move_when_nobody_can_be_asked(real, refused):
    begin = tick(real)
    error = refused("--robot", "ur10e", "--backend", "real", "--host", REAL)
    assert type(error) is NotConfirmed and "--yes" in str(error)
    assert never_moved(real, begin)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"serial_number": '"20269999999"'}, "serial number"),
        ({"tcp": "[0, 0, 0.1, 0, 0, 0]"}, "TCP"),
        ({"payload": "1.5"}, "payload"),
    ],
)
def test_a_cell_file_of_another_arm_tool_or_load_does_not_answer_for_a_person(changes, what, real, refused, tmp_path):
    begin = tick(real)
    error = refused(
        "--robot", "ur10e", "--backend", "real", "--host", REAL, "--yes", "--cell", cell(tmp_path, **changes)
    )
    assert type(error) is ModelMismatch and error.what == what
    assert never_moved(real, begin)


def test_a_cell_file_that_does_not_say_the_mounting_does_not_answer_for_a_person(real, refused, tmp_path):
    begin = tick(real)
    given = cell(tmp_path, mounting="")
    error = refused("--robot", "ur10e", "--backend", "real", "--host", REAL, "--yes", "--cell", given)
    assert type(error) is NotConfirmed and "mounting" in str(error)
    assert never_moved(real, begin)


def test_with_the_cell_file_of_this_arm_a_real_arm_runs_and_never_fast(real, cli, tmp_path):
    move(real, HOME + np.array([0.05, 0.0, 0.0, 0.0, 0.0, 0.0]))
    begin = tick(real)
    given = ("--yes", "--cell", cell(tmp_path), "--out", tmp_path / "run")
    answer = cli("run", line(tmp_path, 1.0), "--robot", "ur10e", "--backend", "real", "--host", REAL, *given)
    assert answer.status == 0, answer.err
    summary = RunDirectory.open(tmp_path / "run").summary()
    assert summary["outcome"] == "completed" and summary["samples"] >= 501
    # By the kinematics of this very arm the plan, and the arm, begin 1 mm and more from where nominal ones would.
    assert RunDirectory.open(tmp_path / "run").settings()["kinematics"]["placements"] != ROBOT.checksum
    record = real.record()
    q = record.actual_q[record.tick >= begin]
    assert np.abs(np.diff(q, axis=0)).max() <= 0.25 * 1.02 * ROBOT.period
    steps = np.linalg.norm(np.diff(tool_path(ROBOT, q)[:, :3], axis=0), axis=1)
    assert 0.0 < steps.max() <= 0.1 * 1.1 * ROBOT.period


class Person:
    """Answers as told, and remembers what was shown."""

    def __init__(self, *answers: bool) -> None:
        self.answers, self.shown = list(answers), []

    def __call__(self, shown, question) -> bool:
        self.shown.append((dict(shown), question))
        return self.answers.pop(0)


def stopped_by(controller, arm, command):
    """Stream on the spot until a fault."""
    arm.move_to(HOME)
    for state in arm.stream(np.tile(HOME, (2000, 1))):
        if state.sequence == 50:
            controller.do(command)


def test_after_a_stop_a_real_arm_moves_again_only_when_a_person_says_so(real):
    person = Person(True, False, True)
    with RealBackend(ROBOT, REAL, ask=person) as arm:
        with pytest.raises(ProgramStopped):
            stopped_by(real, arm, "stop_program")
        with pytest.raises(NotConfirmed):
            arm.recover()
        with pytest.raises(ProgramStopped):
            arm.move_to(HOME)
        arm.recover()
        arm.move_to(HOME)
    assert [question for _, question in person.shown] == ["Move the UR10e?"] * 3
    assert "was stopped" in person.shown[1][0]["stopped by"]


def test_a_real_arm_is_never_unlocked_from_here(real):
    with RealBackend(ROBOT, REAL, ask=Person(True)) as arm:
        with pytest.raises(ProtectiveStop):
            stopped_by(real, arm, "protective_stop")
        with pytest.raises(ProtectiveStop):
            arm.recover()
    assert real.state()["safety_mode"] == "PROTECTIVE_STOP"


def test_a_program_that_was_begun_while_a_person_thought_about_it_is_left_alone(real):
    def person(shown, question):
        real.do("run_script", source=BUSY)
        real.wait_for("runtime_state", "PLAYING")
        return True

    begin = tick(real)
    with RealBackend(ROBOT, REAL, ask=person) as arm, pytest.raises(ProgramRunning):
        arm.move_to(HOME + 0.01)
    assert real.state()["runtime_state"] == "PLAYING"
    assert never_moved(real, begin)
