"""Experiments of which nobody looks at the plots."""

from __future__ import annotations

import pytest

from simbridge.experiments.outcome import Plot


@pytest.fixture
def without_plots(monkeypatch):
    """Experiments without their plots, which take most of their time."""
    monkeypatch.setattr(Plot, "save", lambda *_: None)
