"""Generated kernels, most as machine code, against pinocchio: revolute and prismatic joints, one to
twelve of them.
"""

from __future__ import annotations

import functools
import math

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge.ik.kernels import generation, mathematics
from simbridge.ik.kernels.records import allocate_descent
from simbridge.kernels.compile import kernel
from simbridge.kernels.expression import Generated, Trace, statements
from simbridge.kernels.program import program_of
from simbridge.kernels.records import with_attributes
from simbridge.robot import chain as robot_chain
from simbridge.robot.chain import TASK_ROWS
from simbridge.robot.kinematics import task_jacobians, tool_poses
from tests.properties import few_examples, variants

# Revolute (r) and prismatic (p) joints, from the base on. A chain takes seconds to compile, so
# there are few.
LONGEST = "rrrprrrrrprr"
CHAINS = ["rrrrrrr", "rprrp", LONGEST, "p"]
# Of the longest one only the iteration is compiled.
CHAINS_LONGEST_IN_PYTHON = [
    "rrrrrrr",
    "rprrp",
    pytest.param(LONGEST, marks=pytest.mark.python_kernels),
    pytest.param("p", marks=pytest.mark.soak),
]


def moved(placements, q, target, kp, damping, twin, clamp, ballast, pull, error, motion):
    """Calls the generated `move`."""
    move(placements, q, target, kp, damping, twin, clamp, ballast, pull, error, motion)  # noqa: F821


def linearized(arrays):
    """Calls the generated `linearize`."""
    linearize(arrays[0])  # noqa: F821


def kinematics(placements, q, twin, tool, jacobian, mass):
    """Calls a function that is generated as `move` is."""
    compute(placements, q, twin, tool, jacobian, mass)  # noqa: F821


def compiled(entry, **replacements):
    """A function of this file as a kernel, with generated functions."""
    program = program_of(entry, replacements=replacements)
    return kernel(program, entry.__name__, "chain of a test")


