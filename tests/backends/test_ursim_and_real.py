"""A run that is prevented from starting says what to do, in one paragraph; the arm has not moved.

Until the servo process starts, the controller is only read, so the command line is called in this
process.
"""

from __future__ import annotations

import numpy as np
import pytest

from simbridge.backends import servo_client
from simbridge.backends.ursim_and_real import RealBackend, UrsimBackend
from simbridge.cli import command_line
from simbridge.errors import SimbridgeError
from simbridge.planning.options import Options
from simbridge.recording.run_directory import RunDirectory
from simbridge.robot import load_robot
from simbridge.robot.calibration import nominal_dh
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
from tests import ros_calibration
from tests.backends.trial import write_line
from tests.controllers import (
    HOME,
    REALTIME_FLAGS,
    loopback,
    move,
    never_moved,
    realtime,
    realtime_options,
    tick,
)
from tests.ur.registers import take

# Nothing listens there.
NOBODY = loopback(45)
ROBOT = load_robot("ur10e")
URSIM_FLAGS = ("--robot", "ur10e", "--backend", "ursim")
REAL_FLAGS = ("--robot", "ur10e", "--backend", "real")
BUSY = "def busy():\nwhile True:\nsync()\nend\nend\n"


@pytest.fixture(autouse=True)
def prompt_heartbeat():
    """Give the thread of the test a real-time priority, which the thread of the heartbeat inherits.

    The servo process ends after 1 s without a heartbeat. On two busy cores it is up to 2.3 s late
    in a process of nice 10 whose other thread computes, and 0.3 s in one of nice 0.
    """
    with realtime():
        yield


def make_options(controller):
    """Return options of a run on this controller."""
    return Options(host=controller.host, **realtime_options())


@pytest.fixture
def refused(cli, monkeypatch, tmp_path):
    """Runs `simbridge run`, which must refuse, and returns the error that it reported."""
    errors: list[SimbridgeError] = []
    report = command_line.print_error

    def keep_error(error):
        errors.append(error)
        return report(error)

    monkeypatch.setattr(command_line, "print_error", keep_error)

    def run(*arguments: object) -> SimbridgeError:
        answer = cli("run", write_line(tmp_path), *arguments, "--out", tmp_path / "run")
        assert answer.status == 2
        assert answer.out == ""
        assert str(errors[0]) in answer.message
        assert "\n\n" not in answer.err.strip()
        hidden_files = list(tmp_path.rglob(".*"))
        assert hidden_files == []
        return errors[0]

    return run


# ---- any controller


@pytest.mark.parametrize(
    ("fault", "kind", "message_part"),
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
            lambda controller: controller.do("mute", port=29999),
            ConnectionLost,
            "port 29999",
            id="dashboard silent",
        ),
        pytest.param(
            lambda controller: controller.do("mute", port=30004),
            ConnectionLost,
            "port 30004",
            id="RTDE silent",
        ),
    ],
)
def test_what_prevents_a_run_moves_nothing(fault, kind, message_part, e_series, refused):
    begin = tick(e_series)
    fault(e_series)

    error = refused(*URSIM_FLAGS, "--host", e_series.host)

    assert type(error) is kind
    assert message_part in str(error)
    assert never_moved(e_series, begin)
    assert e_series.state()["runtime_state"] == "STOPPED"


@pytest.mark.parametrize(
    ("command", "state"), [("play_program", "PLAYING"), ("pause_program", "PAUSED")]
)
def test_a_program_that_runs_already_is_left_alone(command, state, e_series, refused):
    e_series.do("run_script", source=BUSY)
    e_series.wait_for("runtime_state", "PLAYING")
    e_series.do(command)
    begin = tick(e_series)

    error = refused(*URSIM_FLAGS, "--host", e_series.host)

    assert type(error) is ProgramRunning
    assert "Stop it at the pendant" in str(error)
    assert e_series.state()["runtime_state"] == state
    assert never_moved(e_series, begin)


