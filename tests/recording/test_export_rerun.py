"""`simbridge export --to rerun`."""

from __future__ import annotations

import pytest


@pytest.mark.slow
def test_rerun_has_paths_tool_arm_errors_and_joints(cli, exported_run):
    pytest.importorskip("rerun")

    assert cli("export", exported_run, "--to", "rerun").status == 0

    content = (exported_run / "samples.rrd").read_bytes()
    assert content.startswith(b"RRF")
    assert b"paths/attained" in content
    assert b"/tool" in content
    assert b"/arm" in content
    assert b"error/tracking_mm" in content
    assert b"joints/elbow_joint/position_rad" in content
