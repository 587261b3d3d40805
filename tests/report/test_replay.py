"""replay.html: one page, made from the run alone, that loads nothing."""

from __future__ import annotations

import re

import numpy as np
import pytest

from simbridge.evaluation.evaluation import Evaluation
from simbridge.recording.run_directory import RunDirectory
from simbridge.report.replay import replay_page
from tests.records import changed
from tests.report.made_up_run import MadeUp

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def evaluation(tmp_path_factory):
    """A made-up run with an error of the plant."""
    return MadeUp(plant_offset=1e-3).evaluation(tmp_path_factory.mktemp("run"))


def test_page_is_small_and_loads_nothing(evaluation):
    page = replay_page(evaluation, "Replay")

    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert len(page) < 3_000_000
    assert policy.startswith("default-src &#39;none&#39;")
    assert "http" not in policy
    assert "*" not in policy


def test_names_are_shown_and_never_run(evaluation):
    hostile = '<script>alert("1")</script>'
    settings = changed(evaluation.settings, scenario={"name": hostile})
    run = Evaluation(evaluation.directory, settings, evaluation.plan, evaluation.log)

    page = replay_page(run, hostile)

    assert hostile not in page
    assert page.count("&lt;script&gt;alert(&#34;1&#34;)&lt;/script&gt;") == 2


def test_known_arm_has_its_shapes(line_run):
    shapes = Evaluation.of(RunDirectory.open(line_run)).settings.shapes

    upper_arm_ends = [shape.end for shape in shapes["upper_arm_link"] if shape.kind == "capsule"]
    assert next(iter(shapes)) == "base_link"
    assert len(shapes) == 7
    assert any(np.allclose(end, [-0.612, 0.0, 0.1758]) for end in upper_arm_ends)


@pytest.mark.parametrize("fields", [{"samples": 1}, {"joints": 1}, {"swing": 0.0}])
def test_every_run_has_a_replay(tmp_path, fields):
    page = replay_page(MadeUp(**fields).evaluation(tmp_path), "Replay")

    assert "__VISER_EMBED_DATA__" in page
