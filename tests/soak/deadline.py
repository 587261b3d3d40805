"""A plugin of pytest (`-p tests.soak.deadline`) that skips the tests for which no time is left."""

from __future__ import annotations

import os
import time

import pytest

END = "SIMBRIDGE_SOAK_TESTS_END"
"""Environment variable: when the last test may begin, s since 1970."""


@pytest.hookimpl(tryfirst=True)  # before the fixtures, which may take seconds
def pytest_runtest_setup() -> None:
    if time.time() > float(os.environ[END]):
        pytest.skip("no time was left for it")
