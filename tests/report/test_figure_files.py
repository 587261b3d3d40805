"""Figures for a paper: one column wide, with fonts of its size."""

from __future__ import annotations

import json
import re
import shutil

import pytest

from simbridge.report import figure_files
from simbridge.report.figure_files import write_figures

pytestmark = pytest.mark.slow

# Points of 88 mm, up to rounding to pixels.
COLUMN_WIDTH = pytest.approx(249.4, abs=0.4)
NAMES = ("errors", "contour", "map", "path-xy")


@pytest.fixture
def errors_alone(monkeypatch):
    """The figure of the errors is written alone: a PDF's font takes 0.3 s in each."""
    drawings_of = figure_files._drawings
    monkeypatch.setattr(
        figure_files, "_drawings", lambda *run: {"errors": drawings_of(*run)["errors"]}
    )


@pytest.fixture
def run(line_run, tmp_path):
    """A copy of a run."""
    return shutil.copytree(line_run, tmp_path / "line")


@pytest.mark.parametrize(("offset", "panels"), [(1e-7, 1), (1e-3, 2)])
def test_error_figure_has_the_panels_of_the_page(measured, tmp_path, errors_alone, offset, panels):
    (file,) = write_figures(*measured(plant_offset=offset), tmp_path, "svg")

    height = float(re.search(r'height="([\d.]+)pt"', file.read_text(encoding="utf-8"))[1])
    assert (height > 200.0) == (panels == 2)


def test_svg_needs_no_font(cli, run, short_pages):
    answer = cli("report", run, "--figures", run / "figures", "--json")

    assert answer.status == 0
    assert json.loads(answer.out)["figures"] == [f"{run / 'figures' / name}.svg" for name in NAMES]
    for name in NAMES:
        text = (run / "figures" / f"{name}.svg").read_text()
        assert float(re.search(r'width="([\d.]+)pt"', text)[1]) == COLUMN_WIDTH
        assert "<text" not in text
        assert "<dc:date>" not in text


def test_pdf_embeds_its_font(cli, run, short_pages, errors_alone):
    answer = cli("report", run, "--figures", run / "figures", "--format", "pdf")

    assert answer.status == 0
    content = (run / "figures" / "errors.pdf").read_bytes()
    width = re.search(rb"/MediaBox \[ ?0 0 ([\d.]+) ", content)[1]
    assert float(width) == COLUMN_WIDTH
    assert b"/FontFile2" in content
    assert b"/CreationDate" not in content


def test_unknown_format_writes_nothing(cli, run):
    answer = cli("report", run, "--figures", run / "figures", "--format", "eps")

    assert answer.status == 2
    assert "There is no format 'eps'" in answer.message
    assert not (run / "figures").exists()
