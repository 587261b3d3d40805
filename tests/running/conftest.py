"""What the tests of runs and repeats share."""

from __future__ import annotations

import pytest

from simbridge.running import repeating


@pytest.fixture
def without_common_page(monkeypatch):
    """Repeats without their common page, which takes half a second to draw."""
    monkeypatch.setattr(repeating, "write_repeats_page", lambda *_: None)
