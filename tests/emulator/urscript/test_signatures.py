"""The table of signatures, and the calls that it accepts and refuses."""

from __future__ import annotations

import ast
import inspect

import pytest

from simbridge.emulator.accepted_functions import RESULTS
from simbridge.emulator.emulated_controller import EmulatedController
from simbridge.emulator.program import ScriptProgram, builtin_functions
from simbridge.emulator.sockets import SocketFunctions
from simbridge.emulator.state import profile
from simbridge.emulator.urscript.library import LIBRARY
from simbridge.emulator.urscript.signatures import (
    SIGNATURES,
    Signature,
    read_table,
    signature_of_method,
)
from tests.emulator.bench import ROBOT

CONTROLLER = EmulatedController(ROBOT, profile("5.12"), ScriptProgram)
METHODS = {**LIBRARY, **builtin_functions(CONTROLLER), **SocketFunctions(0.002).table()}


def test_the_table_has_every_built_in_function():
    assert sorted(SIGNATURES) == sorted(METHODS)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(METHODS.keys() - RESULTS.keys()))
def test_methods_take_the_tables_parameters(name):
    method = signature_of_method(METHODS[name])
    table = SIGNATURES[name]

    assert [parameter.name for parameter in method.parameters] == [
        parameter.name for parameter in table.parameters
    ]
    assert [parameter.default is None for parameter in method.parameters] == [
        parameter.default is None for parameter in table.parameters
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(METHODS.keys() - RESULTS.keys()))
def test_methods_have_the_manuals_defaults(name):
    """Lists are tuples in Python, and a pose has no literal."""
    defaults = {
        parameter.name: parameter.default
        for parameter in inspect.signature(METHODS[name]).parameters.values()
    }
    for parameter in SIGNATURES[name].parameters:
        if parameter.default in (None, "..."):
            continue
        default = ast.literal_eval(parameter.default.removeprefix("p"))
        value = tuple(default) if isinstance(default, list) else default
        assert defaults[parameter.name] == value


@pytest.fixture
def signature() -> Signature:
    return read_table("movej(q, a=1.4, t|t_min=...)\n")["movej"]


@pytest.mark.parametrize(
    ("count", "keywords"),
    [(1, []), (3, []), (0, ["q"]), (1, ["t"]), (1, ["t_min", "a"]), (2, ["t"])],
)
def test_fitting_calls_have_no_error(signature, count, keywords):
    assert signature.call_error(count, keywords) == ""


@pytest.mark.parametrize(
    ("count", "keywords", "reason"),
    [
        (0, [], "missing a required argument: 'q'"),
        (0, ["a"], "missing a required argument: 'q'"),
        (4, [], "too many positional arguments: 4 instead of at most 3"),
        (1, ["v"], "got an unexpected keyword argument 'v'; its parameters: q, a, t"),
        (1, ["q"], "multiple values for argument 'q'"),
        (1, ["t", "t_min"], "multiple values for argument 't_min'"),
    ],
)
def test_other_calls_have_a_reason(signature, count, keywords, reason):
    assert signature.call_error(count, keywords) == reason


def test_other_editions_keywords_have_one_name(signature):
    assert signature.python_name("t_min") == "t"


def test_defaults_may_be_lists_and_poses():
    [signature] = read_table("f(a=[1, 2], b=p[0, 0, 0, 0, 0, 0], c=3)\n").values()

    assert [parameter.name for parameter in signature.parameters] == ["a", "b", "c"]


def test_an_indented_line_continues_a_function():
    [signature] = read_table("f(a,\n    b)\n").values()

    assert len(signature.parameters) == 2
