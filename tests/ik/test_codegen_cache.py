"""What lies in the cache, seen from processes that share it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import numpy as np
from simbridge.robot import load_robot
from simbridge.ik.codegen.cache import Module
from numba import types

text = '''import numpy as np
from numba import njit
entry = njit(cache=True, nogil=True, error_model="numpy")

@entry
def double(x):
    return 2.0 * x
'''
function = Module(text, "doubling").function("double", (types.float64,))
print(function(21.0), sum(function.stats.cache_hits.values()), sum(function.stats.cache_misses.values()))
"""


def start(directory, **environment):
    variables = {**os.environ, "SIMBRIDGE_CACHE": str(directory), **environment}
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM], env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finished(process):
    """Result, hits, misses, and what was said."""
    out, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    value, hits, misses = out.split()
    return float(value), int(hits), int(misses), said


@pytest.fixture
def filled(tmp_path):
    """A cache after the first process."""
    value, hits, misses, said = finished(start(tmp_path))
    assert (value, hits, misses) == (42.0, 0, 1)
    assert f"Compiling the doubling (double): a few seconds, once. Later starts find it in {tmp_path}" in said
    return tmp_path


def contents(directory):
    return {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in directory.rglob("*") if path.is_file()}


def test_a_second_process_compiles_nothing_and_says_nothing(filled):
    before = contents(filled)
    assert finished(start(filled)) == (42.0, 1, 0, "")
    after = contents(filled)
    assert {name: after[name] for name in before} == before


def test_text_that_was_changed_is_replaced(filled):
    (module,) = filled.glob("*.py")
    module.write_text("def double(x):\n    return 3.0 * x\n")
    assert finished(start(filled))[0] == 42.0
    assert "2.0 * x" in module.read_text()


@pytest.mark.parametrize("kind", ["*.nbi", "*.nbc"])
@pytest.mark.parametrize("rubbish", [b"", b"not machine code"])
def test_machine_code_that_is_corrupt_is_replaced(filled, kind, rubbish):
    for path in (filled / "__pycache__").glob(kind):
        path.write_bytes(rubbish)
    assert finished(start(filled))[0] == 42.0
    assert finished(start(filled))[:3] == (42.0, 1, 0)


def test_processes_that_start_at_once_all_work_and_leave_a_cache_that_does(tmp_path):
    processes = [start(tmp_path) for _ in range(3)]
    assert [finished(process)[0] for process in processes] == [42.0] * 3
    assert finished(start(tmp_path)) == (42.0, 1, 0, "")
    assert not list(tmp_path.glob("*.new"))


def test_where_nothing_can_be_written_it_works_all_the_same_and_says_so(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    value, _, _, said = finished(start(blocked / "kernels"))
    assert value == 42.0
    assert "cannot be written" in said
    assert "SIMBRIDGE_CACHE" in said


def test_the_directory_follows_the_environment(monkeypatch, tmp_path):
    from simbridge.ik.codegen.cache import cache_directory

    monkeypatch.delenv("SIMBRIDGE_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_directory() == tmp_path / "simbridge" / "kernels"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_directory() == tmp_path / ".cache" / "simbridge" / "kernels"
    monkeypatch.setenv("SIMBRIDGE_CACHE", str(tmp_path / "here"))
    assert cache_directory() == tmp_path / "here"
