"""The controls follow from the registries: nothing is listed twice, and each says what it means."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

import simbridge
from simbridge.browser.controls import (
    ITERATE,
    arm_controls,
    controls_of,
    settings_controls,
    solver_controls,
)
from simbridge.browser.iterate import IterateSettings
from simbridge.browser.setup import StudioSetup
from simbridge.ik.settings import SOLVERS
from simbridge.planning.options import Options

SETTINGS = [control for solver in SOLVERS for control in solver_controls(solver)]
SETTINGS += settings_controls(IterateSettings, ITERATE)
ARM = arm_controls(simbridge.load_robot("ur10"), Options())
CONTROLS = [*SETTINGS, *ARM]
NUMBERS = [control for control in CONTROLS if control.kind != "choice"]


@pytest.mark.parametrize("solver", SOLVERS)
def test_each_setting_of_a_solver_is_a_control(solver):
    names = [control.name for control in solver_controls(solver)]

    assert names == [f"solver.{item.name}" for item in fields(SOLVERS[solver])]


@pytest.mark.parametrize("control", CONTROLS, ids=lambda control: control.name)
def test_each_control_says_what_it_means(control):
    meaning, _, default = control.help.partition("Default: ")

    assert len(meaning) > 15
    assert default or control.kind == "numbers"


@pytest.mark.parametrize("control", NUMBERS, ids=lambda control: control.name)
def test_a_shown_default_is_the_default(control):
    shown = control.to_page(control.default)

    assert control.from_page(shown) == pytest.approx(control.default)


def test_a_slider_contains_its_default():
    for control in CONTROLS:
        if control.slider is None:
            continue
        (default,) = np.ravel(control.from_page(control.to_page(control.default)))
        assert control.slider[0] <= default <= control.slider[1], control.name


def test_a_choice_has_each_option_once():
    for control in CONTROLS:
        if control.kind != "choice":
            continue
        assert len(set(control.choices)) == len(control.choices), control.name
        assert "" not in control.choices, control.name
        assert control.to_page(control.default) in control.choices


def test_what_needs_simulation_is_locked_on_controllers():
    setup = StudioSetup("ur10", "damped-least-squares", backend="ursim")

    solver, arm, iterations = controls_of(setup, setup.arm)

    locked = {control.name for control in (*solver, *arm) if control.locked}
    assert {"solver.stiffness", "solver.bias", "sample_noise", "unmodelled_payload"} <= locked
    assert not locked & {"solver.damping", "servo_gain", "servo_lookahead"}
    assert not iterations


def test_only_planar_arms_have_link_lengths():
    planar = simbridge.load_robot("planar3r")

    assert "link_lengths" in {control.name for control in arm_controls(planar, Options())}
    assert "link_lengths" not in {control.name for control in ARM}
