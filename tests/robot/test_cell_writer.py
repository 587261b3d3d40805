"""A written cell file reads back as the same cell, explains itself, and overwrites nothing."""

from __future__ import annotations

import math
import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge.errors import OutputError
from simbridge.robot.cell import Cell
from simbridge.robot.cell_file import load_cell, write_cell
from simbridge.robot.obstacles import Box, Capsule, Plane
from tests.properties import few_examples


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
    zones, payload = draw(boxes), draw(st.none() | st.floats(0.0, 20.0))
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


@few_examples(35)
@given(cell=cells())
def test_any_cell_is_read_back_as_it_was(folder, cell):
    path = folder / "lab.toml"
    path.unlink(missing_ok=True)
    write_cell(path, cell)
    assert load_cell(path) == cell


def test_every_omitted_field_is_written_as_a_valid_commented_example(tmp_path):
    """An empty cell's file with its comment marks removed is a cell with every field."""
    write_cell(tmp_path / "lab.toml", Cell())
    text = (tmp_path / "lab.toml").read_text(encoding="utf-8")
    (tmp_path / "calibration.toml").touch()
    shown = [line.removeprefix("# ") for line in text.splitlines() if " = " in line or "[[" in line]
    (tmp_path / "all.toml").write_text("\n".join(shown), encoding="utf-8")
    cell = load_cell(tmp_path / "all.toml")
    assert None not in vars(cell).values() and () not in vars(cell).values()


def test_the_calibration_moves_together_with_the_file(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
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
