"""Checks of the installation: what passes, and how the rest is reported."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import numpy as np
import pytest

from simbridge.backends import link_choice
from simbridge.doctor.installation_checks import (
    PACKAGES,
    check_kernel_cache,
    check_link,
    check_packages,
    check_python,
    check_simulation,
)
from simbridge.recording.record_tables import installed
from tests.doctor.surveys import SILENT, assert_verdict


def test_the_installation_is_checked(tmp_path):
    assert_verdict(check_python((3, 11)), "pass")
    assert_verdict(check_python((3, 15)), "fail", "3.10 to 3.14")
    assert_verdict(check_packages(installed(("numpy",))), "pass", f"numpy {np.__version__}")

    missing = installed(("numpy", "no-such-package-at-all"))
    assert_verdict(check_packages(missing), "fail", "pip install no-such-package-at-all")
    assert_verdict(check_kernel_cache(Path("/proc/nowhere/kernels")), "warn", "SIMBRIDGE_CACHE")
    assert_verdict(check_kernel_cache(tmp_path / ("x" * 300) / "kernels"), "warn", "name too long")
    assert_verdict(
        check_kernel_cache(tmp_path / "not" / "yet"),
        "pass",
        str(tmp_path / "not" / "yet"),
    )
    assert_verdict(check_simulation("no_such_robot"), "fail", "no_such_robot")


@pytest.mark.parametrize(
    ("is_installed", "version", "words"),
    [
        (True, (5, 12, 6), ("ur_rtde",)),
        (False, (5, 12, 6), ("rtde, simbridge's own", "ur_rtde is not installed")),
        (True, (10, 12, 0), ("rtde, simbridge's own", "PolyScope X")),
    ],
)
def test_the_link_of_a_run_is_named(is_installed, version, words, monkeypatch):
    monkeypatch.setattr(link_choice.util, "find_spec", lambda _name: is_installed or None)

    assert_verdict(check_link(version=version), "pass", *words)


@pytest.mark.parametrize(
    ("choice", "is_installed", "version", "realtime_error", "status", "words"),
    [
        ("ur_rtde", True, (5, 12, 6), None, "pass", "ur_rtde"),
        ("ur_rtde", False, (5, 12, 6), None, "fail", "--link rtde works without it"),
        ("ur_rtde", True, (5, 12, 6), SILENT.lost[30003], "fail", "port 30003"),
        ("ur_rtde", True, (10, 12, 0), None, "fail", "Use --link rtde"),
        ("rtde", False, (5, 12, 6), SILENT.lost[30003], "pass", "rtde, simbridge's own"),
        (None, True, (5, 12, 6), SILENT.lost[30003], "pass", "rtde, simbridge's own"),
    ],
)
def test_a_link_that_a_run_would_refuse_fails(
    choice, is_installed, version, realtime_error, status, words, monkeypatch
):
    monkeypatch.setattr(link_choice.util, "find_spec", lambda _name: is_installed or None)

    assert_verdict(check_link(choice, version, realtime_error), status, words)


def test_every_required_package_is_checked():
    # The others are only for some Pythons or machines.
    project = msgspec.toml.decode((Path(__file__).parents[2] / "pyproject.toml").read_bytes())[
        "project"
    ]
    required = [
        re.match(r"[\w.-]+", line).group() for line in project["dependencies"] if ";" not in line
    ]

    assert sorted(PACKAGES) == sorted(required)
