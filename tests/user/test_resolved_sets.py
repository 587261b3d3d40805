"""uv.lock and the resolved sets of `make lock` fit pyproject.toml, and consist of wheels.

Each set is what an installation without extras gets, for a Python and a machine.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import canonicalize_name, parse_wheel_filename

pytestmark = pytest.mark.quick

CHECKOUT = Path(__file__).parents[2]
SETS = CHECKOUT / "tests/data/resolved"
PROJECT = msgspec.toml.decode((CHECKOUT / "pyproject.toml").read_bytes())["project"]
LOCK_TEXT = (CHECKOUT / "uv.lock").read_text(encoding="utf-8")
LOCK = msgspec.toml.decode(LOCK_TEXT)["package"]
(ROOT,) = (package for package in LOCK if package["name"] == "simbridge")

PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
MACHINES = ("x86_64", "aarch64")
# What is compiled where there is no wheel of it.
COMPILED = {"x86_64": set(), "aarch64": {"ruckig"}}

every_environment = pytest.mark.parametrize("machine", MACHINES)
every_python = pytest.mark.parametrize("python", PYTHONS)


def environment(python: str, machine: str, extra: str = "") -> dict[str, str]:
    return {
        "python_version": python,
        "python_full_version": f"{python}.0",
        "platform_machine": machine,
        "platform_python_implementation": "CPython",
        "implementation_name": "cpython",
        "platform_system": "Linux",
        "os_name": "posix",
        "sys_platform": "linux",
        "extra": extra,
    }


def requirements(python: str, machine: str, extra: str = "") -> dict[str, SpecifierSet]:
    """The requirements of pyproject.toml, or of one of its extras, by the names of the packages."""
    chosen = {}
    texts = PROJECT["optional-dependencies"][extra] if extra else PROJECT["dependencies"]
    for requirement in map(Requirement, texts):
        if requirement.name == "simbridge":
            for other in requirement.extras:
                chosen |= requirements(python, machine, other)
            continue
        marker = requirement.marker
        if marker is None or marker.evaluate(environment(python, machine)):
            chosen[canonicalize_name(requirement.name)] = requirement.specifier
    return chosen


@every_environment
@every_python
def test_each_set_has_what_is_required(python, machine):
    lines = (SETS / f"{machine}-{python}.txt").read_text().splitlines()
    versions = dict(line.split("==") for line in lines)

    required = requirements(python, machine)

    assert required.keys() <= versions.keys()
    assert [name for name, allowed in required.items() if versions[name] not in allowed] == []


@pytest.mark.slow
@pytest.mark.parametrize("extra", ["", *PROJECT["optional-dependencies"]])
@every_environment
@every_python
def test_the_lock_is_of_these_requirements(python, machine, extra):
    locked = {}
    for item in ROOT["metadata"]["requires-dist"]:
        applies = "marker" not in item or Marker(item["marker"]).evaluate(
            environment(python, machine, extra)
        )
        is_of_extra = f"extra == '{extra}'" in item.get("marker", "")
        if applies and is_of_extra == bool(extra):
            locked[item["name"]] = SpecifierSet(item.get("specifier", ""))

    assert locked == requirements(python, machine, extra)


def test_only_the_public_index_is_named():
    hosts = re.findall(r"https?://([^/\"]+)", LOCK_TEXT)

    assert set(hosts) == {"pypi.org", "files.pythonhosted.org"}


def test_the_sets_name_no_index():
    assert not [path.name for path in SETS.iterdir() if "://" in path.read_text()]


def installed(python: str, machine: str) -> Iterator[Mapping[str, Any]]:
    """Yield the packages of the lock that an installation without extras gets."""
    waiting = [(ROOT, "")]
    visited = set()
    while waiting:
        package, extra = waiting.pop()
        key = (package["name"], extra)
        if key in visited:
            continue
        visited.add(key)
        if package is not ROOT and not extra:
            yield package

        dependencies = package.get("dependencies", [])
        if extra:
            dependencies = package.get("optional-dependencies", {}).get(extra, [])
        for dependency in dependencies:
            marker = dependency.get("marker")
            if marker is None or Marker(marker).evaluate(environment(python, machine)):
                target = find_package(dependency)
                waiting.append((target, ""))
                waiting += [(target, name) for name in dependency.get("extra", [])]


def find_package(dependency: Mapping[str, Any]) -> Mapping[str, Any]:
    (package,) = (
        package
        for package in LOCK
        if package["name"] == dependency["name"]
        and dependency.get("version", package.get("version")) == package.get("version")
    )
    return package


def usable_tags(python: str, machine: str) -> set[Tag]:
    version = tuple(map(int, python.split(".")))
    # From Debian 10 and Ubuntu 20.04 on.
    platforms = [f"manylinux_2_{minor}_{machine}" for minor in range(28, 4, -1)]
    platforms += [f"manylinux2014_{machine}", f"manylinux2010_{machine}", f"manylinux1_{machine}"]
    interpreter = f"cp{python.replace('.', '')}"
    tags = set(cpython_tags(version, platforms=platforms))
    return tags | set(compatible_tags(version, interpreter, platforms))


@every_environment
@every_python
def test_every_locked_package_has_a_wheel(python, machine):
    usable = usable_tags(python, machine)

    without = set()
    for package in installed(python, machine):
        names = [wheel["url"].rpartition("/")[2] for wheel in package.get("wheels", [])]
        tags = {tag for name in names for tag in parse_wheel_filename(name)[3]}
        if not tags & usable:
            without.add(package["name"])

    assert without == COMPILED[machine]


def test_the_development_container_is_a_stage_of_the_dockerfile():
    text = (CHECKOUT / ".devcontainer/devcontainer.json").read_text(encoding="utf-8")
    container = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))

    dockerfile = (CHECKOUT / "Dockerfile").read_text(encoding="utf-8")

    assert f"AS {container['build']['target']}\n" in dockerfile
    assert container["postCreateCommand"] == "make run"
    assert "RUN make run\n" in dockerfile
    assert 'CMD ["make", "test"]' in dockerfile
