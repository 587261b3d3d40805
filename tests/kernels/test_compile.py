"""The cache of compiled kernels, seen from processes that share it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager

import pytest

from simbridge.errors import UncompilableCode
from simbridge.kernels import compile as compile_module
from simbridge.kernels.compile import PYTHON_SWITCH, kernel
from simbridge.kernels.program import KernelProgram
from tests.patience import PATIENCE

pytestmark = [pytest.mark.slow, pytest.mark.shares_setup]

PROGRAM = """
import numpy as np
from simbridge.kernels.compile import kernel
from simbridge.kernels.program import KernelProgram

text = '''
def double(x):
    for i in range(x.shape[0]):
        x[i] *= 2.0
'''
values = np.array([21.0, 0.5])
kernel(KernelProgram(text), "double", "doubling")(values)
print(values[0])
"""
# Runs programs, each in a process and an environment of its own, and prints their statuses and what
# they print to stdout and stderr. The processes are forked from one whose numba has compiled
# something, which takes longer the first time.
FORKS = """
import json, os, sys, numba, numpy
from concurrent.futures import ThreadPoolExecutor

def read(pipe):
    with open(pipe) as file:
        return file.read()

numba.njit("void(float64[::1])")(lambda x: x.fill(0.0))
outputs = []
for program, environment in json.load(sys.stdin):
    pipes = [os.pipe(), os.pipe()]
    if os.fork() == 0:
        os.environ |= environment
        for stream, (_, writing) in enumerate(pipes, start=1):
            os.dup2(writing, stream)
        exec(program)
        sys.stdout.flush()
        os._exit(0)
    for _, writing in pipes:
        os.close(writing)
    # Both at once: a program waits while nobody reads what it prints.
    with ThreadPoolExecutor() as pool:
        out, warnings = pool.map(read, [reading for reading, _ in pipes])
    _, status = os.wait()
    outputs.append([status, out, warnings])
print(json.dumps(outputs))
"""
# A custom step: a plain function in a file, with a constant and a function that it uses.
OWN = """
import numpy as np
from simbridge.kernels.compile import kernel_of

FACTOR = {factor}

def times(x):
    x[0] *= FACTOR

def loop(x):
    times(x)

values = np.array([2.0])
kernel_of(loop, "custom loop")(values)
print(values[0])
"""
# Programs with a function in common, by the names of their own.
SHARING = """
from numba import njit

@njit
def shift(x):
    return x + 1.0

def NAME(x):
    return shift(x)
"""
CALL_SHARING = f"""
from simbridge.kernels.compile import kernel
from simbridge.kernels.program import KernelProgram

text = {SHARING!r}
for name in NAMES:
    result = kernel(KernelProgram(text.replace("NAME", name)), name, "shift")(2.0)
print(result)
"""
# Copies the cache, times of change included.
COPY = "import os, shutil; shutil.copytree(os.environ['SIMBRIDGE_CACHE'], {!r})"
# Counts the lines of the loop's own file that are run while a solver takes a step: those at which a
# debugger stops. Prints them and the joint positions.
TRACED = """
import sys
import numpy as np
from simbridge.ik.settings import SOLVERS
from simbridge.robot import load_robot

lines = []

def trace(frame, event, argument):
    if event == "line" and frame.f_code.co_filename.endswith("ik/kernels/line_search.py"):
        lines.append(frame.f_lineno)
    return trace