class Chain:
    """A chain that holds many of the zeros and ones of built arms, and skewed frames, and its
    machine code.
    """

    def __init__(self, kinds):
        rng = np.random.default_rng(len(kinds))
        quarter = pin.exp3(np.array([math.pi / 2, 0.0, 0.0]))
        self.slides = [kind == "p" for kind in kinds]
        self.n = len(kinds)
        self.placements = [
            pin.SE3(
                [np.eye(3), quarter, quarter.T, pin.exp3(rng.uniform(-2, 2, 3))][rng.integers(4)],
                rng.uniform(-0.5, 0.5, 3) * (rng.random(3) < 0.7),
            )
            for _ in range(self.n + 1)
        ]
        self.frames = np.array([placement.homogeneous for placement in self.placements])
        self.structure = generation.structure_of(self.frames, np.array(self.slides))
        self.move = compiled(moved, move=generation.generate_move(self.structure, "pose"))
        self.linearize = {
            task: compiled(
                linearized, linearize=generation.generate_linearize(self.structure, task)
            )
            for task in TASK_ROWS
        }
        self.kinematics = compiled(kinematics, compute=self._kinematics())

    @functools.cached_property
    def by_differences(self):
        """As `linearize["pose"]`, with a Jacobian by finite differences."""
        return compiled(
            linearized,
            linearize=generation.generate_linearize(self.structure, "pose", differences=True),
        )

    def difference_quotients(self, q, step):
        """The Jacobian (6, n) by finite differences."""
        descents = self._descents(q, np.ones(12), (math.inf, math.inf), step)
        self.by_differences(descents)
        return with_attributes(descents)[0].search.candidate_jacobian.T

    def linearized(self, q, target, task, clamps=(math.inf, math.inf)):
        """Error (6,), pull (6,) and Jacobian (n, 6); what the function leaves alone is 9."""
        frame = np.concatenate([target.translation, target.rotation.ravel()])
        descents = self._descents(q, frame, clamps, 0.01)
        self.linearize[task](descents)
        search = with_attributes(descents)[0].search
        return search.residual, search.candidate_error, search.candidate_jacobian

    def _descents(self, q, target, clamps, difference_step):
        """The record of the loops; what the function is to fill is 9."""
        descents = allocate_descent(self.n)
        descent = with_attributes(descents)[0]
        descent.iterate.q = q
        search = descent.search
        search.placements = self.frames
        search.target = target
        search.translation_clamp, search.rotation_clamp = clamps
        search.difference_step = difference_step
        search.residual = 9.0
        search.candidate_error = 9.0
        search.candidate_jacobian = 9.0
        return descents

    def _kinematics(self):
        """Tool frame, Jacobian and mass matrix, traced as the solvers' functions are."""
        trace = Trace()
        n = self.n
        at = self.structure.trace_frames(trace)
        twists = robot_chain.jacobian(at, self.slides)
        mass = mathematics.mass_matrix(at, twists, [trace.name(f"twin[{i}]") for i in range(4)])
        results = [(f"tool[{r}, {c}]", at.rotation[r][c]) for r in range(3) for c in range(3)]
        results += [(f"tool[{r}, 3]", at.position[r]) for r in range(3)]
        results += [(f"jacobian[{r}, {c}]", twists[c][r]) for r in range(6) for c in range(n)]
        results += [(f"mass[{r}, {c}]", mass[r][c]) for r in range(n) for c in range(r + 1)]
        body = "\n".join(f"    {line}" for line in statements(trace, results))
        text = f"def compute(placements, q, twin, tool, jacobian, mass):\n{body}\n"
        return Generated(text, (mathematics.cosine_and_sine,))

    def expected(self, q, twin):
        """Tool, Jacobian (6, n) and mass matrix (n, n) by pinocchio; twin: tool mass and inertia,
        then each link's.
        """
        model = pin.Model()
        parent = 0
        for i, slides in enumerate(self.slides):
            joint = pin.JointModelPZ() if slides else pin.JointModelRZ()
            parent = model.addJoint(parent, joint, self.placements[i], f"j{i}")
            # A link's mass stays where its joint begins, wherever a slide has gone: there it is q
            # behind the frame.
            origin = np.array([0.0, 0.0, -q[i] if slides else 0.0])
            model.inertias[parent] = pin.Inertia(twin[2], origin, twin[3] * np.eye(3))
        model.inertias[parent] += self.placements[-1].act(
            pin.Inertia(twin[0], np.zeros(3), twin[1] * np.eye(3))
        )
        frame = model.addFrame(
            pin.Frame("tool", parent, 0, self.placements[-1], pin.FrameType.OP_FRAME)
        )
        data = model.createData()
        jacobian = (
            pin.computeFrameJacobian(model, data, q, frame, pin.LOCAL_WORLD_ALIGNED)
            .reshape(6, self.n)
            .copy()
        )
        tool = data.oMf[frame].copy()
        upper = np.triu(pin.crba(model, data, q).reshape(self.n, self.n))
        return tool, jacobian, upper + np.triu(upper, 1).T

    def moved(self, q, target, kp, twin):
        """Error (6,) and motion (n + 1,) of the kernel's `move`, without clamps, damping and
        ballast.
        """
        pull = np.zeros(6)
        error = np.zeros(6)
        motion = np.zeros(self.n + 1)
        aim = np.concatenate([target.translation, target.rotation.ravel()])
        self.move(
            self.frames, q, aim, kp, np.zeros(6), twin, np.full(2, np.inf), 0.0, pull, error, motion
        )
        return error, motion


@functools.cache
def chain(kinds):
    return Chain(kinds)


def posture(rng, n):
    """Joint positions (n,), some exactly zero or a quarter turn, where chains are singular."""
    return np.where(
        rng.random(n) < 0.3,
        rng.choice([0.0, math.pi / 2, -math.pi / 2], n),
        rng.uniform(-4.0, 4.0, n),
    )


def any_twin(rng):
    """From the conditioned one's light links to heavy ones."""
    return rng.uniform([0.5, 0.5, 1e-3, 1e-6], [2.0, 2.0, 0.2, 1e-2])


# The iteration, which consists of these, is compiled: see below.
@pytest.mark.python_kernels
@pytest.mark.parametrize("kinds", CHAINS)
@few_examples(12, soak=500)
@given(seed=st.integers(0, 2**32 - 1))
def test_frames_jacobian_and_mass_matrix_equal_pinocchio(kinds, seed):
    rng = np.random.default_rng(seed)
    own = chain(kinds)
    q = posture(rng, own.n)
    twin = any_twin(rng)
    tool = np.zeros((3, 4))
    jacobian = np.zeros((6, own.n))
    mass = np.zeros((own.n, own.n))
    own.kinematics(own.frames, q, twin, tool, jacobian, mass)
    frame, geometric, crba = own.expected(q, twin)

    assert np.abs(tool - frame.homogeneous[:3]).max() < 1e-12
    assert np.abs(jacobian - geometric).max() < 1e-12
    assert np.abs(mass - np.tril(crba)).max() < 1e-12


