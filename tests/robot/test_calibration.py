"""A calibrated arm: axes and tool as in its table, links on the nominal frames."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge import ForwardDynamics, load_robot
from simbridge.errors import InvalidParameter
from simbridge.robot.calibration import calibrate, deviations, nominal_dh, with_dh
from simbridge.robot.calibration_file import read_calibration
from simbridge.robot.kinematics import tool_path
from simbridge.robot.parts import DhTable
from tests.properties import few_examples

DATA = Path(__file__).parents[1] / "data"
PUBLISHED, _ = read_calibration(DATA / "ur10e_calibration.toml")
NEAR = DhTable(
    theta=(1e-4, -2e-3, 1.5e-3, -4e-4, 2e-4, -1e-4),
    a=(2e-4, -0.6121, -0.5722, 1e-4, -1e-4, 0.0),
    d=(0.1809, 0.002, -0.0015, 0.1738, 0.1200, 0.1164),
    alpha=(np.pi / 2 + 5e-4, 3e-4, -2e-4, np.pi / 2 - 4e-4, -np.pi / 2 + 1e-4, 0.0),
)
TABLES = pytest.mark.parametrize("table", [PUBLISHED, NEAR], ids=["published", "near"])


@pytest.fixture(scope="module")
def ur10e():
    return load_robot("ur10e")


def dh_product(table, q):
    """Rz(pi) T_1 ... T_6 (K, 4, 4) at joint positions (K, 6), each factor written out, in extended
    precision.
    """
    tool = np.tile(np.diag([-1.0, -1.0, 1.0, 1.0]).astype(np.longdouble), (len(q), 1, 1))
    for theta, a, d, alpha, angles in zip(
        table.theta, table.a, table.d, table.alpha, q.T, strict=True
    ):
        c = np.cos(angles + np.longdouble(theta))
        s = np.sin(angles + np.longdouble(theta))
        ca = np.cos(np.longdouble(alpha))
        sa = np.sin(np.longdouble(alpha))
        step = np.zeros((len(q), 4, 4), np.longdouble)
        step[:, 0, 0] = c
        step[:, 0, 1] = -s * ca
        step[:, 0, 2] = s * sa
        step[:, 0, 3] = a * c
        step[:, 1, 0] = s
        step[:, 1, 1] = c * ca
        step[:, 1, 2] = -c * sa
        step[:, 1, 3] = a * s
        step[:, 2, 1] = sa
        step[:, 2, 2] = ca
        step[:, 2, 3] = d
        step[:, 3, 3] = 1.0
        tool = tool @ step
    return tool


def apart(robot, table, q):
    """Distance of the arm's flange from the table's at joint positions (K, 6): in m, and as a
    matrix entry.
    """
    frames = [pin.XYZQUATToSE3(pose).homogeneous for pose in tool_path(robot, q)]
    difference = np.abs(np.array(frames) - dh_product(table, q))
    return difference[:, :3, 3].max(), difference[:, :3, :3].max()


def configurations(count, seed=0):
    return np.random.default_rng(seed).uniform(-2.0 * np.pi, 2.0 * np.pi, (count, 6))


def mass_matrix(robot, q):
    upper = np.triu(pin.crba(robot.model, robot.model.createData(), q))
    return upper + np.triu(upper, 1).T


@TABLES
def test_the_tool_is_where_the_table_puts_it(ur10e, table) -> None:
    place, turn = apart(calibrate(ur10e, table), table, configurations(2000))

    assert max(place, turn) < 1e-11


@TABLES
def test_calibrated_frames_are_near_the_nominal_ones(ur10e, table) -> None:
    arm = calibrate(ur10e, table)

    assert max(deviation.distance for deviation in deviations(ur10e, arm)) < 1.5e-3
    assert max(deviation.angle for deviation in deviations(ur10e, arm)) < 0.01

    for q in (np.zeros(6), ur10e.home, *configurations(20)):
        data = [(robot.model, robot.model.createData()) for robot in (ur10e, arm)]
        for model, buffers in data:
            pin.forwardKinematics(model, buffers, q)
        origins = [np.array([frame.translation for frame in buffers.oMi]) for _, buffers in data]

        assert np.linalg.norm(origins[0] - origins[1], axis=1).max() < 7e-3


def test_published_tables_put_frames_far_away(ur10e) -> None:
    arm = with_dh(ur10e, PUBLISHED)

    assert max(deviation.distance for deviation in deviations(ur10e, arm)) > 400.0


@TABLES
def test_the_mass_matrix_is_nearly_the_nominal_one(ur10e, table) -> None:
    arm = calibrate(ur10e, table)
    for q in (ur10e.home, *configurations(20)):
        nominal = mass_matrix(ur10e, q)

        assert np.abs(mass_matrix(arm, q) - nominal).max() < 0.01 * nominal.max()


@TABLES
def test_links_limits_and_home_stay_as_they_are(ur10e, table) -> None:
    arm = calibrate(ur10e, table)

    assert arm.links == ur10e.links
    assert arm.base_shapes == ur10e.base_shapes
    assert np.array_equal(arm.home, ur10e.home)
    assert np.array_equal(arm.position_max, ur10e.position_max)
    assert arm.calibration == table
    assert arm.checksum != ur10e.checksum


def test_a_link_follows_its_next_axis(ur10e) -> None:
    # An encoder offset of 0.02 rad turns the upper arm, but not its neighbours relative to it.
    table = replace(nominal_dh(ur10e), theta=(0.0, 0.02, 0.0, 0.0, 0.0, 0.0))
    arm = calibrate(ur10e, table)

    for deviation in deviations(ur10e, arm):
        if deviation.name == "shoulder_lift_joint":
            assert deviation.angle == pytest.approx(0.02)
        else:
            assert deviation.angle < 1e-12
            assert deviation.distance < 1e-12


def perturbed(robot, seed, distance, angle):
    """The arm with each axis except the first, and its flange, moved by up to so much, as far as DH
    can represent.
    """
    rng = np.random.default_rng(seed)

    def error():
        return pin.SE3(pin.exp3(rng.uniform(-angle, angle, 3)), rng.uniform(-distance, distance, 3))

    joints = [robot.joints[0]]
    joints += [replace(joint, placement=joint.placement * error()) for joint in robot.joints[1:]]
    theta, alpha = rng.uniform(-angle, angle, 2)
    a, d = rng.uniform(-distance, distance, 2)
    turn, twist = (
        pin.SE3(pin.utils.rotate(axis, by), np.zeros(3))
        for axis, by in (("z", theta), ("x", alpha))
    )
    tool0 = turn * robot.tool0 * pin.SE3(np.eye(3), np.array([a, 0.0, d])) * twist
    return replace(robot, joints=tuple(joints), tool0=tool0)


def table_of(robot):
    """The DH table of a revolute arm from its axes at zero, by common normals."""
    frames = []
    frame = pin.SE3.Identity()
    for joint in robot.joints:
        frame = frame * joint.placement
        frames.append(frame)
    rows = []
    here = frames[0]
    for following in frames[1:]:
        z = here.rotation[:, 2]
        onward = following.rotation[:, 2]
        normal = np.cross(z, onward)
        x = normal / np.linalg.norm(normal)
        between = following.translation - here.translation
        # Feet of the common normal: here + d z, and following + s onward.
        d, _, back = np.linalg.solve(np.column_stack([z, x, -onward]), between)
        foot = following.translation + back * onward
        a = float(x @ (foot - here.translation - d * z))
        theta = np.arctan2(x @ here.rotation[:, 1], x @ here.rotation[:, 0])
        rows.append((theta, a, d, np.arctan2(np.cross(z, onward) @ x, z @ onward)))
        here = pin.SE3(np.column_stack([x, np.cross(onward, x), onward]), foot)
    last = here.inverse() * frames[-1] * robot.tool0
    twist = np.arctan2(last.rotation[2, 1], last.rotation[2, 2])
    theta = np.arctan2(last.rotation[1, 0], last.rotation[0, 0])
    a = float(last.translation[:2] @ [np.cos(theta), np.sin(theta)])
    rows.append((theta, a, float(last.translation[2]), twist))
    return DhTable(*(tuple(float(v) for v in column) for column in zip(*rows, strict=True)))


@few_examples(15)
@given(st.sampled_from(["ur10", "ur10e"]), st.integers(0, 2**32 - 1))
def test_an_arm_is_recovered_from_its_axes(name: str, seed: int) -> None:
    nominal = load_robot(name)
    specimen = perturbed(nominal, seed, 1e-3, 3e-3)
    arm = calibrate(nominal, table_of(specimen))
    q = configurations(20, seed)
    poses = tool_path(arm, q)

    specimen_poses = tool_path(specimen, q)

    assert np.abs(poses[:, :3] - specimen_poses[:, :3]).max() < 1e-10
    assert np.abs(np.abs((poses[:, 3:] * specimen_poses[:, 3:]).sum(axis=1)) - 1.0).max() < 1e-12
    assert max(deviation.distance for deviation in deviations(nominal, arm)) < 5e-3
    assert max(deviation.angle for deviation in deviations(nominal, arm)) < 0.02


def left_after_a_step(robot, direction):
    """The solver's remaining error after a step of 2 mm from home and 50 iterations at kp 50, m."""
    start = tool_path(robot, [robot.home])[0]
    target = start.copy()
    target[:3] += 2e-3 * np.asarray(direction)
    solver = ForwardDynamics(robot, error_clamp=None, step_clamp=None)
    attained = tool_path(robot, solver.track(target[None], robot.home))[0]
    return np.linalg.norm(attained[:3] - target[:3])