solver = SOLVERS["damped-least-squares"](stiffness=(0.3,)).build(load_robot("planar3r"))
# The first step compiles, which a trace would slow down.
solver.step([0.6, 0.2, 0.0, 0.0, 0.0, 0.0, 1.0])
sys.settrace(trace)
solver.step([0.6, 0.2, 0.0, 0.0, 0.0, 0.0, 1.0])
sys.settrace(None)
print(len(set(lines)), solver.q.tobytes().hex())
"""
NOTICE = "Compiling the doubling (first run only, a few seconds) ..."
# Lets no file of a process grow: as on a full disk, empty files can still be made.
FULL = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))"
# Leaves room for the source, but not for the machine code.
ALMOST_FULL = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))"
NO_TEMPORARY_FILES = "import os, tempfile; tempfile.tempdir = os.environ['SIMBRIDGE_CACHE']"


def environment(cache):
    """The variables of a process that keeps nothing outside of a cache."""
    return dict.fromkeys(("SIMBRIDGE_CACHE", "HOME", "XDG_CACHE_HOME"), str(cache)) | {
        "PYTHONDONTWRITEBYTECODE": "1"
    }


def start(directory, *command):
    command = command or ("-c", PROGRAM)
    return subprocess.Popen(
        [sys.executable, *map(str, command)],
        env=os.environ | environment(directory),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(process):
    """The result and the warnings."""
    out, warnings = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, warnings
    return float(out), warnings


def run_forked(programs):
    """Return the outputs and the warnings of programs that end well.

    Args:
        programs: Each program, and the variables of its environment.
    """
    answer = subprocess.run(
        [sys.executable, "-c", FORKS],
        input=json.dumps(programs),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    outputs = json.loads(answer.stdout)
    for status, _, warnings in outputs:
        assert status == 0, warnings
    return [[out, warnings] for _, out, warnings in outputs]


@pytest.fixture(scope="module")
def caches(tmp_path_factory):
    """A directory for caches."""
    return tmp_path_factory.mktemp("caches")


@pytest.fixture(scope="module")
def outputs(caches):
    """The outputs and the warnings of all programs, by name; each is run by a process of its own,
    one after the other.
    """
    blocked = caches / "file"
    blocked.write_text("")
    filled, shared = (environment(caches / name) for name in ("filled", "shared"))
    programs = {
        "first": (PROGRAM, filled),
        "copy": (COPY.format(str(caches / "filled_once")), filled),
        "second": (PROGRAM, filled),
        "two programs": (f"NAMES = ['first', 'second']\n{CALL_SHARING}", shared),
        "later program": (f"NAMES = ['second']\n{CALL_SHARING}", shared),
        # Without a cache that machine code could be kept in.
        "read-only": (PROGRAM, environment(blocked / "kernels")),
        "full": (f"{FULL}\n{PROGRAM}", environment(caches / "full")),
        "almost full": (f"{ALMOST_FULL}\n{PROGRAM}", environment(caches / "almost_full")),
        "no space": (f"{NO_TEMPORARY_FILES}\n{PROGRAM}", environment(blocked / "kernels")),
        # Kernels of the user's cache.
        "python": (TRACED, {PYTHON_SWITCH: "1"}),
        "compiled": (TRACED, {PYTHON_SWITCH: "0"}),
    }
    return dict(zip(programs, run_forked(list(programs.values())), strict=True))


@pytest.fixture(scope="module")
def filled(caches, outputs):
    """A cache after the first process."""
    out, warnings = outputs["first"]
    assert out == "42.0\n"
    assert warnings.count(NOTICE) == 1
    return caches / "filled_once"


def contents(directory):
    return {
        path.name: (path.stat().st_mtime_ns, path.read_bytes())
        for path in directory.rglob("*")
        if path.is_file()
    }


def test_a_second_process_compiles_nothing_and_prints_nothing(filled, caches, outputs):
    assert outputs["second"] == ["42.0\n", ""]
    assert contents(caches / "filled") == contents(filled)


# The second of the two programs takes the first one's function.
def test_machine_code_needs_no_earlier_program(outputs):
    assert outputs["two programs"][0] == "3.0\n"
    assert outputs["later program"] == ["3.0\n", ""]


def test_what_another_process_compiled_meanwhile_is_loaded(caches, outputs, tmp_path, monkeypatch):
    shared = caches / "shared"

    @contextmanager
    def wait_for_the_other(_module):
        shutil.copytree(shared, tmp_path, dirs_exist_ok=True)
        yield

    monkeypatch.setenv("SIMBRIDGE_CACHE", str(tmp_path))
    monkeypatch.setattr(compile_module, "compile_once", wait_for_the_other)

    assert kernel(KernelProgram(SHARING.replace("NAME", "second")), "second", "shift")(2.0) == 3.0
    assert contents(tmp_path) == contents(shared)


def test_the_source_is_beside_its_machine_code(filled):
    (source,) = filled.glob("*.py")

    assert "x[i] *= 2.0" in source.read_text()


@pytest.mark.soak
def test_a_damaged_file_is_replaced(filled, tmp_path):
    damages = {
        "empty": lambda content: b"",
        "other": lambda content: b"damaged",
        "cut": lambda content: content[:-9],
    }
    cases = [(pattern, damage) for pattern in ("*.py", "*.nbi", "*.nbc") for damage in damages]
    caches = [
        shutil.copytree(filled, tmp_path / f"{pattern[2:]}_{damage}") for pattern, damage in cases
    ]
    for cache, (pattern, damage) in zip(caches, cases, strict=True):
        (path,) = cache.rglob(pattern)
        path.write_bytes(damages[damage](path.read_bytes()))
    programs = [(PROGRAM, environment(cache)) for cache in caches]
    outcome = run_forked(programs)
    # The source is written again without compiling.
    expected = [("42.0\n", pattern != "*.py") for pattern, _ in cases]

    assert [(out, warnings.count(NOTICE)) for out, warnings in outcome] == expected, outcome
    assert run_forked(programs) == [["42.0\n", ""]] * len(cases)


@pytest.mark.soak
def test_simultaneous_processes_share_a_cache(tmp_path):
    processes = [start(tmp_path) for _ in range(3)]

    assert [finished(process)[0] for process in processes] == [42.0] * 3
    assert finished(start(tmp_path)) == (42.0, "")
    assert not list(tmp_path.rglob("*.tmp*"))


@pytest.mark.parametrize(
    ("name", "cache"),
    [
        ("read-only", "file/kernels"),
        ("full", "full"),
        ("almost full", "almost_full"),
        ("no space", "file/kernels"),
    ],
)
def test_a_cache_that_cannot_be_written_warns_once(caches, outputs, name, cache):
    out, warnings = outputs[name]

    assert out == "42.0\n"
    assert warnings.count("cannot be written") == 1
    assert str(caches / cache) in warnings
    assert "SIMBRIDGE_CACHE" in warnings


@pytest.mark.soak
def test_a_changed_function_is_compiled_again(tmp_path):
    script = tmp_path / "own.py"

    for factor, wanted in ((3.0, 6.0), (5.0, 10.0)):
        script.write_text(OWN.format(factor=factor))
        value, warnings = finished(start(tmp_path, script))
        assert value == wanted
        assert "Compiling the custom loop" in warnings

    assert finished(start(tmp_path, script)) == (10.0, "")


def test_uncompilable_code_has_numbas_reason():
    with pytest.raises(UncompilableCode, match="undefined_name") as caught:
        kernel(KernelProgram("def f(x):\n    return undefined_name(x)\n"), "f", "mistake")(1.0)

    assert caught.value.name == "f"


def test_a_debugger_stops_in_python_kernels(outputs):
    lines, q = outputs["python"][0].split()
    compiled_lines, compiled_q = outputs["compiled"][0].split()
    assert int(lines) > 20
    assert int(compiled_lines) == 0
    # To the last bit.
    assert q == compiled_q
