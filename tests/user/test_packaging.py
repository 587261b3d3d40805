"""Contents and requirements of the built distributions."""

from __future__ import annotations

import email
import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from email.message import Message
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from ruamel.yaml import YAML

import simbridge

pytestmark = pytest.mark.shares_setup

CHECKOUT = Path(__file__).parents[2]
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
MACHINES = ("x86_64", "aarch64")


def build(kind: str, directory: Path, source: Path = CHECKOUT) -> Path:
    """Build a checkout with the declared back end, without the network, into `directory`."""
    command = [
        sys.executable,
        "-m",
        "hatchling",
        "build",
        "--target",
        kind,
        "--directory",
        str(directory),
    ]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (built,) = directory.glob("*.tar.gz" if kind == "sdist" else "*.whl")
    return built


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    return zipfile.ZipFile(build("wheel", tmp_path_factory.mktemp("dist")))


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> Message:
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return email.message_from_bytes(wheel.read(name))


def required_names(metadata: Message, python: str, machine: str) -> set[str]:
    """Return the packages that an installation without extras needs on Linux."""
    environment = {
        "python_version": python,
        "platform_machine": machine,
        "sys_platform": "linux",
        "extra": "",
    }
    requirements = [Requirement(text) for text in metadata.get_all("Requires-Dist", [])]
    return {
        item.name
        for item in requirements
        if item.marker is None or item.marker.evaluate(environment)
    }


def test_the_wheel_carries_every_robot_and_scenario_unchanged(wheel: zipfile.ZipFile) -> None:
    sources = [*CHECKOUT.glob("robots/*.toml"), *CHECKOUT.glob("scenarios/*.py")]

    assert {"ur10.toml", "square_tracking.py"} <= {path.name for path in sources}
    for path in sources:
        assert (
            wheel.read(f"simbridge/_data/{path.relative_to(CHECKOUT).as_posix()}")
            == path.read_bytes()
        )


def test_the_wheel_carries_modules_and_marker(wheel: zipfile.ZipFile) -> None:
    modules = {path.relative_to(CHECKOUT).as_posix() for path in CHECKOUT.glob("simbridge/**/*.py")}

    assert modules | {"simbridge/py.typed"} <= set(wheel.namelist())


def test_the_wheel_puts_nothing_next_to_the_package(wheel: zipfile.ZipFile) -> None:
    top_level = {name.split("/")[0] for name in wheel.namelist()}

    assert top_level == {"simbridge", f"simbridge-{simbridge.__version__}.dist-info"}


def test_the_version_is_written_in_one_place(metadata: Message) -> None:
    assert metadata["Version"] == simbridge.__version__

    places = [
        CHECKOUT / name for name in ("pyproject.toml", "CITATION.cff", "docs/conf.py", "README.md")
    ]

    assert [
        path.name for path in places if simbridge.__version__ in path.read_text(encoding="utf-8")
    ] == []

    changes = (CHECKOUT / "CHANGELOG.md").read_text(encoding="utf-8")

    assert re.findall(r"^## (\S+)", changes, re.MULTILINE)[0] == simbridge.__version__


def test_the_metadata_say_who_what_and_for_whom(metadata: Message) -> None:
    for name in (
        "Summary",
        "Author",
        "Maintainer",
        "Keywords",
        "Requires-Python",
        "Description-Content-Type",
    ):
        assert metadata[name], name
    assert "Typing :: Typed" in metadata.get_all("Classifier", [])
    # There is no public address yet, and none is invented.
    assert metadata.get_all("Project-URL") is None


def test_the_citation_names_the_software_and_the_paper() -> None:
    citation = YAML(typ="safe").load(CHECKOUT / "CITATION.cff")

    assert citation["cff-version"] == "1.2.0"
    assert citation["license"] == "Apache-2.0"
    assert citation["authors"]
    assert citation["message"]
    assert citation["title"].startswith("simbridge")
    assert [author["family-names"] for author in citation["references"][0]["authors"]] == [
        "Scherzinger", "Roennau", "Dillmann",
    ]  # fmt: skip


