"""A cell file is read strictly: an error names the file, the field and, where known, the line."""

from __future__ import annotations

import numpy as np
import pytest

from simbridge.errors import InputFileError
from simbridge.robot.cell import Cell
from simbridge.robot.cell_file import load_cell
from simbridge.robot.obstacles import Box, Capsule, Plane

BOX = "[[keep_out_boxes]]\nname = 'a'\ncentre = [0, 0, 0]\nsize = [1, 1, 1]\n"
PLANE = "[[keep_out_planes]]\nname = 'b'\npoint = [0, 0, 0]\nnormal = [0, 0, 1]\n"
TOOL = "[[tool_capsules]]\nstart = [0, 0, 0]\nend = [0, 0, 0.1]\nradius = 0.05\n"


@pytest.fixture
def read(tmp_path):
    def load(text):
        path = tmp_path / "lab.toml"
        path.write_text(text, encoding="utf-8")
        return load_cell(path)

    return load


def test_an_empty_file_is_a_cell_without_values(read):
    assert read("") == Cell()


def test_every_field_is_read(read):
    assert read(
        f"host = 'ur'\npayload = 1\nmounting = [0, 0, 1]\nfloor = 'none'\n{BOX}{PLANE}{TOOL}"
    ) == Cell(
        host="ur",
        payload=1.0,
        mounting=(0.0, 0.0, 1.0),
        floor="none",
        keep_out_boxes=(Box("a", (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)),),
        keep_out_planes=(Plane("b", (0.0, 0.0, 0.0), (0.0, 0.0, 1.0)),),
        tool_capsules=(Capsule((0.0, 0.0, 0.0), (0.0, 0.0, 0.1), 0.05),),
    )


@pytest.mark.parametrize(
    ("text", "line", "field", "reason"),
    [
        ("tpc = [0, 0, 0.1, 0, 0, 0]", 1, "tpc", "Did you mean 'tcp'?"),
        ("\ntcp = [0, 0, 0.1]", 2, "tcp", "6"),
        ("tcp = [0, 0, 150, 0, 0, 0]", 1, "tcp", "not mm"),
        ("tcp = [0, 0, 0.15, 0, 0, 90]", 1, "tcp", "not mm, degrees"),
        ("tcp = [0, 0, nan, 0, 0, 0]", 1, "tcp", "finite"),
        ("tcp = 'none'", 1, "tcp", "expected a list, got text"),
        ("payload = -1", 1, "payload", "not negative"),
        ("payload = inf", 1, "payload", "a mass"),
        ("payload_cog = [0, 0, 0.05]", 1, "payload_cog", "together with payload"),
        ("payload = 1\npayload_cog = [0, 0, 50]", 2, "payload_cog", "not mm"),
        ("serial_number = 20195500123", 1, "serial_number", "expected text, got a whole number"),
        ("host = ''", 1, "host", "a name"),
        ("host = ' 10.0.0.1'", 1, "host", "without blanks"),
        ("mounting = 'roof'", 1, "mounting", "floor, ceiling, wall"),
        ("mounting = [0, 0, 180]", 1, "mounting", "not degrees"),
        ("mounting = 3", 1, "mounting", "expected text or a list"),
        ("floor = 'low'", 1, "floor", "a height in m, or none"),
        ("floor = nan", 1, "floor", "a height in m, or none"),
        ("calibration = 'nowhere.toml'", 1, "calibration", "there is no file"),
        (
            BOX.replace("size = [1, 1, 1]", "size = [1, 0, 1]"),
            4,
            "keep_out_boxes[0].size",
            "positive",
        ),
        (
            BOX.replace("size = [1, 1, 1]", "size = [800, 1600, 800]"),
            4,
            "keep_out_boxes[0].size",
            "not mm",
        ),
        (BOX.replace("size = [1, 1, 1]", ""), None, "keep_out_boxes[0].size", "missing"),
        (BOX + "rotation = [0, 0, 45]", 5, "keep_out_boxes[0].rotation", "not degrees"),
        (BOX.replace("'a'", "''"), 2, "keep_out_boxes[0].name", "a name"),
        (BOX + BOX, 6, "keep_out_boxes[1].name", "used once"),
        (BOX + PLANE.replace("'b'", "'a'"), 6, "keep_out_planes[0].name", "used once"),
        (
            BOX + BOX.replace("'a'", "'c'").replace("[0, 0, 0]", "[900, 0, 0]"),
            7,
            "keep_out_boxes[1].centre",
            "not mm",
        ),
        (
            PLANE.replace("[0, 0, 1]", "[0, 0, 0]"),
            4,
            "keep_out_planes[0].normal",
            "not all of them zero",
        ),
        (
            PLANE.replace("point = [0, 0, 0]", "point = [0, 0, inf]"),
            3,
            "keep_out_planes[0].point",
            "finite",
        ),
        (TOOL.replace("0.05", "0"), 4, "tool_capsules[0].radius", "positive"),
        (TOOL.replace("0.05", "45"), 4, "tool_capsules[0].radius", "not mm"),
        (TOOL.replace("0.1]", "150]"), 3, "tool_capsules[0].end", "not mm"),
        (TOOL + "colour = 'red'", 5, "tool_capsules[0].colour", "no such field"),
        ("payload = ", 1, None, "not TOML"),
    ],
)
def test_an_error_names_line_and_field(read, tmp_path, text, line, field, reason):
    with pytest.raises(InputFileError) as caught:
        read(text)
    error = caught.value
    assert error.path == tmp_path / "lab.toml" and reason in str(error)
    assert (error.line, error.field) == (line, field)


@pytest.mark.parametrize("name", ["nowhere.toml", "."])
def test_a_file_that_cannot_be_read_is_named(tmp_path, name):
    with pytest.raises(InputFileError) as caught:
        load_cell(tmp_path / name)
    assert caught.value.path == tmp_path / name


def test_the_calibration_is_found_relative_to_the_cell_file(tmp_path, monkeypatch):
    (tmp_path / "cells").mkdir()
    (tmp_path / "arm.toml").touch()
    (tmp_path / "cells/lab.toml").write_text("calibration = '../arm.toml'", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert load_cell("cells/lab.toml").calibration == tmp_path / "arm.toml"


def test_the_source_file_is_kept_but_not_compared(read, tmp_path):
    cell = read("payload = 1.0")
    assert cell.source == tmp_path / "lab.toml" and cell == Cell(payload=1.0)
    assert np.array_equal(cell.gravity, [0.0, 0.0, -9.81])
