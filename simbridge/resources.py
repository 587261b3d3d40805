"""Where the robot files and the scenario scripts are: in the checkout, else inside the installed package.

A wheel carries `robots/` and `scenarios/` as `simbridge/_data/`. A checkout, and an editable install of one, has them
beside the package and nothing is copied, so that a file added there is found at once.
"""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def _data_directory() -> Path:
    checkout = _PACKAGE.parent
    # The project file tells a checkout from site-packages, where another distribution may own a folder "robots".
    return checkout if (checkout / "pyproject.toml").is_file() else _PACKAGE / "_data"


def robots_directory() -> Path:
    """The directory of the robot files, one TOML an arm."""
    return _data_directory() / "robots"


def scenarios_directory() -> Path:
    """The directory of the scenario scripts, one Python file a scenario."""
    return _data_directory() / "scenarios"


def robot_files() -> dict[str, Path]:
    """The robot files by robot name (`robots/ur10.toml` is "ur10"), sorted by name; read anew at every call."""
    return {path.stem: path for path in sorted(robots_directory().glob("*.toml"))}


def scenario_files() -> dict[str, Path]:
    """The scenario scripts by scenario name, sorted by name; a script whose name starts with an underscore is none."""
    scripts = sorted(scenarios_directory().glob("*.py"))
    return {path.stem: path for path in scripts if not path.name.startswith("_")}
