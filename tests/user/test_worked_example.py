"""The worked example of docs/internals.md: its script runs, and prints the text it shows."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.shares_setup]

PAGE = Path(__file__).parents[2] / "docs" / "internals.md"


@pytest.fixture(scope="module")
def section():
    """The section of the example."""
    page = PAGE.read_text(encoding="utf-8")
    match = re.search(r"^### One expression.*?(?=^### )", page, re.MULTILINE | re.DOTALL)
    assert match is not None
    return match[0]


@pytest.fixture(scope="module")
def printed(section, tmp_path_factory):
    """The output of the page's script."""
    (code,) = re.findall(r"^```python\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    script = tmp_path_factory.mktemp("example") / "example.py"
    script.write_text(code)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_example_prints_the_text_on_the_page(section, printed):
    (text,) = re.findall(r"^```text\n(.*?)^```", section, re.MULTILINE | re.DOTALL)

    assert text in printed


def test_the_example_places_the_tool(printed):
    assert "[1.37758256 0.47942554]" in printed
