"""The keyword arguments that `run` and `live` take are the fields of their options."""

from __future__ import annotations

from typing import get_type_hints

import pytest

from simbridge.errors import UnknownName
from simbridge.planning.option_choices import OptionChoices
from simbridge.planning.options import Options, options_by_name
from simbridge.sessions.options import LIVE, MORE, LiveChoices, LiveOptions

# A program may give these as True or False, or as a file.
WIDER = {"feedforward", "cell"}


def test_a_run_takes_every_option_by_name():
    choices = get_type_hints(OptionChoices)
    options = get_type_hints(Options)

    assert choices.keys() == options.keys()
    assert {name for name in options if choices[name] != options[name]} == WIDER


def test_a_session_takes_its_options_by_name():
    choices = get_type_hints(LiveChoices)
    live_options = get_type_hints(LiveOptions)

    assert choices.keys() == live_options.keys() | {*LIVE, *MORE}
    assert {name: choices[name] for name in live_options} == live_options


def test_options_by_name_are_added_to_others():
    options = options_by_name(Options(servo_gain=300.0), {"feedforward": "on"})

    assert (options.servo_gain, options.feedforward) == (300.0, "on")


@pytest.mark.parametrize(("value", "choice"), [(True, "on"), (False, "off"), (None, "off")])
def test_feedforward_may_be_true_or_false(value, choice):
    assert Options(feedforward=value).feedforward == choice


def test_an_unknown_option_is_answered_with_the_nearest():
    with pytest.raises(UnknownName, match="Did you mean 'feedforward'"):
        options_by_name(None, {"feed_foward": "on"})


def test_a_cell_may_be_named_by_its_file(tmp_path):
    (tmp_path / "lab.toml").write_text("floor = 0.1\n")

    assert Options(cell=tmp_path / "lab.toml").floor == 0.1
