"""`simbridge doctor`: with an emulated controller with a calibrated arm, and without any."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from simbridge.backends import ENGINES, SIMULATION
from simbridge.doctor.doctor import RunConnection, check_controller
from simbridge.doctor.findings import Finding, failure, show, success, warning
from simbridge.robot import load_robot
from simbridge.robot.calibration_file import read_calibration
from simbridge.robot.cell_file import load_cell
from simbridge.ur.errors import UnsupportedController
from simbridge.ur.ursim_image import docker_command
from tests.controllers import CALIBRATION, loopback, tick
from tests.doctor.surveys import READ, SILENT, UR10E, assert_verdict
from tests.properties import few_examples
from tests.ur.registers import take

pytestmark = pytest.mark.slow

NOBODY = loopback(89)
MANUAL = Path(__file__).parents[2] / "docs" / "hardware.md"


@pytest.fixture
def controller(calibrated):
    return calibrated


@pytest.fixture(autouse=True)
def short_measurement(monkeypatch):
    """The network is not tested here; a tenth of a second of measurement is enough."""
    monkeypatch.setattr("simbridge.doctor.network_checks.SECONDS", 0.1)


def statuses(answer):
    return {finding["check"]: finding["status"] for finding in json.loads(answer.out)["findings"]}


def test_an_arm_that_is_ready_passes(cli, controller):
    answer = cli(
        "doctor", "--backend", "real", "--host", controller.host, "--robot", "ur10e", "--json"
    )

    assert answer.status == 0
    assert json.loads(answer.out)["passed"]

    by_check = statuses(answer)
    measured_here = {
        "round trip",
        "jitter",
        "arrival of states",
        "kernel",
        "priority",
        "governor",
        "cores",
    }

    assert {status for check, status in by_check.items() if check not in measured_here} == {"pass"}
    assert "fail" not in by_check.values()


def test_a_failed_check_has_a_remedy(cli, controller):
    controller.do("remote_control", on=False)
    try:
        answer = cli("doctor", "--host", controller.host)
    finally:
        controller.do("remote_control", on=True)

    assert answer.status == 2

    text = " ".join(answer.out.split())
    assert "Use --robot ur10e" in text
    assert "Settings > System > Remote Control" in text
    assert "3 checks failed" in text  # the calibration is not a UR10's either


def test_a_silent_port_fails_only_its_checks(cli, controller):
    controller.do("mute", port=29999)
    try:
        answer = cli(
            "doctor", "--backend", "real", "--host", controller.host, "--robot", "ur10e", "--json"
        )
    finally:
        controller.do("mute", port=29999, muted=False)

    assert answer.status == 2

    by_check = statuses(answer)
    blind = {
        "port 29999",
        "serial number",
        "remote control",
        "round trip",
        "jitter",
        "arrival of states",
    }

    assert {check for check, status in by_check.items() if status == "fail"} == blind
    assert {
        by_check[check] for check in ("model", "robot mode", "registers", "TCP", "calibration")
    } == {"pass"}


def test_registers_of_another_client_fail(cli, controller):
    take(controller, "input_int_register_0")
    try:
        answer = cli("doctor", "--host", controller.host, "--robot", "ur10e", "--json")
    finally:
        controller.do("release_registers")

    assert [check for check, status in statuses(answer).items() if status == "fail"] == [
        "registers"
    ]


def test_the_registers_of_the_run_are_checked(cli, controller):
    take(controller, "input_int_register_0")
    flags = ("--robot", "ur10e", "--registers", "upper", "--json")
    try:
        answer = cli("doctor", "--host", controller.host, *flags)
    finally:
        controller.do("release_registers")

    assert answer.status == 0
    assert statuses(answer)["registers"] == "pass"


def test_the_own_link_can_do_without_the_realtime_port(cli, controller):
    controller.do("refuse", port=30003)
    flags = ("--robot", "ur10e", "--link", "rtde", "--json")
    try:
        answer = cli("doctor", "--host", controller.host, *flags)
    finally:
        controller.do("refuse", port=30003, refused=False)

    assert answer.status == 0
    assert statuses(answer)["port 30003"] == "skip"


def test_registers_that_the_controller_does_not_have_are_named(monkeypatch):
    def refuse(host, inputs):
        raise UnsupportedController(host, "3.5.1", f"It does not have {inputs[0]}.")

    monkeypatch.setattr(sys.modules[check_controller.__module__], "claimed_registers", refuse)
    connection = RunConnection(link="rtde", registers="upper")
    survey = replace(READ, host=NOBODY)

    findings = check_controller(survey, UR10E, None, connection, ursim=False)

    (finding,) = [finding for finding in findings if finding.check == "registers"]
    assert_verdict(finding, "fail", "--registers upper", "input_int_register_24")


def test_nothing_is_written_run_or_moved(cli, controller):
    begin = tick(controller)
    cli("doctor", "--host", controller.host, "--robot", "ur10e")

    record = controller.record(after=begin - 1)

    assert not len(record.input_tick)
    assert (record.actual_q == record.actual_q[0]).all()
    assert np.isnan(record.setpoint).all()
    assert controller.state()["runtime_state"] == "STOPPED"


def test_it_loads_neither_ur_rtdes_control_interface_nor_the_emulator(controller):
    program = (
        "import sys; from simbridge.doctor import doctor; "
        f"doctor('real', host={controller.host!r}, json=True); "
        "print([name for name in sys.modules if name.startswith(('rtde_', 'simbridge.emulator'))])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert ended.stdout.splitlines()[-1] == "[]"


def test_the_command_that_starts_ursim_is_offered(cli):
    answer = cli("doctor", "--backend", "ursim", "--host", NOBODY)

    assert answer.status == 2

    text = " ".join(answer.out.split())
    assert f"`simbridge ursim start ur10 --host {NOBODY}`" in text


@pytest.mark.parametrize("robot", ["ur10", "ur10e"])
def test_the_manual_starts_ursim_elsewhere_with_the_same_command(robot):
    assert docker_command(load_robot(robot)) in MANUAL.read_text().splitlines()


def test_without_a_host_the_installation_is_checked(cli):
    answer = cli("doctor")

    assert answer.status == 0
    assert f"{ENGINES[SIMULATION].title} moved ur10 through 8 ms" in " ".join(answer.out.split())


def test_a_real_arm_needs_an_address(cli):
    answer = cli("doctor", "--backend", "real")

    assert (answer.status, "--host" in answer.err) == (2, True)


def test_a_started_cell_file_matches(cli, controller, tmp_path):
    file = tmp_path / "lab.toml"

    assert (
        cli("doctor", "--host", controller.host, "--robot", "ur10e", "--write-cell", file).status
        == 0
    )

    cell = load_cell(file)
    assert (cell.host, cell.robot, cell.tcp, cell.payload) == (
        controller.host,
        "ur10e",
        (0.0,) * 6,
        0.0,
    )
    assert cell.mounting is None
    assert read_calibration(cell.calibration) == read_calibration(CALIBRATION)

    answer = cli("doctor", "--backend", "real", "--cell", file, "--json")
    assert answer.status == 0

    seen = {f["check"]: f["seen"] for f in json.loads(answer.out)["findings"]}
    assert all("cell file" in seen[check] for check in ("serial number", "TCP", "payload"))
    assert "is the controller's" in seen["calibration file"]


def test_another_cells_file_fails(cli, controller, tmp_path):
    file = tmp_path / "lab.toml"
    file.write_text(
        f'host = "{controller.host}"\nrobot = "ur10e"\nserial_number = "1"\n'
        "tcp = [0, 0, 0.2, 0, 0, 0]\npayload = 3.0\n"
    )

    answer = cli("doctor", "--cell", file, "--json")

    assert answer.status == 2
    assert [c for c, status in statuses(answer).items() if status == "fail"] == [
        "serial number",
        "TCP",
        "payload",
    ]


def test_an_existing_cell_file_is_not_overwritten(cli, controller, tmp_path):
    file = tmp_path / "lab.toml"
    file.write_text("# mine\n")

    answer = cli("doctor", "--host", controller.host, "--robot", "ur10e", "--write-cell", file)

    assert (answer.status, file.read_text(), list(tmp_path.iterdir())) == (2, "# mine\n", [file])
    assert str(file) in answer.message.replace("\n", "")

    calibration = tmp_path / "other.calibration.toml"
    calibration.write_text("# mine too\n")

    assert (
        cli(
            "doctor",
            "--host",
            controller.host,
            "--robot",
            "ur10e",
            "--write-cell",
            tmp_path / "other.toml",
        ).status
        == 2
    )
    assert sorted(tmp_path.iterdir()) == [file, calibration]


def test_a_cell_file_needs_a_controller_that_answers(cli, tmp_path):
    answer = cli("doctor", "--host", NOBODY, "--write-cell", tmp_path / "lab.toml")

    assert answer.status == 2
    assert "port 30004" in answer.message
    assert cli("doctor", "--write-cell", tmp_path / "lab.toml").status == 2
    assert list(tmp_path.iterdir()) == []


TABLE = (("deviation from nominal", "mm", "deg"), ("shoulder_lift_joint", "0.123", "0.0456"))
FINDINGS = [
    success("port 29999", "dashboard answers"),
    Finding(
        "calibration",
        "pass",
        "calibrated; at home the tool deviates from nominal by 3.37 mm and 0.101 deg",
        table=TABLE,
    ),
    warning(
        "kernel",
        "6.8.0-generic #42-Ubuntu SMP PREEMPT_DYNAMIC, not real-time",
        "sudo pro enable realtime-kernel",
    ),
    failure("payload", "[unknown] while port 30004 does not answer", "Fix the ports first."),
    failure("program", "unknown while port 30004 does not answer", "Fix the ports first."),
]


@few_examples(20)
@given(st.integers(40, 200))
def test_the_checklist_fits_any_terminal(width):
    out = io.StringIO()
    show(
        "The controller at 192.168.1.10", FINDINGS, Console(file=out, width=width, highlight=False)
    )

    text = out.getvalue()

    assert max(map(len, text.splitlines())) <= width

    words = text.split()
    for finding in FINDINGS:
        for word in f"{finding.status} {finding.check} {finding.seen} {finding.fix}".split():
            assert word in words
    assert all(cell in text for row in TABLE for cell in row)


def test_a_shared_remedy_is_printed_once():
    out = io.StringIO()
    show("title", FINDINGS, Console(file=out, width=80))

    assert out.getvalue().count("Fix the ports first.") == 1
    assert "2 checks failed" in out.getvalue()


@pytest.mark.parametrize("read", [READ, SILENT], ids=["all well", "silent"])
def test_every_check_reports_something_whatever_could_be_read(read):
    survey = replace(read, host="127.0.0.87")

    findings = check_controller(survey, UR10E, None, RunConnection(), ursim=True)

    assert len({finding.check for finding in findings}) == len(findings)

    for finding in findings:
        assert_verdict(finding, finding.status)
        assert finding.seen
