"""A program cannot take the emulator's memory: what it makes has limits, before it is made."""

from __future__ import annotations

import resource

import pytest

from simbridge.ur.tables import RuntimeState
from tests.emulator.bench import Bench

DOUBLED = "str_cat(str_cat(str_cat(s, s), str_cat(s, s)), str_cat(s, s))"
LONG = f's = "0123456789"\ni = 0\nwhile i < 4:\n  s = {DOUBLED}\n  i = i + 1\nend'
MANY = f"{LONG}\nl = make_list(9000, str_cat(s, s))"
DEEP = "s = struct(a=0)\ni = 0\nwhile i < 2000:\n  s = struct(a=[s])\n  i = i + 1\nend"


@pytest.fixture
def bench() -> Bench:
    return Bench().running()


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (
            'h = eip_writer_factory("a", 8)\nh.define_int16_array(2, 2000000000, "a")',
            "length of the array",
        ),
        ('h = eip_writer_factory("a", 2000000000)', "data_size"),
        (
            (
                'h = eip_writer_factory("a", 8)\nwhile True:\n'
                "  h.define_bit(0, 1, to_str(random()))\nend"
            ),
            "at most 1000 labels",
        ),
        (f"{MANY}\ntextmsg(l)", "more than 100000 characters"),
        (f"{MANY}\ntextmsg(struct(a=l))", "more than 100000 characters"),
        (f"{MANY}\npopup([l])", "more than 100000 characters"),
        (f"{MANY}\nset_payload(l)", "got a list"),
        (f"{MANY}\nmovej(l)", "got a list"),
        (f"{MANY}\nset_payload(s)", "got 0123"),
        (f"{DEEP}\ntextmsg(s)", "nested more than 10 deep"),
    ],
)
def test_what_is_too_large_ends_the_program(bench, program, words):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    bench.load(program)
    bench.finish(5.0)

    assert bench.state.runtime_state == RuntimeState.STOPPED
    assert words in bench.texts("error")
    assert len(bench.texts("error")) < 1000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # KiB


def test_a_list_of_an_instances_data_has_its_length(bench):
    bench.load(
        'h = eip_reader_factory("a", 8)',
        'h.define_int16_array(2, 4, "a")',
        'write_output_integer_register(0, length(h.read("a")))',
    )
    bench.finish(1.0)

    assert bench.state.output_int[0] == 4