@pytest.mark.slow
@pytest.mark.python_kernels
@pytest.mark.parametrize(
    "direction", np.vstack([np.eye(3), -np.eye(3)]), ids=lambda d: "{:g} {:g} {:g}".format(*d)
)
def test_the_solver_is_as_good_when_calibrated(ur10e, direction) -> None:
    nominal = left_after_a_step(ur10e, direction)

    assert (
        nominal == pytest.approx(2e-3 * 0.875**50, rel=0.03) == pytest.approx(0.0026e-3, rel=0.05)
    )
    assert left_after_a_step(calibrate(ur10e, PUBLISHED), direction) == pytest.approx(
        nominal, rel=1e-3
    )


@pytest.mark.python_kernels
def test_masses_in_table_frames_degrade_the_solver(ur10e) -> None:
    left = [left_after_a_step(with_dh(ur10e, PUBLISHED), direction) for direction in np.eye(3)]

    assert max(left) > 0.72e-3


@pytest.mark.python_kernels
def test_a_target_is_solved_on_the_tables_kinematics(ur10e) -> None:
    arm = calibrate(ur10e, PUBLISHED)
    target = pin.XYZQUATToSE3(tool_path(ur10e, [ur10e.home])[0])

    solution = ForwardDynamics(arm).solve(target, ur10e.home)

    assert solution.converged
    assert np.abs(dh_product(PUBLISHED, solution.q[None])[0] - target.homogeneous).max() < 1e-8


