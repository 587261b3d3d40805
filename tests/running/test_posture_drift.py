"""A redundant arm that does not return to its posture is said to drift."""

from __future__ import annotations

import numpy as np
import pytest

import simbridge
from simbridge.robot import load_robot
from simbridge.running.posture_drift import posture_note
from simbridge.running.run_setup import prepare

PLANAR = load_robot("planar3r")


def notes_of(solver, robot, scenario):
    return prepare(scenario, robot=robot, solver=solver).solver_notes


@pytest.mark.slow
def test_a_redundant_arm_that_drifts_is_named_with_its_joint(short):
    prepared = prepare(short["square_tracking"], robot="planar3r", solver="pseudoinverse")
    solution = prepared.plan.solution
    drift = np.degrees(np.abs(solution[-1] - solution[0]))

    note = posture_note(prepared.solver, prepared.plan)

    assert note in prepared.solver_notes
    assert "3 joints for 2 task coordinates" in note
    assert f"leaves joint_{np.argmax(drift) + 1} " in note
    shown = float(note.split("°")[0].split()[-1])
    assert shown == pytest.approx(drift.max(), rel=0.01)


@pytest.mark.slow
def test_an_arm_that_holds_its_posture_has_no_note(short):
    settings = simbridge.DampedLeastSquaresParameters(stiffness=(0.1,))

    notes = notes_of(settings, "planar3r", short["square_tracking"])

    assert not any("redundant" in note for note in notes)


@pytest.mark.slow
def test_an_arm_without_joints_to_spare_has_no_note(small):
    assert notes_of("pseudoinverse", "ur10", small["square_tracking"]) == ()
