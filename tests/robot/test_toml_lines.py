"""Where a TOML document gives which field."""

from __future__ import annotations

import datetime

import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from simbridge.robot.toml_lines import field_lines

DOCUMENT = """\
# title = "no"
title = "a # [b] = 1"  # x
"quoted key" . part = 2
text = '''
home = [ {
'''
QUOTES
home = [1.0,
  2.0,  # ]
  3.0]
limits.velocity = [1, 2]
[table.below]
inline = { list = [ { z = 1 }, { z = 2 } ], 'w' = "q" }
[[links]]
name = "x"
[links.inertia]
ixx = 1
[[links.shapes]]
radius = 1
[[links.shapes]]
radius = 2

[[links]]
when = 1979-05-27 07:32:00
name = "y"
""".replace("QUOTES", 'quotes = """" "" [x] = """')


def test_a_key_is_on_the_line_where_it_is_given():
    lines = field_lines(DOCUMENT)
    assert lines["title",] == 2
    assert lines["quoted key", "part"] == 3
    assert lines["text",] == 4
    assert lines["quotes",] == 7
    assert lines["limits", "velocity"] == 11
    assert lines["table", "below", "inline", "list", 1, "z"] == 13
    assert lines["table", "below", "inline", "w"] == 13


def test_an_element_of_a_list_is_on_its_own_line():
    lines = field_lines(DOCUMENT)
    assert [lines["home", i] for i in range(3)] == [8, 9, 10]
    assert ("home", 3) not in lines


def test_tables_of_an_array_are_told_apart():
    lines = field_lines(DOCUMENT)
    assert (lines["links",], lines["links", 0], lines["links", 1]) == (14, 14, 23)
    assert lines["links", 0, "inertia", "ixx"] == 17
    assert (lines["links", 0, "shapes", 0, "radius"], lines["links", 0, "shapes", 1, "radius"]) == (19, 21)
    assert lines["links", 1, "name"] == 25
    assert ("links", 1, "shapes") not in lines


def test_what_stands_in_strings_and_comments_is_no_field():
    lines = field_lines(DOCUMENT)
    assert not {path[0] for path in lines} - {
        "title",
        "quoted key",
        "text",
        "quotes",
        "home",
        "limits",
        "table",
        "links",
    }


# Keys that need quotes, values full of what is syntax elsewhere.
keys = st.one_of(st.sampled_from(["a", "b-1", "c d", "e.f", "g#", "[h]"]), st.text("xyz_", min_size=1, max_size=3))
scalars = st.one_of(
    st.integers(-9, 9),
    st.floats(allow_nan=False),
    st.booleans(),
    st.text('ab ]}#=,.[{"\n\\', max_size=8),
    st.just(datetime.datetime(2024, 10, 14, 11, 54)),
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=12
)


def leaves(value, path=()):
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield (*path, key)
        yield from leaves(child, (*path, key))


@given(st.dictionaries(keys, values, max_size=4))
def test_every_field_of_any_document_is_found_and_no_other(document):
    lines = field_lines(tomli_w.dumps(document))
    assert set(lines) == set(leaves(document))


@given(st.lists(st.tuples(keys, scalars), max_size=6, unique_by=lambda pair: pair[0]), st.integers(0, 5))
def test_fields_keep_their_lines_whatever_stands_around_them(pairs, blank):
    """Every pair is written under a header of its own: its lines can be counted."""
    text, expected = "", {}
    for key, value in pairs:
        text += "\n" * blank + "# [no.header]\n"
        expected[key] = text.count("\n") + 1
        text += tomli_w.dumps({key: {"field": value}})
    lines = field_lines(text)
    for key, line in expected.items():
        assert (lines[key,], lines[key, "field"]) == (line, line + 1)