@pytest.mark.parametrize("name", ["ur10", "ur10e"])
def test_a_nominal_table_gives_the_nominal_arm(name) -> None:
    robot = load_robot(name)

    table = nominal_dh(robot)

    assert calibrate(robot, replace(table, alpha=tuple(round(v, 9) for v in table.alpha))) is robot


@pytest.mark.slow
def test_a_urdf_is_calibrated_alike() -> None:
    nominal = load_robot("ur10")
    urdf = load_robot(DATA / "urdf" / "ur10_from_ros.urdf", home=nominal.home)
    specimen = table_of(perturbed(nominal, 5, 1e-3, 3e-3))
    q = configurations(100)
    poses = [tool_path(calibrate(robot, specimen), q) for robot in (nominal, urdf)]

    assert np.abs(poses[0] - poses[1]).max() < 1e-8


def test_another_models_table_names_the_worst_frame() -> None:
    with pytest.raises(
        InvalidParameter, match=r"53 mm and 0\.0 degrees off at shoulder_lift_joint"
    ) as caught:
        calibrate(load_robot("ur10"), PUBLISHED)

    assert "UR10" in caught.value.needed


def test_a_table_of_other_length_is_refused(ur10e) -> None:
    three = DhTable(*(row[:3] for row in (NEAR.theta, NEAR.a, NEAR.d, NEAR.alpha)))

    with pytest.raises(InvalidParameter, match="for 3 joints"):
        calibrate(ur10e, three)


def test_an_arm_is_calibrated_once(ur10e) -> None:
    arm = calibrate(ur10e, PUBLISHED)

    assert calibrate(arm, PUBLISHED) is arm

    with pytest.raises(InvalidParameter, match="a calibrated one"):
        calibrate(arm, NEAR)


def test_tool_and_load_stay_on_the_flange(ur10e) -> None:
    tcp = pin.SE3(pin.exp3(np.array([0.1, 0.2, 0.3])), np.array([0.0, 0.05, 0.2]))
    equipped_first = calibrate(ur10e.with_tcp(tcp).with_payload(3.0), PUBLISHED)

    calibrated_first = calibrate(ur10e, PUBLISHED).with_tcp(tcp).with_payload(3.0)

    assert equipped_first.checksum == calibrated_first.checksum
    assert equipped_first.link_inertias == calibrated_first.link_inertias
