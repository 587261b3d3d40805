"""`simbridge emulate --check`: what compiles, what does not, and which functions nobody has."""

from __future__ import annotations

import json

PROGRAM = """def prog():
  movej([0, 0, 0, 0, 0, 0])
  h = run watch()
  elsewhere(1)
  other()
  elsewhere(2)
end
"""
BROKEN = "def prog():\n  x = (1 + 2\nend\n"


def files(folder, **sources):
    for name, text in sources.items():
        (folder / name).write_text(text)
    return [str(folder / name) for name in sources]


def test_each_file_is_checked_by_itself(cli, tmp_path):
    good, unknown, broken = files(tmp_path, good='textmsg("a")\n', unknown=PROGRAM, broken=BROKEN)
    answer = cli("emulate", "--json", "--check", good, unknown, broken)

    assert answer.status == 1
    assert json.loads(answer.out) == {
        good: {"compiles": True, "error": None, "unknown": [], "calls": {}},
        unknown: {
            "compiles": True,
            "error": None,
            "unknown": ["elsewhere", "other", "watch"],
            "calls": {
                "watch": {"line": 3, "column": 11},
                "elsewhere": {"line": 4, "column": 3},
                "other": {"line": 5, "column": 3},
            },
        },
        broken: {
            "compiles": False,
            "error": {"line": 3, "column": 1, "message": "'end' cannot stand here; expected ')'"},
            "unknown": [],
            "calls": {},
        },
    }


def test_files_in_order_succeed(cli, tmp_path):
    program, library = files(tmp_path, program="sleep(1)\n", library="def f(a):\n  return a\nend\n")
    answer = cli("emulate", "--check", program, library)

    assert answer.status == 0
    assert answer.out.splitlines() == [f"{program}: compiles", f"{library}: compiles"]


def test_without_json_every_problem_is_a_line_with_its_place(cli, tmp_path):
    unknown, broken = files(tmp_path, unknown=PROGRAM, broken=BROKEN)
    answer = cli("emulate", "--check", unknown, broken)

    assert answer.status == 1

    lines = answer.out.splitlines()

    assert f"{unknown}:4:3: there is no function 'elsewhere'" in lines
    assert lines[-1].startswith(f"{broken}:3:1: 'end' cannot stand here; expected")


def test_a_missing_file_is_refused(cli, tmp_path):
    answer = cli("emulate", "--check", str(tmp_path / "none.script"))

    assert answer.status == 2
    assert "none.script" in answer.message
