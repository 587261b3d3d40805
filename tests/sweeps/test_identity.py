"""The modules on which a user's function depends."""

from __future__ import annotations

import importlib
import sys

import pytest

from simbridge.sweeps.identity import modules_of
from simbridge.sweeps.job import forget_files

pytestmark = pytest.mark.slow

NAMES = {"mine_of_link", "helper_of_link"}


def test_modules_are_found_behind_a_changed_link(tmp_path, monkeypatch):
    for name in ("first", "second"):
        directory = tmp_path / name
        directory.mkdir()
        (directory / "helper_of_link.py").write_text("GAIN = 1\n")
        (directory / "mine_of_link.py").write_text(
            "import helper_of_link\ndef step(q, target):\n    return q\n"
        )
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "first")
    monkeypatch.syspath_prepend(link)
    step = importlib.import_module("mine_of_link").step

    try:
        assert {module.__name__ for module in modules_of(step)} == NAMES

        link.unlink()
        link.symlink_to(tmp_path / "second")
        forget_files()

        assert {module.__name__ for module in modules_of(step)} == NAMES
    finally:
        for name in NAMES:
            sys.modules.pop(name, None)
