"""Routines: compiled functions whose arguments lie in a block of memory."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest

from simbridge.ik.kernels.lazy import Choice, compiled
from simbridge.ik.kernels.routine import Routine


class Scale(NamedTuple):
    factor: float
    whole: int
    flip: bool


class Shift(NamedTuple):
    by: np.ndarray


change = Choice("change")


@compiled
def largest(values):
    found = -math.inf
    for value in values:
        found = max(found, value)
    return found


def scaled(how, row):
    for i in range(row.shape[0]):
        row[i] *= (-how.factor if how.flip else how.factor) * how.whole


def shifted(how, row):
    for i in range(row.shape[0]):
        row[i] += how.by[i]


change.declare(Scale, lambda: scaled)
change.declare(Shift, lambda: shifted)


def changed(how, rows, mask, counts, maxima):
    for t in range(rows.shape[0]):
        if mask[t]:
            change(how, rows[t])
            counts[t] += 1
        maxima[t] = largest(rows[t])


def raising(values):
    if values[0] < 0.0:
        raise ValueError
    values[0] = 1.0


@pytest.fixture
def routine(monkeypatch, tmp_path):
    monkeypatch.setenv("SIMBRIDGE_CACHE", str(tmp_path))
    return Routine("changed", "routine of a test", "changed", lambda: changed)


@pytest.mark.filterwarnings("ignore:Compiling")
def test_arrays_numbers_and_named_tuples_arrive_and_the_class_of_a_tuple_chooses_the_function(routine):
    start = np.arange(12.0).reshape(4, 3)
    mask, by = np.array([True, False, True, True]), np.array([10.0, -10.0, 0.5])
    for how, expected in ((Scale(0.5, 3, True), -1.5 * start), (Shift(by), start + by)):
        rows, counts, maxima = start.copy(), np.zeros(4, np.int64), np.empty(4)
        call = routine.bound(how, rows, mask, counts, maxima)
        call()
        assert np.array_equal(rows, np.where(mask[:, None], expected, start))
        assert np.array_equal(maxima, rows.max(axis=1))
        call()
        assert counts.tolist() == [2, 0, 2, 2]


def test_what_no_routine_takes_is_refused_before_anything_is_compiled(routine):
    arrays = np.zeros((4, 4))[:, ::2], np.array(1.0), np.zeros(2, ">f8"), np.zeros(2, np.uint64), np.array(["a"])
    for argument in (*arrays, "text", (1.0, 2.0), None):
        with pytest.raises(TypeError, match="A routine"):
            routine.bound(argument)


@pytest.mark.filterwarnings("ignore:Compiling")
def test_a_function_that_raises_after_all_is_told_of(monkeypatch, tmp_path):
    monkeypatch.setenv("SIMBRIDGE_CACHE", str(tmp_path))
    routine = Routine("raising", "routine of a test", "raising", lambda: raising)
    values = np.array([2.0])
    routine(values)
    assert values[0] == 1.0
    with pytest.raises(RuntimeError, match="raising has failed with status"):
        routine(np.array([-2.0]))
