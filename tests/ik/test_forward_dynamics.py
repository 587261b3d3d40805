"""The forward-dynamics solver against independent trajectories, published figures, closed forms and
pinocchio.
"""

from __future__ import annotations

import json
import math
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from simbridge.errors import InvalidParameter, UnknownName, UnstableSolver
from simbridge.experiments.homogenization import (
    CONDITIONED,
    NAIVE,
    TRANSPOSE,
    configurations,
    measure,
)
from simbridge.ik.forward_dynamics import ForwardDynamics, ForwardDynamicsParameters
from simbridge.ik.kernels import forward_dynamics as loops
from simbridge.ik.kernels.generation import structure_of
from simbridge.ik.kernels.mathematics import mobility, rotation_vector
from simbridge.ik.settings import change_settings
from simbridge.ik.twin import Twin, effective_masses
from simbridge.robot import load_robot, pose
from simbridge.robot.kinematics import tool_path
from simbridge.robot.postures import restart_postures
from simbridge.trajectory import square
from tests.ik.pinocchio_reference import with_pinocchio
from tests.properties import few_examples

DATA = Path(__file__).parents[1] / "data"
REFERENCES = [
    "square_kp5",
    "square_kp50",
    "square_kp10_kd",
    "step_translation",
    "step_translation_rotation",
]
UR10 = load_robot("ur10")
PLANAR3R = load_robot("planar3r")
CHAIN = UR10.placements, UR10.prismatic