@pytest.mark.parametrize("kinds", variants(CHAINS, "rrrrrrr", "rprrp", LONGEST))
@few_examples(10, soak=800)
@given(seed=st.integers(0, 2**32 - 1))
def test_poses_and_jacobians_along_a_path_equal_pinocchio(kinds, seed):
    rng = np.random.default_rng(seed)
    own = chain(kinds)
    path = np.array([posture(rng, own.n) for _ in range(3)])
    slides = np.array(own.slides)
    jacobians = task_jacobians(own.frames, slides, path, "pose")
    for q, pose, jacobian in zip(
        path, tool_poses(own.frames, slides, path), jacobians, strict=True
    ):
        tool, geometric, _ = own.expected(q, np.ones(4))
        assert np.abs(pin.XYZQUATToSE3(pose).homogeneous - tool.homogeneous).max() < 1e-12
        assert np.linalg.norm(pose[3:]) == pytest.approx(1.0, abs=1e-14)
        assert np.abs(jacobian - geometric).max() < 1e-12


def test_quaternion_signs_are_continuous_along_a_path():
    own = chain("rrrrrrr")
    path = np.ones(7) + np.linspace(0.0, 30.0, 4000)[:, None] * np.ones(7)
    poses = tool_poses(own.frames, np.array(own.slides), path)

    assert poses[0, 6] >= 0.0
    assert (np.sum(poses[1:, 3:] * poses[:-1, 3:], axis=1) > 0.9).all()


@pytest.mark.parametrize("kinds", variants(CHAINS, "rrrrrrr", "rprrp", LONGEST))
@few_examples(12, soak=500)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_iteration_solves_pinocchios_equation_of_motion(kinds, seed):
    rng = np.random.default_rng(seed)
    own = chain(kinds)
    q = posture(rng, own.n)
    twin = any_twin(rng)
    kp = rng.uniform(0.5, 2.0, 6)
    tool, jacobian, mass = own.expected(q, twin)
    offset = np.concatenate([rng.uniform(-1.0, 1.0, 3), rng.uniform(-1.0, 1.0, 3)])
    target = pin.SE3(pin.exp3(offset[3:]) @ tool.rotation, tool.translation + offset[:3])
    error, motion = own.moved(q, target, kp, twin)

    assert np.abs(error - offset).max() < 1e-12
    torque = jacobian.T @ (kp * offset)
    # The residual, so that a singular posture cannot blur the comparison.
    assert np.abs(mass @ motion[:-1] - torque).max() < 1e-12 * max(1.0, np.abs(motion[:-1]).max())
    assert motion[-1] == pytest.approx(motion[:-1] @ torque, rel=1e-12)


def smallest_turn(one, other):
    """The Rodrigues vector that brings a unit vector to another by the shortest way."""
    across = np.cross(one, other)
    sine = np.linalg.norm(across)
    return across / sine * math.atan2(sine, one @ other)


@pytest.mark.slow
@pytest.mark.parametrize("task", TASK_ROWS)
@pytest.mark.parametrize("kinds", CHAINS_LONGEST_IN_PYTHON)
@few_examples(8, soak=300)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_linearization_is_pinocchios(kinds, task, seed):
    rng = np.random.default_rng(seed)
    own = chain(kinds)
    q = posture(rng, own.n)
    tool, geometric, _ = own.expected(q, np.ones(4))
    target = pin.SE3(pin.exp3(rng.uniform(-1.0, 1.0, 3)) @ tool.rotation, rng.uniform(-1.0, 1.0, 3))
    error, pull, rows = own.linearized(q, target, task)
    turn = {
        "pose": pin.log3(target.rotation @ tool.rotation.T),
        "axis": smallest_turn(tool.rotation[:, 2], target.rotation[:, 2]),
        "position": np.zeros(3),
    }[task]
    wanted = np.concatenate([target.translation - tool.translation, turn])

    assert np.abs(error - wanted).max() < 1e-12
    # For an axis: turns about the tool's own x and y.
    seen = np.eye(6)[: TASK_ROWS[task]]
    if task == "axis":
        seen[3:, 3:] = tool.rotation.T[:2]
    assert np.abs(pull[: TASK_ROWS[task]] - seen @ wanted).max() < 1e-12
    assert np.abs(rows[:, : TASK_ROWS[task]] - (seen @ geometric).T).max() < 1e-12
    clamps = rng.uniform(0.05, 0.5, 2)
    error, pull, _ = own.linearized(q, target, task, clamps)
    assert np.abs(error - wanted).max() < 1e-12
    clamped = wanted.copy()
    for part, clamp in zip(np.split(clamped, 2), clamps, strict=True):
        part *= min(1.0, clamp / max(np.linalg.norm(part), 1e-300))
    assert np.abs(pull[: TASK_ROWS[task]] - seen @ clamped).max() < 1e-12


