"""Checks of this computer: which facts pass, and how the others are reported."""

from __future__ import annotations

from dataclasses import replace

from simbridge.doctor import computer_checks
from tests.doctor.surveys import verdict

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
