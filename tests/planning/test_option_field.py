"""The help texts of options, in the docstrings of their classes."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest

import simbridge


@pytest.mark.parametrize("kind", [simbridge.Options, simbridge.LiveOptions])
def test_help_shows_the_text_of_each_option(kind):
    shown = re.sub(r"\s+", " ", kind.__doc__)

    for item in fields(kind):
        assert item.metadata["help"]
        assert f" {item.name}: {item.metadata['help']}" in shown


def test_help_says_where_a_flag_has_other_units():
    shown = re.sub(r"\s+", " ", simbridge.Options.__doc__)

    assert "the exit status is 1. In SI units. (default: not checked)" in shown


def test_the_errors_stay_behind_the_attributes():
    _, _, behind = simbridge.Options.__doc__.partition("Attributes:")

    assert "Raises:" in behind
