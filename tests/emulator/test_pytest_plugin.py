"""The fixture `simbridge_emulator` in somebody else's tests."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from tests.patience import PATIENCE

pytestmark = pytest.mark.slow

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

pytest_plugins = ["pytester"]

PLUGIN = "simbridge.emulator.pytest_plugin"
# An environment that was made before the plugin has no entry point for it.
INSTALLED = any(entry.value == PLUGIN for entry in entry_points(group="pytest11"))


def run(pytester, *options):
    named = () if INSTALLED else ("-p", PLUGIN)
    return pytester.runpytest_subprocess(
        *named, "-p", "no:cacheprovider", "--strict-markers", *options, timeout=PATIENCE
    )


def test_the_fixture_is_a_running_controller_of_the_test_alone(pytester):
    pytester.makepyfile(
        """
        import pytest

        def test_first(simbridge_emulator):
            assert simbridge_emulator.state()["robot_mode"] == "RUNNING"
            assert simbridge_emulator.host.startswith("127.")
            simbridge_emulator.do("slider", fraction=0.5)

        @pytest.mark.simbridge_emulator("ur5", polyscope="3.15", running=False)
        def test_second(simbridge_emulator):
            state = simbridge_emulator.state()
            assert state["robot_mode"] == "POWER_OFF" and state["speed_slider"] == 1.0
            assert "UR5 with PolyScope 3.15" in simbridge_emulator.log
        """
    )

    run(pytester).assert_outcomes(passed=2)


@pytest.mark.soak
def test_a_test_that_fails_shows_the_controllers_log(pytester):
    pytester.makepyfile("def test_it(simbridge_emulator):\n    assert False\n")
    result = run(pytester)

    result.assert_outcomes(failed=1)

    result.stdout.fnmatch_lines(["*UR10e with PolyScope 5.12 on 127.*"])


def test_the_fixture_is_listed(pytester):
    named = () if INSTALLED else ("-p", PLUGIN)
    listed = pytester.runpytest_inprocess(*named, "-p", "no:cacheprovider", "--fixtures", "-v")

    listed.stdout.fnmatch_lines(["simbridge_emulator*", "*UR10e*"])


def test_the_plugin_alone_imports_next_to_nothing():
    source = f"""
        import sys, pytest, importlib.metadata
        list(importlib.metadata.distributions())
        before = set(sys.modules)
        import {PLUGIN}
        print(*sorted(set(sys.modules) - before))
    """
    lines = "\n".join(line.strip() for line in source.splitlines())
    imported = subprocess.run(
        [sys.executable, "-c", lines], capture_output=True, text=True, timeout=PATIENCE
    ).stdout.split()

    assert PLUGIN in imported
    assert {name for name in imported if name.startswith("simbridge")} <= {
        "simbridge",
        "simbridge.emulator",
        PLUGIN,
    }

    # What lazy_loader needs; nothing else that is not of the standard library.
    packages = {name.partition(".")[0] for name in imported}

    assert not packages - {"simbridge", "lazy_loader"} - sys.stdlib_module_names


def test_pytest_finds_the_plugin_where_simbridge_is_installed():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]

    assert project["entry-points"]["pytest11"] == {"simbridge": PLUGIN}


def test_the_emulator_is_imported_from_its_package_by_name():
    from simbridge.emulator import Emulator, handle

    assert Emulator is handle.Emulator
    with pytest.raises(ImportError, match="Emulators"):
        from simbridge.emulator import Emulators  # noqa: F401