def test_the_conda_recipe_has_our_dependencies(metadata: Message) -> None:
    recipe = YAML(typ="safe").load(CHECKOUT / "packaging/conda/recipe.yaml")
    listed = {line.partition(" ")[0] for line in recipe["requirements"]["run"]} - {"python"}
    others = {"pin": "pinocchio", "pybullet-arm64": "pybullet", "ur-rtde": "ur_rtde"}
    others |= {"matplotlib": "matplotlib-base", "ruamel-yaml": "ruamel.yaml"}
    needed: set[str] = set()
    for python in ("3.10", "3.11", "3.12"):
        needed |= required_names(metadata, python, "x86_64")

    assert listed == {others.get(name, name) for name in needed}


def test_every_issue_template_is_a_form() -> None:
    forms = [
        YAML(typ="safe").load(path) for path in (CHECKOUT / ".github/ISSUE_TEMPLATE").glob("*.yml")
    ]

    assert len(forms) == 3

    for form in forms:
        assert form["name"]
        assert form["description"]

        kinds = {part["type"] for part in form["body"]}

        assert kinds <= {"markdown", "textarea", "input", "dropdown", "checkboxes"}

        names = [part["id"] for part in form["body"] if part["type"] != "markdown"]

        assert len(set(names)) == len(names) > 0


@pytest.mark.soak
def test_the_source_distribution_builds_the_same_wheel(
    wheel: zipfile.ZipFile, tmp_path: Path
) -> None:
    with tarfile.open(build("sdist", tmp_path)) as archive:
        archive.extractall(tmp_path, filter="data")
    (source,) = (path for path in tmp_path.iterdir() if path.is_dir())

    rebuilt = zipfile.ZipFile(build("wheel", tmp_path / "dist", source))

    assert {name: rebuilt.read(name) for name in rebuilt.namelist()} == {
        n: wheel.read(n) for n in wheel.namelist()
    }


def test_the_licence_travels_with_the_wheel(wheel: zipfile.ZipFile, metadata: Message) -> None:
    assert metadata["License-Expression"] == "Apache-2.0"

    (licence,) = (name for name in wheel.namelist() if name.endswith("/LICENSE"))

    assert wheel.read(licence) == (CHECKOUT / "LICENSE").read_bytes()


def test_a_wheel_finds_its_robots_and_scenarios(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    site_packages = tmp_path / "site-packages"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    wheel.extractall(site_packages)
    program = (
        "import json, simbridge.resources as r\n"
        "print(json.dumps([str(path) for path in [*r.robot_files().values(), "
        "*r.scenario_files().values()]]))"
    )
    environment = {**os.environ, "PYTHONPATH": str(site_packages)}

    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=elsewhere,
        env=environment,
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stderr

    paths = {Path(path) for path in json.loads(done.stdout)}

    assert site_packages / "simbridge/_data/robots/ur10.toml" in paths
    assert site_packages / "simbridge/_data/scenarios/square_tracking.py" in paths
    assert all(path.is_relative_to(site_packages) for path in paths)


def test_an_editable_install_copies_nothing(tmp_path: Path) -> None:
    names = zipfile.ZipFile(build("wheel:editable", tmp_path)).namelist()

    assert [name for name in names if ".dist-info/" not in name] == ["_simbridge.pth"]


def test_every_listed_python_is_allowed(metadata: Message) -> None:
    allowed = SpecifierSet(metadata["Requires-Python"])

    classified = [
        line.rpartition(" ")[2]
        for line in metadata.get_all("Classifier", [])
        if re.search(r":: 3\.\d+$", line)
    ]

    assert tuple(classified) == PYTHONS
    assert [python for python in (*PYTHONS, "3.9", "3.15") if python in allowed] == list(PYTHONS)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("python", PYTHONS)
def test_every_python_gets_one_engine_with_a_wheel(
    metadata: Message, python: str, machine: str
) -> None:
    engines = {"pybullet", "pybullet-arm64", "mujoco"}
    x86_64 = {"3.12": "pybullet-arm64", "3.13": "pybullet-arm64", "3.14": "mujoco"}
    expected = x86_64.get(python, "pybullet") if machine == "x86_64" else "mujoco"

    assert required_names(metadata, python, machine) & engines == {expected}


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("python", PYTHONS)
def test_ur_rtde_is_required_where_it_has_a_wheel(
    metadata: Message, python: str, machine: str
) -> None:
    has_wheel = machine == "x86_64" and python in ("3.10", "3.11", "3.12")

    assert ("ur-rtde" in required_names(metadata, python, machine)) == has_wheel
