"""replay.html: one page, made from the run alone, that loads nothing."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simbridge.evaluation.evaluation import Evaluation
from simbridge.recording.run_directory import RunDirectory
from simbridge.report.replay import replay_page
from tests.records import changed
from tests.report.made_up_run import MadeUp


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Evaluation:
    return MadeUp(plant_offset=1e-3).evaluation(tmp_path_factory.mktemp("run"))


def test_the_page_may_load_nothing_and_is_small(made: Evaluation) -> None:
    page = replay_page(made, "Replay")
    assert len(page) < 3_000_000
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy.startswith("default-src &#39;none&#39;")
    assert "http" not in policy
    assert "*" not in policy


def test_names_are_shown_as_they_are_and_never_run(made: Evaluation) -> None:
    hostile = '<script>alert("1")</script>'
    settings = changed(made.settings, scenario={"name": hostile})
    page = replay_page(Evaluation(made.directory, settings, made.plan, made.log), hostile)
    assert hostile not in page
    assert page.count("&lt;script&gt;alert(&#34;1&#34;)&lt;/script&gt;") == 2


def test_an_arm_of_known_shapes_is_drawn_with_them(line_run: Path) -> None:
    evaluation = Evaluation.of(RunDirectory.open(line_run))
    shapes = evaluation.settings.shapes
    assert list(shapes) == ["base_link", *(link for link in shapes if link != "base_link")]
    assert len(shapes) == 7
    upper_arm = shapes["upper_arm_link"]
    assert any(
        shape.kind == "capsule" and np.allclose(shape.end, [-0.612, 0.0, 0.1758])
        for shape in upper_arm
    )


@pytest.mark.parametrize("run", [{"samples": 1}, {"joints": 1}, {"swing": 0.0}])
def test_every_run_has_a_replay(tmp_path: Path, run: dict[str, Any]) -> None:
    assert "__VISER_EMBED_DATA__" in replay_page(MadeUp(**run).evaluation(tmp_path), "Replay")
