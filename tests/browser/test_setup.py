"""A studio's settings, and the command line that follows from them."""

from __future__ import annotations

import pytest

from simbridge.browser.setup import StudioSetup
from simbridge.errors import InvalidParameter
from simbridge.planning.options import Options

pytestmark = pytest.mark.slow


def test_a_preset_shows_the_values_that_it_sets():
    setup = StudioSetup(values={"solver.preset": "one-shot"})

    assert setup.shown_values["solver.iterations"] == 200
    assert setup.shown_values["solver.preset"] == "one-shot"


def test_a_refused_value_changes_nothing():
    setup = StudioSetup(solver="damped-least-squares")

    with pytest.raises(InvalidParameter, match="damping"):
        setup.with_value("solver.damping", -1.0)

    assert not setup.values


def test_the_command_line_is_accepted(cli):
    setup = StudioSetup(solver="damped-least-squares")
    changes = [
        ("solver.damping", 0.1),
        ("servo_gain", 500.0),
        ("sample_rate", 20.0),
        ("sample_noise", (0.001, 0.0)),
        ("hold", "zero-order"),
    ]
    for name, value in changes:
        setup = setup.with_value(name, value)

    words = setup.command("circle").split()
    answer = cli("check", *words[2:], "--json")

    assert words[:3] == ["simbridge", "run", "circle"]
    assert words[words.index("--sample-noise") + 1 :][:2] == ["1", "0"]
    # The plan may break a limit; the flags are known.
    is_refused = "beyond" in answer.message or "limit" in answer.message
    assert answer.status == 0 or is_refused, answer.message


def test_the_command_line_names_links_and_packages():
    options = Options(
        tip="tool",
        package=("arm=/robots/arm", "hand=/robots/hand"),
        xacro_arg=("name=a", "speed=2"),
    )
    setup = StudioSetup.from_options("./arm.urdf", "forward-dynamics", options)

    command = setup.command("circle")

    assert "--tip tool" in command
    assert "--package arm=/robots/arm,hand=/robots/hand" in command
    assert "--xacro-arg name=a --xacro-arg speed=2" in command


def test_a_reset_value_is_the_default_again():
    setup = StudioSetup().with_value("servo_gain", 500.0)

    reset = setup.with_value("servo_gain", None)

    assert setup.options.servo_gain == 500.0
    assert reset.options.servo_gain is None
