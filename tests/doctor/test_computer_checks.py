"""Checks of this computer: which facts pass, and how the others are reported."""

from __future__ import annotations

from dataclasses import replace

from simbridge.doctor.computer_checks import (
    ComputerFacts,
    check_cores,
    check_governor,
    check_kernel,
    check_priority,
    read_computer,
)
from tests.doctor.surveys import assert_verdict

COMPUTER = ComputerFacts("6.8.0-rt #1 SMP PREEMPT_RT", True, 99, True, ("performance",), 4)


def test_a_suitable_computer_passes_and_another_warns():
    checks = (
        check_kernel,
        check_priority,
        check_governor,
        check_cores,
    )

    assert [check(COMPUTER).status for check in checks] == ["pass"] * 4

    assert_verdict(check_kernel(replace(COMPUTER, realtime=False)), "warn", "not real-time")
    assert_verdict(
        check_priority(replace(COMPUTER, priority_allowed=False, priority_limit=0)),
        "warn",
        "limit 0",
    )
    assert_verdict(
        check_governor(replace(COMPUTER, governors=("powersave",))),
        "warn",
        "powersave",
        "cpupower",
    )
    assert_verdict(check_governor(replace(COMPUTER, governors=())), "skip", "cannot be read")
    assert_verdict(check_cores(replace(COMPUTER, cores=1)), "warn")


def test_the_computer_is_read_from_the_systems_files(tmp_path):
    (tmp_path / "sys/kernel").mkdir(parents=True)
    (tmp_path / "sys/kernel/realtime").write_text("1\n")
    for core, governor in enumerate(("powersave", "performance", "performance")):
        directory = tmp_path / f"sys/devices/system/cpu/cpu{core}/cpufreq"
        directory.mkdir(parents=True)
        (directory / "scaling_governor").write_text(f"{governor}\n")

    facts = read_computer(tmp_path)

    assert (facts.realtime, facts.governors) == (True, ("performance", "powersave"))
    assert facts.cores >= 1

    (tmp_path / "empty").mkdir()
    assert read_computer(tmp_path / "empty").governors == ()
