"""Runs that the tests of an evaluation share, and changes of their files."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def square_lap(
    tmp_path_factory: pytest.TempPathFactory, run_without_page: Any, short: dict[str, Path]
) -> Path:
    """The directory of a run of a lap of a smaller square than the paper's: 0.8 s a side, so that
    corners are at samples.
    """
    directory = tmp_path_factory.mktemp("run")
    text = short["square_tracking"].read_text(encoding="utf-8")
    smaller = re.sub(r"side=([\w.]+)", r"side=0.4 * \1", text)
    assert smaller != text
    (directory / "square.py").write_text(smaller, encoding="utf-8")
    assert run_without_page(directory / "square.py", "--out", directory / "square") == 0
    return directory / "square"


@pytest.fixture(scope="module", params=["line_run", "square_lap"])
def run(request: pytest.FixtureRequest) -> Path:
    """Two runs: a line, and a lap of a square."""
    return Path(request.getfixturevalue(request.param))


@pytest.fixture(scope="session")
def slower(tmp_path_factory: pytest.TempPathFactory, run_without_page: Any, line: Path) -> Path:
    """`line` again, at another period and with a payload that is not in the model."""
    out = tmp_path_factory.mktemp("run") / "slower"
    assert run_without_page(line, "--period", 0.02, "--unmodelled-payload", 5, "--out", out) == 0
    return out


@pytest.fixture
def same(line_run: Path, tmp_path: Path) -> Path:
    """A copy of `line_run`."""
    return Path(shutil.copytree(line_run, tmp_path / "same"))


@pytest.fixture(scope="session")
def replace_text() -> Any:
    """Replaces a text that a file contains."""

    def replace(file: Path, text: str, replacement: str) -> None:
        content = file.read_text(encoding="utf-8")
        assert text in content
        file.write_text(content.replace(text, replacement), encoding="utf-8")

    return replace


@pytest.fixture
def measured(same: Path, replace_text: Any) -> Path:
    """The run, as if it had been made on a controller."""
    replace_text(same / "settings.toml", "simulated_time = true", "simulated_time = false")
    return same