def plain(robot=UR10, **settings):
    """The paper's plain algorithm: no clamps."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ForwardDynamics(robot, **{"error_clamp": None, "step_clamp": None, **settings})


def reference(name):
    data = json.loads((DATA / f"{name}.json").read_text())
    s = data["settings"]
    twin = Twin(tool_mass=s["m"], tool_inertia=s["I"], link_mass=s["m0"], link_inertia=s["i0"])
    solver = plain(dt=s["dt"], iterations=s["N"], kp=s["kp"], kd=s["kd"], twin=twin)
    return (
        solver,
        np.array(data["targets"]),
        np.array(data["q0"]),
        np.array(data["joint_positions"]),
    )


@pytest.mark.parametrize("name", REFERENCES)
def test_track_equals_the_independent_implementation(name):
    solver, targets, q0, expected = reference(name)

    assert np.abs(solver.track(targets, q0) - expected).max() < 1e-9


@pytest.mark.parametrize("name", REFERENCES)
def test_stepping_equals_tracking_to_the_last_bit(name):
    solver, targets, q0, _ = reference(name)
    solver.reset(q0)

    stepped = np.array([solver.step(target) for target in targets[:100]])

    assert np.array_equal(stepped, solver.track(targets[:100], q0))


@pytest.mark.parametrize("name", REFERENCES)
def test_the_default_clamps_leave_ordinary_tracking_alone(name):
    """Steps of metres are clamped on purpose; what moves at 0.2 m/s never meets a clamp."""
    solver, targets, q0, expected = reference(name)
    clamped = ForwardDynamics(
        UR10, **{**_settings(solver), "error_clamp": (0.2, 0.5), "step_clamp": 0.1}
    )

    difference = np.abs(clamped.track(targets, q0) - expected).max()

    assert difference < 1e-9 if name.startswith("square") else difference > 1e-3


def _settings(solver):
    return {
        "dt": solver.dt,
        "iterations": solver.iterations,
        "kp": solver.kp,
        "kd": solver.kd,
        "twin": solver.twin,
    }


def test_it_equals_the_same_algorithm_on_pinocchio():
    solver = plain(kp=20.0)
    poses = square().poses[:6]
    start = solver.solve(poses[0]).q

    assert (
        np.abs(solver.track(poses, start)[-1] - with_pinocchio(UR10, solver, poses, start)).max()
        < 1e-9
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kp", "rms_mm", "max_mm", "formula_tolerance"),
    [
        (5.0, 2.285, 2.297, 0.02),
        (10.0, 0.789, 0.791, 0.02),
        (20.0, 0.168, 0.169, 0.02),
        (50.0, 0.0026, 0.0026, 0.04),
    ],
)
def test_experiment_d_second_lap(kp, rms_mm, max_mm, formula_tolerance):
    """Table D: the square at 0.2 m/s, stepped at 100 Hz; and its formula v T rho/(1 - rho)."""
    solver = plain(kp=kp)
    trajectory = square(speed=0.2, rate=100.0, laps=2)
    joints = solver.track(trajectory.poses, solver.solve(trajectory.start).q)
    off = (
        np.linalg.norm(trajectory.poses[:, :3] - tool_path(UR10, joints)[:, :3], axis=1)[801:] * 1e3
    )

    rms = math.sqrt(np.mean(off**2))

    # The table has two to four digits: half a unit of its last one on top.
    assert rms == pytest.approx(rms_mm, rel=0.02, abs=0.00005 if kp == 50.0 else 0.0005)
    assert off.max() == pytest.approx(max_mm, rel=0.03, abs=0.0005)

    lag = solver.lag(0.01)

    assert lag is not None
    assert rms == pytest.approx(0.2 * lag * 1e3, rel=formula_tolerance)


def test_experiment_b_converges_without_overshoot_or_rotation():
    home = np.array([0.0, -1.3, 1.9, -2.1708, -math.pi / 2, 0.0])
    solver = plain(dt=1.0, iterations=1, kp=1.0)
    target = tool_path(UR10, home[None])[0]
    target[:3] += [-0.25, -0.75, 0.35]
    path = tool_path(UR10, solver.track(np.tile(target, (150, 1)), home))

    translation, rotation = pose.error(np.tile(target, (150, 1)), path)

    assert int(np.argmax(np.linalg.norm(translation, axis=1) < 0.010)) + 1 == 16
    assert np.linalg.norm(rotation, axis=1).max() == pytest.approx(0.0002, abs=0.00005)

    offset = np.array([-0.25, -0.75, 0.35])

    assert (translation * np.sign(offset) > -1e-4).all()


def test_experiment_c_goes_straight():
    corners = square().poses[[0, 200, 400, 600]]
    solver = plain(dt=0.1, iterations=1, kp=1.0)

    for begin, end in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        q = solver.solve(begin).q
        path = tool_path(UR10, solver.track(np.tile(end, (2500, 1)), q))[:, :3]
        along = (end - begin)[:3] / 0.4
        aside = (path - begin[:3]) - np.outer((path - begin[:3]) @ along, along)
        assert 0.03e-3 < np.linalg.norm(aside, axis=1).max() < 0.13e-3
        reached = int(np.argmax(np.linalg.norm(end[:3] - path, axis=1) < 1e-3)) + 1
        assert reached == pytest.approx(2400, rel=0.02)


@pytest.mark.slow
@given(st.floats(0.05, 7.9), st.integers(0, 2**32 - 1))
def test_the_error_shrinks_by_kappa(kappa, seed):
    """Near the target, away from singularities: e+ = (1 - kappa/4) e for translation along each
    axis.
    """
    rng = np.random.default_rng(seed)
    q = UR10.home + rng.uniform(-0.3, 0.3, 6)
    solver = plain(
        dt=1.0, iterations=1, kp=(kappa,) * 6, twin=Twin(link_mass=1e-9, link_inertia=1e-12)
    )
    start = tool_path(UR10, q[None])[0]
    target = start.copy()
    target[:3] += 1e-5 * rng.uniform(-1.0, 1.0, 3)
    after = tool_path(UR10, solver.track(target[None], q))[0]
    before = target[:3] - start[:3]

    assert np.allclose(target[:3] - after[:3], (1.0 - kappa / 4.0) * before, atol=2e-8)


@pytest.mark.parametrize(("kappa", "converges"), [(7.9, True), (8.1, False)])
def test_the_stability_bound_is_where_the_iteration_turns(kappa, converges):
    """Past the bound the same arithmetic (through the kernel, which does not refuse) grows the
    error.
    """
    target = tool_path(UR10, UR10.home[None])
    target[0, :3] += 1e-4
    settings = loops.LoopSettings(
        dt=1.0,
        step_clamp=np.inf,
        error_clamp=np.full(2, np.inf),
        twin=np.array([1.0, 1.0, 1e-9, 1e-12]),
        kp=np.full(6, kappa),
        kd=np.zeros(6),
        kappa=kappa,
        first_ballast=0.0,
    )
    memory = np.zeros(20)
    joints = np.empty((200, 6))
    placements = np.array(UR10.placements)
    memory[:6] = UR10.home
    track = loops.kernels(structure_of(*CHAIN), "pose").track
    track(
        placements,
        np.zeros((2, 6)),
        np.repeat(target, 200, axis=0),
        memory,
        tuple(settings),
        1,
        joints,
    )

    left = np.linalg.norm(tool_path(UR10, joints)[-1, :3] - target[0, :3])

    assert (left < 1e-4) == converges


@pytest.mark.parametrize(
    "settings",
    [
        {"dt": 1.0, "kp": 8.0},
        {"dt": 0.1, "kp": 800.0},
        {"dt": 1.0, "kp": 1.0, "kd": 3.5},
        {"dt": 1.0, "kp": 0.0, "kd": 4.0},
        {"dt": 1.0, "kp": (1, 1, 1, 9, 1, 1)},
        {"dt": 1.0, "kp": 1.0, "twin": Twin(tool_mass=0.1)},
    ],
)
def test_settings_past_the_stability_bound_are_refused(settings):
    with pytest.raises(UnstableSolver, match="must stay below 8") as caught:
        ForwardDynamics(UR10, **settings)

    assert caught.value.kappa + 2.0 * caught.value.damping >= 8.0 or caught.value.damping >= 4.0


def test_only_overshooting_settings_are_noted():
    with pytest.warns(UserWarning, match="kappa"):
        ForwardDynamics(UR10, dt=1.0, kp=5.0)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "Compiling")
        ForwardDynamics(UR10, dt=1.0, kp=4.0)


@pytest.mark.parametrize(
    "settings",
    [
        {"dt": 0.0},
        {"dt": math.nan},
        {"dt": 1e300},
        {"iterations": 0},
        {"iterations": 10**21},
        {"kp": "x"},
        {"kp": (1, 2)},
        {"kp": -1.0},
        {"kd": math.inf},
        {"step_clamp": 0.0},
        {"error_clamp": (0.1, -1.0)},
    ],
)
def test_invalid_settings_are_refused(settings):
    with pytest.raises(InvalidParameter):
        ForwardDynamics(UR10, **settings)


def test_a_twin_without_mass_is_refused():
    with pytest.raises(InvalidParameter, match="link_mass"):
        Twin(link_mass=0.0)


def with_ranges(ranges):
    joints = zip(UR10.joints, ranges, strict=True)
    return replace(
        UR10,
        joints=tuple(replace(j, position_min=low, position_max=high) for j, (low, high) in joints),
    )


@pytest.mark.slow
@given(st.integers(0, 2**32 - 1))
def test_solve_ends_within_narrow_limits(seed):
    rng = np.random.default_rng(seed)
    goal = rng.uniform(-1.0, 1.0, 6) + UR10.home
    arm = with_ranges([(float(h) - 1.0, float(h) + 1.0) for h in UR10.home])
    jacobian = pin.computeFrameJacobian(
        UR10.model, UR10.model.createData(), goal, UR10.model.getFrameId("tcp")
    )
    assume(np.linalg.svd(jacobian, compute_uv=False)[-1] > 0.05)

    solution = ForwardDynamics(arm).solve(tool_path(UR10, goal[None])[0], rng.uniform(-3.0, 3.0, 6))

    assert solution.converged
    assert (solution.q >= arm.position_min).all()
    assert (solution.q <= arm.position_max).all()


def test_restarts_lie_within_any_joints_range():
    ranges = [
        (3.5, 6.0),
        (-6.0, -3.5),
        (-math.inf, math.inf),
        (-0.1, 0.2),
        (4.0, math.inf),
        (-math.inf, -4.0),
    ]
    arm = with_ranges(ranges)

    postures = restart_postures(arm, 100)

    assert (postures >= arm.position_min).all()
    assert (postures <= arm.position_max).all()

    slides = replace(arm, joints=tuple(replace(j, kind="prismatic") for j in arm.joints))
    postures = restart_postures(slides, 100)

    assert (postures >= arm.position_min).all()
    assert (postures <= arm.position_max).all()
    assert np.ptp(postures, axis=0).max() < 3.0


@few_examples(25)
@given(st.integers(0, 2**32 - 1))
def test_solve_finds_reachable_poses_from_anywhere(seed):
    rng = np.random.default_rng(seed)
    goal, start = rng.uniform(-math.pi, math.pi, (2, 6))
    target = tool_path(UR10, goal[None])[0]
    solution = ForwardDynamics(UR10).solve(target, start)
    # At a singular goal no first-order method attains 1e-10; there it must say so.
    jacobian = pin.computeFrameJacobian(
        UR10.model, UR10.model.createData(), goal, UR10.model.getFrameId("tcp")
    )
    assume(np.linalg.svd(jacobian, compute_uv=False)[-1] > 0.03)

    assert solution.converged

    translation, rotation = pose.error(target, tool_path(UR10, solution.q[None])[0])

    assert np.linalg.norm(translation) < 1e-9
    assert np.linalg.norm(rotation) < 1e-9
    assert (solution.q >= UR10.position_min).all()
    assert (solution.q <= UR10.position_max).all()


@pytest.mark.slow
@few_examples(8, soak=400)
@given(st.floats(1.5, 50.0), st.floats(0.0, 2.0 * math.pi))
def test_solve_reports_the_distance_to_an_unreachable_target(distance, bearing):
    target = np.array(
        [distance * math.cos(bearing), distance * math.sin(bearing), 0.3, *square().start[3:]]
    )
    solution = ForwardDynamics(UR10).solve(target)
    assume(distance > UR10.arm_length)

    assert not solution.converged

    left, turned = pose.error(target, tool_path(UR10, solution.q[None])[0])

    assert solution.distance == pytest.approx(np.linalg.norm(left), abs=1e-9)
    assert solution.angle == pytest.approx(np.linalg.norm(turned), abs=1e-9)
    assert solution.restarts > 0


@pytest.mark.slow
@pytest.mark.parametrize("arm", ["ur10", "planar2r"])
def test_solve_attains_stretched_postures(arm):
    """There the light links damp what is left of the error, and only a second-order method attains
    1e-10.
    """
    robot = load_robot(arm)
    elbow = 2 if robot.n == 6 else 1
    rng = np.random.default_rng(0)
    goals = rng.uniform(-math.pi, math.pi, (40, robot.n))
    goals[:, elbow] = [*np.geomspace(1e-1, 1e-6, 39), 0.0]

    for target in tool_path(robot, goals):
        solution = ForwardDynamics(robot).solve(target)
        assert solution.converged
        translation, rotation = pose.error(target, tool_path(robot, solution.q[None])[0])
        assert np.linalg.norm(translation) < 2e-10
        assert np.linalg.norm(rotation) < 2e-10 or robot.n == 2
        assert (solution.q >= robot.position_min).all()
        assert (solution.q <= robot.position_max).all()


def test_a_stretched_redundant_arm_is_solved_at_once():
    """Its mass matrix is singular except for the ballast, within the task and outside it."""
    robot = load_robot("planar3r")

    for reach in (np.zeros(3), np.array([1.0, 1e-4, -1e-5])):
        solution = ForwardDynamics(robot).solve(
            tool_path(robot, reach[None])[0], np.array([0.3, 0.5, 0.7])
        )
        assert solution.converged
        assert solution.restarts == 0


def test_solve_is_the_same_every_time():
    target = np.array([-0.4, 0.5, 0.6, 0.0, 1.0, 0.0, 0.0])
    first, second = (ForwardDynamics(UR10).solve(target, np.full(6, 2.0)) for _ in range(2))

    assert np.array_equal(first.q, second.q)


def unreachable(rng, distance):
    direction = rng.normal(size=3)
    return np.concatenate(
        [distance * direction / np.linalg.norm(direction), pose.normalize(rng.normal(size=4))]
    )


@pytest.mark.slow
@few_examples(4, soak=200)
@given(st.integers(0, 2**32 - 1), st.floats(1.45, 5.0))
def test_clamps_bring_the_arm_to_rest(seed, distance):
    """The plain algorithm moves joints by radians, and with clamps alone a stretched elbow
    chatters.
    """
    target = unreachable(np.random.default_rng(seed), distance)
    joints = ForwardDynamics(UR10).track(np.tile(target, (1500, 1)), UR10.home)

    assert np.abs(np.diff(joints[-20:], axis=0)).max() < 1e-3


@pytest.mark.soak  # above with fewer
def test_targets_out_of_reach_end_at_rest():
    rng = np.random.default_rng(5)

    for _ in range(200):
        target = unreachable(rng, rng.uniform(1.45, 3.0))
        joints = ForwardDynamics(UR10).track(np.tile(target, (1000, 1)), UR10.home)
        assert np.abs(np.diff(joints[-10:], axis=0)).max() < 1e-3


@few_examples(25)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 2, 7, 50]), st.sampled_from([0.0, 0.5]))
def test_a_held_target_never_lets_the_pull_grow(seed, iterations, kd):
    """Whatever the target: from step to step the clamped error's potential only falls, so nothing
    can cycle.
    """
    rng = np.random.default_rng(seed)
    solver = ForwardDynamics(UR10, iterations=iterations, kd=kd)
    target = unreachable(rng, rng.uniform(0.2, 3.0))
    path = tool_path(UR10, solver.track(np.tile(target, (100, 1)), rng.uniform(-3.0, 3.0, 6)))
    level = np.zeros(100)
    for error, clamp, stiffness in zip(
        pose.error(target, path), (0.2, 0.5), (50.0, 5.0), strict=True
    ):
        size = np.linalg.norm(error, axis=1)
        level += stiffness * np.where(size < clamp, 0.5 * size**2, clamp * (size - 0.5 * clamp))

    assert np.diff(level).max() < 1e-9


def test_a_target_back_in_reach_is_followed():
    solver = ForwardDynamics(UR10)
    near = square().start
    solver.reset(UR10.home)
    for _ in range(300):
        solver.step(unreachable(np.random.default_rng(1), 2.0))
    for _ in range(300):
        solver.step(near)

    assert solver.last.residual[0] < 1e-6


def test_given_settings_override_those_of_a_preset():
    assert ForwardDynamics.preset(UR10, "smooth").kp == (5.0, 5.0, 5.0, 0.5, 0.5, 0.5)
    assert ForwardDynamics.preset(UR10, "smooth", kp=7.0).kp[0] == 7.0
    assert ForwardDynamics.preset(UR10, "near-singular").twin.link_mass == 0.1
    assert ForwardDynamicsParameters(preset="one-shot").build(UR10).kappa == 2.0
    assert ForwardDynamicsParameters(preset="one-shot", iterations=9).build(UR10).iterations == 9
    # A value counts as given even if it equals the default.
    assert ForwardDynamicsParameters(preset="smooth", kp=(50.0,)).kp == (50.0,)
    assert ForwardDynamics(UR10, preset="smooth", kp=50.0).kp[0] == 50.0

    smooth = ForwardDynamicsParameters(preset="smooth")

    assert ForwardDynamics(UR10, smooth, kp=50.0).kp[0] == 50.0
    assert ForwardDynamics(UR10, smooth, kp=None).kp[0] == 5.0
    assert ForwardDynamics.preset(UR10, "smooth", link_mass=0.001).twin.link_mass == 0.001
    assert change_settings(
        ForwardDynamicsParameters, ForwardDynamicsParameters(kp=7.0), {"preset": "smooth"}
    ).kp == (5.0,)

    changed_preset = change_settings(ForwardDynamicsParameters, smooth, {"preset": "near-singular"})

    assert (changed_preset.kp, changed_preset.link_mass) == ((50.0,), 0.1)

    with pytest.raises(UnknownName, match="smooth"):
        ForwardDynamics.preset(UR10, "smoth")
    with pytest.raises(UnknownName, match="smooth"):
        ForwardDynamicsParameters(preset="smoth")

    for unknown in ({"mass": 1.0}, {"damping": 0.1}):
        with pytest.raises(
            UnknownName, match=r"There is no setting '(mass|damping)' of forward-dynamics"
        ):
            ForwardDynamics.preset(UR10, "smooth", **unknown)


def test_one_shot_takes_one_step():
    solver = ForwardDynamics.preset(UR10, "one-shot")
    solver.step(square().start)

    assert solver.last.residual[0] < 1e-6


def released(robot, target, q, kp, count):
    """The released controller's iteration on pinocchio: explicit Euler, velocity damped by 0.9."""
    model = robot.model.copy()
    for joint in range(1, 7):
        model.inertias[joint] = pin.Inertia(0.1, np.zeros(3), 1e-6 * np.eye(3))
    model.inertias[6] += robot.tool0.act(pin.Inertia(1.0, np.zeros(3), np.eye(3)))
    data = model.createData()
    frame = model.getFrameId("tcp")
    wanted = pin.XYZQUATToSE3(target)
    velocity = np.zeros(6)
    path = []
    for _ in range(count):
        jacobian = pin.computeFrameJacobian(model, data, q, frame, pin.LOCAL_WORLD_ALIGNED)
        tool = data.oMf[frame]
        parts = wanted.translation - tool.translation, pin.log3(wanted.rotation @ tool.rotation.T)
        error = np.concatenate([part / max(1.0, np.linalg.norm(part)) for part in parts])
        mass = np.triu(pin.crba(model, data, q))
        mass += np.triu(mass, 1).T
        q = np.clip(q + 0.02 * velocity, robot.position_min, robot.position_max)
        velocity = 0.9 * (velocity + 0.02 * np.linalg.solve(mass, jacobian.T @ (kp * error)))
        path.append(q)
    return np.array(path)


