"""What is PyBullet's own: its window, and what it prints."""

from __future__ import annotations

import pytest

from simbridge.backends.pybullet import PyBulletBackend
from simbridge.errors import NoDisplay
from simbridge.planning.options import Options
from simbridge.planning.scenario import Scenario
from simbridge.running.runner import run
from simbridge.trajectory import square
from tests.backends.test_simulation import with_forearm_inertia
from tests.optional_packages import needs_pybullet

pytestmark = needs_pybullet


@pytest.mark.parametrize("moments", [(0.02, 0.03, 40.0), (-0.02, 0.03, 0.04)])
def test_impossible_inertia_prints_no_warning(moments, capfd):
    with PyBulletBackend(with_forearm_inertia(moments), Options()):
        pass

    # PyBullet's own warning would be part of the result.
    assert "Bad inertia" not in capfd.readouterr().out


@pytest.mark.slow
def test_a_window_without_a_display_writes_nothing(monkeypatch, tmp_path):
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    scenario = Scenario(square(side=0.05), name="small")

    with pytest.raises(NoDisplay, match="DISPLAY"):
        run(scenario, backend="pybullet", out=tmp_path / "run", options=Options(gui=True))

    assert not (tmp_path / "run").exists()
