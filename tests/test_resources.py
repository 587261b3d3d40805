"""Where robots and scenarios are found: what a user of a checkout, an editable install and a wheel
sees.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path
from types import ModuleType

import pytest

from simbridge import resources

CHECKOUT = Path(__file__).parents[1]


def lay(root: Path, *files: str) -> Path:
    """Make `root` with these (empty) files in it, and give it back."""
    for file in files:
        path = root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return root


def resources_in(root: Path) -> ModuleType:
    """The resources module as it acts when the package lies at `root`/simbridge."""
    (root / "simbridge").mkdir(exist_ok=True)
    copy = shutil.copy(resources.__file__, root / "simbridge" / "resources.py")
    spec = importlib.util.spec_from_file_location("resources_elsewhere", copy)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_robot_files_have_their_own_names() -> None:
    expected = {
        name.removesuffix(".toml")
        for name in os.listdir(CHECKOUT / "robots")
        if name.endswith(".toml")
    }

    assert "ur10" in expected
    assert set(resources.robot_files()) == expected
    assert all(path.is_file() for path in resources.robot_files().values())


def test_public_scripts_are_scenarios() -> None:
    names = os.listdir(CHECKOUT / "scenarios")
    expected = {
        name.removesuffix(".py")
        for name in names
        if name.endswith(".py") and not name.startswith("_")
    }

    assert "square_tracking" in expected
    assert set(resources.scenario_files()) == expected


def test_a_new_robot_file_is_seen(tmp_path: Path) -> None:
    checkout = lay(tmp_path, "pyproject.toml", "robots/ur10.toml")

    resources = resources_in(checkout)

    assert resources.robot_files() == {"ur10": checkout / "robots/ur10.toml"}

    lay(checkout, "robots/mine.toml")

    assert resources.robot_files() == {
        "mine": checkout / "robots/mine.toml",
        "ur10": checkout / "robots/ur10.toml",
    }


def test_an_installed_package_uses_its_own_data(
    tmp_path: Path,
) -> None:
    site_packages = lay(
        tmp_path,
        "simbridge/_data/robots/ur10.toml",
        "simbridge/_data/scenarios/step.py",
        "robots/somebody_elses.toml",
        "scenarios/somebody_elses.py",
    )

    resources = resources_in(site_packages)

    assert resources.robot_files() == {"ur10": site_packages / "simbridge/_data/robots/ur10.toml"}
    assert resources.scenario_files() == {
        "step": site_packages / "simbridge/_data/scenarios/step.py"
    }


def test_the_checkout_wins_over_stale_data(tmp_path: Path) -> None:
    checkout = lay(
        tmp_path, "pyproject.toml", "robots/new.toml", "simbridge/_data/robots/stale.toml"
    )

    assert list(resources_in(checkout).robot_files()) == ["new"]


@pytest.mark.parametrize(
    "name", ["_shared.py", "__init__.py", "notes.md", "data.csv", "__pycache__/step.pyc"]
)
def test_only_scripts_without_a_leading_underscore_are_scenarios(tmp_path: Path, name: str) -> None:
    checkout = lay(tmp_path, "pyproject.toml", "scenarios/step.py", f"scenarios/{name}")

    assert list(resources_in(checkout).scenario_files()) == ["step"]


def test_names_come_sorted(tmp_path: Path) -> None:
    names = ["ur5", "ur10e", "planar3r", "ur10"]

    checkout = lay(tmp_path, "pyproject.toml", *(f"robots/{name}.toml" for name in names))

    assert list(resources_in(checkout).robot_files()) == sorted(names)


def test_missing_data_are_no_error(tmp_path: Path) -> None:
    resources = resources_in(tmp_path)

    assert resources.robot_files() == {}
    assert resources.scenario_files() == {}