def test_velocity_accumulation_is_the_released_controllers_iteration():
    solver = ForwardDynamics.preset(UR10, "released", iterations=1, kp=50.0)
    target = square().start

    expected = released(UR10, target, UR10.home, np.array(solver.kp), 200)

    assert np.abs(solver.track(np.tile(target, (200, 1)), UR10.home) - expected).max() < 1e-9

    solver.reset(UR10.home)
    stepped = np.array([solver.step(target) for _ in range(200)])

    assert np.array_equal(stepped, solver.track(np.tile(target, (200, 1)), UR10.home))


@pytest.mark.parametrize(("kappa", "stable"), [(0.110, True), (0.112, False)])
def test_velocity_accumulation_past_one_ninth_is_refused(kappa, stable):
    gains = (kappa / 0.02**2,) * 6
    if stable:
        assert ForwardDynamics.preset(UR10, "released", kp=gains).kappa == pytest.approx(kappa)
        return

    with pytest.raises(UnstableSolver, match="1/9"):
        ForwardDynamics.preset(UR10, "released", kp=gains)


@pytest.mark.parametrize("settings", [{"dt": 0.1}, {"step_clamp": 0.1}, {"scheme": "euler"}])
def test_velocity_accumulation_has_its_own_step(settings):
    with pytest.raises(InvalidParameter):
        ForwardDynamics.preset(UR10, "released", **settings)


