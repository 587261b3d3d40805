"""A stream of text is cut into programs."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simbridge.emulator.errors import ProtocolViolation
from simbridge.emulator.scripts import MAX_SCRIPT, ScriptBuffer, is_secondary

SCRIPT = """def outer():
  # a comment with an end
  def inner():
    textmsg("this is not the end")
  end
  thread worker():
    while True:
      sync()
    end
  end
  if (1 < 2):
    inner()
  elif False:
    inner()
  end
  legend = 3
  sec = 4
end
"""


def test_a_program_is_complete_with_its_end() -> None:
    assert ScriptBuffer().receive(SCRIPT.encode()) == [SCRIPT]


@given(st.integers(1, 40))
def test_a_program_may_arrive_in_any_pieces(size: int) -> None:
    data = (SCRIPT + "movej([0,0,0,0,0,0])\n" + SCRIPT).encode()
    buffer = ScriptBuffer()

    programs = [p for i in range(0, len(data), size) for p in buffer.receive(data[i : i + size])]

    assert programs == [SCRIPT, "movej([0,0,0,0,0,0])\n", SCRIPT]


def test_a_program_waits_for_its_last_newline() -> None:
    buffer = ScriptBuffer()

    assert buffer.receive(SCRIPT.rstrip("\n").encode()) == []
    assert buffer.receive(b"\n") == [SCRIPT]


def test_lines_outside_of_a_program_are_programs() -> None:
    data = b"set_digital_out(0, True)\r\n\n  # nothing\nstopj(2.0)\nsec blink():\n  sync()\nend\n"

    assert ScriptBuffer().receive(data) == [
        "set_digital_out(0, True)\n",
        "stopj(2.0)\n",
        "sec blink():\n  sync()\nend\n",
    ]


def test_a_stray_end_does_not_swallow_the_next_program() -> None:
    assert ScriptBuffer().receive(b"end\n" + SCRIPT.encode())[-1] == SCRIPT


@pytest.mark.slow
@pytest.mark.parametrize("line", [b"x" * 1000, b"  x = 1\n" * 125])
def test_a_program_that_never_ends_is_a_violation(line: bytes) -> None:
    buffer = ScriptBuffer()
    buffer.receive(b"def endless():\n")

    with pytest.raises(ProtocolViolation) as caught:
        for _ in range(MAX_SCRIPT // 1000 + 1):
            assert buffer.receive(line) == []
    assert caught.value.protocol == "script"


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.binary(max_size=50), st.sampled_from([b"def a():\n", b"end\n", b"if x:", b'"'])
        ),
        max_size=9,
    )
)
def test_no_byte_of_a_program_is_lost_or_duplicated(chunks: list[bytes]) -> None:
    buffer = ScriptBuffer()
    programs = "".join(program for chunk in chunks for program in buffer.receive(chunk))
    sent = b"".join(chunks).decode(errors="replace")

    pieces = iter(sent.split())

    assert all(word in pieces for word in programs.split())


@pytest.mark.parametrize(
    ("program", "is_known"),
    [
        ("sec s():\nend\n", True),
        ('\n  # a comment: def f()\n$ 1 "Program"\n; sec s():\nend\n', True),
        ("sec\ts():\nend\n", True),
        ("def sec():\nend\n", False),
        ("# sec s():\ndef f():\nend\n", False),
        ("section = 1\n", False),
        ("sec = 1\n", False),
        ("", False),
    ],
)
def test_a_secondary_program_is_known_by_its_first_word(program: str, is_known: bool) -> None:
    assert is_secondary(program) is is_known
