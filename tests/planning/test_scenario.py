"""A scenario comes by name, from a script or from a file; a script that cannot be used is refused
by its line.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

import numpy as np
import pytest

from simbridge.errors import InputFileError, InvalidParameter, ScenarioError, UnknownName
from simbridge.ik.forward_dynamics import ForwardDynamics
from simbridge.planning.scenario import Scenario, load_scenario
from simbridge.resources import scenario_description, scenario_files
from simbridge.robot import load_robot
from simbridge.trajectory import ReadOptions, square

ROBOT = load_robot("ur10")
GOOD = """\
from simbridge import Scenario
from simbridge.trajectory import square


def scenario(robot):
    return Scenario(square(side=0.1))
"""


@pytest.fixture
def script(tmp_path, monkeypatch):
    """Writes a script under a relative path, as it is mostly named, and returns that path."""
    monkeypatch.chdir(tmp_path)

    def write(text, name="mine.py"):
        (tmp_path / name).write_text(text)
        return f"./{name}"

    return write


def refused(path):
    with pytest.raises(ScenarioError) as caught:
        load_scenario(path, ROBOT)
    assert "mine.py" in str(caught.value)
    return caught.value


@pytest.mark.parametrize("name", scenario_files())
def test_built_in_scenarios_load_by_name(name):
    scenario = load_scenario(name, ROBOT)

    assert scenario.name == name
    assert scenario.description
    assert scenario_description(scenario_files()[name]).endswith(".")


def test_a_script_is_named_by_its_file(script):
    assert load_scenario(script(GOOD), ROBOT).name == "mine"
    assert load_scenario(script(GOOD.replace("0.1)", "0.1), name='other'")), ROBOT).name == "other"


def test_a_script_is_read_anew(script, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    extents = []
    for side in ("0.1", "0.2"):
        path = script(GOOD.replace("0.1", side))
        # As two changes within a second.
        os.utime(path, (1e9, 1e9))
        extents.append(np.ptp(load_scenario(path, ROBOT).trajectory.poses[:, :3], axis=0).max())

    assert extents == pytest.approx([0.1, 0.2])
    assert [file.name for file in tmp_path.iterdir()] == ["mine.py"]


def test_a_file_of_samples_is_a_scenario(line):
    scenario = load_scenario(line, ROBOT)

    assert scenario.name == "line"
    assert scenario.trajectory.poses[:, 0] == pytest.approx(0.7 + 0.01 * np.arange(5), abs=1e-15)
    assert (scenario.hold, scenario.on_limits) == ("linear", "refuse")


@pytest.mark.parametrize("kind", ["script", "file"])
def test_pendant_poses_are_turned(kind, script, line):
    source = script(GOOD) if kind == "script" else line
    poses = load_scenario(source, ROBOT).trajectory.poses
    turned = load_scenario(source, ROBOT, ReadOptions(frame="base")).trajectory.poses

    assert turned[:, :2] == pytest.approx(-poses[:, :2], abs=1e-15)
    assert turned[:, 2] == pytest.approx(poses[:, 2], abs=1e-15)


def test_an_unknown_name_suggests_the_nearest():
    with pytest.raises(UnknownName, match="Did you mean 'square_tracking'") as caught:
        load_scenario("sqare_tracking", ROBOT)

    assert (caught.value.kind, caught.value.known) == ("scenario", tuple(scenario_files()))


@pytest.mark.parametrize("path", ["./none.py", "none.tum", "sub/none", "none.csv"])
def test_a_missing_path_is_no_unknown_name(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    with pytest.raises((ScenarioError, InputFileError), match="file not found"):
        load_scenario(path, ROBOT)


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("\n\ndef scenario(robot:\n    pass\n", 3, "SyntaxError: '(' was never closed"),
        ("import nosuchpackage\n", 1, "ModuleNotFoundError: No module named 'nosuchpackage'"),
        ("\nraise RuntimeError('boom')\n", 2, "RuntimeError: boom"),
        ("import sys\n\nsys.exit(0)\n", 3, "SystemExit: 0"),
        (
            "def scenario(robot):\n    helper()\n\ndef helper():\n    return 1 / 0\n",
            5,
            "ZeroDivisionError",
        ),
        ("import sys\ndef scenario(robot):\n    sys.exit(0)\n", 3, "SystemExit: 0"),
        ("def scenario(robot):\n    raise MemoryError\n", 2, "MemoryError"),
        ("class Own(BaseException): ...\n\nraise Own('x')\n", 3, "Own: x"),
        ("class Own(Exception):\n    __str__ = None\nraise Own\n", 3, "Own: a value of type Own"),
        (
            GOOD.replace("0.1", "-1"),
            6,
            "InvalidParameter: side must be a positive number; got -1",
        ),
        (
            GOOD.replace("square(side=0.1)", "None"),
            6,
            "trajectory must be a simbridge.Trajectory",
        ),
        (GOOD.replace("0.1)", "0.1), hold='cubic'"), 6, "must be linear or zero-order"),
        (GOOD.replace("0.1)", "0.1), on_limits='never'"), 6, "must be refuse or limit"),
        (GOOD.replace("0.1)", "0.1), name='../up'"), 6, "without a slash"),
    ],
)
def test_a_failing_script_names_the_line(script, text, line, reason):
    error = refused(script(text))

    assert error.line == line
    assert f"line {line} " in str(error)
    assert reason in str(error)
    assert not str(error).endswith("..")


def test_an_imported_fault_names_the_import(script, tmp_path):
    (tmp_path / "broken_neighbour.py").write_text("\n\n\n\n\n\n\nx = = 1\n")
    error = refused(script("import os\nimport broken_neighbour\n"))

    assert error.line == 2


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x = 1\n", "must define a function scenario"),
        ("scenario = 5\n", "must define a function scenario"),
        ("def scenario(robot):\n    return 5\n", "returned int, not a simbridge.Scenario"),
        ("def scenario():\n    return 5\n", "takes 0 positional arguments"),
    ],
)
def test_a_script_without_a_proper_scenario_is_refused(script, text, reason):
    assert reason in str(refused(script(text)))


def test_a_directory_named_like_a_script_is_refused(tmp_path):
    (tmp_path / "mine.py").mkdir()

    assert "file not found" in str(refused(tmp_path / "mine.py"))


def test_a_script_imports_its_neighbours(script, tmp_path):
    (tmp_path / "neighbour_of_mine.py").write_text("SIDE = 0.1\n")
    text = """\
