"""The sentences about a run that can be quoted."""

from __future__ import annotations

import pytest

from simbridge.evaluation.summary import what_ran
from simbridge.report.verdict import (
    NOTHING_TO_IMPROVE,
    advice,
    delay_sentences,
    headline,
    notices,
    parts_cancel,
    with_deviation,
)
from simbridge.ur.tables import EMULATOR_SERIAL_NUMBER
from tests.records import changed
from tests.report.pages import plain_spaces

pytestmark = pytest.mark.shares_setup

SERVO = "with servoj at gain 300, lookahead 0.1 s and feedforward"


@pytest.mark.parametrize(
    ("backend", "source"),
    [
        ("pybullet", f"Predicted for a Test arm {SERVO}: "),
        ("ursim", f"Measured by URSim for a Test arm {SERVO}: "),
        ("real", f"Measured by the controller of a Test arm {SERVO}: "),
    ],
)
def test_headline_names_witness_and_plant(measured, backend, source):
    servo = {"name": backend, "servo": "servoj", "servo_gain": 300.0, "servo_lookahead": 0.1}
    identified_law = {
        "holds": False,
        "gain": 512.3,
        "lookahead_s": 0.05,
        "configured": {"gain": 300.0, "lookahead_s": 0.1},
    }

    _, summary = measured(settings={"backend": servo, "scenario": {"feedforward": "on"}})
    identified = {**summary, "servo_law": identified_law}

    assert plain_spaces(headline(summary)).startswith(source)
    assert "servoj found at gain 512, lookahead 0.0500 s" in plain_spaces(headline(identified))


@pytest.mark.parametrize(
    ("gain", "reason", "servo"),
    [
        (301.0, "commands probably came too late or were lost", "gain 300, lookahead 0.1 s"),
        (512.3, "the controller's tuning differs", "found at gain 512, lookahead 0.100 s"),
    ],
)
def test_the_tuning_is_blamed_only_where_it_differs(measured, gain, reason, servo):
    backend = {"name": "real", "servo": "servoj", "servo_gain": 300.0, "servo_lookahead": 0.1}
    law = {
        "holds": False,
        "gain": gain,
        "lookahead_s": 0.1,
        "configured": {"gain": 300.0, "lookahead_s": 0.1},
    }

    _, summary = measured(plant_offset=1e-3, settings={"backend": backend})
    summary = {**summary, "servo_law": law}

    assert reason in plain_spaces(advice(summary))
    assert servo in plain_spaces(headline(summary))


def test_headline_names_the_emulator(measured):
    evaluation, summary = measured()
    controller = {"serial_number": EMULATOR_SERIAL_NUMBER}

    for name in ("ursim", "real"):
        record = changed(evaluation.settings, controller=controller, backend={"name": name})
        sentence = headline({**summary, **what_ran(record)})

        assert sentence.startswith("Measured by the emulator for a Test arm with ")


def test_negligible_rotation_is_a_bound(measured):
    _, summary = measured(plant_offset=1e-7)

    assert plain_spaces(headline(summary)).endswith("on made_up; rotation below 0.01°.")


def test_negligible_position_is_a_bound(measured):
    _, summary = measured(plant_offset=2e-6)

    assert 0.0 < summary["tracking_error"]["position_m"]["max"] < 1e-5
    assert ": tracking error below 0.01 mm on made_up" in plain_spaces(headline(summary))


def test_no_error_is_said(measured):
    _, summary = measured()

    assert ": 0 mm RMS tracking error (max 0 mm) on made_up." in plain_spaces(headline(summary))
    assert advice(summary) == "There is no error beyond rounding."


@pytest.mark.parametrize(
    ("deviation", "text"),
    [(None, "4.49 mm"), (1e-7, "4.49 mm"), (2.34e-5, "4.486 ± 0.023 mm"), (1.2e-3, "4.5 ± 1.2 mm")],
)
def test_uncertainty_limits_the_digits(deviation, text):
    assert plain_spaces(with_deviation(4.486e-3, deviation)) == text


@pytest.mark.parametrize(
    ("quantity", "source", "options"),
    [
        ("target", "sampling", "try --hold linear or a higher --sample-rate"),
        (
            "solution",
            "the solver",
            "try a higher --solver.kp or --solver.iterations, or another --solver",
        ),
        (
            "setpoint",
            "the limiter (0 of 200 setpoints changed)",
            "--speed-scale below 1 reduces it",
        ),
        ("plant", "the plant", "no option reduces it"),
    ],
)
def test_advice_names_the_dominant_part(measured, quantity, source, options):
    offsets = dict.fromkeys(
        ("target_offset", "solution_offset", "setpoint_offset", "plant_offset"), 1e-4
    )
    offsets[f"{quantity}_offset"] = 5e-3
    parts = {"target": "sampling", "solution": "solver", "setpoint": "limiter", "plant": "plant"}

    _, summary = measured(**offsets)

    # All offsets are along one axis: the shares are those of the lengths.
    share = 5e-3 / (5e-3 + 3e-4)
    sentence = f"{100 * share:.0f} % of the position error comes from {source}; {options}."
    shares = summary["error_shares"]["position"]
    assert shares[parts[quantity]] == pytest.approx(share, rel=0.01)
    assert plain_spaces(advice(summary)) == sentence