def test_the_naive_twin_has_its_own_bound():
    """Its stability bound: 8 over the largest eigenvalue of J H^-1 J^T anywhere is on the safe side
    of kappa 8.
    """
    twin = Twin.naive(6)

    assert twin.numbers == (0.0, 0.0, 1.0 / 6.0, 1.0 / 6.0)

    mass, _ = effective_masses(twin, UR10)
    postures = np.random.default_rng(0).uniform(-3.0, 3.0, (2000, 6))

    _, twin_mobility = mobility(*CHAIN, postures, [twin.numbers])

    assert np.diagonal(twin_mobility, axis1=1, axis2=2).max() <= 1.0 / mass

    with pytest.raises(UnstableSolver):
        ForwardDynamics(UR10, twin=twin, dt=1.0, kp=(8.0 * mass,) * 6)

    solver = ForwardDynamics(UR10, twin=twin, dt=1.0, kp=(3.0 * mass,) * 6, iterations=200)
    for _ in range(20):
        solver.step(square().start)

    assert solver.last.residual[0] < 1e-6
    assert solver.lag(0.01) is None


# test_a_gives_the_known_means_variances_and_alpha compares the same figures.
@pytest.mark.soak
def test_experiment_a_has_the_published_diagonals():
    measured = measure(UR10)
    spreads = [measured[name] for name in (TRANSPOSE, CONDITIONED, NAIVE)]
    expected = [
        [0.469, 0.469, 0.544, 2.13, 2.12, 1.75],
        [0.956, 0.955, 0.986, 0.998, 0.998, 0.998],
        [0.576, 0.577, 0.829, 3.52, 3.51, 3.25],
    ]

    assert np.allclose([spread.diagonal for spread in spreads], expected, rtol=0.02)
    assert np.allclose(
        [spread.variance.max() for spread in spreads], [1.04, 0.017, 1.76], rtol=0.05
    )


