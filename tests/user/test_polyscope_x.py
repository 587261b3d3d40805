"""Doctor, runs and live sessions on emulated controllers with PolyScope X."""

from __future__ import annotations

import json

import numpy as np
import pytest

import simbridge
from simbridge.emulator.handle import Emulator
from simbridge.planning.options import Options
from simbridge.recording.run_directory import RunDirectory
from simbridge.robot.cell import Cell
from simbridge.running.run_setup import prepare
from simbridge.running.runner import execute
from simbridge.ur.errors import (
    ModelMismatch,
    RemoteControlDisabled,
    ScriptNotStarted,
    UnsupportedController,
)
from tests.backends.trial import write_line
from tests.controllers import (
    EMULATOR_PRIORITY,
    loopback,
    never_moved,
    realtime,
    realtime_options,
    tick,
)
from tests.properties import variants
from tests.slow_computers import keep_until

SERIAL_NUMBER = "20261234567"
REST_PORT = 8080
HTTP = "primary,rtde,http"
VERSIONS = ("10.7", "10.12", "10.14")
# What doctor finds of each version with all its services switched on, where that differs.
DOCTOR = {
    "10.7": {"Robot API": "skip", "remote control": "warn", "serial number": "warn"},
    "10.12": {"Robot API": "pass", "remote control": "pass", "serial number": "warn"},
    "10.14": {"Robot API": "pass", "remote control": "pass", "serial number": "pass"},
}


# A test of the newest version; the others are soak. pytest groups tests by a parameter's index, so
# all list the versions in the same order.
MOSTLY_ON_NEWEST = pytest.mark.parametrize("running", variants(VERSIONS, "10.14"), indirect=True)


# What 10.12 reports is between the others: test_survey shows it, and test_polyscope_x_checks what
# follows from it.
@pytest.fixture(scope="module", params=variants(VERSIONS, "10.7", "10.14"))
def running(request, controllers):
    """A controller of each version in turn, powered on, with all its services."""
    # So that one runs at a time.
    controllers.close()
    services = HTTP if request.param == "10.14" else None
    with Emulator(
        "ur10e",
        polyscope=request.param,
        host=loopback(71),
        boot_time=0.05,
        rest_port=REST_PORT,
        services=services,
        realtime_priority=EMULATOR_PRIORITY,
    ) as emulator:
        emulator.polyscope = request.param
        yield emulator


@pytest.fixture
def controller(running):
    """The controller in Remote, without a program."""
    running.do("remote_control", on=True)
    running.set(answer_in_local="C210")
    running.do("stop_program")
    running.wait_for("runtime_state", "STOPPED")
    return running


@pytest.fixture
def new_controller(controllers):
    """A controller with PolyScope 10.14 as it is delivered: HTTP is switched off."""
    controllers.close()
    with Emulator("ur10e", polyscope="10.14", host=loopback(72), boot_time=0.05) as emulator:
        yield emulator


def confirm(_facts, _question):
    return True


def has_moved(controller, begin):
    """Whether the last joint has moved by 0.01 rad since a tick."""
    return np.ptp(controller.record(after=begin).target_q[:, 5]) >= 0.01


def options_of(controller, **more):
    return Options(host=controller.host, rest_port=REST_PORT, **realtime_options(), **more)


def plan(controller, tmp_path, backend="real", **more):
    return prepare(
        write_line(tmp_path, 0.5),
        robot="ur10e",
        options=options_of(controller, **more),
        backend=backend,
    )


def doctor_findings(cli, controller, *flags):
    """Return the findings of doctor, by the names of the checks."""
    arguments = ("--backend", "real", "--host", controller.host, "--robot", "ur10e", "--json")
    # It receives states for a tenth of a second.
    with realtime():
        answer = cli("doctor", *arguments, *flags)
    return {finding["check"]: finding for finding in json.loads(answer.out)["findings"]}


# test_polyscope_x_checks has the findings of each version.
@MOSTLY_ON_NEWEST
def test_doctor_finds_what_each_version_reports(cli, controller, monkeypatch):
    monkeypatch.setattr("simbridge.doctor.network_checks.SECONDS", 0.1)

    findings = doctor_findings(cli, controller, "--rest-port", str(REST_PORT))

    expected = DOCTOR[controller.polyscope]
    assert {check: findings[check]["status"] for check in expected} == expected
    assert "fail" not in {finding["status"] for finding in findings.values()}
    assert {"port 30001", "port 30004"} <= set(findings)
    assert not {"port 29999", "port 30003"} & set(findings)
    assert findings["arm or URSim"]["seen"].startswith("emulator")


