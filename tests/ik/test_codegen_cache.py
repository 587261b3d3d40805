"""What lies in the cache, seen from processes that share it."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys
import numpy as np
from simbridge.ik.kernels.kernel import Module

text = '''
def double(x):
    for i in range(x.shape[0]):
        x[i] *= 2.0
'''
values = np.array([21.0, 0.5])
Module(text, "doubling").routine("double")(values)
print(values[0], "numba" in sys.modules)
"""


# A user's own step, as `step_for` declares it, and the loop that calls it.
OWN = """
import numpy as np
from typing import NamedTuple
from simbridge.ik.kernels.lazy import Choice
from simbridge.ik.kernels.routine import Routine

class Own(NamedTuple):
    by: float

class Nested(NamedTuple):
    own: Own

def times(own, x):
    x[0] *= own.by * FACTOR

choice = Choice("choice")
choice.declare(Own, lambda: times)

def loop(nested, x):
    choice(nested.own, x)

def multiplied(value):
    values = np.array([value])
    Routine("loop", "user's loop", "loop", lambda: loop)(Nested(Own(2.0)), values)
    return values[0]
"""
OWN_PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
import own
print(own.multiplied(1.0), "numba" in sys.modules)
"""


def start(directory, *arguments, program=PROGRAM, **how):
    variables = {**os.environ, "SIMBRIDGE_CACHE": str(directory), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **how)


def finished(process):
    """Result, whether numba was there for it, and what was said."""
    out, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    value, numba = out.split()
    return float(value), numba == "True", said


@pytest.fixture
def filled(tmp_path):
    """A cache after the first process."""
    value, numba, said = finished(start(tmp_path))
    assert (value, numba) == (42.0, True)
    assert f"Compiling the doubling (double): a few seconds, once. Later starts find it in {tmp_path}" in said
    return tmp_path


def contents(directory):
    return {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in directory.rglob("*") if path.is_file()}


def test_a_second_process_compiles_nothing_says_nothing_and_does_without_numba(filled):
    before = contents(filled)
    assert finished(start(filled)) == (42.0, False, "")
    assert contents(filled) == before


def test_what_is_compiled_lies_next_to_its_machine_code_to_be_read(filled):
    (source,) = filled.glob("*.py")
    assert "x[i] *= 2.0" in source.read_text()


@pytest.mark.parametrize("damage", [lambda code: b"", lambda code: b"not machine code", lambda code: code[:-1]])
def test_machine_code_that_is_corrupt_is_replaced(filled, damage):
    (path,) = filled.glob("*.o")
    path.write_bytes(damage(path.read_bytes()))
    value, numba, said = finished(start(filled))
    assert (value, numba) == (42.0, True)
    assert "Compiling" in said
    assert finished(start(filled)) == (42.0, False, "")


def test_processes_that_start_at_once_all_work_and_leave_a_cache_that_does(tmp_path):
    processes = [start(tmp_path) for _ in range(3)]
    assert [finished(process)[0] for process in processes] == [42.0] * 3
    assert finished(start(tmp_path)) == (42.0, False, "")
    assert not list(tmp_path.glob("*.new"))


def test_where_nothing_can_be_written_it_works_all_the_same_and_says_so(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    value, _, said = finished(start(blocked / "kernels"))
    assert value == 42.0
    assert "cannot be written" in said
    assert "SIMBRIDGE_CACHE" in said


def full():
    """No file may grow: as on a full disk, empty files can still be made."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def test_where_there_is_no_room_it_works_all_the_same_says_so_once_and_leaves_nothing(tmp_path):
    value, _, said = finished(start(tmp_path, preexec_fn=full))
    assert value == 42.0
    assert said.count(f"{tmp_path} cannot be written") == 1
    assert not list(tmp_path.iterdir())


def test_where_there_is_room_nowhere_not_even_for_a_directory_it_works_all_the_same(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    unusable = f"import tempfile; tempfile.tempdir = {str(blocked)!r}\n"
    value, _, said = finished(start(blocked / "kernels", program=unusable + PROGRAM))
    assert value == 42.0
    assert said.count(f"{blocked / 'kernels'} cannot be written") == 1


def test_a_users_step_is_compiled_again_once_its_file_has_changed(tmp_path):
    kernels, module = tmp_path / "kernels", tmp_path / "own.py"
    module.write_text(own_step(3.0))
    assert finished(start(kernels, tmp_path, program=OWN_PROGRAM))[:2] == (6.0, True)
    assert finished(start(kernels, tmp_path, program=OWN_PROGRAM)) == (6.0, False, "")
    module.write_text(own_step(5.0))
    value, _, said = finished(start(kernels, tmp_path, program=OWN_PROGRAM))
    assert value == 10.0
    assert f"Later starts find it in {kernels}" in said


def test_a_users_step_without_a_file_is_compiled_at_each_start_and_whenever_it_is_declared_again(tmp_path):
    program = own_step(3.0) + "assert multiplied(1.0) == 6.0\n" + own_step(5.0) + "print(multiplied(1.0), True)"
    value, _, said = finished(start(tmp_path, program=program))
    assert value == 10.0
    assert "at each start" in said
    assert not contents(tmp_path)


def own_step(factor):
    return f"FACTOR = {factor}\n{OWN}"


def test_whatever_makes_machine_code_is_part_of_what_it_lies_under():
    """Every module of the code generator that making or calling machine code imports is hashed into its key."""
    from simbridge.ik.kernels import cache

    directory = Path(cache.__file__).parent
    reached, left = set(), ["machine_code", "routine"]
    while left:
        name = left.pop()
        if name not in reached:
            reached.add(name)
            left += re.findall(
                r"from simbridge\.ik\.codegen(?:\.| import )(\w+)", (directory / f"{name}.py").read_text()
            )
    # The cache itself makes nothing: what lies in it is sealed with its hash.
    assert reached - {"cache"} == set(cache._MAKER)


def test_the_directory_follows_the_environment(monkeypatch, tmp_path):
    from simbridge.ik.kernels.cache import cache_directory

    monkeypatch.delenv("SIMBRIDGE_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_directory() == tmp_path / "simbridge" / "kernels"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_directory() == tmp_path / ".cache" / "simbridge" / "kernels"
    monkeypatch.setenv("SIMBRIDGE_CACHE", str(tmp_path / "here"))
    assert cache_directory() == tmp_path / "here"