def test_another_model_is_refused_with_the_right_flag(e_series, refused):
    begin = tick(e_series)

    error = refused("--robot", "ur10", "--backend", "ursim", "--host", e_series.host)

    assert type(error) is ModelMismatch
    assert "--robot ur10e" in str(error)
    assert never_moved(e_series, begin)


def test_where_nothing_listens_the_error_says_how_to_start_ursim(refused):
    error = refused(*URSIM_FLAGS, "--host", NOBODY)

    assert type(error) is ConnectionLost
    assert error.port == 30004
    assert f"`simbridge ursim start ur10e --host {NOBODY}`" in str(error)


@pytest.mark.parametrize("port", [pytest.param(29999, marks=pytest.mark.soak), 30004])
def test_a_port_silent_before_the_motion_is_named(port, e_series, monkeypatch):
    monkeypatch.setattr(servo_client, "CONNECT_TIMEOUT_S", 3.0)
    begin = tick(e_series)

    with UrsimBackend(ROBOT, make_options(e_series)) as arm:
        e_series.do("mute", port=port)
        with pytest.raises(ConnectionLost) as caught:
            arm.move_to(HOME + 0.05)

    assert caught.value.port == port
    assert never_moved(e_series, begin)


# ---- a real arm: the emulated one with a calibration is taken for one


def write_cell(directory, **changes):
    """Write a cell file that matches the emulator except for the changes, and return it."""
    values = {
        "serial_number": '"20261234567"',
        "tcp": "[0, 0, 0, 0, 0, 0]",
        "payload": "0.0",
        "mounting": '"floor"',
    }
    values |= changes
    lines = [f"{name} = {value}\n" for name, value in values.items() if value]
    path = directory / "cell.toml"
    path.write_text("".join(lines))
    return path


def test_a_real_arm_is_refused_where_ursim_is_expected(calibrated, refused):
    begin = tick(calibrated)

    error = refused(*URSIM_FLAGS, "--host", calibrated.host)

    assert type(error) is NotURSim
    assert "--backend real" in str(error)
    assert never_moved(calibrated, begin)


def test_a_real_arm_does_not_move_without_an_operator_to_ask(calibrated, refused):
    begin = tick(calibrated)

    error = refused(*REAL_FLAGS, "--host", calibrated.host)

    assert type(error) is NotConfirmed
    assert "--yes" in str(error)
    assert never_moved(calibrated, begin)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"serial_number": '"20269999999"'}, "serial number"),
        ({"tcp": "[0, 0, 0.1, 0, 0, 0]"}, "TCP"),
        ({"payload": "1.5"}, "payload"),
    ],
)
def test_a_cell_file_of_another_arm_confirms_nothing(changes, what, calibrated, refused, tmp_path):
    cell = write_cell(tmp_path, **changes)
    begin = tick(calibrated)

    error = refused(*REAL_FLAGS, "--host", calibrated.host, "--yes", "--cell", cell)

    assert type(error) is ModelMismatch
    assert error.what == what
    assert never_moved(calibrated, begin)


def test_a_calibration_file_of_ros_of_another_arm_is_refused(calibrated, refused, tmp_path):
    table = nominal_dh(ROBOT)
    a = (0.0, -0.6137, *table.a[2:])
    rows = ros_calibration.printed(table.theta, a, table.d, table.alpha)
    file = ros_calibration.write(tmp_path / "my_robot_calibration.yaml", rows)
    confirmation = ("--yes", "--cell", write_cell(tmp_path))
    begin = tick(calibrated)

    error = refused(*REAL_FLAGS, "--host", calibrated.host, "--kinematics", file, *confirmation)

    assert type(error) is ModelMismatch
    assert error.what == "calibration"
    assert "mm and" in error.actual
    assert "mrad at the flange" in error.actual
    assert "calib_1234" in error.expected
    assert never_moved(calibrated, begin)