def test_experiment_a_has_mean_and_deviation():
    # More than a block of them.
    measured = measure(UR10, 2500)
    single = mobility(
        *CHAIN, configurations(UR10, 2500, 0), [Twin().numbers, Twin.naive(6).numbers]
    )

    for name, matrices in zip((TRANSPOSE, CONDITIONED, NAIVE), single, strict=True):
        assert np.allclose(measured[name].mean, matrices.mean(axis=0))
        assert np.allclose(measured[name].std, matrices.std(axis=0))


def test_the_rotation_error_is_exact():
    """The logarithm that solvers share against the axis and angle that the rotation is made of."""
    rng = np.random.default_rng(0)

    for angle in [
        1e-12,
        1e-9,
        1e-7,
        1e-4,
        0.1,
        1.0,
        3.0,
        math.pi - 1e-4,
        math.pi - 1e-7,
        math.pi - 1e-10,
    ]:
        for _ in range(50):
            axis = rng.normal(size=3)
            axis /= np.linalg.norm(axis)
            current = pin.exp3(rng.uniform(-2.0, 2.0, 3))
            wanted = pin.exp3(angle * axis) @ current
            error = rotation_vector(*(wanted @ current.T).ravel().tolist())
            assert np.abs(np.array(error) - angle * axis).max() < 1e-14


