"""Terminals for the tests of teleoperation."""

from __future__ import annotations

import pytest

from tests.teleop.terminal import Pty


@pytest.fixture
def terminal():
    """Makes pseudo-terminals, and closes them at the end."""
    made = []

    def make(*arguments, **more) -> Pty:
        made.append(Pty(*arguments, **more))
        return made[-1]

    yield make
    for one in made:
        one.close()
