"""A cell file is read strictly, and written so that it reads back equal."""

from __future__ import annotations

import math
import shutil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge.errors import InputFileError, OutputError
from simbridge.robot.cell import Cell
from simbridge.robot.cell_file import load_cell, write_cell
from simbridge.robot.obstacles import Box, Capsule, Plane
from tests.properties import few_examples

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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "line", "field", "reason"),
    [
        ("tpc = [0, 0, 0.1, 0, 0, 0]", 1, "tpc", "Did you mean 'tcp'?"),
        ("\ntcp = [0, 0, 0.1]", 2, "tcp", "6"),
        ("tcp = [0, 0, 150, 0, 0, 0]", 1, "tcp", "not mm"),
        ("tcp = [0, 0, 0.15, 0, 0, 90]", 1, "tcp", "not mm, degrees"),
        ("tcp = [0, 0, nan, 0, 0, 0]", 1, "tcp", "finite"),
        ("tcp = 'none'", 1, "tcp", "expected a list, got text"),
        ("payload = -1", 1, "payload", "non-negative mass"),
        ("payload = inf", 1, "payload", "non-negative mass"),
        ("payload_cog = [0, 0, 0.05]", 1, "payload_cog", "together with payload"),
        ("payload = 1\npayload_cog = [0, 0, 50]", 2, "payload_cog", "not mm"),
        ("serial_number = 20195500123", 1, "serial_number", "expected text, got a whole number"),
        ("host = ''", 1, "host", "a name"),
        ("host = ' 10.0.0.1'", 1, "host", "without leading"),
        ("mounting = 'roof'", 1, "mounting", "floor, ceiling, wall"),
        ("mounting = [0, 0, 180]", 1, "mounting", "not degrees"),
        ("mounting = 3", 1, "mounting", "expected text or a list"),
        ("floor = 'low'", 1, "floor", "a height in m, or none"),
        ("floor = nan", 1, "floor", "a height in m, or none"),
        ("calibration = 'nowhere.toml'", 1, "calibration", "file not found:"),
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
        (BOX + BOX, 6, "keep_out_boxes[1].name", "a unique name"),
        (BOX + PLANE.replace("'b'", "'a'"), 6, "keep_out_planes[0].name", "a unique name"),
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
        (TOOL + "colour = 'red'", 5, "tool_capsules[0].colour", "unknown field"),
        ("payload = ", 1, None, "not TOML"),
    ],
)
def test_an_error_names_line_and_field(read, tmp_path, text, line, field, reason):
    with pytest.raises(InputFileError) as caught:
        read(text)

    error = caught.value

    assert error.path == tmp_path / "lab.toml"
    assert reason in str(error)
    assert error.line == line
    assert error.field == field


@pytest.mark.parametrize("name", ["nowhere.toml", "."])
def test_a_file_that_cannot_be_read_is_named(tmp_path, name):
    with pytest.raises(InputFileError) as caught:
        load_cell(tmp_path / name)

    assert caught.value.path == tmp_path / name


def test_the_calibration_is_relative_to_the_file(tmp_path, monkeypatch):
    (tmp_path / "cells").mkdir()
    (tmp_path / "arm.toml").touch()
    (tmp_path / "cells/lab.toml").write_text("calibration = '../arm.toml'", encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    assert load_cell("cells/lab.toml").calibration == tmp_path / "arm.toml"


def test_the_source_file_is_kept_but_not_compared(read, tmp_path):
    cell = read("payload = 1.0")

    assert cell.source == tmp_path / "lab.toml"
    assert cell == Cell(payload=1.0)
    assert np.array_equal(cell.gravity, [0.0, 0.0, -9.81])


def vectors(largest):
    return st.tuples(*[st.floats(-largest, largest)] * 3)


printable = st.characters(exclude_categories=("C", "Z"), include_characters=" ")


names = st.text(printable, min_size=1, max_size=12).filter(
    lambda text: text.isprintable() and text.strip() == text
)


lengths = st.floats(1e-6, 10.0)


directions = vectors(1e3).filter(lambda v: math.hypot(*v) > 1e-6)


boxes = st.lists(
    st.builds(Box, names, vectors(50.0), st.tuples(*[lengths] * 3), vectors(3.0)), max_size=3
)


planes = st.lists(st.builds(Plane, names, vectors(50.0), directions), max_size=3)


capsules = st.lists(st.builds(Capsule, vectors(5.0), vectors(5.0), lengths), max_size=3)


@st.composite
def cells(draw):
    zones = draw(boxes)
    payload = draw(st.none() | st.floats(0.0, 20.0))
    taken = {box.name for box in zones}
    return Cell(
        host=draw(st.none() | names),
        robot=draw(st.none() | names),
        serial_number=draw(st.none() | names),
        tcp=draw(st.none() | st.builds(lambda a, b: (*a, *b), vectors(5.0), vectors(3.0))),
        payload=payload,
        payload_cog=None if payload is None else draw(st.none() | vectors(1.0)),
        mounting=draw(st.none() | st.sampled_from(["floor", "ceiling", "wall"]) | vectors(3.0)),
        floor=draw(st.none() | st.just("none") | st.floats(-10.0, 10.0)),
        keep_out_boxes=tuple({box.name: box for box in zones}.values()),
        keep_out_planes=tuple({p.name: p for p in draw(planes) if p.name not in taken}.values()),
        tool_capsules=tuple(draw(capsules)),
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("cells")


@pytest.mark.slow
@few_examples(20)
@given(cell=cells())
def test_any_cell_is_read_back_as_it_was(folder, cell):
    path = folder / "lab.toml"
    path.unlink(missing_ok=True)

    write_cell(path, cell)

    assert load_cell(path) == cell


def test_omitted_fields_are_written_as_examples(tmp_path):
    """An empty cell's file with its comment marks removed is a cell with every field."""
    write_cell(tmp_path / "lab.toml", Cell())
    text = (tmp_path / "lab.toml").read_text(encoding="utf-8")
    (tmp_path / "calibration.toml").touch()
    shown = [line.removeprefix("# ") for line in text.splitlines() if " = " in line or "[[" in line]
    (tmp_path / "all.toml").write_text("\n".join(shown), encoding="utf-8")

    cell = load_cell(tmp_path / "all.toml")

    assert None not in vars(cell).values()
    assert () not in vars(cell).values()


def test_the_calibration_moves_together_with_the_file(tmp_path):
    old = tmp_path / "old"
    new = tmp_path / "new"
    old.mkdir()
    (old / "arm.toml").touch()
    (tmp_path / "other.toml").touch()
    write_cell(old / "lab.toml", Cell(calibration=old / "arm.toml"))
    write_cell(old / "else.toml", Cell(calibration=tmp_path / "other.toml"))
    shutil.copytree(old, new)

    assert load_cell(new / "lab.toml").calibration == new / "arm.toml"
    assert load_cell(new / "else.toml").calibration == tmp_path / "other.toml"


def test_an_existing_file_is_not_overwritten(tmp_path):
    path = tmp_path / "lab.toml"
    path.write_text("payload = 1.0", encoding="utf-8")

    with pytest.raises(OutputError, match=r"lab\.toml.*already"):
        write_cell(path, Cell())

    assert path.read_text(encoding="utf-8") == "payload = 1.0"


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(OutputError, match="nowhere"):
        write_cell(tmp_path / "nowhere/lab.toml", Cell())
