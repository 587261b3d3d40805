"""Checks of the installation: what passes, and how the rest is reported."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import numpy as np

from simbridge.doctor import installation_checks
from simbridge.recording.record_tables import installed
from tests.doctor.surveys import verdict


def test_the_installation_is_checked(tmp_path):
    verdict(installation_checks.check_python((3, 11)), "pass")
    verdict(installation_checks.check_python((3, 13)), "fail", "3.10, 3.11 or 3.12")
    verdict(
        installation_checks.check_packages(installed(("numpy",))), "pass", f"numpy {np.__version__}"
    )
    missing = installed(("numpy", "no-such-package-at-all"))
    verdict(
        installation_checks.check_packages(missing), "fail", "pip install no-such-package-at-all"
    )
    verdict(
        installation_checks.check_kernel_cache(Path("/proc/nowhere/kernels")),
        "warn",
        "SIMBRIDGE_CACHE",
    )
    verdict(
        installation_checks.check_kernel_cache(tmp_path / ("x" * 300) / "kernels"),
        "warn",
        "name too long",
    )
    verdict(
        installation_checks.check_kernel_cache(tmp_path / "not" / "yet"),
        "pass",
        str(tmp_path / "not" / "yet"),
    )
    verdict(installation_checks.check_simulation("no_such_robot"), "fail", "no_such_robot")


def test_every_required_package_is_checked():
    # PyBullet has two names on the package index, and tomli is only for Python 3.10.
    project = msgspec.toml.decode((Path(__file__).parents[2] / "pyproject.toml").read_bytes())[
        "project"
    ]
    required = [
        re.match(r"[\w.-]+", line).group() for line in project["dependencies"] if ";" not in line
    ]

    assert sorted(installation_checks.PACKAGES) == sorted(required)