from __future__ import annotations
from dataclasses import dataclass
from simbridge import Scenario
from simbridge.trajectory import square
from neighbour_of_mine import SIDE

@dataclass
class Size:
    side: float

def scenario(robot):
    return Scenario(square(side=Size(SIDE).side))
"""
    before = list(sys.path)
    scenario = load_scenario(script(text), ROBOT)

    assert np.array_equal(scenario.trajectory.poses, square(side=0.1).poses)
    assert sys.path == before
    assert not [name for name in sys.modules if name.startswith("simbridge_scenario")]

    del sys.modules["neighbour_of_mine"]


def test_an_unguarded_main_is_refused(script):
    error = refused(
        script(GOOD + "\nfrom simbridge import run_as_script\nrun_as_script(__file__)\n")
    )

    assert '__name__ == "__main__"' in str(error)
    assert error.line == 9


@dataclass
class Lookalike:
    trajectory: object = None


@pytest.mark.parametrize(
    "wrong",
    [
        {"trajectory": Lookalike()},
        {"description": 5},
        {"hold": "cubic"},
        {"on_limits": "never"},
        {"solver": ForwardDynamics(ROBOT)},
        {"name": "a/b"},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_a_wrong_part_is_named(wrong):
    with pytest.raises(InvalidParameter) as caught:
        Scenario(**({"trajectory": square(side=0.1)} | wrong))

    assert caught.value.name == f"scenario's {next(iter(wrong))}"


def test_targets_have_the_trajectorys_duration():
    path = square(side=0.1)

    assert Scenario(path, targets=path).source is path

    with pytest.raises(InvalidParameter, match="duration of targets"):
        Scenario(path, targets=path.scale_speed(2.0))
