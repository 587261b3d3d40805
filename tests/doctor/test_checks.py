"""Each check of the doctor is a function of facts: which facts pass, and how the others are reported."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pinocchio as pin
import pytest

from simbridge.doctor import computer_checks, controller_checks
from simbridge.doctor.doctor import check_controller
from simbridge.recording.record_tables import installed
from simbridge.robot import load_robot
from simbridge.robot.calibration import nominal_dh, with_dh
from simbridge.robot.calibration_file import read_calibration
from simbridge.robot.cell import Cell
from simbridge.robot.parts import RosCalibration
from simbridge.ur.controller_facts import DashboardFacts, StateFacts, Survey
from simbridge.ur.errors import ConnectionLost
from simbridge.ur.primary import ArmDescription
from tests import ros_calibration

UR10, UR10E = load_robot("ur10"), load_robot("ur10e")
URSIM = (0xFFFFFFFF,) * 6
CALIBRATION = Path(__file__).parents[1] / "data" / "ur10e_calibration.toml"
TCP = (0.0, 0.01, 0.15, 0.0, 0.0, 1.5)

STATE = StateFacts((5, 12, 6), 10.0, 7, 1, 1, 1.0, np.zeros(6), 1.5, (0.0, 0.0, 0.05))
DASHBOARD = DashboardFacts("5.12.6.1102099", "20261234567", True, "")
ARM = ArmDescription(
    kinematics=nominal_dh(UR10E),
    checksum=URSIM,
    limits=None,
    robot_type=2,
    tcp_offset=np.array(TCP),
)
READ = Survey("127.0.0.1", {}, STATE, DASHBOARD, ARM)
SILENT = Survey(
    "127.0.0.1",
    {
        port: ConnectionLost("127.0.0.1", port, "it is silent")
        for port in (29999, 30001, 30003, 30004)
    },
)


def with_state(**changes):
    return replace(READ, state=replace(STATE, **changes))


def with_dashboard(**changes):
    return replace(READ, dashboard=replace(DASHBOARD, **changes))


def with_arm(**changes):
    return replace(READ, arm=replace(ARM, **changes))


def verdict(finding, status, *words):
    """The status, words of the text, and that there is a fix unless the check passed."""
    assert finding.status == status
    text = f"{finding.seen} {finding.fix}"
    assert all(word in text for word in words), text
    assert bool(finding.fix) is (status != "pass")


@pytest.mark.parametrize("read", [READ, SILENT], ids=["all well", "silent"])
def test_every_check_reports_something_whatever_could_be_read(read):
    findings = check_controller(replace(read, host="127.0.0.87"), UR10E, None, ursim=True)
    assert len({finding.check for finding in findings}) == len(findings)
    for finding in findings:
        verdict(finding, finding.status)
        assert finding.seen


def test_a_silent_port_is_reported_with_its_reason_and_how_to_start_ursim():
    verdict(controller_checks.check_port(READ, 30004, UR10E, ursim=True), "pass", "RTDE")
    docker = ("it is silent", "docker run", "ROBOT_MODEL=UR10 ", "ursim_e-series")
    verdict(controller_checks.check_port(SILENT, 30004, UR10E, ursim=True), "fail", *docker)
    verdict(controller_checks.check_port(SILENT, 29999, UR10, ursim=True), "fail", "ursim_cb3")
    verdict(
        controller_checks.check_port(SILENT, 30004, UR10E, ursim=False),
        "fail",
        "cable",
        "ping 127.0.0.1",
    )


def test_the_software_determines_the_rate():
    verdict(controller_checks.check_software(READ), "pass", "5.12.6", "e-Series", "500 Hz")
    three = replace(
        with_state(version=(3, 15, 8)), dashboard=replace(DASHBOARD, version="3.15.8.106339")
    )
    verdict(controller_checks.check_software(three), "pass", "CB3", "125 Hz")
    verdict(
        controller_checks.check_software(with_state(version=(10, 7, 0))),
        "fail",
        "10.7.0",
        "PolyScope X",
    )
    verdict(controller_checks.check_software(with_dashboard(version="5.1.0")), "warn", "5.1.0")
    verdict(
        controller_checks.check_software(with_dashboard(version="5.12.60.1")), "warn", "5.12.60.1"
    )


def test_a_real_arm_behind_ursim_fails_and_ursim_behind_real_warns():
    real = with_arm(checksum=(1, 2, 3, 4, 5, 6))
    verdict(controller_checks.check_kind(READ, ursim=True), "pass", "URSim")
    verdict(controller_checks.check_kind(real, ursim=True), "fail", "--backend real")
    verdict(controller_checks.check_kind(real, ursim=False), "pass", "real arm")
    verdict(controller_checks.check_kind(READ, ursim=False), "warn", "--backend ursim")


def test_the_model_must_be_the_robots_or_the_right_robot_is_named():
    # A UR12e has no robot type of its own.
    verdict(controller_checks.check_model(READ, UR10E), "pass", "UR10e (or UR12e)")
    verdict(
        controller_checks.check_model(READ, replace(UR10E, name="ur12e", title="UR12e")),
        "pass",
        "UR12e",
    )
    verdict(
        controller_checks.check_model(READ, replace(UR10E, name="ur7e", title="UR7e")),
        "fail",
        "not UR7e",
    )
    verdict(controller_checks.check_model(READ, UR10), "fail", "UR10e", "--robot ur10e")
    verdict(
        controller_checks.check_model(with_arm(robot_type=6), UR10E),
        "fail",
        "UR8 Long",
        "robots/README.md",
    )
    verdict(controller_checks.check_model(with_arm(robot_type=None), UR10E), "warn", "UR10e")
    verdict(controller_checks.check_model(READ, replace(UR10E, name="mine")), "pass", "UR10e")
    verdict(
        controller_checks.check_model(READ, replace(UR10E, name="mine", series="CB3")),
        "fail",
        "CB3",
    )


def test_the_mounting_has_to_be_compared_by_the_operator():
    verdict(
        controller_checks.check_mounting(Cell(mounting="ceiling")), "warn", "ceiling", "pendant"
    )
    verdict(
        controller_checks.check_mounting(Cell(mounting=(0.0, 1.5, 0.0))),
        "warn",
        "[0.0, 1.5, 0.0] rad",
    )
    verdict(controller_checks.check_mounting(Cell()), "warn", "floor is assumed")


def test_the_serial_number_must_be_the_cells():
    verdict(controller_checks.check_serial_number(READ, None), "pass", "20261234567")
    verdict(controller_checks.check_serial_number(READ, "20261234567"), "pass", "cell file")
    verdict(controller_checks.check_serial_number(READ, "1"), "fail", "20261234567", "says 1")
    verdict(
        controller_checks.check_serial_number(with_dashboard(serial_number=None), None),
        "pass",
        "3.12",
    )
    verdict(
        controller_checks.check_serial_number(with_dashboard(serial_number=None), "1"),
        "warn",
        "plate",
    )


def test_remote_control_must_be_on_if_the_controller_has_it():
    verdict(controller_checks.check_remote_control(READ), "pass")
    verdict(
        controller_checks.check_remote_control(with_dashboard(remote_control=False)),
        "fail",
        "Settings > System > Remote Control",
    )
    verdict(
        controller_checks.check_remote_control(with_dashboard(remote_control=None)), "warn", "5.6"
    )
    old = replace(with_state(version=(3, 15, 8)), dashboard=replace(DASHBOARD, remote_control=None))
    verdict(controller_checks.check_remote_control(old), "pass", "CB3")


@pytest.mark.parametrize("mode", [3, 4, 5])
def test_an_arm_without_power_fails_except_ursim_which_a_run_powers_on(mode):
    verdict(
        controller_checks.check_robot_mode(with_state(robot_mode=mode), ursim=True),
        "pass",
        f"({mode})",
    )
    verdict(
        controller_checks.check_robot_mode(with_state(robot_mode=mode), ursim=False),
        "fail",
        "release the brakes",
    )


@pytest.mark.parametrize("mode", [-1, 0, 1, 2, 6, 8, 99])
def test_an_arm_that_cannot_be_powered_fails_everywhere(mode):
    verdict(
        controller_checks.check_robot_mode(with_state(robot_mode=mode), ursim=True),
        "fail",
        f"({mode})",
    )


@pytest.mark.parametrize(
    ("mode", "status", "word"),
    [(1, "pass", "normal"), (2, "warn", "reduced"), (3, "fail", "five seconds"), (5, "fail", "safeguard"),
     (6, "fail", "release the button"), (7, "fail", "release the button"), (8, "fail", "violation"),
     (9, "fail", "fault"), (99, "fail", "unknown")],
)  # fmt: skip
def test_every_stop_has_its_own_fix(mode, status, word):
    verdict(
        controller_checks.check_safety_mode(with_state(safety_mode=mode)), status, word, f"({mode})"
    )


@pytest.mark.parametrize("running", [2, 3, 4, 5])
def test_a_program_that_runs_or_is_paused_fails_and_is_named(running):
    verdict(controller_checks.check_program(READ), "pass", "stopped")
    busy = replace(
        with_state(runtime_state=running),
        dashboard=replace(DASHBOARD, program="/programs/pick.urp"),
    )
    verdict(controller_checks.check_program(busy), "fail", "pick.urp", "never stops")


def test_registers_of_another_client_are_named():
    verdict(controller_checks.check_registers(()), "pass", "free")
    verdict(
        controller_checks.check_registers(("a", "b", "c")), "fail", "a, b and 1 more", "ROS driver"
    )
    verdict(controller_checks.check_registers(None), "fail", "30004")


def test_the_slider_should_be_at_its_end_and_must_not_be_at_zero():
    verdict(controller_checks.check_slider(READ), "pass", "100 %")
    verdict(controller_checks.check_slider(with_state(slider=0.3)), "warn", "30 %")
    verdict(controller_checks.check_slider(with_state(slider=0.0)), "fail", "0 %")


def test_tcp_and_payload_are_the_cells():
    verdict(controller_checks.check_tcp(READ, None), "pass", "150.0")
    verdict(controller_checks.check_tcp(READ, TCP), "pass", "cell file")
    verdict(
        controller_checks.check_tcp(READ, (0.0, 0.01, 0.16, *TCP[3:])), "fail", "150.0", "160.0"
    )
    verdict(controller_checks.check_tcp(READ, (*TCP[:5], 1.5 - 2.0 * np.pi)), "pass")
    verdict(controller_checks.check_payload(READ, None), "pass", "1.5 kg", "50.0 mm")
    verdict(controller_checks.check_payload(READ, 1.5), "pass", "cell file")
    verdict(controller_checks.check_payload(READ, 2.0), "fail", "1.5 kg", "2 kg")
    verdict(controller_checks.check_payload(READ, 1.5, (0.0, 0.0, 0.0505)), "pass", "cell file")
    verdict(
        controller_checks.check_payload(READ, 1.5, (-0.2, 0.0, 0.05)),
        "fail",
        "0 0 50.0 mm; the cell file",
        "−200 0 50.0 mm",
    )
    verdict(
        controller_checks.check_payload(with_state(payload=None, payload_cog=None), 2.0),
        "warn",
        "3.11",
    )


def test_nominal_kinematics_do_not_deviate():
    finding = controller_checks.check_calibration(READ, UR10E)
    verdict(finding, "pass", "URSim", "0 mm")
    assert finding.table == ()


def test_a_calibration_is_reported_joint_by_joint_and_at_the_tool():
    table, checksum = read_calibration(CALIBRATION)
    finding = controller_checks.check_calibration(
        with_arm(kinematics=table, checksum=checksum), UR10E
    )
    verdict(finding, "pass", "calibrated")
    assert [row[0] for row in finding.table[1:]] == [*UR10E.joint_names, "tool0"]
    # Computed from the table itself, with offsets of hundreds of metres, by pinocchio's forward kinematics.
    apart = flange(UR10E).actInv(flange(with_dh(UR10E, table)))
    off = float(np.linalg.norm(apart.translation))
    assert 1e-3 < off < 2e-2
    assert f"{off * 1e3:.3g} mm" in finding.seen
    assert f"{np.degrees(np.linalg.norm(pin.log3(apart.rotation))):.3g} deg" in finding.seen


def flange(robot):
    data = robot.model.createData()
    pin.framesForwardKinematics(robot.model, data, UR10E.home)
    return data.oMf[robot.model.getFrameId("tool0")]


def test_the_kinematics_of_another_model_fail():
    verdict(controller_checks.check_calibration(READ, UR10), "fail", "UR10", "--robot")


def test_a_calibration_file_must_be_the_controllers():
    mine = with_arm(checksum=(1, 2, 3, 4, 5, 6))
    verdict(
        controller_checks.check_calibration_file(mine, CALIBRATION, (1, 2, 3, 4, 5, 6)),
        "pass",
        CALIBRATION.name,
    )
    verdict(
        controller_checks.check_calibration_file(mine, CALIBRATION, (1, 2, 3, 4, 5, 7)),
        "fail",
        "checksum",
    )


def test_a_calibration_file_of_ros_must_place_the_flange_as_the_controller_does():
    table, checksum = read_calibration(CALIBRATION)
    file = RosCalibration(
        tuple(map(tuple, ros_calibration.printed(table.theta, table.a, table.d, table.alpha)))
    )
    path = Path("my_robot_calibration.yaml")
    mine = with_arm(kinematics=table, checksum=checksum)
    verdict(
        controller_checks.check_ros_calibration_file(mine, path, file),
        "pass",
        path.name,
        "within 0 mm and 0 mrad",
    )
    verdict(
        controller_checks.check_ros_calibration_file(READ, path, file),
        "fail",
        "mm and",
        "mrad at the flange",
        "ur_calibration",
    )


def measured(rtde=0.0003, late=0.0002, missed=0, gap=0.002):
    round_trips = np.full(20, rtde), np.full(20, 0.001)
    return computer_checks.NetworkFacts(
        *round_trips, np.full(1000, late), missed, 0.002, np.full(100, gap)
    )


def test_a_slow_or_uneven_network_warns():
    verdict(computer_checks.check_round_trip(measured()), "pass", "0.30 ms")
    verdict(computer_checks.check_round_trip(measured(rtde=0.02)), "warn", "cable")
    verdict(computer_checks.check_jitter(measured()), "pass", "1000 states")
    verdict(computer_checks.check_jitter(measured(late=0.005)), "warn", "5.00 ms")
    verdict(computer_checks.check_jitter(measured(missed=3)), "warn", "3 missed")
    verdict(
        computer_checks.check_jitter(replace(measured(), lateness=np.zeros(0))),
        "fail",
        "stands still",
    )


def test_lateness_is_relative_to_the_fastest_state_and_gaps_are_missed_states():
    stamps = np.array([10.0, 10.002, 10.004, 10.010])
    arrivals = np.array([5.001, 5.003, 5.008, 5.011])
    facts = computer_checks.network_facts(np.ones(1), np.ones(1), arrivals, stamps, 0.002)
    assert facts.lateness == pytest.approx([0.0, 0.0, 0.003, 0.0], abs=1e-12)
    assert facts.missed == 2


def test_states_in_bursts_warn_of_longer_runs():
    verdict(computer_checks.check_arrival(measured()), "pass", "2.00 ms", "0 %")
    verdict(
        computer_checks.check_arrival(measured(gap=0.012)),
        "warn",
        "every 12.00 ms",
        "17 %",
        "take longer",
    )


def test_states_in_longer_bursts_warn_that_a_run_would_end():
    verdict(
        computer_checks.check_arrival(measured(gap=0.05)),
        "warn",
        "every 50.00 ms",
        "80 %",
        "late_states",
    )


def test_states_that_arrive_together_are_one_arrival():
    stamps = np.array([10.0, 10.002, 10.004, 10.006])
    arrivals = np.array([5.005, 5.005, 5.015, 5.015])
    facts = computer_checks.network_facts(np.ones(1), np.ones(1), arrivals, stamps, 0.002)
    assert facts.gaps == pytest.approx([0.01])


COMPUTER = computer_checks.ComputerFacts(
    "6.8.0-rt #1 SMP PREEMPT_RT", True, 99, True, ("performance",), 4
)


def test_a_suitable_computer_passes_and_another_warns():
    checks = (
        computer_checks.check_kernel,
        computer_checks.check_priority,
        computer_checks.check_governor,
        computer_checks.check_cores,
    )
    assert [check(COMPUTER).status for check in checks] == ["pass"] * 4
    verdict(
        computer_checks.check_kernel(replace(COMPUTER, realtime=False)), "warn", "not real-time"
    )
    verdict(
        computer_checks.check_priority(replace(COMPUTER, priority_allowed=False, priority_limit=0)),
        "warn",
        "limit 0",
    )
    verdict(
        computer_checks.check_governor(replace(COMPUTER, governors=("powersave",))),
        "warn",
        "powersave",
        "cpupower",
    )
    verdict(
        computer_checks.check_governor(replace(COMPUTER, governors=())), "pass", "cannot be read"
    )
    verdict(computer_checks.check_cores(replace(COMPUTER, cores=1)), "warn")


def test_the_computer_is_read_from_the_systems_files(tmp_path):
    (tmp_path / "sys/kernel").mkdir(parents=True)
    (tmp_path / "sys/kernel/realtime").write_text("1\n")
    for core, governor in enumerate(("powersave", "performance", "performance")):
        directory = tmp_path / f"sys/devices/system/cpu/cpu{core}/cpufreq"
        directory.mkdir(parents=True)
        (directory / "scaling_governor").write_text(f"{governor}\n")
    facts = computer_checks.read_computer(tmp_path)
    assert (facts.realtime, facts.governors) == (True, ("performance", "powersave"))
    assert facts.cores >= 1
    (tmp_path / "empty").mkdir()
    assert computer_checks.read_computer(tmp_path / "empty").governors == ()


def test_the_installation_is_checked(tmp_path):
    verdict(computer_checks.check_python((3, 11)), "pass")
    verdict(computer_checks.check_python((3, 13)), "fail", "3.10, 3.11 or 3.12")
    verdict(
        computer_checks.check_packages(installed(("numpy",))), "pass", f"numpy {np.__version__}"
    )
    missing = installed(("numpy", "no-such-package-at-all"))
    verdict(computer_checks.check_packages(missing), "fail", "pip install no-such-package-at-all")
    verdict(
        computer_checks.check_kernel_cache(Path("/proc/nowhere/kernels")), "warn", "SIMBRIDGE_CACHE"
    )
    verdict(
        computer_checks.check_kernel_cache(tmp_path / ("x" * 300) / "kernels"),
        "warn",
        "name too long",
    )
    verdict(
        computer_checks.check_kernel_cache(tmp_path / "not" / "yet"),
        "pass",
        str(tmp_path / "not" / "yet"),
    )
    verdict(computer_checks.check_simulation("no_such_robot"), "fail", "no_such_robot")


def test_every_required_package_is_checked():
    # PyBullet has two names on the package index, and tomli is only for Python 3.10.
    project = msgspec.toml.decode((Path(__file__).parents[2] / "pyproject.toml").read_bytes())[
        "project"
    ]
    required = [
        re.match(r"[\w.-]+", line).group() for line in project["dependencies"] if ";" not in line
    ]
    assert sorted(computer_checks.PACKAGES) == sorted(required)
