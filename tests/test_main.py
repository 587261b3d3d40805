"""The installed program."""

from __future__ import annotations

import gc
import sys

from simbridge import __main__ as program


def test_the_program_searches_for_garbage_rarely(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["simbridge", "--version"])
    before = gc.get_threshold()
    gc.set_threshold(700)

    try:
        assert program.main() == 0
        assert gc.get_threshold()[0] == program.NEW_OBJECTS
    finally:
        gc.set_threshold(*before)