def test_a_cell_file_without_the_mounting_does_not_confirm(calibrated, refused, tmp_path):
    cell = write_cell(tmp_path, mounting="")
    begin = tick(calibrated)

    error = refused(*REAL_FLAGS, "--host", calibrated.host, "--yes", "--cell", cell)

    assert type(error) is NotConfirmed
    assert "mounting" in str(error)
    assert never_moved(calibrated, begin)


def test_with_its_cell_file_a_real_arm_runs_and_never_fast(
    calibrated, cli, tmp_path, without_pages
):
    move(calibrated, HOME + np.array([0.05, 0.0, 0.0, 0.0, 0.0, 0.0]))
    controller = (*REAL_FLAGS, "--host", calibrated.host, *REALTIME_FLAGS)
    confirmation = ("--yes", "--cell", write_cell(tmp_path))
    out = tmp_path / "run"
    begin = tick(calibrated)

    answer = cli("run", write_line(tmp_path, 0.5), *controller, *confirmation, "--out", out)

    assert answer.status == 0, answer.err
    summary = RunDirectory.open(out).summary()
    assert summary["outcome"] == "completed"
    assert summary["samples"] >= 251
    # With this arm's own kinematics, the plan and the arm start more than 1 mm from where nominal
    # ones would.
    assert RunDirectory.open(out).settings().kinematics.placements != ROBOT.checksum
    q = calibrated.record(after=begin - 1).actual_q
    assert np.abs(np.diff(q, axis=0)).max() <= 0.25 * 1.02 * ROBOT.period
    steps = np.linalg.norm(np.diff(tool_path(ROBOT, q)[:, :3], axis=0), axis=1)
    assert 0.0 < steps.max() <= 0.1 * 1.1 * ROBOT.period


class Operator:
    """Gives the answers one by one, and keeps what was shown."""

    def __init__(self, *answers: bool) -> None:
        self.answers = list(answers)
        self.shown = []
        self.questions = []

    def __call__(self, shown, question) -> bool:
        self.shown.append(dict(shown))
        self.questions.append(question)
        return self.answers.pop(0)


def stream_until_stopped(controller, arm, command):
    """Stream setpoints at rest, and cause a stop meanwhile."""
    arm.move_to(HOME)
    for state in arm.stream(np.tile(HOME, (2000, 1))):
        if state.sequence == 50:
            controller.do(command)


def test_after_a_stop_a_real_arm_needs_confirmation(calibrated):
    operator = Operator(True, False, True)

    with RealBackend(ROBOT, make_options(calibrated), ask=operator) as arm:
        with pytest.raises(ProgramStopped):
            stream_until_stopped(calibrated, arm, "stop_program")
        with pytest.raises(NotConfirmed):
            arm.recover()
        with pytest.raises(ProgramStopped):
            arm.move_to(HOME)
        arm.recover()
        arm.move_to(HOME)

    assert operator.questions == ["Move the UR10e?"] * 3
    assert "was stopped" in operator.shown[1]["stopped by"]


@pytest.mark.parametrize("setting", ["pause", pytest.param("stop", marks=pytest.mark.soak)])
def test_a_real_arm_is_never_unlocked_from_here(calibrated, setting):
    calibrated.set(on_protective_stop=setting)

    with RealBackend(ROBOT, make_options(calibrated), ask=Operator(True)) as arm:
        with pytest.raises(ProtectiveStop):
            stream_until_stopped(calibrated, arm, "protective_stop")
        with pytest.raises(ProtectiveStop):
            arm.recover()

    assert calibrated.state()["safety_mode"] == "PROTECTIVE_STOP"


def test_a_program_started_during_confirmation_is_left_alone(calibrated):
    def start_program(shown, question):
        calibrated.do("run_script", source=BUSY)
        calibrated.wait_for("runtime_state", "PLAYING")
        return True

    begin = tick(calibrated)

    with (
        RealBackend(ROBOT, make_options(calibrated), ask=start_program) as arm,
        pytest.raises(ProgramRunning),
    ):
        arm.move_to(HOME + 0.01)

    assert calibrated.state()["runtime_state"] == "PLAYING"
    assert never_moved(calibrated, begin)
