"""What compiled code does is what Python does with the same text."""

from __future__ import annotations

import inspect
import math
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from simbridge.errors import UncompilableCode
from simbridge.ik.kernels.lazy import compiled
from simbridge.ik.kernels.routine import Routine

pytestmark = pytest.mark.filterwarnings("ignore:Compiling")

TEXT = Path(__file__).read_text("utf-8")
CONSTANTS = np.array([1.0, 2.0])
numbers = st.floats(-1e6, 1e6)
anything = numbers | st.sampled_from([0.0, -0.0, math.inf, -math.inf, math.nan])


def both(loop, *arguments):
    """The arguments after the compiled loop, and after Python itself; what is not an array stays as it is."""
    ways = []
    for run in (Routine(loop.__name__, "routine of a test", TEXT, lambda: loop), loop):
        copies = [np.copy(value) if isinstance(value, np.ndarray) else value for value in arguments]
        run(*copies)
        ways.append(copies)
    return ways


def same(ways):
    for one, other in zip(*ways, strict=True):
        np.testing.assert_array_equal(one, other)


def parted(vector, first, last, total):
    for start, stop in ((first, last), (0, last), (first, vector.shape[0])):
        for value in vector[start:stop]:
            total[0] += value
        total[1] += len(vector[start:stop])
    for value in vector[first:]:
        total[2] += value
    for value in vector[:last]:
        total[3] += value
    part = vector[2:]
    if len(part) > 0:
        part[0] = total[0]
        part[-1] *= 2.0


@given(size=st.integers(0, 6), first=st.integers(-8, 8), last=st.integers(-8, 8))
@settings(max_examples=200, deadline=None)
def test_parts_of_a_vector_are_those_of_python_wherever_they_begin_and_end(size, first, last):
    same(both(parted, np.arange(1.0, size + 1.0), first, last, np.zeros(4)))


def placed(stack, i, j, k, found):
    found[0] = stack[i, j, k]
    found[1] = stack[i][j][k]
    found[2] = stack[i, j][k]
    stack[i][j, k] = -1.0
    row = stack[-1, -1]
    row[-1] += 3.0
    for matrix in stack:
        for line in matrix:
            for value in line:
                found[3] += value
    found[4] = stack.shape[0] * 100 + stack.shape[1] * 10 + len(stack[i, j])


@given(i=st.integers(-2, 1), j=st.integers(-3, 2), k=st.integers(-4, 3))
@settings(deadline=None)
def test_indices_lead_to_the_same_numbers_and_rows_and_negative_ones_count_from_the_end(i, j, k):
    same(both(placed, np.arange(24.0).reshape(2, 3, 4), i, j, k, np.zeros(5)))


def compared(a, b, c, found, counts):
    found[0], found[1] = min(a, b), max(a, b)
    found[2], found[3] = min(a, b, c), max(a, b, c)
    found[4] = abs(a)
    found[5], found[6], found[7] = np.floor(c), np.ceil(c), np.rint(c)
    counts[0], counts[1] = min(counts[2], counts[3]), max(counts[2], counts[3], 1)
    found[8], found[9] = max(a > b, 0.5), min(True, c)


@given(a=anything, b=anything, c=anything, counts=st.tuples(*[st.integers(-(2**62), 2**62)] * 2))
@example(a=math.nan, b=1.0, c=0.5, counts=(0, 0))
@example(a=1.0, b=math.nan, c=-2.5, counts=(0, 0))
@settings(deadline=None)
def test_extremes_and_roundings_are_those_of_python_and_numpy_also_where_a_number_is_none(a, b, c, counts):
    ways = both(compared, a, b, c, np.zeros(10), np.array([0, 0, *counts]))
    same(ways)
    np.testing.assert_array_equal(np.signbit(ways[0][3]), np.signbit(ways[1][3]))


def kinds(mask, small, wide, number, whole, flag):
    mask[0] = not mask[1] or flag
    small[0] = small[1] + 1
    wide[0] = int(number) + whole
    wide[1] = max(whole, small[0])
    wide[2] = int(whole) // 2 + whole % 3
    wide[3] = 1 if flag else 2