@pytest.mark.parametrize(
    "kinds", ["rprrp", *(pytest.param(k, marks=pytest.mark.soak) for k in ("rrrrrrr", "p"))]
)
@few_examples(20, soak=800)
@given(seed=st.integers(0, 2**32 - 1), step=st.floats(1e-4, 0.1))
def test_the_jacobian_by_differences_is_of_chords(kinds, seed, step):
    rng = np.random.default_rng(seed)
    own = chain(kinds)
    q = posture(rng, own.n)
    _, exact, _ = own.expected(q, np.ones(4))
    # A joint turns the tool by its whole step; the tool's point goes along a circle, and the
    # difference is its chord.
    chords = exact.copy()
    turns = ~np.array(own.slides)
    across = np.cross(exact[3:].T, exact[:3].T).T
    chords[:3, turns] *= math.sin(step) / step
    chords[:3] += (1.0 - math.cos(step)) / step * across

    assert np.abs(own.difference_quotients(q, step) - chords).max() < 1e-11 / step
    # One-sided: an error of the first order in the step.
    off, moved = (np.linalg.norm(columns, axis=0) for columns in (chords - exact, exact[:3]))
    assert off[turns] == pytest.approx(0.5 * step * moved[turns], rel=1e-3, abs=1e-12)


def turned(angle, axis):
    """The rotation matrix (3, 3) by Rodrigues' formula in extended precision, and its axis."""
    extended = np.asarray(axis, np.longdouble)
    unit = extended / np.linalg.norm(extended)
    x, y, z = unit
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]], np.longdouble)
    sine = np.sin(np.longdouble(angle))
    cosine = np.cos(np.longdouble(angle))
    return np.eye(3) + sine * cross + (1 - cosine) * cross @ cross, unit.astype(float)


AXES = [
    *map(tuple, np.eye(3)),
    *map(tuple, -np.eye(3)),
    (1, 1, 0),
    (0, -1, 1),
    (1, 0, -1),
    (1, 1, 1),
    (1, -1, 1e-9),
]
axes = st.one_of(
    st.sampled_from(AXES),
    st.tuples(*[st.floats(-1.0, 1.0)] * 3).filter(lambda v: np.linalg.norm(v) > 0.1),
)
short_of_half_a_turn = st.one_of(
    st.just(0.0), st.floats(-15.0, 0.0).map(lambda exponent: 10.0**exponent)
)


@pytest.mark.slow
@few_examples(30, soak=3000)
@given(axes, short_of_half_a_turn, st.integers(0, 2**32 - 1))
def test_the_compiled_logarithm_is_exact_to_half_turns(axis, short, seed):
    """Its closed form: the rotation is made of an axis and an angle, and these are the expected
    result.
    """
    own = chain("rrrrrrr")
    angle = math.pi - short
    q = posture(np.random.default_rng(seed), own.n)
    tool, _, _ = own.expected(q, np.ones(4))
    rotation, unit = turned(angle, axis)
    target = pin.SE3((rotation @ tool.rotation).astype(float), tool.translation)
    error, _ = own.moved(q, target, np.ones(6), np.ones(4))
    # Half a turn is the same about the opposite axis, and within rounding of it so is the rest.
    candidates = [angle * unit] + [(angle - 2.0 * math.pi) * unit] * (short < 1e-14)

    assert min(np.abs(error[3:] - wanted).max() for wanted in candidates) < 1e-14
