"""results.csv as a file that people open in other programs.

Its cells are safe there. A harmless edit is read as it was meant; any other is refused.
"""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge.errors import InputFileError
from simbridge.sweeps.grid import Point, read_points
from simbridge.sweeps.results import Result, Results, read_results
from simbridge.sweeps.results_file import (
    MAX_LINE,
    decode_rows,
    encode_row,
    protect,
    read_rows,
    unprotect,
)

FIRST_POINT = "0123456789abcdef"
SECOND_POINT = "fedcba9876543210"
FIGURE = "tracking_error.position_m.rms"


@pytest.fixture
def results_file(tmp_path):
    """results.csv with two points."""
    results = Results(tmp_path / "results.csv")
    results.begin(["solver.kp"])
    for identity, gain in ((FIRST_POINT, "5"), (SECOND_POINT, "9")):
        point = Point("circle", {"solver.kp": gain})
        results.add(
            identity,
            point,
            Result("completed", figures={FIGURE: 1e-3}),
            attempts=1,
            made_by="simbridge 1",
        )
    results.close()
    return tmp_path / "results.csv"


def rewritten(path, **dialect):
    """Read a file and write it again as another program might."""
    rows = list(csv.reader(io.StringIO(path.read_text(), newline="")))
    text = io.StringIO()
    csv.writer(text, **dialect).writerows(rows)
    path.write_text(text.getvalue(), newline="")


FORMULAS = [
    "=1+1",
    "+1-1",
    "-x",
    "@SUM(A1)",
    "\tx",
    "\rx",
    "=",
    "-1 2 3",
    "'quoted",
    "''",
    "'=1+1",
    "-1_0",
]


@pytest.mark.parametrize("cell", FORMULAS)
def test_a_text_like_a_formula_gets_an_apostrophe(cell):
    assert protect(cell) == "'" + cell


@pytest.mark.parametrize(
    "cell", ["", "-5", "+1e-3", "-inf", "text", "a=b", " =1", "5'", "-0.0", "nan"]
)
def test_texts_are_written_as_they_are(cell):
    assert protect(cell) == cell


@pytest.mark.slow
@given(st.text())
def test_what_is_protected_is_read_as_it_was(cell):
    assert unprotect([protect(cell)]) == [cell]


