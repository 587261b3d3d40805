"""The docstrings of public objects refer only to what a reader can find: public names."""

from __future__ import annotations

import builtins
import inspect
import re
from collections.abc import Iterator
from types import ModuleType

import pytest

import simbridge
import simbridge.emulator
import simbridge.trajectory

pytestmark = pytest.mark.quick

PACKAGES = (simbridge, simbridge.trajectory, simbridge.emulator)
# A name in single backquotes: `Options`, `Solver.track`, `out_dir`; words as `real` are not names.
REFERENCE = re.compile(r"(?<!`)`([A-Za-z_][\w.]*)(?:\(\))?`(?!`)")
WORD = re.compile(r"[a-z]+")
# Names of columns and fields in files.
IN_FILES = {"t_ns", "frame_id", "name.bag", "name.mcap"}


def names_of(package: ModuleType) -> list[str]:
    """Return the public names of a package."""
    names = getattr(package, "__all__", None) or vars(package)
    return [name for name in names if not name.startswith("_")]


def public_objects() -> Iterator[tuple[str, object]]:
    """Yield each public class or function and its public members, with their names."""
    for package in PACKAGES:
        for name in names_of(package):
            value = getattr(package, name)
            if not (inspect.isclass(value) or inspect.isfunction(value)):
                continue
            yield name, value
            if not inspect.isclass(value):
                continue
            for member_name, member in vars(value).items():
                is_documented = callable(member) or isinstance(
                    member, (property, staticmethod, classmethod)
                )
                if is_documented and not member_name.startswith("_"):
                    yield f"{name}.{member_name}", getattr(value, member_name)


OBJECTS = dict(public_objects())


def attributes_of(kind: type) -> set[str]:
    """Return the public attributes of a class, those of its instances included."""
    names = {name for name in dir(kind) if not name.startswith("_")}
    for base in kind.__mro__:
        names |= set(vars(base).get("__annotations__", {}))
    return names | set(inspect.signature(kind.__init__).parameters)


ATTRIBUTES = {
    attribute
    for value in OBJECTS.values()
    if inspect.isclass(value)
    for attribute in attributes_of(value)
}


def known_names(value: object) -> set[str]:
    """Return the names that a docstring may mention: public names, attributes, parameters."""
    names = set(dir(builtins)) | ATTRIBUTES
    for package in PACKAGES:
        names |= set(names_of(package))
    if inspect.isfunction(value):
        names |= set(inspect.signature(value).parameters)
    return names


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(OBJECTS))
def test_a_docstring_mentions_public_names_only(name):
    value = OBJECTS[name]
    known = known_names(value)

    unknown = []
    for reference in REFERENCE.findall(inspect.getdoc(value) or ""):
        first, *rest = reference.split(".")
        if first == "simbridge" and rest:
            first = rest[0]
        if first not in known and reference not in IN_FILES and not WORD.fullmatch(reference):
            unknown.append(reference)

    assert unknown == []
