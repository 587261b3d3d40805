"""The diagnosis that a solver gives of its last step."""

from __future__ import annotations

import pytest

from simbridge.ik.settings import SOLVERS
from simbridge.robot import load_robot

SPINNING = """<robot name="spinning"><link name="base_link"/>
<link name="wheel"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="turn" type="revolute"><parent link="base_link"/><child link="wheel"/>
<origin xyz="0 0 0.1"/><axis xyz="0 0 1"/>
<limit lower="-3" upper="3" velocity="2" effort="10"/></joint></robot>"""


# Each solver is compiled for this arm, for one step: one of them shows what machine code does.
PYTHON = pytest.mark.python_kernels
COMPILED = pytest.mark.slow


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "task"),
    [
        pytest.param("forward-dynamics", "position", marks=COMPILED),
        pytest.param("forward-dynamics", "axis", marks=PYTHON),
        pytest.param("constrained", "position", marks=PYTHON),
        pytest.param("constrained", "axis", marks=PYTHON),
    ],
)
def test_an_arm_that_cannot_move_has_no_manipulability(name, task, tmp_path):
    (tmp_path / "spinning.urdf").write_text(SPINNING)
    solver = SOLVERS[name](task=task).build(load_robot(tmp_path / "spinning.urdf"))
    solver.step([0.1, 0.0, 0.3, 0.0, 0.0, 0.0, 1.0])

    assert (solver.last.manipulability, solver.last.dependent_rows) == (0.0, 0)