def test_the_last_diagnosis_agrees_with_pinocchio():
    solver = ForwardDynamics(UR10)

    assert solver.last is None

    target = square().start
    solver.step(target)
    last = solver.last
    data = UR10.model.createData()
    frame = UR10.model.getFrameId("tcp")

    jacobian = pin.computeFrameJacobian(UR10.model, data, solver.q, frame, pin.LOCAL_WORLD_ALIGNED)

    assert last.manipulability == pytest.approx(
        math.sqrt(np.linalg.det(jacobian @ jacobian.T)), rel=1e-9
    )
    assert last.iterations == 50

    pin.framesForwardKinematics(UR10.model, data, solver.q)

    assert last.residual[0] == pytest.approx(
        np.linalg.norm(target[:3] - data.oMf[frame].translation), abs=1e-12
    )

    joint, room = last.nearest_limit
    limits = np.minimum(solver.q - UR10.position_min, UR10.position_max - solver.q)

    assert joint == UR10.joint_names[int(np.argmin(limits))]
    assert room == pytest.approx(limits.min())


def test_targets_may_be_pinocchio_poses():
    solver = ForwardDynamics(UR10)
    array = square().start
    solver.reset(UR10.home)
    from_array = solver.step(array)
    solver.reset(UR10.home)

    assert np.allclose(solver.step(pin.XYZQUATToSE3(array)), from_array, atol=1e-12)

    for wrong in ([1.0, 2.0], [math.nan] * 7, [0.5, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0]):
        with pytest.raises(InvalidParameter):
            solver.step(wrong)

    with pytest.raises(InvalidParameter):
        solver.reset([0.0] * 5)


