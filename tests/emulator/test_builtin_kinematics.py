"""URScript's kinematics and dynamics against pinocchio."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simbridge.emulator.arm import frame_of, pose_of
from simbridge.emulator.urscript.values import Pose
from tests.emulator.bench import ROBOT
from tests.emulator.calls import flange, same


@given(q=st.lists(st.floats(-3.0, 3.0), min_size=6, max_size=6))
@settings(max_examples=50)
def test_forward_kinematics_are_pinocchios(call, q):
    assert same(call("get_forward_kin", q), flange(q))


def test_forward_kinematics_accept_another_tcp(controller, call):
    q = [0.1, -1.2, 1.3, -1.4, -1.5, 0.6]
    tcp = Pose([0.01, 0.02, 0.1, 0.3, -0.2, 0.1])

    assert same(call("get_forward_kin", q, tcp), flange(q) * frame_of(np.array(tcp)))

    call("set_tcp", tcp)

    assert same(call("get_forward_kin", q), flange(q) * frame_of(np.array(tcp)))
    assert same(call("get_forward_kin", q, Pose([0.0] * 6)), flange(q))
    assert call("get_tcp_offset") == tcp

    call("set_tcp", Pose([0.0] * 6))


def test_inverse_kinematics_find_the_nearby_joints(call):
    q = np.array([0.1, -1.2, 1.3, -1.4, -1.5, 0.6])
    solution = call("get_inverse_kin", Pose(pose_of(flange(q)).tolist()), (q + 0.05).tolist())

    assert solution == pytest.approx(q, abs=1e-7)
    assert (
        call("get_inverse_kin_has_solution", Pose(pose_of(flange(q)).tolist()), q.tolist()) is True
    )


def test_a_pose_out_of_reach_has_no_solution(call):
    assert call("get_inverse_kin_has_solution", Pose([5.0, 0.0, 0.0, 0.0, 0.0, 0.0])) is False


def test_the_jacobian_is_in_the_pendants_base(call):
    q = np.array([0.1, -1.2, 1.3, -1.4, -1.5, 0.6])
    jacobian = np.array(call("get_jacobian", q.tolist()))
    step = 1e-6
    for i in range(6):
        change = np.zeros(6)
        change[i] = step
        before = flange(q - change)
        after = flange(q + change)
        assert jacobian[:3, i] == pytest.approx(
            (after.translation - before.translation) / (2 * step), abs=1e-6
        )
        turned = pin.log3(after.rotation @ before.rotation.T)
        assert jacobian[3:, i] == pytest.approx(turned / (2 * step), abs=1e-6)


def test_the_jacobian_accepts_another_tcp(call):
    q = [0.1, -1.2, 1.3, -1.4, -1.5, 0.6]
    tcp = Pose([0.01, 0.02, 0.1, 0.3, -0.2, 0.1])
    bare = np.array(call("get_jacobian", q))
    jacobian = np.array(call("get_jacobian", q, tcp))
    arm = flange(q).rotation @ np.array(tcp[:3])

    assert jacobian[3:] == pytest.approx(bare[3:], abs=1e-9)
    assert jacobian[:3] == pytest.approx(bare[:3] + np.cross(bare[3:], arm, axis=0), abs=1e-9)


def test_the_mass_matrix_is_pinocchios_and_symmetric(call):
    q = np.array([0.1, -1.2, 1.3, -1.4, -1.5, 0.6])
    data = ROBOT.model.createData()
    upper = np.triu(pin.crba(ROBOT.model, data, q))

    mass_matrix = np.array(call("get_mass_matrix", q.tolist()))

    assert mass_matrix == pytest.approx(mass_matrix.T)
    assert np.triu(mass_matrix) == pytest.approx(upper)


def test_the_jacobians_derivative_is_its_change(call):
    q = np.array([0.1, -1.2, 1.3, -0.5, 0.7, 0.2])
    qd = np.array([0.3, -0.2, 0.5, 0.1, -0.4, 0.6])
    change = np.array(call("get_jacobian", tuple(q + 1e-3 * qd))) - call(
        "get_jacobian", tuple(q - 1e-3 * qd)
    )

    assert np.allclose(
        call("get_jacobian_time_derivative", tuple(q), tuple(qd)), change / 2e-3, atol=1e-6
    )