def test_noise_gets_no_advice(measured):
    _, summary = measured(solution_offset=2e-6, plant_delay=1e-6)

    assert 0.0 < summary["tracking_error"]["position_m"]["rms"] < 1e-5
    assert advice(summary) == NOTHING_TO_IMPROVE


def test_noise_in_position_leaves_advice_on_rotation(measured):
    _, summary = measured(joints=1, plant_delay=0.02)
    error = summary["tracking_error"]
    small = {**error, "position_m": {**error["position_m"], "rms": 9e-6}}

    sentences = advice({**summary, "tracking_error": small})

    assert "of the position error" not in sentences
    assert "of the rotation error" in sentences


def test_part_larger_than_the_whole_is_explained(measured):
    _, summary = measured(solution_offset=5e-3, plant_offset=-1e-3)

    assert summary["error_shares"]["position"]["solver"] > 1.1
    assert advice(summary).startswith(
        "The position error comes from the solver; other parts cancel some of it; "
    )


def test_rotations_that_cancel_are_noticed(measured):
    _, summary = measured(joints=1, plant_delay=0.02)
    plant = summary["plant_error"]
    whole = summary["tracking_error"]["rotation_rad"]["rms"]
    larger = {**plant, "rotation_rad": {**plant["rotation_rad"], "rms": 2.0 * whole}}

    assert not parts_cancel(summary)
    assert parts_cancel({**summary, "plant_error": larger})


def test_delays_larger_than_their_sum_are_explained(measured):
    _, summary = measured(plant_delay=0.02)
    delays = {"delay_s": 2e-5, "solver_delay_s": 5.2e-4, "plant_delay_s": -5e-4}

    sentences = plain_spaces(delay_sentences({**summary, **delays}))

    parts = "0.52 ms from the solver and −0.50 ms from the plant"
    assert sentences.startswith(
        f"The arm lagged the reference by 0.02 ms (its parts partly cancel each other: {parts})."
    )


def test_delays_of_rounding_have_no_causes(measured):
    _, summary = measured(plant_delay=0.02)
    delays = {"delay_s": 2e-5, "solver_delay_s": 4e-5, "plant_delay_s": -2e-5}

    sentences = plain_spaces(delay_sentences({**summary, **delays}))

    assert sentences.startswith("The arm lagged the reference by 0.02 ms. With this delay")


def test_opposite_share_is_negative(measured):
    _, summary = measured(solution_offset=5e-3, plant_offset=-1e-3)

    for shares in summary["error_shares"].values():
        total = shares["sampling"] + shares["solver"] + shares["limiter"] + shares["plant"]
        assert total == pytest.approx(1.0)
        assert shares["plant"] == pytest.approx(-0.25, abs=0.01)


def test_different_rotation_delay_has_a_sentence(measured):
    _, summary = measured(plant_delay=0.02)
    later = {"delay_s": 0.001, "rotation_delay_s": 0.02, "solver_rotation_delay_s": 0.015}
    zero = {"delay_s": 0.0, "rotation_delay_s": 0.0}

    same_sentences = delay_sentences(summary)
    later_sentences = plain_spaces(delay_sentences({**summary, **later}))
    zero_sentences = delay_sentences({**summary, **zero})
    unknown_sentences = plain_spaces(delay_sentences({**summary, "delay_s": None}))

    assert "The rotation lagged" not in same_sentences

    parts = "15.0 ms from the solver and 20.0 ms from the plant"
    assert "The arm lagged the reference by 1.00 ms" in later_sentences
    assert f"The rotation lagged the reference by 20.0 ms: {parts}. With this" in later_sentences

    no_shift = "No time shift reduces the position error, so its delay counts as 0"
    assert zero_sentences.startswith(no_shift)

    not_measured = "The delay of the position could not be measured; of its parts: "
    assert unknown_sentences.startswith(not_measured)
    assert "The rotation lagged the reference by 20.0 ms" in unknown_sentences


def test_cut_off_log_is_a_failure(measured):
    (notice,) = notices(*measured(complete=False))

    assert notice.kind == "failure"
    assert "The log was not closed" in notice.text
