"""`simbridge report RUN --figures DIR`: files for a paper, one column wide, with fonts of its size."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

# Points of 88 mm, up to rounding to pixels.
COLUMN = pytest.approx(249.4, abs=0.4)
NAMES = ("errors", "contour", "map", "path-xy")


@pytest.fixture
def run(square_run: Path, tmp_path: Path) -> Path:
    return shutil.copytree(square_run, tmp_path / "square")


def test_svg_figures_are_a_column_wide_and_need_no_font(
    cli: Any, run: Path, short_pages: None
) -> None:
    answer = cli("report", run, "--figures", run / "figures", "--json")
    assert answer.status == 0
    assert json.loads(answer.out)["figures"] == [f"{run / 'figures' / name}.svg" for name in NAMES]
    for name in NAMES:
        text = (run / "figures" / f"{name}.svg").read_text()
        assert float(re.search(r'width="([\d.]+)pt"', text)[1]) == COLUMN
        assert "<text" not in text and "<dc:date>" not in text


def test_pdf_figures_are_a_column_wide_and_embed_their_font(
    cli: Any, run: Path, short_pages: None
) -> None:
    assert cli("report", run, "--figures", run / "figures", "--format", "pdf").status == 0
    for name in NAMES:
        content = (run / "figures" / f"{name}.pdf").read_bytes()
        width = re.search(rb"/MediaBox \[ ?0 0 ([\d.]+) ", content)[1]
        assert float(width) == COLUMN
        assert b"/FontFile2" in content and b"/CreationDate" not in content


def test_another_format_is_refused_before_anything_is_written(cli: Any, run: Path) -> None:
    answer = cli("report", run, "--figures", run / "figures", "--format", "eps")
    assert answer.status == 2 and "There is no format 'eps'" in answer.message
    assert not (run / "figures").exists()
