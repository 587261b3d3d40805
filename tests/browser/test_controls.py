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
from simbridge.errors import InvalidParameter
from simbridge.ik.settings import SOLVERS
from simbridge.planning.options import Options

EVERY = [control for solver in SOLVERS for control in solver_controls(solver)]
EVERY += settings_controls(IterateSettings, ITERATE)
ARM = arm_controls(simbridge.load_robot("ur10"), Options())


@pytest.mark.parametrize("solver", SOLVERS)
def test_each_setting_of_a_solver_is_a_control(solver):
    assert [one.name for one in solver_controls(solver)] == [
        f"solver.{own.name}" for own in fields(SOLVERS[solver])
    ]


@pytest.mark.parametrize("control", [*EVERY, *ARM], ids=lambda control: control.name)
def test_each_control_says_what_it_means_and_its_default(control):
    meaning, _, default = control.help.partition("Default: ")
    assert len(meaning) > 15
    assert default or control.kind == "numbers"


@pytest.mark.parametrize(
    "control", [one for one in [*EVERY, *ARM] if one.kind != "choice"], ids=lambda one: one.name
)
def test_a_default_that_is_shown_and_given_back_is_the_default(control):
    shown = control.to_page(control.default)
    assert control.from_page(shown) == pytest.approx(control.default)


def test_a_slider_contains_its_default():
    for control in (one for one in [*EVERY, *ARM] if one.slider is not None):
        (given,) = np.ravel(control.from_page(control.to_page(control.default)))
        assert control.slider[0] <= given <= control.slider[1], control.name


def test_a_choice_has_each_option_once_and_its_default_is_one_of_them():
    for control in (one for one in [*EVERY, *ARM] if one.kind == "choice"):
        assert len(set(control.choices)) == len(control.choices) and "" not in control.choices, (
            control.name
        )
        assert control.to_page(control.default) in control.choices


def test_a_preset_shows_the_values_that_it_sets():
    setup = StudioSetup(values={"solver.preset": "one-shot"})
    assert (
        setup.shown_values["solver.iterations"] == 200
        and setup.shown_values["solver.preset"] == "one-shot"
    )


def test_stiffness_and_bias_are_locked_on_a_controller_and_there_is_nothing_to_iterate():
    setup = StudioSetup("ur10", "damped-least-squares", backend="ursim")
    of_solver, of_arm, of_iterations = controls_of(setup, setup.arm)
    locked = {one.name for one in (*of_solver, *of_arm) if one.locked}
    assert {"solver.stiffness", "solver.bias", "sample_noise", "unmodelled_payload"} <= locked
    assert not locked & {"solver.damping", "servo_gain", "servo_lookahead"} and not of_iterations


def test_link_lengths_are_offered_for_planar_arms_alone():
    planar = simbridge.load_robot("planar3r")
    assert "link_lengths" in {one.name for one in arm_controls(planar, Options())}
    assert "link_lengths" not in {one.name for one in ARM}


def test_a_value_that_the_registry_refuses_is_refused_and_the_setup_stays():
    setup = StudioSetup(solver="damped-least-squares")
    with pytest.raises(InvalidParameter, match="damping"):
        setup.with_value("solver.damping", -1.0)
    assert not setup.values


def test_the_command_line_is_that_of_the_present_state_and_is_accepted(cli):
    setup = StudioSetup(solver="damped-least-squares")
    for name, value in (
        ("solver.damping", 0.1), ("servo_gain", 500.0), ("sample_rate", 20.0), ("sample_noise", (0.001, 0.0)),
        ("hold", "zero-order"),
    ):  # fmt: skip
        setup = setup.with_value(name, value)
    words = setup.command("circle").split()
    assert words[:3] == ["simbridge", "run", "circle"]
    assert words[words.index("--sample-noise") + 1 :][:2] == ["1", "0"]
    checked = cli("check", *words[2:], "--json")
    assert checked.status == 0 or "beyond" in checked.message or "limit" in checked.message, (
        checked.message
    )


def test_the_command_line_names_the_links_and_packages_of_a_urdf():
    options = Options(tip="tool", package=("arm=/robots/arm", "hand=/robots/hand"))
    command = StudioSetup.from_options("./arm.urdf", "forward-dynamics", options).command("circle")
    assert "--tip tool" in command and "--package arm=/robots/arm,hand=/robots/hand" in command


def test_a_reset_value_is_the_default_again():
    setup = StudioSetup().with_value("servo_gain", 500.0)
    assert setup.options.servo_gain == 500.0
    assert setup.with_value("servo_gain", None).options.servo_gain is None