def test_the_tcp_is_moved_to_the_target():
    robot = UR10.with_tcp(
        pin.SE3(pin.exp3(np.array([0.1, -0.2, 0.3])), np.array([0.02, 0.0, 0.15]))
    )
    target = square().start
    q = ForwardDynamics(robot).solve(target).q
    data = UR10.model.createData()
    pin.framesForwardKinematics(UR10.model, data, q)
    attained = data.oMf[UR10.model.getFrameId("tool0")] * robot.tcp

    assert np.abs(attained.homogeneous - pin.XYZQUATToSE3(target).homogeneous).max() < 1e-9


def test_parameters_name_every_setting_and_rebuild_the_solver():
    solver = ForwardDynamics(
        UR10, dt=0.2, iterations=7, kp=3.0, kd=0.1, error_clamp=None, step_clamp=None
    )
    settings = dict(solver.parameters)
    settings["error_clamp"] = tuple(settings["error_clamp"]) or (math.inf, math.inf)
    again = ForwardDynamicsParameters(**settings).build(UR10)
    poses = square().poses[:20]

    assert np.array_equal(again.track(poses, UR10.home), solver.track(poses, UR10.home))


def test_without_stiffness_there_is_no_predicted_lag():
    assert ForwardDynamics(UR10, kp=(0.0, 1.0, 1.0, 1.0, 1.0, 1.0)).lag(0.01) is None
    assert ForwardDynamics(UR10, kp=1.0, kd=0.1).lag(0.01) is None


# Tasks of less than a pose.


def turn_between(a, b):
    """The smallest Rodrigues vector that turns the unit vector a into b."""
    across = np.cross(a, b)
    sine = np.linalg.norm(across)
    return across * (math.atan2(sine, a @ b) / sine if sine > 0.0 else 1.0)


def on_pinocchio(robot, solver, target, q, count):
    """As many iterations towards one target (7,): joint positions (n,)."""
    twin = solver.twin
    model = robot.model.copy()
    for joint in range(1, robot.n + 1):
        model.inertias[joint] = pin.Inertia(
            twin.link_mass, np.zeros(3), twin.link_inertia * np.eye(3)
        )
    # A tool whose rotation is free is a point.
    inertia = 0.0 if solver.task == "position" else twin.tool_inertia
    model.inertias[robot.n] += robot.tool0.act(
        pin.Inertia(twin.tool_mass, np.zeros(3), inertia * np.eye(3))
    )
    data = model.createData()
    frame = model.getFrameId("tcp")
    wanted = pin.XYZQUATToSE3(target)
    last = None
    for _ in range(count):
        jacobian = pin.computeFrameJacobian(model, data, q, frame, pin.LOCAL_WORLD_ALIGNED)
        tool = data.oMf[frame]
        rotation = (
            np.zeros(3)
            if solver.task == "position"
            else turn_between(tool.rotation[:, 2], wanted.rotation[:, 2])
        )
        error = np.concatenate([wanted.translation - tool.translation, rotation])
        slope = (error - (error if last is None else last)) / solver.dt
        force = np.array(solver.kp) * error + np.array(solver.kd) * slope
        upper = np.triu(pin.crba(model, data, q))
        mass = upper + np.triu(upper, 1).T
        q = q + 0.25 * solver.dt**2 * np.linalg.solve(mass, jacobian.T @ force)
        last = error
    return q


