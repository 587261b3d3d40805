"""Every construct of the language.

One example of it does what it should, and broken it is refused with its place.

The grammar itself says whether a construct is missing here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from lark import Lark, Token

from simbridge.emulator.errors import ScriptSyntaxError
from simbridge.emulator.urscript import parser
from simbridge.emulator.urscript.parser import parse
from simbridge.emulator.urscript.values import Pose

# A program, and what it says.
EXAMPLES: dict[str, tuple[str, list[Any]]] = {
    "def, call": ("def f():\n  say(1)\nend\nf()", [1]),
    "def without a body": ("def f():\nend\nf()\nsay(2)", [2]),
    "parameters, return": ("def f(a, b=3):\n  return a * b\nend\nsay(f(2))", [6]),
    "return nothing": ("def f():\n  if True:\n    return\n  end\n  say(0)\nend\nf()\nsay(4)", [4]),
    "keyword arguments": ("def f(a, b):\n  return a - b\nend\nsay(f(b=1, a=5))", [4]),
    "sec": ("sec s():\n  say(5)\nend", [5]),
    "thread, run, join": ("thread t():\n  say(1)\nend\nh = run t()\njoin h\nsay(2)", [1, 2]),
    "run as a statement": ("thread t(a):\n  say(a)\nend\nrun t(7)\nsync()", [7]),
    "kill": ("thread t():\n  sync()\n  say(0)\nend\nh = run t()\nkill h\nsync()\nsay(8)", [8]),
    "critical section": ("enter_critical\nsay(9)\nexit_critical", [9]),
    "if, elif, else": (
        (
            "x = 3\nif x == 1:\n  say(1)\nelif x == 2:\n  say(2)\nelif x == 3:\n  say(3)\nelse:\n"
            "  say(4)\nend"
        ),
        [3],
    ),
    "while, break, continue": (
        (
            "i = 0 while True:\n i = i + 1\n if i == 2:\n  continue\n end\n if i > 3:\n  break\n"
            " end\n say(i)\nend"
        ),
        [1, 3],
    ),
    "halt": ("say(1)\nhalt\nsay(2)", [1]),
    "pass": ("if True:\n  pass\nend\nsay(1)", [1]),
    "global": ("def f():\n  global x = 4\nend\nf()\nsay(x)", [4]),
    "local": ("x = 1\ndef f():\n  local x = 2\n  say(x)\nend\nf()\nsay(x)", [2, 1]),
    "numbers": ("say(12)\nsay(0x10)\nsay(1.5)\nsay(.5)\nsay(2e3)", [12, 16, 1.5, 0.5, 2000.0]),
    "booleans": ("say(True)\nsay(False)", [True, False]),
    "strings": ('say("a # b")', ["a # b"]),
    "lists": ("say([1, 2.5, [3]])\nsay([])", [(1, 2.5, (3,)), ()]),
    "poses": ("say(p[1, 2, 3, 4, 5, 6])", [Pose([1, 2, 3, 4, 5, 6])]),
    "indexing": (
        (
            "q = [[1, 2], [3, 4]]\nsay(q[1])\nsay(q[1][0])\nsay(q[0, 1])\n"
            "p = p[1, 2, 3, 4, 5, 6]\nsay(p[2])"
        ),
        [(3, 4), 3, 2, 3.0],
    ),
    "assignment to an element": ("q = [1, 2]\nq[0] = 5\nsay(q)", [(5, 2)]),
    "members of a struct": (
        "s = struct(a=1, b=struct(c=[2, 3]))\nsay(s.a)\ns.b.c[1] = 4\nsay(s.b.c)\nsay(s.b.c[0])",
        [1, (2, 4), 2],
    ),
    "methods": ("q = [1]\nq.append(2)\nsay(q)\nsay(q.pop())\nsay(q.length())", [(1, 2), 2, 1]),
    "sums and products": ("say(1 + 2 * 3 - 4)\nsay(7 / 2)\nsay(7 % 4)", [3, 3.5, 3]),
    "signs": ("x = 2\nsay(-x)\nsay(+x)\nsay(-(1 + x))", [-2, 2, -3]),
    "parentheses": ("say((1 + 2) * 3)", [9]),
    "comparisons": (
        "say(1 < 2)\nsay(1 <= 1)\nsay(1 > 2)\nsay(1 >= 2)\nsay(1 == 1)\nsay(1 != 1)",
        [True, True, False, False, True, False],
    ),
    "and, or, xor, not": (
        "say(True and False)\nsay(True or False)\nsay(True xor True)\nsay(not True)",
        [False, True, False, False],
    ),
    "arithmetic on lists": (
        "say([1, 2] + [3, 4])\nsay([1, 2] * 3)\nsay([6, 4] / 2)",
        [(4, 6), (3, 6), (3.0, 2.0)],
    ),
    "arithmetic on poses": (
        "say(p[1, 2, 3, 4, 5, 6] + p[1, 1, 1, 1, 1, 1])",
        [Pose([2, 3, 4, 5, 6, 7])],
    ),
    "comments, labels, semicolons": ('$ 1 "Robot"\n# a comment\nsay(1); say(2) # another', [1, 2]),
    "newlines are whitespace": ("x = # no value yet\n3 say(\nx\n)", [3]),
}


@pytest.mark.slow
@pytest.mark.parametrize(("source", "output"), EXAMPLES.values(), ids=EXAMPLES)
def test_a_construct_works(script: Any, source: str, output: list[Any]) -> None:
    program = script(source)
    program.run(5)

    assert not program.faults
    assert program.output == output
    assert [type(value) for value in program.output] == [type(value) for value in output]


@pytest.mark.slow
def test_every_construct_of_the_grammar_has_an_example() -> None:
    grammar = Path(parser.__file__).with_name("grammar.lark").read_text(encoding="utf-8")
    lark = Lark(
        grammar,
        start="program",
        parser="lalr",
        lexer="basic",
        maybe_placeholders=True,
        keep_all_tokens=True,
    )
    rules = set()
    terminals = set()
    for source, _ in EXAMPLES.values():
        for tree in lark.parse(source).iter_subtrees():
            rules.add(tree.data)
            terminals |= {child.type for child in tree.children if isinstance(child, Token)}
    passed_through = {rule.origin.name for rule in lark.rules if rule.options.expand1}
    wanted = {
        rule.alias or rule.origin.name
        for rule in lark.rules
        if not rule.origin.name.startswith("__")
    }

    assert wanted - passed_through - rules == set()
    assert {terminal.name for terminal in lark.terminals} - set(
        lark.ignore_tokens
    ) - terminals == set()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "line", "column"),
    [
        ("def f()\n  say(1)\nend", 2, 3),
        ("def f(:\nend", 1, 7),
        ("def 1():\nend", 1, 5),
        ("def f(a,):\nend", 1, 9),
        ("def f(a=):\nend", 1, 9),
        ("f(", 1, 2),
        ("f(1,, 2)", 1, 5),
        ("f(a=, b=1)", 1, 5),
        ("sec s:\nend", 1, 6),
        ("thread t():\n  sync()\n", 2, 8),
        ("run 1", 1, 5),
        ("x = run t", 1, 9),
        ("kill\nend", 2, 1),
        ("join )", 1, 6),
        ("enter_critical()", 1, 15),
        ("if x\n  y = 1\nend", 2, 3),
        ("if:\nend", 1, 3),
        ("if x:\nelif:\nend", 2, 5),
        ("if x:\nelse:\nelif y:\nend", 3, 1),
        ("while:\nend", 1, 6),
        ("while x:\n  say(1)\n", 2, 8),
        ("x = 1\n\n  continue", 3, 3),
        ("global 1 = 2", 1, 8),
        ("local x", 1, 7),
        ("x = 0x", 1, 6),
        ("x = 1.2.3", 1, 8),
        ('x = "a', 1, 5),
        ("x = [1, 2", 1, 9),
        ("x = [1 2]", 1, 8),
        ("x = p[1, 2, 3, 4, 5]", 1, 5),
        ("x = q[]", 1, 7),
        ("q[0 = 1", 1, 5),
        ("x = 1 +", 1, 7),
        ("x = * 2", 1, 5),
        ("x = (1 + 2", 1, 10),
        ("x = 1 <> 2", 1, 8),
        ("x = a and or b", 1, 11),
        ("x = not", 1, 5),
        ("x == 1", 1, 3),
        ("x = 1\ny = 2 @ 3", 2, 7),
        ("s.1 = 2", 1, 2),
        ("x = s.\nend", 2, 1),
        ("s.a", 1, 3),
        ("h.f(1) = 2", 1, 8),
        ("x = h.f(1", 1, 9),
    ],
)
def test_a_broken_construct_has_its_place(source: str, line: int, column: int) -> None:
    with pytest.raises(ScriptSyntaxError) as caught:
        parse(source)
    assert (caught.value.line, caught.value.column) == (line, column)
