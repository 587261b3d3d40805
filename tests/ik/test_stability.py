"""Which virtual masses are stable with which gains, and how a refusal reports it."""

from __future__ import annotations

import warnings

import pytest

from simbridge.errors import UnstableSolver
from simbridge.ik.forward_dynamics import ForwardDynamics
from simbridge.ik.twin import Twin
from simbridge.robot import load_robot

UR10 = load_robot("ur10")


def test_a_twin_without_tool_mass_is_refused(cli):
    answer = cli("check", "square_tracking", "--solver.tool-mass=0")

    assert answer.status == 2
    assert (
        "with a tool_mass or tool_inertia of 0 only the virtual last link resists the pull"
        in answer.message
    )
    assert "tool_mass above 0.0625 kg and tool_inertia above 0.00625 kg m^2" in answer.message


@pytest.mark.parametrize(
    "gains", [{"kp": 20.0}, {"kp": (30.0, 1.0, 1.0, 2.0, 40.0, 2.0)}, {"kp": 5.0, "kd": 10.0}]
)
def test_a_refusal_names_the_least_masses(gains):
    with pytest.raises(UnstableSolver) as refusal:
        ForwardDynamics(UR10, twin=Twin(tool_mass=1e-4, tool_inertia=1e-4), **gains)

    mass, inertia = refusal.value.needed

    assert not refusal.value.lacks_tool_mass

    with warnings.catch_warnings():
        # So near the bound it warns that iterations overshoot.
        warnings.simplefilter("ignore")
        ForwardDynamics(
            UR10, twin=Twin(tool_mass=1.001 * mass, tool_inertia=1.001 * inertia), **gains
        )
    for twin in (Twin(0.999 * mass, 1.001 * inertia), Twin(1.001 * mass, 0.999 * inertia)):
        with pytest.raises(UnstableSolver):
            ForwardDynamics(UR10, twin=twin, **gains)