@pytest.mark.python_kernels
@pytest.mark.parametrize(
    ("robot", "task"), [(UR10, "axis"), (UR10, "position"), (PLANAR3R, "position")]
)
@few_examples(15)
@given(seed=st.integers(0, 2**32 - 1))
def test_tasks_equal_the_algorithm_on_pinocchio(robot, task, seed):
    rng = np.random.default_rng(seed)
    solver = plain(
        robot,
        task=task,
        iterations=10,
        kp=20.0,
        kd=0.2,
        twin=Twin(link_mass=1e-2, link_inertia=1e-4),
    )
    q = robot.home + rng.uniform(-0.3, 0.3, robot.n)
    target = tool_path(robot, (q + rng.uniform(-0.3, 0.3, robot.n))[None])[0]

    expected = on_pinocchio(robot, solver, target, q, 10)

    assert np.abs(solver.track(target[None], q)[0] - expected).max() < 1e-10


def axis_angle(target, at):
    """Between the z axes of two poses, rad."""
    a, b = (pose.rotate(p[3:], np.array([0.0, 0.0, 1.0])) for p in (target, at))
    return math.atan2(np.linalg.norm(np.cross(a, b)), a @ b)


@pytest.mark.parametrize(
    "task", ["axis", pytest.param("position", marks=pytest.mark.python_kernels)]
)
@few_examples(15)
@given(kappa=st.floats(0.05, 3.9), seed=st.integers(0, 2**32 - 1))
def test_constrained_components_shrink_by_kappa(task, kappa, seed):
    """Near the target, with all mass at the tool; free components neither pull nor hold back."""
    rng = np.random.default_rng(seed)
    q = UR10.home + rng.uniform(-0.3, 0.3, 6)
    twin = Twin(link_mass=1e-8, link_inertia=1e-10)
    solver = plain(UR10, task=task, dt=1.0, iterations=1, kp=(kappa,) * 6, twin=twin)
    start = tool_path(UR10, q[None])[0]
    target = start.copy()
    target[:3] += 1e-5 * rng.uniform(-1.0, 1.0, 3)
    target[3:] = pose.multiply(pose.quaternions(1e-5 * rng.uniform(-1.0, 1.0, 3)), start[3:])
    after = tool_path(UR10, solver.track(target[None], q))[0]
    remaining_part = 1.0 - kappa / 4.0

    assert np.abs(target[:3] - after[:3] - remaining_part * (target[:3] - start[:3])).max() < 2e-8

    if task == "axis":
        assert axis_angle(target, after) == pytest.approx(
            remaining_part * axis_angle(target, start), abs=2e-8
        )


@pytest.mark.slow
@pytest.mark.python_kernels
def test_components_that_the_task_leaves_free_are_ignored():
    start = UR10.home
    target = tool_path(UR10, (start + 0.3)[None])[0]
    rng = np.random.default_rng(0)

    for task, turns in (
        ("axis", [[0.0, 0.0, angle] for angle in (0.5, -3.0, math.pi)]),
        ("position", rng.normal(size=(3, 3))),
    ):
        joints = ForwardDynamics(UR10, task=task).track(target[None], start)
        for turn in turns:
            turned_target = target.copy()
            turned_target[3:] = pose.multiply(target[3:], pose.quaternions(turn))
            assert (
                np.abs(
                    ForwardDynamics(UR10, task=task).track(turned_target[None], start) - joints
                ).max()
                < 1e-12
            )


def opposite_targets():
    """Yield poses (7,) of the UR10's home, with the tool turned by half a turn."""
    target = tool_path(UR10, UR10.home[None])[0]
    for half in (
        pose.quaternions([math.pi, 0.0, 0.0]),
        np.array([1.0, 0.0, 0.0, 0.0]),
        np.array([0.0, 1.0, 0.0, 0.0]),
    ):
        opposite = target.copy()
        opposite[3:] = pose.multiply(target[3:], half)
        yield opposite


# The steps are compiled for other tests, too; the search is not.
def test_steps_turn_an_opposite_tool():
    for opposite in opposite_targets():
        targets = np.tile(opposite, (200, 1))
        first, second = (
            ForwardDynamics(UR10, task="axis").track(targets, UR10.home) for _ in range(2)
        )

        assert axis_angle(opposite, tool_path(UR10, first[-1:])[0]) < 1e-9
        assert np.array_equal(first, second)


@pytest.mark.python_kernels
def test_an_opposite_tool_is_turned():
    """Half a turn about any perpendicular axis would do; it is the same one each time."""
    for opposite in opposite_targets():
        solution = ForwardDynamics(UR10, task="axis").solve(opposite)
        assert solution.converged
        assert axis_angle(opposite, tool_path(UR10, solution.q[None])[0]) < 1e-9
        assert np.array_equal(solution.q, ForwardDynamics(UR10, task="axis").solve(opposite).q)