@given(number=numbers, whole=st.integers(-1000, 1000), flag=st.booleans(), other=st.booleans())
@settings(deadline=None)
def test_numbers_of_every_kind_keep_their_kind(number, whole, flag, other):
    mask, small = np.array([False, other]), np.array([0, 41])
    same(both(kinds, mask, small, np.zeros(4, np.int64), number, whole, flag))


def functions(a, b, found):
    found[0], found[1], found[2] = math.sin(a), math.cos(a), math.atan2(a, b)
    found[3], found[4] = math.sqrt(abs(a)), math.hypot(a, b)
    found[5], found[6] = math.copysign(a, b), a**2
    found[7] = 1.0 if math.isfinite(a) and a < math.inf else 0.0


@given(a=numbers, b=numbers)
@settings(deadline=None)
def test_functions_of_the_math_module_are_those_of_python(a, b):
    for one, other in zip(*both(functions, a, b, np.zeros(8)), strict=True):
        np.testing.assert_allclose(one, other, rtol=4e-16)


def controlled(values, limit, found):
    one, other = found[0], found[1]
    total, count = 0.0, 0
    for value in values:
        if value < 0.0:
            continue
        if total + value > limit:
            break
        total += value
        one, other = other, one
        one[0] += 1.0
    else:
        count += 100
    i = len(values)
    while (i > 0 and not values[i - 1] < 0.0) or i == 7:
        i -= 1
        if i == 3:
            other[1] = -1.0
            return
    longer = one if one[0] > other[0] else other
    longer[1] = total
    other[2], one[2] = i, count
    smallest = 10
    for value in values:
        smallest = min(smallest, value)
    found[0, 3] = smallest


@given(values=st.lists(st.floats(-1.0, 3.0), max_size=6), limit=st.floats(0.0, 9.0))
@settings(max_examples=200, deadline=None)
def test_loops_branches_and_names_that_are_given_anew_go_the_way_of_python(values, limit):
    same(both(controlled, np.array(values), limit, np.zeros((2, 4))))


def copied(source, destination):
    destination[0:2] = source[0:2]


@compiled
def longest(source):
    return np.linalg.norm(source)


def asked_of_numpy(source, destination):
    destination[0] = longest(source)


def of_its_module(source, destination):
    destination[0] = CONSTANTS[1]


def the_same(source, destination):
    destination[0] = 1.0 if source is destination else 0.0


def whole_array(source, destination):
    destination[0] = source


@pytest.mark.parametrize("loop", [copied, asked_of_numpy, of_its_module, the_same, whole_array])
def test_what_is_no_part_of_the_dialect_is_refused_with_the_line_it_stands_in(loop):
    with pytest.raises(UncompilableCode, match=r"dialect\.py") as refusal:
        Routine(loop.__name__, "routine of a test", TEXT, lambda: loop)(np.ones(3), np.zeros(3))
    assert refusal.value.name == loop.__name__
    lines, first = inspect.getsourcelines(longest.__wrapped__ if loop is asked_of_numpy else loop)
    said = {int(line) for line in re.findall(r"test_dialect\.py.{0,9}?(\d+)", refusal.value.reason)}
    assert said & set(range(first, first + len(lines)))


def tripled(values):
    for i in range(values.shape[0]):
        values[i] *= 3.0


def test_threads_may_compile_at_once(monkeypatch, tmp_path):
    monkeypatch.setenv("SIMBRIDGE_CACHE", str(tmp_path))
    together = threading.Barrier(4)

    def compiled_by(thread):
        values = np.full(2, float(thread))
        together.wait()
        Routine("tripled", "routine of a test", f"{TEXT}{thread}", lambda: tripled)(values)
        return values[0]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(compiled_by, range(4))) == [0.0, 3.0, 6.0, 9.0]


def test_numba_itself_knows_nothing_of_it():
    """A user's own numba functions in the same process are compiled by numba's rules."""
    import numba

    same(both(placed, np.arange(24.0).reshape(2, 3, 4), 0, 0, 0, np.zeros(5)))

    @numba.njit
    def total(values):
        return max(values[0], 2.0) + values[1:].sum() + min(3, 4)

    assert total(np.array([1.0, 5.0, 6.0])) == 16.0
