"""`simbridge emulate --check`: what compiles, what does not, and which functions nobody has."""

from __future__ import annotations

import json

import pytest

from simbridge.emulator.program import known_functions
from simbridge.emulator.script_check import check_source

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
    assert json.loads(answer.out)["files"] == {
        good: {"compiles": True, "error": None, "unknown": [], "calls": {}, "faults": []},
        unknown: {
            "compiles": True,
            "error": None,
            "unknown": ["elsewhere", "other", "watch"],
            "calls": {
                "watch": {"line": 3, "column": 11},
                "elsewhere": {"line": 4, "column": 3},
                "other": {"line": 5, "column": 3},
            },
            "faults": [],
        },
        broken: {
            "compiles": False,
            "error": {"line": 3, "column": 1, "message": "'end' cannot stand here; expected ')'"},
            "unknown": [],
            "calls": {},
            "faults": [],
        },
    }


FAULTY = """def prog():
  if False:
    movej([0, 0, 0, 0, 0, 0], speed=3)
    textmsg(nowhere)
  end
  set_tcp()
  set_digital_out(1)
  sleep(1, 2)
  movej([0, 0, 0, 0, 0, 0], q=[0, 0, 0, 0, 0, 0])
  helper(3)
end
def helper(a, b):
  return a + later
end
prog()
"""


def test_what_would_end_a_program_is_listed_at_once(cli, tmp_path):
    [faulty] = files(tmp_path, faulty=FAULTY)
    answer = cli("emulate", "--check", faulty)

    places = [line.removeprefix(f"{faulty}:").split(": ")[0] for line in answer.out.splitlines()]

    assert answer.status == 1
    assert places == ["3:5", "4:13", "6:3", "7:3", "8:3", "9:3", "10:3", "13:14"]


def test_a_fault_has_its_reason(cli, tmp_path):
    [faulty] = files(tmp_path, faulty="set_tcp(p[0, 0, 0, 0, 0, 0], name=1)\n")
    answer = cli("emulate", "--json", "--check", faulty)

    [fault] = json.loads(answer.out)["files"][faulty]["faults"]

    assert fault == {
        "line": 1,
        "column": 1,
        "message": "set_tcp: got an unexpected keyword argument 'name'; "
        "its parameters: pose, tcp_name.",
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    "source",
    [
        # Set in one branch only, in an earlier round, in another thread, or by a function.
        "if get_flag(0):\n  x = 1\nend\ntextmsg(x)\n",
        "n = 0\nwhile n < 3:\n  if n > 0:\n    textmsg(x)\n  end\n  x = n\n  n = n + 1\nend\n",
        "thread t():\n  global x = 1\nend\nrun t()\nsync()\ntextmsg(x)\n",
        "def f():\n  global x = 1\nend\nf()\ntextmsg(x)\n",
        "def f():\n  return x\nend\nx = 1\ntextmsg(f())\n",
        # Parameters with defaults, structs, lists, poses, and other editions' keywords.
        "def f(a, b=2):\n  return a + b\nend\ntextmsg(f(b=1, a=2))\n",
        "s = struct(a=1, b=p[1, 2, 3, 4, 5, 6])\ns.a = 2\nl = [1]\nl[0] = s.a\nl.append(2)\n",
        "speedj([0, 0, 0, 0, 0, 0], 1.0, t_min=0.1)\n",
        "set_payload_cog(CoG=[0, 0, 0])\nset_payload_cog(cog=[0, 0, 0])\n",
        "p = 3\ntextmsg(p)\n",
    ],
)
def test_a_program_that_runs_has_no_fault(source):
    assert check_source(source, known_functions())["faults"] == []


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("x = y\n", 1),
        ("def f():\n  x = 1\nend\nf()\ntextmsg(x)\n", 5),
        ("textmsg(x)\nx = 1\n", 1),
        ("x[0] = 1\n", 1),
        ("while False:\n  l.append(1)\nend\n", 2),
        ("if False:\n  x = 1\nelif x > 1:\n  sync()\nend\n", 3),
        ("def f(a=b):\n  return a\nend\nf()\n", 1),
    ],
)
def test_a_variable_that_nothing_sets_is_a_fault(source, line):
    [fault] = check_source(source, known_functions())["faults"]

    assert fault["line"] == line


def test_a_librarys_global_variables_are_its_users():
    source = "def f(a):\n  y = z\n  local z = 1\n  return a + speed\nend\n"

    [fault] = check_source(source, known_functions())["faults"]

    assert fault["line"] == 2


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