# With 10.14 test_a_cell_file_confirms_only_with_the_serial_number completes a run.
@pytest.mark.parametrize("running", variants(VERSIONS, "10.7"), indirect=True)
def test_a_run_is_confirmed_and_completed(controller, tmp_path, without_pages):
    run = execute(plan(controller, tmp_path), out=tmp_path / "run", ask=confirm)

    assert run.summary["ended_by"]["cause"] == "completed"
    assert run.summary["ended_by"]["arm_at_rest"]
    assert run.summary["emulated"]
    assert controller.state()["runtime_state"] == "STOPPED"


@MOSTLY_ON_NEWEST
def test_a_command_line_names_the_port_of_the_robot_api(cli, controller, tmp_path):
    controller.do("remote_control", on=False)
    arm = ["--backend", "real", "--host", controller.host, "--rest-port", str(REST_PORT)]
    out = ["--out", tmp_path / "run"]

    answer = cli("run", write_line(tmp_path, 0.5), "--robot", "ur10e", *arm, *out)

    # Only the Robot API reports that it is in Local.
    has_robot_api = DOCTOR[controller.polyscope]["Robot API"] == "pass"
    assert answer.status == 2
    assert ("Mode Selection" in answer.err) == has_robot_api


def test_a_run_in_local_moves_nothing(controller, tmp_path, without_pages):
    prepared = plan(controller, tmp_path)
    begin = tick(controller)
    controller.do("remote_control", on=False)

    with pytest.raises(RemoteControlDisabled, match="Mode Selection") as refused:
        execute(prepared, out=tmp_path / "run", ask=confirm)

    assert refused.value.cause == "remote_control_lost"
    assert never_moved(controller, begin)


# Only here: the later versions report Local.
@pytest.mark.parametrize("running", ["10.7"], indirect=True)
def test_a_run_in_a_silent_local_asks_for_remote(controller, tmp_path, without_pages):
    prepared = plan(controller, tmp_path)
    begin = tick(controller)
    controller.set(answer_in_local="nothing")
    controller.do("remote_control", on=False)

    with pytest.raises(ScriptNotStarted, match="Mode Selection") as unanswered:
        execute(prepared, out=tmp_path / "run", ask=confirm)

    assert unanswered.value.question.startswith("Is it in Remote?")
    assert never_moved(controller, begin)


@MOSTLY_ON_NEWEST
def test_a_live_session_moves_the_arm(controller, tmp_path, without_pages):
    begin = tick(controller)

    with simbridge.live(
        "real",
        robot="ur10e",
        host=controller.host,
        rest_port=REST_PORT,
        out=tmp_path / "run",
        ask=confirm,
        **realtime_options(),
    ) as session:
        session.engage()
        keep_until(
            session,
            lambda: has_moved(controller, begin),
            lambda: session.jog([0.0] * 5 + [0.2]),
        )
        session.disengage()

    summary = RunDirectory.open(tmp_path / "run").summary()
    assert summary["ended_by"]["cause"] == "completed"
    assert controller.state()["runtime_state"] == "STOPPED"


def test_the_backend_of_ursim_refuses_it(controller, tmp_path):
    with pytest.raises(UnsupportedController, match="--backend real"):
        plan(controller, tmp_path, backend="ursim")


def test_a_cell_file_confirms_only_with_the_serial_number(controller, tmp_path, without_pages):
    cell = Cell(serial_number=SERIAL_NUMBER, tcp=(0.0,) * 6, payload=0.0, mounting="floor")
    prepared = plan(controller, tmp_path, cell=cell, yes=True)

    if controller.polyscope == "10.14":
        with pytest.warns(UserWarning, match="Confirmed by the cell file"):
            run = execute(prepared, out=tmp_path / "run")
        assert run.summary["ended_by"]["cause"] == "completed"
    else:
        with pytest.raises(ModelMismatch, match=r"from 10\.14 on"):
            execute(prepared, out=tmp_path / "run")


# Each finding in test_polyscope_x_checks, and the ports of such an emulator in test_services.
@pytest.mark.soak
def test_doctor_names_services_that_are_switched_off(cli, new_controller, monkeypatch):
    monkeypatch.setattr("simbridge.doctor.network_checks.SECONDS", 0.1)
    new_controller.do("refuse", port=30004)

    findings = doctor_findings(cli, new_controller)

    assert findings["port 30004"]["status"] == "fail"
    assert "RTDE under Settings > Security > Services" in findings["port 30004"]["fix"]
    assert findings["Robot API"]["status"] == "warn"
    assert "HTTP under Settings > Security > Services" in findings["Robot API"]["fix"]
