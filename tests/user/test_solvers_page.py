"""docs/solvers.md: a function of the user's own, entered as the page shows it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "solvers.md"

pytestmark = pytest.mark.slow


def test_the_solver_of_the_page_takes_part(cli, line, short_suite, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (source,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    Path("my_ik.py").write_text(source)
    solvers = ("--solver", "closed-form", "./my_ik.py:step")
    motion = ("--scenario", line, "--motion", line)

    answer = cli("experiment", "solvers", *solvers, *motion, "--motion-time", 60, "--out", "mine")

    assert answer.status == 0, answer.err
    results = json.loads(Path("mine", "results.json").read_text())
    own = next(row for row in results["motion_results"] if "my_ik" in row["solver"])
    assert own["faults"] == []
    assert own["steps_done"] == own["steps"]
    assert own["error"]["max_m"] < 1e-4
    assert "my_ik" in Path("mine", "solvers.html").read_text()