@pytest.mark.slow
@given(st.lists(st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp"))), min_size=2))
def test_a_row_is_read_as_it_was(cells):
    assert list(decode_rows([encode_row(cells)])) == [cells]


def test_a_reason_like_a_formula_survives_the_file(results_file):
    formula = '=HYPERLINK("http://localhost","open")'
    results = Results(results_file)
    results.add(
        FIRST_POINT,
        Point("=circle.py", {}),
        Result("failed", reason=formula),
        attempts=1,
        made_by="simbridge 1",
    )
    results.close()

    row = Results(results_file).row(FIRST_POINT)

    assert (row["scenario"], row["reason"]) == ("=circle.py", formula)
    assert b",\"'=HYPERLINK" in results_file.read_bytes()


def test_parquet_has_no_apostrophes(results_file):
    parquet = pytest.importorskip("pyarrow.parquet")
    results = Results(results_file)
    results.add(
        FIRST_POINT,
        Point("circle", {}),
        Result("failed", reason="=1+1"),
        attempts=1,
        made_by="simbridge 1",
    )
    results.write_parquet()
    results.close()

    table = parquet.read_table(results_file.with_suffix(".parquet"))

    assert "=1+1" in table.column("reason").to_pylist()


def test_a_long_reason_is_shortened(results_file):
    results = Results(results_file)
    results.add(
        FIRST_POINT,
        Point("circle", {}),
        Result("failed", reason="x" * 10**6),
        attempts=1,
        made_by="simbridge 1",
    )
    results.close()

    assert len(Results(results_file).row(FIRST_POINT)["reason"]) < 10_000


def test_the_last_row_of_a_point_counts(results_file):
    row = results_file.read_bytes().splitlines(keepends=True)[1]
    assert row.startswith(FIRST_POINT.encode())
    with results_file.open("ab") as file:
        file.write(row.replace(b"completed", b"refused"))

    rows = read_results(results_file, ["identity", "outcome", "a column that is not there"])

    assert rows == [
        {"identity": FIRST_POINT, "outcome": "refused"},
        {"identity": SECOND_POINT, "outcome": "completed"},
    ]


# What programs for tables change without changing the content.


@pytest.mark.parametrize(
    "dialect",
    [
        {"quoting": csv.QUOTE_ALL},
        {"lineterminator": "\r\n"},
        {"lineterminator": "\n\n"},
        {"quoting": csv.QUOTE_ALL, "lineterminator": "\r\n\r\n"},
    ],
    ids=["quoted", "CRLF", "blank lines", "all of it"],
)
def test_another_dialect_is_read_right(results_file, dialect):
    before = Results(results_file).rows()
    rewritten(results_file, **dialect)

    assert Results(results_file).rows() == before


@pytest.mark.parametrize(
    "edit",
    [
        lambda data: b"\xef\xbb\xbf" + data,
        lambda data: data + b"," * (data.splitlines()[0].count(b",")) + b"\n",
    ],
    ids=["byte order mark", "emptied row"],
)
def test_a_harmless_edit_is_read_right(results_file, edit):
    before = Results(results_file).rows()
    results_file.write_bytes(edit(results_file.read_bytes()))

    assert Results(results_file).rows() == before


def test_columns_in_another_order_are_read_right(results_file):
    before = Results(results_file).rows()
    rows = list(csv.reader(results_file.read_text().splitlines()))
    results_file.write_text("".join(",".join(reversed(row)) + "\n" for row in rows))

    assert Results(results_file).rows() == before


def test_line_breaks_become_blanks(results_file):
    results_file.write_bytes(results_file.read_bytes().replace(b"circle", b'"my\ncircle"', 1))

    assert Results(results_file).row(FIRST_POINT)["scenario"] == "my circle"


def test_an_unended_last_row_is_dropped(results_file):
    before = Results(results_file).rows()
    results_file.write_bytes(results_file.read_bytes().rstrip(b"\n")[:-1])

    assert Results(results_file).rows() == before[:-1]


@pytest.mark.parametrize("end", [b"\xc3", b"\0\0\0", b'"cut', b"0123"])
def test_a_line_without_its_end_is_dropped(results_file, end):
    before = Results(results_file).rows()
    results_file.write_bytes(results_file.read_bytes() + end)

    assert Results(results_file).rows() == before


@pytest.mark.parametrize(
    ("reason", "shown"),
    [("a\0b", "a\\x00b"), ("a\udcffb", "a\\udcffb")],
    ids=["null character", "byte of a file name"],
)
def test_unwritable_characters_are_escaped(tmp_path, reason, shown):
    path = tmp_path / "results.csv"
    path.write_bytes(encode_row(["identity", "reason"]) + encode_row([FIRST_POINT, reason]))

    rows = list(read_rows(path))

    assert rows[1] == (2, [FIRST_POINT, shown])


# What changes the content.


@pytest.mark.slow
@pytest.mark.parametrize(
    ("edit", "line"),
    [
        (lambda data: data.replace(b"completed", b"compl\xe9ted", 1), 2),
        (lambda data: data.replace(b"completed", b"x" * 200_000, 1), 2),
        (lambda data: data.replace(b"completed", b"x" * (MAX_LINE + 1), 1), 2),
        (lambda data: data.replace(b"completed", b'"completed', 1), 2),
        (lambda data: data.replace(b"completed", b"", 1), 2),
        (lambda data: data.replace(b"completed", b"com\0pleted", 1), 2),
        (lambda data: data.replace(b"completed", b"com,pleted", 1), 2),
        (lambda data: data.replace(SECOND_POINT.encode(), b"1.23457E+15", 1), 3),
        (lambda data: data.replace(SECOND_POINT.encode(), b"../../elsewhere0", 1), 3),
        (lambda data: data.replace(b",0.001", b",'0,001'", 1), 2),
        (lambda data: data.replace(b",0.001", b',"0,001"', 1), 2),
        (lambda data: data.replace(b",0.001", b",soon", 1), 2),
        (lambda data: data.replace(b"scenario", b"identity", 1), 1),
        (lambda data: data.replace(b"scenario", b"scene", 1), 1),
        (lambda data: data.replace(b",solver.kp", b",", 1), 1),
        (lambda data: data.replace(b",solver.kp", b",outcome", 1), 1),
        (lambda data: data.replace(b",", b";"), 1),
        (lambda data: data.replace(b",", b"\t"), 1),
        (lambda data: data.replace(b"\n", b"\r"), 1),
        (lambda data: data.decode().encode("utf-16"), 1),
        (lambda data: b"", 1),
        (lambda data: b"\xff", 1),
    ],
)
def test_changed_content_is_refused(results_file, edit, line):
    results_file.write_bytes(edit(results_file.read_bytes()))

    with pytest.raises(InputFileError) as refusal:
        Results(results_file)

    assert refusal.value.line == line
    assert refusal.value.path == results_file


@pytest.mark.slow
def test_a_refused_file_is_left_as_it_was(results_file, cli, tmp_path):
    edited = results_file.read_bytes().replace(b"completed", b"compl\xe9ted", 1)
    results_file.write_bytes(edited)
    (tmp_path / "sweep.toml").write_text("")

    answer = cli("sweep", "circle", "--plan-only", "--grid", "solver.kp=5,9", "--out", tmp_path)

    assert answer.status == 2
    assert "not text in UTF-8" in answer.message
    assert results_file.read_bytes() == edited


def test_edited_results_are_listed(results_file, cli, tmp_path):
    results_file.write_bytes(results_file.read_bytes().replace(b"0.001", b"soon", 1) + b"\xe9\n")
    sweep = tmp_path / "runs" / "sweep"
    sweep.mkdir(parents=True)
    (sweep / "sweep.toml").write_text("")
    results_file.rename(sweep / "results.csv")

    answer = cli("runs", tmp_path / "runs")

    assert answer.status == 0
    assert "of 2 points" in answer.out


@pytest.mark.parametrize(
    "content", ['solver.kp\n"5', "solver.kp\n" + "5" * 200_000], ids=["open quote", "long cell"]
)
def test_a_broken_list_of_points_is_refused(tmp_path, content):
    (tmp_path / "points.csv").write_text(content)

    with pytest.raises(InputFileError) as refusal:
        read_points(tmp_path / "points.csv")

    assert refusal.value.line == 2
