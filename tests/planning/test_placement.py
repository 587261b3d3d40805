"""A recording of which nothing is in reach is refused with a placement that works when it is
pasted.
"""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from simbridge import load_robot
from simbridge.errors import TargetOutOfReach
from simbridge.planning.options import Options
from simbridge.running.run_setup import prepare
from simbridge.trajectory import Trajectory

pytestmark = pytest.mark.slow


def circle(centre, rotation=(1.0, 0.0, 0.0, 0.0)) -> Trajectory:
    """An arc of 0.1 m of radius at 50 mm/s."""
    t = np.arange(5) * 0.5
    points = np.column_stack([0.1 * np.cos(0.5 * t), 0.1 * np.sin(0.5 * t), 0.0 * t]) + centre
    return Trajectory(t, np.column_stack([points, np.tile(rotation, (len(t), 1))]))


def suggested(text: str) -> list[str]:
    """The values of the flag, on a line of its own."""
    (line,) = re.findall(r"^--transform (.+)$", text, re.MULTILINE)
    return line.split()


@pytest.mark.parametrize(
    ("centre", "options"),
    [
        # test_an_upward_tool_is_placed shows it without options.
        pytest.param((3.2, 1.1, 0.8), [], marks=pytest.mark.soak),
        ((0.2, 0.1, -2.0), ["--transform", "0", "0", "-3", "0", "0", "0.7071068", "0.7071068"]),
        ((2.5, -1.5, 0.4), ["--frame", "base"]),
    ],
)
def test_the_suggested_transform_works_when_pasted(cli, tum, tmp_path, centre, options) -> None:
    file = tum(tmp_path / "far.tum", circle(centre))
    refused = cli("check", file, *options)

    assert refused.status == 2
    assert "every target is out of reach" in refused.message
    assert cli("check", file, "--transform", *suggested(refused.err)).status == 0


def test_an_upward_tool_is_placed(cli, tum, tmp_path) -> None:
    file = tum(tmp_path / "up.tum", circle((0.0, -4.0, 0.0), (0.0, 0.0, 0.0, 1.0)))

    assert cli("check", file, "--transform", *suggested(cli("check", file).err)).status == 0


def test_inspect_suggests_the_same_transform(cli, tum, tmp_path) -> None:
    file = tum(tmp_path / "far.tum", circle((3.2, 1.1, 0.8)))
    values = suggested(cli("check", file).err)

    assert suggested(cli("inspect", file).out) == values
    assert [float(value) for value in values] == pytest.approx(
        json.loads(cli("inspect", file, "--json").out)["placement"]
    )


def test_a_recording_partly_in_reach_has_no_suggestion(cli, tum, tmp_path, through) -> None:
    file = tum(tmp_path / "far.tum", through([[0.7, 0.164, 0.3], [1.9, 0.164, 0.3]], [0.0, 5.0]))

    assert "--transform" not in cli("check", file).err


def test_a_script_has_no_suggestion() -> None:
    from simbridge import Scenario

    with pytest.raises(TargetOutOfReach) as caught:
        prepare(
            Scenario(trajectory=circle((3.2, 1.1, 0.8))),
            robot=load_robot("ur10"),
            options=Options(),
        )

    assert "--transform" not in str(caught.value)
