"""MuJoCo as a backend: it moves the simulated arm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pinocchio as pin

from simbridge.backends.backend import Ask, Facts
from simbridge.backends.simulation import SimulationBackend
from simbridge.errors import InvalidParameter, optional_package
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

# It loads the solvers.
if TYPE_CHECKING:
    from simbridge.planning.options import Options

# A joint cannot move faster than this, rad/s or m/s: PyBullet's own bound, which keeps an arm from
# diverging that its torques cannot hold.
MAX_JOINT_SPEED = 100.0
# Mass, kg, and moments of inertia, kg m^2, of a body until its own replace them.
PLACEHOLDER_MASS = 1.0
PLACEHOLDER_INERTIA = (1.0, 1.0, 1.0)


def import_mujoco() -> Any:
    """Import mujoco.

    Raises:
        MissingPackage: It is installed, but cannot be imported.
    """
    return optional_package("mujoco", "mujoco", purpose="The simulation", extra="mujoco")


def make_model(robot: Robot) -> Any:
    """Return an arm as a model of MuJoCo: its joints and rigid bodies, and nothing else.

    MuJoCo's defaults add no friction, damping, armature or stops of the joints.

    Args:
        robot: The arm, with all that it carries.
    """
    mujoco = import_mujoco()
    specification = mujoco.MjSpec()
    specification.option.gravity = robot.gravity

    # A body for each link, in the frame of its joint, whose axis is z. Mass and moments are
    # placeholders: MuJoCo's compiler refuses a link without a mass, and a tensor that no body has.
    body = specification.worldbody
    all_moments = []
    for joint, inertia in zip(robot.joints, robot.link_inertias, strict=True):
        moments, axes = np.linalg.eigh(inertia.inertia)
        if np.linalg.det(axes) < 0.0:
            axes[:, 2] *= -1.0
        all_moments.append(moments)

        body = body.add_body(
            name=joint.name,
            pos=joint.placement.translation,
            quat=_quaternion(joint.placement.rotation),
            ipos=inertia.lever,
            iquat=_quaternion(axes),
            mass=PLACEHOLDER_MASS,
            inertia=PLACEHOLDER_INERTIA,
            explicitinertial=True,
        )
        kind = mujoco.mjtJoint.mjJNT_HINGE
        if joint.kind == "prismatic":
            kind = mujoco.mjtJoint.mjJNT_SLIDE
        body.add_joint(name=joint.name, type=kind, axis=(0.0, 0.0, 1.0))
    model = specification.compile()

    # Every link is simulated with the mass and the moments that it has. Body 0 is the world.
    model.body_mass[1:] = [inertia.mass for inertia in robot.link_inertias]
    model.body_inertia[1:] = all_moments
    # What MuJoCo derives from them, such as the mass of each subtree.
    mujoco.mj_setConst(model, mujoco.MjData(model))
    return model


def _quaternion(rotation: Array) -> tuple[float, float, float, float]:
    """Return a rotation matrix (3, 3) as MuJoCo's quaternion: w x y z."""
    quaternion = pin.Quaternion(rotation)
    return quaternion.w, quaternion.x, quaternion.y, quaternion.z


class MujocoBackend(SimulationBackend):
    """A simulated arm in MuJoCo.

    Raises:
        InvalidParameter: A window is wanted, which only PyBullet has here.
    """

    engine = "mujoco"

    def __init__(
        self, robot: Robot, options: Options, *, plan_facts: Facts = (), ask: Ask | None = None
    ) -> None:
        super().__init__(robot, options, plan_facts=plan_facts, ask=ask)
        if self._settings.gui:
            needed = (
                "left out with --backend mujoco: only PyBullet opens a window. Open replay.html of "
                "the run instead, or `simbridge studio`"
            )
            raise InvalidParameter("gui", "on", needed)

        # The module mujoco, the arm's model, and its state; None before the backend is entered.
        self._mujoco: Any = None
        self._engine_model: Any = None
        self._engine_state: Any = None

    def _open_engine(self) -> None:
        self._mujoco = import_mujoco()
        self._engine_model = make_model(self._real)
        self._engine_state = self._mujoco.MjData(self._engine_model)

    def _close_engine(self) -> None:
        self._engine_state = None
        self._engine_model = None

    def _place_joints(self, q: Array) -> None:
        self._engine_state.qpos[:] = q
        self._engine_state.qvel[:] = 0.0

    def _measure(self) -> tuple[Array, Array]:
        return self._engine_state.qpos.copy(), self._engine_state.qvel.copy()

    def _step_engine(self, effort: Array) -> None:
        state = self._engine_state
        state.qfrc_applied[:] = effort

        # MuJoCo computes the accelerations, and semi-implicit Euler follows here: MuJoCo's own step
        # knows no bound of the speed, but puts an arm that diverges back to its zero posture, and
        # writes a log file into the working directory.
        self._mujoco.mj_forward(self._engine_model, state)
        speed = state.qvel + self.physics_step * state.qacc
        state.qvel[:] = np.clip(speed, -MAX_JOINT_SPEED, MAX_JOINT_SPEED)
        state.qpos[:] += self.physics_step * state.qvel
